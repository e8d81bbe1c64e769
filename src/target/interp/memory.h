#pragma once
// Buffers at run time: evaluated layouts over bytes.

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "loop/program.h"
#include "runtime/tensor.h"

namespace coil::interp {

/// Points handled together.
inline constexpr i64 kChunk = 1024;

/// Values of variables and host floats during a call.
struct Env {
  const sym::Arena* syms = nullptr;
  std::unordered_map<sym::Expr, i64> values;
  std::vector<double> scalars;

  std::optional<i64> eval(sym::Expr e) const;
  /// Where a missing value is a defect of lowering.
  i64 at(sym::Expr e) const;
};

/// A layout with numbers for its expressions; see Layout. `modulus` 0: none.
struct LayoutPart {
  u32 dim = 0;
  i64 factor = 1;
  i64 modulus = 0;
  i64 stride = 0;
  bool operator==(const LayoutPart&) const = default;
};

/// The content of a buffer. Never changes once the step that defines it has run.
struct Memory {
  DType dtype = DType::f32;  // as held: f64 for every float of a widened program
  std::vector<i64> shape;
  std::vector<LayoutPart> parts;
  i64 offset = 0;
  i64 space = 0;  // elements from `data` on that addresses may reach
  std::byte* data = nullptr;
  std::shared_ptr<void> owner;

  i64 numel() const;
  /// Whether the address is offset + the sum of index[dim] * stride.
  bool is_strided() const;
  bool same_layout(const Memory& other) const {
    return shape == other.shape && parts == other.parts && offset == other.offset;
  }
  /// Addresses of the elements at row-major positions start .. start + n - 1.
  void addresses(i64 start, i64 n, i64* out) const;
};
using MemoryRef = std::shared_ptr<Memory>;

/// The layout of a buffer in numbers, without bytes; an Error for sizes that cannot be.
Result<Memory> evaluate_layout(const Buffer& buffer, const Env& env, DType held);
std::vector<LayoutPart> strided_parts(std::span<const i64> strides);
/// Gives it bytes that read as NaN, as -1 or as false.
Status allocate(Memory& memory);
/// Copies and converts every element; shapes are equal.
void copy_memory(const Memory& from, const Memory& to);
/// Elements as they lie at these addresses, one after the other.
void load_elements(const Memory& memory, i64 n, const i64* addresses, std::byte* out);
void store_elements(const Memory& memory, i64 n, const i64* addresses, const std::byte* in);
/// `n` elements converted as ops::cast does.
void convert(DType from, DType to, i64 n, const std::byte* in, std::byte* out);

}  // namespace coil::interp
