// Linear algebra in terms of the factorisations that lower/ takes, and their triangular solves.

#include <algorithm>
#include <cmath>

#include "graph/info_check.h"
#include "passes/composite.h"

namespace coil {
namespace {

bool is_complex_value(Composite& c, ValueId v) { return is_complex(c.dtype(v)); }
DType real_dtype(Composite& c, ValueId v) {
  return is_complex_value(c, v) ? real_of(c.dtype(v)) : c.dtype(v);
}
sym::Expr rows(Composite& c, ValueId v) { return c.size(v, -2); }
sym::Expr columns(Composite& c, ValueId v) { return c.size(v, -1); }

ValueId turned(Composite& c, ValueId v) { return c.transpose(v, -1, -2); }
/// The conjugate transpose.
ValueId adjoint(Composite& c, ValueId v) {
  const ValueId t = turned(c, v);
  return is_complex_value(c, v) ? c.call("conj_physical", {t}) : t;
}

/// `v` with exactly the strides of a new tensor that lies by rows.
ValueId by_rows(Composite& c, ValueId v) {
  const Type type = c.type(v);
  if (type.strides == contiguous_strides(c.syms, type.shape)) return v;
  return c.call("clone", {v, MemoryFormat::Contiguous});
}
/// The same by columns, as LAPACK's results lie.
ValueId by_columns(Composite& c, ValueId v) {
  const Type type = c.type(v);
  Exprs shape = type.shape;
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  std::vector<sym::Expr> wanted = contiguous_strides(c.syms, shape);
  std::swap(wanted[wanted.size() - 1], wanted[wanted.size() - 2]);
  if (type.strides == wanted) return v;
  return turned(c, c.call("clone", {turned(c, v), MemoryFormat::Contiguous}));
}

/// The batch dims, then rows and columns.
Exprs matrix_shape(Composite& c, ValueId like, sym::Expr row_count, sym::Expr column_count) {
  Exprs shape = c.shape(like);
  if (shape.size() < 2) c.fail("a matrix must have at least 2 dims, not {}", shape.size());
  shape[shape.size() - 2] = row_count;
  shape.back() = column_count;
  return shape;
}
ValueId identity(Composite& c, ValueId like) {
  const ValueId eye = c.call("eye", {rows(c, like), c.dtype(like)});
  return c.expand(eye, matrix_shape(c, like, rows(c, like), rows(c, like)));
}

/// The program fails where `info` is not 0.
void check_info(Composite& c, ValueId info, std::string_view api) {
  const ValueId any = c.call("any", {c.ne(info, c.n(0))});
  const sym::Expr failed = c.type(c.call("item", {any})).expr;
  c.builder.graph().checks.push_back({c.syms.eq(failed, c.n(0)), info_error(api)});
}
void check_if_asked(Composite& c, ValueId info, std::string_view api) {
  if (c.flag("check_errors")) check_info(c, info, api);
}

// ---- Gauss ----

Values factor_lu(Composite& c, ValueId a) {
  return c.call_all("linalg_lu_factor_ex", {a, true, false});
}
ValueId solve_lu(Composite& c, ValueId lu, ValueId pivots, ValueId b) {
  return c.call("linalg_lu_solve", {lu, pivots, b, true, false});
}

Values inv_ex_row(Composite& c) {
  const ValueId a = c.tensor("A");
  const Values lu = factor_lu(c, a);
  check_if_asked(c, lu[2], "linalg.inv_ex");
  return {solve_lu(c, lu[0], lu[1], identity(c, a)), lu[2]};
}

/// Whether b holds vectors and not matrices.
bool is_vector(Composite& c, ValueId a, ValueId b) {
  if (c.ndim(b) == 1) return true;
  if (c.ndim(b) + 1 != c.ndim(a)) return false;
  for (i64 d = 0; d < c.ndim(b); ++d)
    if (!c.same(c.size(b, d), c.size(a, d))) return false;
  return true;
}

/// The op's A and B: the solution, LU, pivots, info.
Values solve_ex(Composite& c) {
  const ValueId a = c.tensor("A"), b = c.tensor("B");
  const bool left = c.flag("left");
  const bool vector = is_vector(c, a, b);
  if (vector && !left) c.fail("vectors have no place on the right of a matrix");
  const Values lu = factor_lu(c, a);
  const ValueId x =
      c.call("linalg_lu_solve", {lu[0], lu[1], vector ? c.unsqueeze(b, -1) : b, left, false});
  if (!vector) return {x, lu[0], lu[1], lu[2]};
  // Eager lays out a batch of vectors as one matrix.
  const ValueId flat = c.squeeze(x, {c.ndim(x) - 1});
  return {c.ndim(flat) > 1 ? by_columns(c, flat) : flat, lu[0], lu[1], lu[2]};
}

Values solve_ex_row(Composite& c) {
  Values out = solve_ex(c);
  check_if_asked(c, out[3], "linalg.solve_ex");
  if (c.op() == "linalg_solve_ex") return {out[0], out[3]};
  return out;
}

Values lu_row(Composite& c) {
  const bool pivots = c.flag("pivot");
  const Values lu = c.call_all("linalg_lu_factor_ex", {c.tensor("A"), pivots, false});
  return c.call_all("lu_unpack", {lu[0], lu[1], true, pivots});
}

/// The factors of a determinant. Eager factorises A^T where A lies by rows, and its backward
/// formula counts on that.
struct Determinant {
  Values lu;
  ValueId diagonal;
  ValueId sign;  // of the permutation: 1 or -1
};

Determinant determinant(Composite& c) {
  ValueId a = c.tensor("A");
  if (!is_complex_value(c, a) && c.is_contiguous(a)) a = turned(c, a);
  Determinant out;
  out.lu = factor_lu(c, a);
  out.diagonal = c.call("diagonal", {out.lu[0], c.n(0), c.n(-2), c.n(-1)});
  const sym::Expr end = c.syms.add(rows(c, a), c.n(1));
  const ValueId places = c.call("arange.start", {c.n(1), end, DType::i32});
  const ValueId swaps = c.sum(c.ne(out.lu[1], places), {c.ndim(out.lu[1]) - 1}, KeepDim::No);
  const ValueId odd = c.call("remainder.Scalar", {swaps, c.n(2)});
  out.sign = c.to(c.call("rsub.Scalar", {c.mul(odd, c.n(2)), c.n(1)}), c.dtype(a));
  return out;
}

ValueId product_of(Composite& c, ValueId v) { return c.call("prod.dim_int", {v, c.n(-1), false}); }

Values det_row(Composite& c) {
  const Determinant d = determinant(c);
  return {c.mul(product_of(c, d.diagonal), d.sign), d.lu[0], d.lu[1]};
}

Values slogdet_row(Composite& c) {
  const Determinant d = determinant(c);
  const ValueId sign = c.mul(product_of(c, c.call("sgn", {d.diagonal})), d.sign);
  const ValueId logs = c.call("log", {c.call("abs", {d.diagonal})});
  return {sign, c.sum(logs, {c.ndim(logs) - 1}, KeepDim::No), d.lu[0], d.lu[1]};
}

// ---- Cholesky and triangles ----

enum class Half : u8 { Lower, Upper };
Half half_of(Composite& c) { return c.flag("upper") ? Half::Upper : Half::Lower; }

ValueId solve_triangle(Composite& c, ValueId a, ValueId b, Half half) {
  return c.call("linalg_solve_triangular", {a, b, half == Half::Upper, true, false});
}
/// (L L^H)^-1 b, or (U^H U)^-1 b.
ValueId solve_cholesky(Composite& c, ValueId factor, ValueId b, Half half) {
  const ValueId other = adjoint(c, factor);
  const bool is_upper = half == Half::Upper;
  const ValueId first = solve_triangle(c, is_upper ? other : factor, b, Half::Lower);
  return solve_triangle(c, is_upper ? factor : other, first, Half::Upper);
}

Values cholesky_solve_row(Composite& c) {
  return {solve_cholesky(c, c.tensor("input2"), c.self(), half_of(c))};
}
Values cholesky_inverse_row(Composite& c) {
  return {solve_cholesky(c, c.self(), identity(c, c.self()), half_of(c))};
}

Values triangular_solve_row(Composite& c) {
  const bool transposed = c.flag("transpose");
  const ValueId a = c.tensor("A");
  const ValueId x = c.call("linalg_solve_triangular",
                           {transposed ? turned(c, a) : a, c.self(), c.flag("upper") != transposed,
                            true, c.flag("unitriangular")});
  return {x, by_columns(c, c.expand(a, matrix_shape(c, x, rows(c, a), columns(c, a))))};
}

// ---- QR ----

/// `a` with columns of zeros behind it, or without its last columns, so that it has as many as
/// rows.
ValueId squared(Composite& c, ValueId a) {
  const sym::Expr m = rows(c, a), n = columns(c, a);
  if (c.same(m, n)) return a;
  if (sym::Prover(c.syms, c.builder.graph().facts).less(m, n) == sym::Answer::Yes)
    return c.slice(a, -1, c.n(0), m);
  return c.cat({a, c.filled(matrix_shape(c, a, m, c.syms.sub(m, n)), 0, c.dtype(a))}, -1);
}

Values qr_row(Composite& c) {
  const ValueId a = c.tensor("A");
  const std::string mode = c.word("mode");
  if (mode != "reduced" && mode != "complete" && mode != "r") c.fail("there is no mode '{}'", mode);
  const Values factors = c.call_all("geqrf", {a});
  const sym::Expr k = columns(c, factors[1]);
  const bool complete = mode == "complete";
  const ValueId top = complete ? factors[0] : c.slice(factors[0], -2, c.n(0), k);
  const ValueId r = by_columns(c, c.call("triu", {top, c.n(0)}));
  if (mode == "r") return {c.filled({c.n(0)}, 0, c.dtype(a)), r};
  const ValueId reflectors = complete ? squared(c, factors[0]) : c.slice(factors[0], -1, c.n(0), k);
  return {c.call("linalg_householder_product", {reflectors, factors[1]}), r};
}

Values ormqr_row(Composite& c) {
  const ValueId tau = c.tensor("input2"), other = c.tensor("input3");
  ValueId q = c.call("linalg_householder_product", {squared(c, c.self()), tau});
  if (c.flag("transpose")) q = adjoint(c, q);
  return {by_columns(c, c.flag("left") ? matmul(c, q, other) : matmul(c, other, q))};
}

// ---- eigenvalues and singular values ----

struct Svd {
  ValueId u, s, vh;
};
Svd svd(Composite& c, ValueId a) {
  const Values out = c.call_all("_linalg_svd", {a, false, true});
  return {out[0], out[1], out[2]};
}
/// v diag(s) w
ValueId scaled_product(Composite& c, ValueId v, ValueId s, ValueId w) {
  return by_rows(c, matmul(c, c.mul(v, c.unsqueeze(s, -2)), w));
}

Values matrix_sqrth_row(Composite& c) {
  const Values e = c.call_all("_linalg_eigh", {c.self(), std::string("L"), true});
  const ValueId roots = c.call("sqrt", {c.call("clamp_min", {e[0], 0.0})});
  return {scaled_product(c, e[1], roots, adjoint(c, e[1]))};
}

Values polar_row(Composite& c) {
  const ValueId a = c.tensor("A");
  if (sym::Prover(c.syms, c.builder.graph().facts).less(rows(c, a), columns(c, a)) ==
      sym::Answer::Yes)
    c.fail("the matrix has fewer rows than columns");
  const Svd d = svd(c, a);
  return {by_rows(c, matmul(c, d.u, d.vh)), scaled_product(c, adjoint(c, d.vh), d.s, d.vh)};
}

/// Values up to this count as 0, one bound a matrix: max(atol, rtol times the largest).
ValueId tolerance(Composite& c, ValueId a, ValueId sizes) {
  const DType dtype = real_dtype(c, a);
  const ValueId none = c.filled({}, 0, dtype);
  const ValueId atol = c.has("atol") ? c.to(c.tensor("atol"), dtype) : none;
  ValueId rtol = none;
  if (c.has("rtol")) {
    rtol = c.to(c.tensor("rtol"), dtype);
  } else {
    const double eps = dtype == DType::f64 ? 0x1p-52 : 0x1p-23;
    const ValueId longer = c.call("full", {Exprs{}, c.syms.max(rows(c, a), columns(c, a)), dtype});
    rtol = c.mul(longer, eps);
    if (c.has("atol")) rtol = c.where(c.call("le.Scalar", {atol, 0.0}), rtol, 0);
  }
  const ValueId largest = c.call("amax", {sizes, c.as_exprs({-1}), true});
  const auto column = [&](ValueId v) { return c.unsqueeze(v, -1); };
  return c.call("maximum", {column(atol), c.mul(column(rtol), largest)});
}

Values pinv_row(Composite& c) {
  const ValueId a = c.self();
  const sym::Expr m = rows(c, a), n = columns(c, a);
  // Where there is no element, it is not asked for square matrices either.
  if (c.is(c.count(a), 0)) return {c.filled(matrix_shape(c, a, n, m), 0, c.dtype(a))};
  const bool hermitian = c.flag("hermitian");
  ValueId left, values, right;
  if (hermitian) {
    const Values e = c.call_all("_linalg_eigh", {a, std::string("L"), true});
    left = e[1];
    values = e[0];
    right = adjoint(c, e[1]);
  } else {
    const Svd d = svd(c, a);
    left = adjoint(c, d.vh);
    values = d.s;
    right = adjoint(c, d.u);
  }
  const ValueId sizes = hermitian ? c.call("abs", {values}) : values;
  const ValueId kept = c.call("gt.Tensor", {sizes, tolerance(c, a, sizes)});
  return {scaled_product(c, left, c.where(kept, c.call("reciprocal", {values}), 0), right)};
}

// ---- functions that programs hold before autograd takes them apart ----

Values inv_row(Composite& c) {
  const ValueId a = c.self();
  const Values lu = factor_lu(c, a);
  check_info(c, lu[2], "linalg.inv");
  return {solve_lu(c, lu[0], lu[1], identity(c, a))};
}
Values solve_row(Composite& c) {
  const Values out = solve_ex(c);
  check_info(c, out[3], "linalg.solve");
  return {out[0]};
}
Values cholesky_row(Composite& c) {
  // The older op looks at nothing where there is no element, the shape included.
  if (c.op() == "cholesky" && c.is(c.count(c.self()), 0)) return {by_rows(c, c.self())};
  const Values out = c.call_all("linalg_cholesky_ex", {c.self(), c.flag("upper"), false});
  check_info(c, out[1], c.op() == "cholesky" ? "cholesky" : "linalg.cholesky");
  return {out[0]};
}
Values lu_factor_row(Composite& c) {
  const Values out = factor_lu(c, c.tensor("A"));
  check_info(c, out[2], "linalg.lu_factor");
  return {out[0], out[1]};
}
Values ldl_factor_row(Composite& c) {
  const Values out = c.call_all("linalg_ldl_factor_ex", {c.self(), c.flag("hermitian"), false});
  check_info(c, out[2], "linalg.ldl_factor");
  return {out[0], out[1]};
}
Values linalg_det_row(Composite& c) { return {c.call_all("_linalg_det", {c.self()})[0]}; }
Values linalg_slogdet_row(Composite& c) {
  const Values out = c.call_all("_linalg_slogdet", {c.self()});
  return {out[0], out[1]};
}
Values linalg_svd_row(Composite& c) {
  return c.call_all("_linalg_svd", {c.tensor("A"), c.flag("full_matrices"), true});
}
Values svdvals_row(Composite& c) {
  return {c.call_all("_linalg_svd", {c.tensor("A"), false, false})[1]};
}
Values linalg_eigh_row(Composite& c) {
  return c.call_all("_linalg_eigh", {c.self(), c.word("UPLO"), true});
}
Values eigvalsh_row(Composite& c) {
  return {c.call_all("_linalg_eigh", {c.self(), c.word("UPLO"), false})[0]};
}
Values eigvals_row(Composite& c) { return {c.call("_linalg_eigvals", {c.self()})}; }
/// The same of matrices in f32, and what they give in their own dtype.
Values in_f32_row(Composite& c) {
  std::vector<Arg> args = c.args();
  const ValueId matrix = std::get<ValueId>(args.at(0));
  const DType own = c.dtype(matrix);
  args[0] = c.to(matrix, DType::f32);
  Values out = c.call_all(c.op(), std::move(args));
  for (ValueId& v : out)
    if (c.dtype(v) == DType::f32) v = c.to(v, own);
  return out;
}
Values matrix_exp_row(Composite& c) { return {c.call("linalg_matrix_exp", {c.self()})}; }

constexpr DecompositionRow kRows[] = {
    {"linalg_inv_ex", inv_ex_row},
    {"_linalg_solve_ex", solve_ex_row},
    {"linalg_solve_ex", solve_ex_row},
    {"linalg_lu", lu_row},
    {"_linalg_det", det_row},
    {"_linalg_slogdet", slogdet_row},
    {"cholesky_solve", cholesky_solve_row},
    {"cholesky_inverse", cholesky_inverse_row},
    {"triangular_solve", triangular_solve_row},
    {"linalg_qr", qr_row},
    {"ormqr", ormqr_row},
    {"linalg_matrix_sqrth", matrix_sqrth_row},
    {"linalg_polar", polar_row},
    {"linalg_pinv.atol_rtol_tensor", pinv_row},
    {"linalg_inv", inv_row},
    {"inverse", inv_row},
    {"linalg_solve", solve_row},
    {"linalg_cholesky", cholesky_row},
    {"cholesky", cholesky_row},
    {"linalg_lu_factor", lu_factor_row},
    {"linalg_ldl_factor", ldl_factor_row},
    {"linalg_det", linalg_det_row},
    {"det", linalg_det_row},
    {"linalg_slogdet", linalg_slogdet_row},
    {"slogdet", linalg_slogdet_row},
    {"linalg_svd", linalg_svd_row},
    {"linalg_svdvals", svdvals_row},
    {"linalg_eigh", linalg_eigh_row},
    {"linalg_eigvalsh", eigvalsh_row},
    {"linalg_eigvals", eigvals_row},
    {"matrix_exp", matrix_exp_row},
    // Core but for what computes_in_f32 names.
    {"linalg_matrix_exp", in_f32_row},
    {"linalg_cholesky_ex", in_f32_row},
    {"linalg_lu_factor_ex", in_f32_row},
    {"linalg_ldl_factor_ex", in_f32_row},
    {"_linalg_eigh", in_f32_row},
    {"_linalg_svd", in_f32_row},
};

}  // namespace

bool may_compute_in_f32(std::string_view op) {
  return std::ranges::any_of(kRows, [&](const DecompositionRow& row) {
    return row.op == op && row.rewrite == in_f32_row;
  });
}

bool computes_in_f32(const Graph& graph, const Node& node) {
  if (!may_compute_in_f32(node.op)) return false;
  const Type& type = graph.type(std::get<ValueId>(node.args.at(0)));
  if (is_complex(type.dtype) || type.dtype == DType::f32 || type.dtype == DType::f64) return false;
  return (node.op == "linalg_matrix_exp" && is_narrow_float(type.dtype)) ||
         graph.syms->is_const(numel(*graph.syms, type.shape), 0);
}

std::span<const DecompositionRow> linalg_decompositions() { return kRows; }

}  // namespace coil
