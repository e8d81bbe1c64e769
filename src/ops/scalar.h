#pragma once
// Scalar ops of level 1: the table, and the one meaning that each op has.

#include <optional>
#include <span>
#include <string_view>

#include "base/dtype.h"

namespace coil::ops {

enum class ScalarOp : u8 {
#define S(name, arity, result, domain) name,
#include "ops/scalar.def"
#undef S
};
inline constexpr int kNumScalarOps = 0
#define S(name, arity, result, domain) +1
#include "ops/scalar.def"
#undef S
    ;

enum class ResultRule : u8 { Same, Bool, Given };
enum class Domain : u8 { Float, Int, Number, Bits, Wide, Any };

struct ScalarInfo {
  std::string_view name;
  int arity;
  ResultRule result;
  Domain domain;
};

const ScalarInfo& info(ScalarOp op);
/// exp, sin, pow, philox and the like: many operations of a machine.
bool is_elementary(ScalarOp op);
std::optional<ScalarOp> scalar_from_name(std::string_view name);
/// Whether the op takes operands of this dtype. Arithmetic is in f32, f64, integers and bool only;
/// narrow floats appear as the target or source of a cast, and in loads and stores.
bool accepts(ScalarOp op, DType operands);

/// One value of any dtype but complex. Narrow floats are held in f; unsigned integers in i by bits.
struct Scalar {
  DType dtype = DType::f32;
  double f = 0;  // floats
  i64 i = 0;     // integers and bool

  static Scalar of_float(DType dtype, double value);
  /// Wraps to the dtype's width; for a float dtype converts.
  static Scalar of_int(DType dtype, i64 value);
  static Scalar of_bool(bool value) { return {DType::b8, 0, value}; }
  double as_double() const;  // of any dtype
  i64 as_int() const;
  bool operator==(const Scalar& o) const;  // bitwise; NaN equals NaN
};

/// The reference evaluator: the op on arrays. `n` elements each, operands of dtype `from` (for
/// where: the first is bool; for cast and bitcast: `from` to `to`). Arrays hold the dtype's memory
/// form. f32 arithmetic is done in f32.
void evaluate(ScalarOp op, DType from, DType to, i64 n, std::span<const void* const> operands,
              void* result);
/// The same on single values; used for constant folding.
Scalar evaluate(ScalarOp op, DType to, std::span<const Scalar> operands);

/// Reads or writes element `index` of an array in its memory form.
Scalar read_element(DType dtype, const void* data, i64 index);
void write_element(DType dtype, void* data, i64 index, const Scalar& value);

}  // namespace coil::ops
