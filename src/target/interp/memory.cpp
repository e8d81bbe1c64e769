#include "target/interp/memory.h"

#include <algorithm>
#include <cstring>

#include "ops/scalar.h"

namespace coil::interp {

std::optional<i64> Env::eval(sym::Expr e) const {
  return syms->eval(e, [&](sym::Expr v) -> std::optional<i64> {
    const auto at = values.find(v);
    return at == values.end() ? std::nullopt : std::optional(at->second);
  });
}

i64 Env::at(sym::Expr e) const {
  const std::optional<i64> value = eval(e);
  COIL_CHECK(value.has_value(), "'{}' has no value at this point", syms->text(e));
  return *value;
}

i64 Memory::numel() const {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  i64 count = 1;
  for (i64 n : shape) count *= n;
  return count;
}

bool Memory::is_strided() const {
  return std::ranges::all_of(parts,
                             [](const LayoutPart& p) { return p.factor == 1 && p.modulus == 0; });
}

void Memory::addresses(i64 start, i64 n, i64* out) const {
  std::vector<i64> index(shape.size());
  i64 rest = start;
  for (std::size_t d = shape.size(); d-- > 0 && n > 0;) {
    index[d] = rest % shape[d];
    rest /= shape[d];
  }
  for (i64 i = 0; i < n; ++i) {
    i64 address = offset;
    for (const LayoutPart& p : parts) {
      const i64 part = index[p.dim] / p.factor;
      address += (p.modulus != 0 ? part % p.modulus : part) * p.stride;
    }
    out[i] = address;
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

std::vector<LayoutPart> strided_parts(std::span<const i64> strides) {
  std::vector<LayoutPart> parts;
  for (std::size_t d = 0; d < strides.size(); ++d)
    parts.push_back({static_cast<u32>(d), 1, 0, strides[d]});
  return parts;
}

Result<Memory> evaluate_layout(const Buffer& buffer, const Env& env, DType held) {
  Memory memory;
  memory.dtype = held;
  for (sym::Expr extent : buffer.shape) {
    memory.shape.push_back(env.at(extent));
    if (memory.shape.back() < 0)
      return error("%{} has a negative size: {}", buffer.name, memory.shape.back());
  }
  // As sizes and strides of parts, so that the checks of tensors serve here too.
  std::vector<i64> sizes;
  std::vector<i64> strides;
  for (const LayoutEntry& entry : buffer.layout.entries) {
    LayoutPart part{entry.dim, entry.factor, 0, env.at(entry.stride)};
    for (const LayoutEntry& other : buffer.layout.entries) {
      const i64 modulus = other.factor / entry.factor;
      if (other.dim == entry.dim && other.factor > entry.factor &&
          (part.modulus == 0 || modulus < part.modulus))
        part.modulus = modulus;
    }
    const i64 extent = memory.shape[entry.dim];
    const i64 reach = extent == 0 ? 0 : (extent - 1) / entry.factor + 1;
    sizes.push_back(part.modulus == 0 ? reach : std::min(reach, part.modulus));
    strides.push_back(part.stride);
    memory.parts.push_back(part);
  }
  const Result<i64> space = runtime::span_elements(sizes, strides);
  if (!space.ok()) return in_context("%" + buffer.name, space.error());
  memory.offset = buffer.layout.offset.valid() ? env.at(buffer.layout.offset) : 0;
  COIL_CHECK(memory.offset >= 0, "%{} has a negative offset", buffer.name);
  memory.space = *space == 0 ? 0 : *space + memory.offset;
  return memory;
}

Status allocate(Memory& memory) {
  const i64 size = size_of(memory.dtype);
  if (memory.space > INT64_MAX / size) return error("{} elements are too many", memory.space);
  const i64 bytes = memory.space * size;
  memory.owner = COIL_TRY(runtime::allocate_bytes(bytes));
  memory.data = static_cast<std::byte*>(memory.owner.get());
  std::memset(memory.data, is_bool(memory.dtype) ? 0 : 0xff, static_cast<std::size_t>(bytes));
  return Ok{};
}

namespace {

template <std::size_t size>
void load_sized(const std::byte* data, i64 n, const i64* addresses, std::byte* out) {
  for (i64 i = 0; i < n; ++i)
    std::memcpy(out + i * static_cast<i64>(size), data + addresses[i] * static_cast<i64>(size),
                size);
}
template <std::size_t size>
void store_sized(std::byte* data, i64 n, const i64* addresses, const std::byte* in) {
  for (i64 i = 0; i < n; ++i)
    std::memcpy(data + addresses[i] * static_cast<i64>(size), in + i * static_cast<i64>(size),
                size);
}

}  // namespace

void load_elements(const Memory& memory, i64 n, const i64* addresses, std::byte* out) {
  switch (size_of(memory.dtype)) {
    case 1: return load_sized<1>(memory.data, n, addresses, out);
    case 2: return load_sized<2>(memory.data, n, addresses, out);
    case 4: return load_sized<4>(memory.data, n, addresses, out);
    default: return load_sized<8>(memory.data, n, addresses, out);
  }
}

void store_elements(const Memory& memory, i64 n, const i64* addresses, const std::byte* in) {
  switch (size_of(memory.dtype)) {
    case 1: return store_sized<1>(memory.data, n, addresses, in);
    case 2: return store_sized<2>(memory.data, n, addresses, in);
    case 4: return store_sized<4>(memory.data, n, addresses, in);
    default: return store_sized<8>(memory.data, n, addresses, in);
  }
}

void convert(DType from, DType to, i64 n, const std::byte* in, std::byte* out) {
  if (from == to) {
    if (n > 0) std::memcpy(out, in, static_cast<std::size_t>(n * size_of(from)));
    return;
  }
  const void* operand = in;
  ops::evaluate(ops::ScalarOp::cast, from, to, n, {&operand, 1}, out);
}

void copy_memory(const Memory& from, const Memory& to) {
  COIL_CHECK(from.shape == to.shape, "copy between different shapes");
  const i64 total = from.numel();
  if (total == 0) return;
  if (from.same_layout(to) && from.dtype == to.dtype && from.space == total && to.space == total) {
    std::memcpy(to.data, from.data, static_cast<std::size_t>(total * size_of(from.dtype)));
    return;
  }
  std::vector<i64> addresses(kChunk);
  alignas(64) std::byte elements[kChunk * 8];
  alignas(64) std::byte converted[kChunk * 8];
  for (i64 start = 0; start < total; start += kChunk) {
    const i64 n = std::min(kChunk, total - start);
    from.addresses(start, n, addresses.data());
    load_elements(from, n, addresses.data(), elements);
    convert(from.dtype, to.dtype, n, elements, converted);
    to.addresses(start, n, addresses.data());
    store_elements(to, n, addresses.data(), converted);
  }
}

}  // namespace coil::interp
