#include "runtime/tensor.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace coil::runtime {
namespace {

/// More than any machine addresses; sizes above it come from a wrong or hostile file.
constexpr i64 kMaxBytes = i64{1} << 47;
constexpr i64 kLargeBytes = i64{4} << 20;  // worth pages of kHugePage bytes
constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Copies the elements below dims[dim..], the innermost row in one piece where both are dense.
void copy_dim(const Tensor& from, const Tensor& to, std::size_t dim, const std::byte* source,
              std::byte* target) {
  const i64 size = size_of(from.dtype);
  if (dim == from.shape.size()) {
    std::memcpy(target, source, static_cast<std::size_t>(size));
    return;
  }
  const i64 extent = from.shape[dim];
  const bool innermost = dim + 1 == from.shape.size();
  if (innermost && from.strides[dim] == 1 && to.strides[dim] == 1) {
    std::memcpy(target, source, static_cast<std::size_t>(extent * size));
    return;
  }
  for (i64 i = 0; i < extent; ++i)
    copy_dim(from, to, dim + 1, source + i * from.strides[dim] * size,
             target + i * to.strides[dim] * size);
}

}  // namespace

std::vector<i64> contiguous_strides(std::span<const i64> shape) {
  std::vector<i64> strides(shape.size());
  i64 stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    if (__builtin_mul_overflow(stride, shape[d] > 1 ? shape[d] : 1, &stride)) stride = INT64_MAX;
  }
  return strides;
}

Result<i64> span_elements(std::span<const i64> shape, std::span<const i64> strides) {
  COIL_CHECK(shape.size() == strides.size(), "{} dims, {} strides", shape.size(), strides.size());
  i64 last = 0;
  bool empty = false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0) return error("size {} of dim {} is negative", shape[d], d);
    if (strides[d] < 0) return error("stride {} of dim {} is negative", strides[d], d);
    if (shape[d] == 0) empty = true;
    i64 reach = 0;
    if (shape[d] > 1 && (__builtin_mul_overflow(shape[d] - 1, strides[d], &reach) ||
                         __builtin_add_overflow(last, reach, &last)))
      return error("a tensor of shape [{}] is too large",
                   join(shape, ", ", [](i64 n) { return str("{}", n); }));
  }
  return empty ? i64{0} : last + 1;
}

Result<std::shared_ptr<void>> allocate_bytes(i64 bytes) {
  if (bytes < 0 || bytes > kMaxBytes) return error("{} bytes are too many for a tensor", bytes);
  const bool is_large = bytes >= kLargeBytes;
  const std::size_t unit = is_large ? kHugePage : kAlignment;
  const std::size_t rounded = (static_cast<std::size_t>(bytes) / unit + 1) * unit;
  // Aligned here, not by aligned_alloc: an aligned request of such a size is mapped from the system
  // and given back each time, whose pages are cleared again in each call.
  char* const block = static_cast<char*>(std::malloc(rounded + unit));
  if (block == nullptr) return error("out of memory: {} bytes for a tensor", bytes);
  char* const memory = block + (unit - reinterpret_cast<std::uintptr_t>(block) % unit) % unit;
#ifdef __linux__
  if (is_large)
    madvise(memory, rounded, MADV_HUGEPAGE);  // a hint: the first touch of a small page is dear
#endif
  return std::shared_ptr<void>(memory, [block](void*) { std::free(block); });
}

Result<void*> Scratch::take(i64 bytes) {
  if (bytes > bytes_ || !memory_) {
    memory_.reset();
    memory_ = COIL_TRY(allocate_bytes(bytes));
    bytes_ = bytes;
  }
  return memory_.get();
}

Result<Tensor> Tensor::allocate(DType dtype, std::vector<i64> shape) {
  std::vector<i64> strides = contiguous_strides(shape);
  return allocate(dtype, std::move(shape), std::move(strides));
}

Result<Tensor> Tensor::allocate(DType dtype, std::vector<i64> shape, std::vector<i64> strides) {
  const i64 elements = COIL_TRY(span_elements(shape, strides));
  i64 bytes = 0;
  if (__builtin_mul_overflow(elements, i64{size_of(dtype)}, &bytes))
    return error("{} elements of {} are too many for a tensor", elements, name(dtype));
  Tensor tensor{dtype, std::move(shape), std::move(strides), nullptr, nullptr};
  tensor.owner = COIL_TRY(allocate_bytes(bytes));
  tensor.data = static_cast<std::byte*>(tensor.owner.get());
  return tensor;
}

i64 Tensor::numel() const {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  i64 count = 1;
  for (i64 n : shape) count *= n;
  return count;
}

bool Tensor::is_contiguous() const {
  if (numel() == 0) return true;
  i64 stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != stride) return false;
    stride *= shape[d];
  }
  return true;
}

Result<Tensor> Tensor::contiguous() const {
  if (is_contiguous()) return *this;
  Tensor copy = COIL_TRY(allocate(dtype, shape));
  copy_elements(*this, copy);
  return copy;
}

void copy_elements(const Tensor& from, const Tensor& to) {
  COIL_CHECK(from.dtype == to.dtype && from.shape == to.shape, "copy of {} to {}", describe(from),
             describe(to));
  if (from.numel() != 0) copy_dim(from, to, 0, from.data, to.data);
}

std::string describe(const Tensor& tensor) {
  return str("{}[{}]", name(tensor.dtype),
             join(tensor.shape, ", ", [](i64 n) { return str("{}", n); }));
}

}  // namespace coil::runtime
