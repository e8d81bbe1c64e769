// Elementwise ops under other names, and those that are a few simpler ones.

#include <algorithm>
#include <array>
#include <cmath>

#include "passes/composite.h"

namespace coil {
namespace {

struct Alias {
  std::string_view from, to;
};

// Same arguments, same results.
constexpr Alias kAliases[] = {
    {"subtract.Tensor", "sub.Tensor"},
    {"subtract.Scalar", "sub.Scalar"},
    {"multiply.Tensor", "mul.Tensor"},
    {"multiply.Scalar", "mul.Scalar"},
    {"divide.Tensor", "div.Tensor"},
    {"divide.Scalar", "div.Scalar"},
    {"divide.Tensor_mode", "div.Tensor_mode"},
    {"divide.Scalar_mode", "div.Scalar_mode"},
    {"true_divide.Tensor", "div.Tensor"},
    {"true_divide.Scalar", "div.Scalar"},
    {"not_equal.Tensor", "ne.Tensor"},
    {"not_equal.Scalar", "ne.Scalar"},
    {"less.Tensor", "lt.Tensor"},
    {"less.Scalar", "lt.Scalar"},
    {"less_equal.Tensor", "le.Tensor"},
    {"less_equal.Scalar", "le.Scalar"},
    {"greater.Tensor", "gt.Tensor"},
    {"greater.Scalar", "gt.Scalar"},
    {"greater_equal.Tensor", "ge.Tensor"},
    {"greater_equal.Scalar", "ge.Scalar"},
    {"__and__.Tensor", "bitwise_and.Tensor"},
    {"__and__.Scalar", "bitwise_and.Scalar"},
    {"__or__.Tensor", "bitwise_or.Tensor"},
    {"__or__.Scalar", "bitwise_or.Scalar"},
    {"__xor__.Tensor", "bitwise_xor.Tensor"},
    {"__xor__.Scalar", "bitwise_xor.Scalar"},
    {"__lshift__.Tensor", "bitwise_left_shift.Tensor"},
    {"__lshift__.Scalar", "bitwise_left_shift.Tensor_Scalar"},
    {"__rshift__.Tensor", "bitwise_right_shift.Tensor"},
    {"__rshift__.Scalar", "bitwise_right_shift.Tensor_Scalar"},
    {"clip", "clamp"},
    {"clip.Tensor", "clamp.Tensor"},
    {"max.other", "maximum"},
    {"min.other", "minimum"},
    {"absolute", "abs"},
    {"negative", "neg"},
    {"fix", "trunc"},
    {"arcsin", "asin"},
    {"arccos", "acos"},
    {"arctan", "atan"},
    {"arcsinh", "asinh"},
    {"arccosh", "acosh"},
    {"arctanh", "atanh"},
    {"arctan2", "atan2"},
    {"special_expit", "sigmoid"},
    {"special_exp2", "exp2"},
    {"special_expm1", "expm1"},
    {"special_erf", "erf"},
    {"special_erfc", "erfc"},
    {"special_erfinv", "erfinv"},
    {"special_log1p", "log1p"},
    {"special_sinc", "sinc"},
    {"special_round", "round.decimals"},
    {"special_logit", "logit"},
    {"special_gammaln", "lgamma"},
    {"special_digamma", "digamma"},
    {"special_psi", "digamma"},
    {"special_i0", "i0"},
    {"special_polygamma", "polygamma"},
    {"special_gammainc", "igamma"},
    {"special_gammaincc", "igammac"},
    {"special_xlogy", "xlogy.Tensor"},
    {"special_xlogy.self_scalar", "xlogy.Scalar_Self"},
    {"special_xlogy.other_scalar", "xlogy.Scalar_Other"},
    {"_conj_physical", "conj_physical"},
};

Values renamed(Composite& c) {
  for (const Alias& alias : kAliases)
    if (alias.from == c.op()) return {c.call(std::string(alias.to), c.args())};
  COIL_UNREACHABLE();
}

/// Whether a tensor has the layout that a memory format asks for.
bool has_format(Composite& c, const Arg& format) {
  const MemoryFormat* wanted = std::get_if<MemoryFormat>(&format);
  if (wanted == nullptr || *wanted == MemoryFormat::Preserve) return true;
  if (*wanted == MemoryFormat::Contiguous) return c.is_contiguous(c.self());
  return c.is_channels_last(c.self());
}

/// `to` of any form: the tensor itself where nothing changes.
Values converted(Composite& c) {
  const DType dtype = c.op() == "to.other" || c.op() == "type_as"
                          ? c.dtype(c.tensor("other"))
                          : c.dtype_or("dtype", c.dtype(c.self()));
  const bool is_type_as = c.op() == "type_as";
  const Arg format = is_type_as ? Arg(None{}) : c.arg("memory_format");
  const bool copies = !is_type_as && c.flag("copy");
  if (!copies && dtype == c.dtype(c.self()) && has_format(c, format)) return {c.self()};
  return {c.call("_to_copy", {c.self(), dtype, None{}, None{}, None{}, false, format})};
}

Values positive(Composite& c) { return {c.self()}; }

Values prelu(Composite& c) {
  const ValueId self = c.self(), weight = c.tensor("weight");
  const std::size_t ndim = static_cast<std::size_t>(c.ndim(self));
  Exprs shape(ndim, c.n(1));
  if (ndim > 1) shape[1] = c.count(weight);
  return {c.call("_prelu_kernel", {self, c.reshape(weight, shape)})};
}

/// a * sigmoid(b) of the two halves, rounded once.
Values glu(Composite& c) {
  const i64 dim = c.dim("dim", c.self());
  const sym::Expr half = c.syms.floordiv(c.size(c.self(), dim), c.n(2));
  const DType dtype = c.dtype(c.self());
  const Values parts = c.call_all("split_with_sizes", {c.self(), Exprs{half, half}, c.n(dim)});
  const ValueId gate = c.call("sigmoid", {c.to(parts[1], compute_dtype(dtype))});
  return {c.to(c.mul(c.to(parts[0], compute_dtype(dtype)), gate), dtype)};
}

Values isclose(Composite& c) {
  const ValueId a = c.self();
  ValueId b = c.tensor("other");
  ValueId close = c.eq(a, b);
  if (c.flag("equal_nan")) {
    const ValueId both = c.call("logical_and", {c.call("isnan", {a}), c.call("isnan", {b})});
    close = c.call("logical_or", {close, both});
  }
  const double rtol = c.real("rtol"), atol = c.real("atol");
  if (rtol == 0 && atol == 0) return {close};
  if (!is_float(c.dtype(a)) && !is_complex(c.dtype(a))) b = c.to(b, DType::f32);
  const ValueId allowed = c.add(c.call("abs", {c.mul(b, rtol)}), atol);
  const ValueId actual = c.call("abs", {c.sub(a, b)});
  const ValueId near =
      c.call("logical_and", {c.call("isfinite", {actual}), c.binary("le", actual, allowed)});
  return {c.call("logical_or", {close, near})};
}

Values isreal(Composite& c) {
  if (is_complex(c.dtype(c.self()))) return {c.eq(c.call("imag", {c.self()}), 0.0)};
  return {c.call("full_like", {c.self(), true, DType::b8})};
}

Values float_power(Composite& c) {
  const auto wide = [&](const Arg& arg) -> Arg {
    const ValueId* v = std::get_if<ValueId>(&arg);
    if (v == nullptr) return arg;
    return c.to(*v, is_complex(c.dtype(*v)) ? DType::c128 : DType::f64);
  };
  return {c.call("pow." + c.op().substr(c.op().find('.') + 1),
                 {wide(c.arg("self")), wide(c.arg("exponent"))})};
}

/// 2^n in f64 for integers n from -1022 to 1023: its bits.
ValueId power_of_two(Composite& c, ValueId n) {
  const ValueId bits = c.call("bitwise_left_shift.Tensor_Scalar", {c.add(n, c.n(1023)), c.n(52)});
  return c.call("view.dtype", {bits, DType::f64});
}

/// Exact but for one rounding, also where 2^n alone is no number of the dtype. Powers of f64 are
/// multiplied in up to three steps, each but the last exact where the result is not 0 or infinite.
ValueId scaled_by_power(Composite& c, ValueId v, ValueId n) {
  const DType dtype = c.dtype(v);
  n = c.to(c.to(n, DType::i32), DType::i64);  // eager reads 32 bits
  v = c.to(v, DType::f64);
  for (int step = dtype == DType::f64 ? 2 : 0; step > 0; --step) {
    const ValueId above = c.call("clamp", {c.sub(n, c.n(1023)), c.n(0), c.n(1)});
    const ValueId below = c.call("clamp", {c.add(n, c.n(1022)), c.n(-1), c.n(0)});
    // Down by so much less that a result of few bits is rounded in the last step alone.
    const ValueId part = c.add(c.mul(above, c.n(1023)), c.mul(below, c.n(1022 - 53)));
    v = c.mul(v, power_of_two(c, part));
    n = c.sub(n, part);
  }
  const i64 most = dtype == DType::f64 ? 1022 : 300;  // beyond which an f32 is 0 or infinite
  const ValueId rest = c.call("clamp", {n, c.n(-most), c.n(most == 300 ? most : 1023)});
  return c.to(c.mul(v, power_of_two(c, rest)), dtype);
}

/// A float and an integer are taken apart and put together; others are multiplied.
Values ldexp(Composite& c) {
  const ValueId v = c.self(), n = c.tensor("other");
  const DType dtype = c.dtype(v);
  if (is_float(dtype) && is_int(c.dtype(n))) return {scaled_by_power(c, v, n)};
  const bool is_kept = is_float(dtype) || is_complex(dtype);
  const ValueId two = c.filled({}, 2, is_kept ? dtype : DType::f32);
  return {c.mul(v, c.call("pow.Tensor_Tensor", {two, n}))};
}

Values ndtr(Composite& c) {
  const double root_half = std::sqrt(0.5);
  return {c.mul(c.add(c.call("erf", {c.mul(c.self(), root_half)}), 1.0), 0.5)};
}

ValueId difference(Composite& c, ValueId v, i64 dim) {
  const sym::Expr size = c.size(v, dim);
  const ValueId later = c.slice(v, dim, c.n(1), size);
  const ValueId earlier = c.slice(v, dim, c.n(0), c.syms.sub(size, c.n(1)));
  return is_bool(c.dtype(v)) ? c.call("logical_xor", {later, earlier}) : c.sub(later, earlier);
}

Values diff(Composite& c) {
  const i64 dim = c.dim("dim", c.self());
  if (c.count_of("n") == 0) return {c.call("clone", {c.self()})};  // of self alone
  Values parts = {c.self()};
  if (c.has("prepend")) parts.insert(parts.begin(), c.tensor("prepend"));
  if (c.has("append")) parts.push_back(c.tensor("append"));
  ValueId v = parts.size() == 1 ? parts[0] : c.cat(parts, dim);
  for (i64 i = c.count_of("n"); i > 0; --i) v = difference(c, v, dim);
  return {v};
}

/// Sums of neighbours along dim.
ValueId neighbour_sums(Composite& c, ValueId y, i64 dim) {
  const sym::Expr size = c.size(y, dim);
  const ValueId left = c.slice(y, dim, c.n(0), c.syms.sub(size, c.n(1)));
  return c.add(left, c.slice(y, dim, c.n(1), size));
}

/// What lies between the points of x, which are those of y along dim. Dims that x lacks are of one
/// point, between which nothing lies.
ValueId steps_of(Composite& c, ValueId x, ValueId y, i64 dim) {
  const i64 missing = c.ndim(y) - c.ndim(x);
  if (missing > 0) {
    Exprs shape(static_cast<std::size_t>(c.ndim(y)), c.n(1));
    const i64 first = c.ndim(x) == 1 ? dim : missing;
    for (i64 d = 0; d < c.ndim(x); ++d) shape[static_cast<std::size_t>(first + d)] = c.size(x, d);
    x = c.reshape(x, shape);
  }
  return difference(c, x, dim);
}

/// The order of operations is eager's: sums of the ends of integers wrap, and so do their areas.
Values trapezoid(Composite& c) {
  const ValueId y = c.tensor("y");
  const i64 dim = c.dim("dim", y);
  if (c.is(c.size(y, dim), 0)) {
    Exprs shape = c.shape(y);
    shape.erase(shape.begin() + dim);
    return {c.filled(shape, 0, c.dtype(y))};
  }
  if (c.op().ends_with(".x")) {
    const ValueId areas = c.mul(neighbour_sums(c, y, dim), steps_of(c, c.tensor("x"), y, dim));
    return {c.div(c.sum(areas, {dim}, KeepDim::No), 2.0)};
  }
  const ValueId ends = c.add(c.select(y, dim, c.n(0)), c.select(y, dim, c.n(-1)));
  const ValueId inner = c.sub(c.sum(y, {dim}, KeepDim::No), c.mul(ends, 0.5));
  return {c.mul(inner, c.real("dx"))};
}

Values cumulative_trapezoid(Composite& c) {
  const ValueId y = c.tensor("y");
  const i64 dim = c.dim("dim", y);
  const ValueId sums = neighbour_sums(c, y, dim);
  if (!c.op().ends_with(".x")) return {c.call("cumsum", {c.mul(sums, c.real("dx") / 2), c.n(dim)})};
  const ValueId areas = c.mul(sums, steps_of(c, c.tensor("x"), y, dim));
  return {c.div(c.call("cumsum", {areas, c.n(dim)}), 2.0)};
}

constexpr DecompositionRow kRows[] = {
    {"to.dtype", converted},
    {"to.device", converted},
    {"to.dtype_layout", converted},
    {"to.other", converted},
    {"type_as", converted},
    {"positive", positive},
    {"prelu", prelu},
    {"glu", glu},
    {"isclose", isclose},
    {"isreal", isreal},
    {"float_power.Scalar", float_power},
    {"float_power.Tensor_Scalar", float_power},
    {"float_power.Tensor_Tensor", float_power},
    {"ldexp.Tensor", ldexp},
    {"special_ndtr", ndtr},
    {"diff", diff},
    {"trapezoid.x", trapezoid},
    {"trapezoid.dx", trapezoid},
    {"trapz.x", trapezoid},
    {"trapz.dx", trapezoid},
    {"cumulative_trapezoid.x", cumulative_trapezoid},
    {"cumulative_trapezoid.dx", cumulative_trapezoid},
};

constexpr std::size_t kCount = std::size(kAliases) + std::size(kRows);

constexpr std::array<DecompositionRow, kCount> all_rows() {
  std::array<DecompositionRow, kCount> rows{};
  std::size_t n = 0;
  for (const Alias& alias : kAliases) rows[n++] = {alias.from, renamed};
  for (const DecompositionRow& row : kRows) rows[n++] = row;
  return rows;
}

constexpr std::array<DecompositionRow, kCount> kAllRows = all_rows();

}  // namespace

std::span<const DecompositionRow> pointwise_decompositions() { return kAllRows; }

}  // namespace coil
