// Factorisations of matrices and what solves with them. Their results lie by columns, as LAPACK's
// do.

#include "graph/rule.h"

namespace coil {
namespace {

/// A batch of matrices: the sizes in front, then rows and columns.
struct Matrices {
  DType dtype = DType::f32;
  Sizes batch;
  sym::Expr rows, cols;

  Sizes shape() const { return with({rows, cols}); }
  Sizes with(std::initializer_list<sym::Expr> dims) const {
    Sizes out = batch;
    out.insert(out.end(), dims);
    return out;
  }
};

/// Matrices whose elements are only moved.
Result<Matrices> matrices_of_any(const Call& call, std::string_view name) {
  const Type& type = call.tensor(name);
  if (type.ndim() < 2)
    return call.fail("{} must have at least 2 dims, not {}", name, text(call.syms, type));
  return Matrices{type.dtype, Sizes(type.shape.begin(), type.shape.end() - 2),
                  type.shape[type.ndim() - 2], type.shape.back()};
}

DType real_dtype(DType dtype) { return is_complex(dtype) ? real_of(dtype) : dtype; }

/// Eager does not ask the dtype where there is no element.
Result<Matrices> matrices(const Call& call, std::string_view name) {
  if (known_empty(call.graph, call.tensor(name))) return matrices_of_any(call, name);
  const DType dtype = call.tensor(name).dtype;
  const DType real = real_dtype(dtype);
  if (real != DType::f32 && real != DType::f64)
    return call.fail("{} must be f32, f64 or complex of these, not {}", name, coil::name(dtype));
  return matrices_of_any(call, name);
}

Result<Matrices> squares(const Call& call, std::string_view name) {
  Matrices m = COIL_TRY(matrices(call, name));
  COIL_TRY(call.sizes_agree(m.rows, m.cols));
  return m;
}

Type by_columns(const Call& call, DType dtype, Sizes shape) {
  Type type = call.contiguous(dtype, std::move(shape));
  const std::size_t n = type.ndim();
  type.strides[n - 2] = call.number(1);
  type.strides[n - 1] = larger(call.graph, type.shape[n - 2], call.number(1));
  return type;
}
/// What stands for a result that was not asked for.
Type nothing(const Call& call, DType dtype) { return call.contiguous(dtype, {call.number(0)}); }

sym::Expr smaller_side(const Call& call, const Matrices& m) {
  return smaller(call.graph, m.rows, m.cols);
}
DType complex_dtype(DType dtype) { return is_complex(dtype) ? dtype : complex_of(dtype); }

/// The importer makes checks of it, and passes false.
Status no_check(const Call& call) {
  if (call.flag("check_errors")) return call.fail("check_errors must be false here");
  return Ok{};
}

Result<Types> cholesky(const Call& call) {
  COIL_TRY(no_check(call));
  const Matrices a = COIL_TRY(squares(call, "self"));
  return Types{by_columns(call, a.dtype, a.shape()), call.contiguous(DType::i32, a.batch)};
}

Result<Types> lu_factor(const Call& call) {
  COIL_TRY(no_check(call));
  const Matrices a = COIL_TRY(matrices(call, "A"));
  if (!call.flag("pivot") && !known_empty(call.graph, call.tensor("A")))
    return call.fail("LU without pivoting is for GPUs alone, in torch too");
  return Types{by_columns(call, a.dtype, a.shape()),
               call.contiguous(DType::i32, a.with({smaller_side(call, a)})),
               call.contiguous(DType::i32, a.batch)};
}

Result<Types> lu_unpack(const Call& call) {
  const Matrices a = COIL_TRY(matrices_of_any(call, "LU_data"));
  const sym::Expr k = smaller_side(call, a);
  if (call.flag("unpack_pivots") && call.tensor("LU_pivots").dtype != DType::i32)
    return call.fail("LU_pivots must be i32");
  Types out(3, nothing(call, a.dtype));
  if (call.flag("unpack_pivots")) out[0] = call.contiguous(a.dtype, a.with({a.rows, a.rows}));
  if (call.flag("unpack_data")) {
    out[1] = call.contiguous(a.dtype, a.with({a.rows, k}));
    out[2] = call.contiguous(a.dtype, a.with({k, a.cols}));
  }
  return out;
}

/// Systems with right-hand sides b, of which a and b may repeat matrices along batch dims.
Result<Matrices> solution(const Call& call, std::string_view a_name, std::string_view b_name,
                          bool left) {
  const Matrices a = COIL_TRY(squares(call, a_name));
  Matrices b = COIL_TRY(matrices(call, b_name));
  if (a.dtype != b.dtype)
    return call.fail("{} is {}, but {} is {}", a_name, name(a.dtype), b_name, name(b.dtype));
  COIL_TRY(call.sizes_agree(a.rows, left ? b.rows : b.cols));
  b.batch = COIL_TRY(call.named(broadcast(call.graph, a.batch, b.batch)));
  return b;
}

Result<Types> solve_triangular(const Call& call) {
  const Matrices x = COIL_TRY(solution(call, "self", "B", call.flag("left")));
  return Types{by_columns(call, x.dtype, x.shape())};
}

Result<Types> lu_solve(const Call& call) {
  const bool left = call.flag("left");
  const Matrices x = COIL_TRY(solution(call, "LU", "B", left));
  if (call.tensor("pivots").dtype != DType::i32) return call.fail("pivots must be i32");
  return Types{left ? by_columns(call, x.dtype, x.shape()) : call.contiguous(x.dtype, x.shape())};
}

Result<Types> ldl_factor(const Call& call) {
  COIL_TRY(no_check(call));
  const Matrices a = COIL_TRY(squares(call, "self"));
  return Types{by_columns(call, a.dtype, a.shape()), call.contiguous(DType::i32, a.with({a.rows})),
               call.contiguous(DType::i32, a.batch)};
}

Result<Types> ldl_solve(const Call& call) {
  const Matrices x = COIL_TRY(solution(call, "LD", "B", true));
  if (call.tensor("pivots").dtype != DType::i32) return call.fail("pivots must be i32");
  return Types{by_columns(call, x.dtype, x.shape())};
}

Result<Types> geqrf(const Call& call) {
  const Matrices a = COIL_TRY(matrices(call, "self"));
  return Types{by_columns(call, a.dtype, a.shape()),
               call.contiguous(a.dtype, a.with({smaller_side(call, a)}))};
}

Result<Types> householder_product(const Call& call) {
  const Matrices a = COIL_TRY(matrices(call, "input"));
  const Type& tau = call.tensor("tau");
  if (known_less(call.graph, a.rows, a.cols))
    return call.fail("input has more columns than rows: {}", text(call.syms, call.tensor("input")));
  if (tau.dtype != a.dtype || tau.ndim() != a.batch.size() + 1)
    return call.fail("tau is {}", text(call.syms, tau));
  if (known_less(call.graph, a.cols, tau.shape.back()))
    return call.fail("tau has more elements than input has columns");
  return Types{by_columns(call, a.dtype, a.shape())};
}

Result<Types> eigh(const Call& call) {
  const Matrices a = COIL_TRY(squares(call, "A"));
  const Type values = call.contiguous(real_dtype(a.dtype), a.with({a.rows}));
  return Types{values, call.flag("compute_v") ? by_columns(call, a.dtype, a.shape())
                                              : nothing(call, a.dtype)};
}

Result<Types> eig(const Call& call) {
  const Matrices a = COIL_TRY(squares(call, "self"));
  const DType dtype = complex_dtype(a.dtype);
  Types out = {call.contiguous(dtype, a.with({a.rows}))};
  if (call.op() == "linalg_eig") out.push_back(by_columns(call, dtype, a.shape()));
  return out;
}

Result<Types> svd(const Call& call) {
  const Matrices a = COIL_TRY(matrices(call, "A"));
  const sym::Expr k = smaller_side(call, a);
  const bool full = call.flag("full_matrices");
  Types out = {nothing(call, a.dtype), call.contiguous(real_dtype(a.dtype), a.with({k})),
               nothing(call, a.dtype)};
  if (call.flag("compute_uv")) {
    out[0] = by_columns(call, a.dtype, a.with({a.rows, full ? a.rows : k}));
    out[2] = by_columns(call, a.dtype, a.with({full ? a.cols : k, a.cols}));
  }
  return out;
}

/// Halves too: eager multiplies them as they are.
Result<Types> matrix_exp(const Call& call) {
  const Type& self = call.self();
  if (!is_narrow_float(self.dtype)) {
    const Matrices a = COIL_TRY(squares(call, "self"));
    return Types{call.contiguous(a.dtype, a.shape())};
  }
  if (self.ndim() < 2)
    return call.fail("self must have at least 2 dims, not {}", text(call.syms, self));
  COIL_TRY(call.sizes_agree(self.shape[self.ndim() - 2], self.shape.back()));
  return Types{call.contiguous(self.dtype, self.shape)};
}

constexpr RuleRow kRules[] = {
    {"linalg_cholesky_ex", cholesky},
    {"linalg_lu_factor_ex", lu_factor},
    {"lu_unpack", lu_unpack},
    {"linalg_lu_solve", lu_solve},
    {"linalg_solve_triangular", solve_triangular},
    {"linalg_ldl_factor_ex", ldl_factor},
    {"linalg_ldl_solve", ldl_solve},
    {"geqrf", geqrf},
    {"linalg_householder_product", householder_product},
    {"_linalg_eigh", eigh},
    {"linalg_eig", eig},
    {"_linalg_eigvals", eig},
    {"_linalg_svd", svd},
    {"linalg_matrix_exp", matrix_exp},
};

}  // namespace

std::span<const RuleRow> linalg_rules() { return kRules; }

}  // namespace coil
