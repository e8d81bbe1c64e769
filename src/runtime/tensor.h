#pragma once
// Tensors as a call takes and returns them: a typed, strided view of memory that somebody owns.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"

namespace coil::runtime {

/// Every allocation starts at a multiple of this.
inline constexpr std::size_t kAlignment = 64;

/// `data` is the element at index (0, 0, ...) and stays valid while `owner` lives. A tensor with an
/// empty `owner` borrows memory that outlives it. Copies share the memory.
struct Tensor {
  DType dtype = DType::f32;
  std::vector<i64> shape;
  std::vector<i64> strides;  // elements, never negative
  std::byte* data = nullptr;
  std::shared_ptr<void> owner;

  /// New memory with undefined content, contiguous or with the given strides. An Error for negative
  /// or absurd sizes, or where the machine has not that much memory.
  static Result<Tensor> allocate(DType dtype, std::vector<i64> shape);
  static Result<Tensor> allocate(DType dtype, std::vector<i64> shape, std::vector<i64> strides);

  i64 ndim() const { return static_cast<i64>(shape.size()); }
  i64 numel() const;
  i64 bytes() const { return numel() * size_of(dtype); }
  bool is_contiguous() const;
  /// Itself if it is contiguous already, else a copy; a copy that cannot be allocated is an Error.
  Result<Tensor> contiguous() const;
};

/// An argument or a result of a call.
using Value = std::variant<Tensor, i64, double, bool, std::string, std::monostate>;

/// Row-major strides, as eager's: a dim of size 0 counts as 1.
std::vector<i64> contiguous_strides(std::span<const i64> shape);
/// 1 + the largest element offset of a strided view, or 0 without elements; an Error on overflow,
/// or on a negative size or stride.
Result<i64> span_elements(std::span<const i64> shape, std::span<const i64> strides);
/// `bytes` of memory at a multiple of kAlignment, one byte at least.
Result<std::shared_ptr<void>> allocate_bytes(i64 bytes);
/// Copies every element; dtypes and shapes are equal and the memory does not overlap.
void copy_elements(const Tensor& from, const Tensor& to);
/// "f32[2, 3]".
std::string describe(const Tensor& tensor);

/// Memory that calls of one run take turns to use.
class Scratch {
 public:
  /// At least `bytes`, aligned to 64, of any content; valid until the next call.
  Result<void*> take(i64 bytes);

 private:
  std::shared_ptr<void> memory_;
  i64 bytes_ = 0;
};

}  // namespace coil::runtime
