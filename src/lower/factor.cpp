// Factorisations of matrices and their solvers: structured nodes over [batch, rows, columns].

#include "runtime/factor/kind.h"

#include "base/check.h"
#include "lower/body_builder.h"
#include "lower/registry.h"

namespace coil::lowering {
namespace {

/// Whether a matrix is handed over as its transpose: a view, nothing is moved.
enum class Turn : u8 { No, Yes };

/// Gathers operands and results of one node. Batch dims are merged into one.
class FactorNode {
 public:
  FactorNode(Lowering& l, FactorKind kind) : l_(l) {
    factor_.kind = kind;
    node_.name = l.name();
  }

  void flag(FactorFlag flag, bool set) {
    if (set) factor_.flags |= flag;
  }
  /// Batch dims of all operands that follow; those of an operand are repeated where they are fewer.
  void batch(const Type& type, std::size_t matrix_dims) {
    batch_.assign(type.shape.begin(), type.shape.end() - static_cast<std::ptrdiff_t>(matrix_dims));
  }
  void batch(Exprs dims) { batch_ = std::move(dims); }

  void in(ValueId v, std::size_t dims, Turn turn = Turn::No) {
    Access a = l_.access(v);
    const std::size_t tail = dims + (is_complex(l_.type(v).dtype) ? 1 : 0);
    const std::span<const Expr> last = std::span(a.extents).last(tail);
    Exprs whole = batch_, merged = {numel(l_.syms, batch_)};
    whole.insert(whole.end(), last.begin(), last.end());
    merged.insert(merged.end(), last.begin(), last.end());
    a = reshape(l_.syms, l_.prover, broadcast_to(l_.syms, a, whole), merged);
    if (turn == Turn::Yes) a = turned(a, 1);
    node_.inputs.push_back(l_.linear(a, "matrices"));
  }
  /// A result, laid out as eager lays it out.
  void out(ValueId v, std::size_t dims, Turn turn = Turn::No) {
    const Type& type = l_.type(v);
    Type merged = type;
    merged.shape.assign(type.shape.end() - static_cast<std::ptrdiff_t>(dims), type.shape.end());
    merged.strides.assign(type.strides.end() - static_cast<std::ptrdiff_t>(dims),
                          type.strides.end());
    const Expr size = numel(l_.syms, merged.shape);
    merged.shape.insert(merged.shape.begin(), numel(l_.syms, batch_));
    merged.strides.insert(merged.strides.begin(), size);
    if (turn == Turn::Yes) {
      std::swap(merged.shape[1], merged.shape[2]);
      std::swap(merged.strides[1], merged.strides[2]);
    }
    Buffer buffer = l_.buffer_for(merged, l_.name_of(v));
    buffer.layout.open = true;
    const BufferId id = l_.add_buffer(std::move(buffer));
    node_.outputs.push_back(l_.whole(id));
    Access back = l_.whole(id);
    if (turn == Turn::Yes) back = turned(back, 1);
    Exprs shape = type.shape;
    if (is_complex(type.dtype)) shape.push_back(l_.syms.constant(2));
    l_.set(v, reshape(l_.syms, l_.prover, back, shape));
  }
  /// A temporary result that no value names.
  Access temp(std::string_view suffix, DType dtype, Exprs dims) {
    dims.insert(dims.begin(), numel(l_.syms, batch_));
    const BufferId id = l_.temp(suffix, dtype, std::move(dims));
    node_.outputs.push_back(l_.whole(id));
    return l_.whole(id);
  }
  void finish() {
    node_.attrs = factor_;
    l_.add_structured(std::move(node_));
  }

 private:
  Access turned(const Access& a, std::size_t row) {
    std::vector<i64> order(a.extents.size());
    for (std::size_t d = 0; d < order.size(); ++d) order[d] = static_cast<i64>(d);
    std::swap(order[row], order[row + 1]);
    return permute(l_.syms, a, order);
  }

  Lowering& l_;
  Factor factor_;
  Structured node_;
  Exprs batch_;
};

/// A result of no elements, for what was not asked for.
void set_nothing(Lowering& l, ValueId v) {
  l.fill(l.result(v), 0, str("{}.nothing", l.name_of(v)));
}

/// A node with one matrix and results of these many dims each.
Status lower_factor(Lowering& l, FactorNode& f, ValueId self, std::vector<std::size_t> results) {
  const Node& node = l.node();
  f.batch(l.type(self), 2);
  f.in(self, 2);
  for (std::size_t i = 0; i < results.size(); ++i) f.out(node.outs[i], results[i]);
  f.finish();
  return Ok{};
}

/// The batch dims of a solution.
Exprs solution_batch(Lowering& l, const Node& node) {
  const Exprs& shape = l.type(node.outs[0]).shape;
  return Exprs(shape.begin(), shape.end() - 2);
}

}  // namespace

Status lower_cholesky(Lowering& l, const Node& node, const Args& args) {
  // The upper factor of A is the transpose of the lower one of A^T.
  const Turn turn = args.flag("upper") ? Turn::Yes : Turn::No;
  const ValueId self = args.tensor("self");
  FactorNode f(l, FactorKind::cholesky);
  f.batch(l.type(self), 2);
  f.in(self, 2, turn);
  f.out(node.outs[0], 2, turn);
  f.out(node.outs[1], 0);
  f.finish();
  return Ok{};
}

Status lower_lu_factor(Lowering& l, const Node&, const Args& args) {
  FactorNode f(l, FactorKind::lu);
  return lower_factor(l, f, args.tensor("A"), {2, 1, 0});
}

Status lower_lu_solve(Lowering& l, const Node& node, const Args& args) {
  // X A = B is A^T X^T = B^T.
  const bool left = args.flag("left"), adjoint = args.flag("adjoint");
  const Turn turn = left ? Turn::No : Turn::Yes;
  FactorNode f(l, FactorKind::lu_solve);
  f.flag(kFactorTransposed, left == adjoint);
  f.flag(kFactorConjugated, adjoint && is_complex(l.type(node.outs[0]).dtype));
  f.batch(solution_batch(l, node));
  f.in(args.tensor("LU"), 2);
  f.in(args.tensor("pivots"), 1);
  f.in(args.tensor("B"), 2, turn);
  f.out(node.outs[0], 2, turn);
  f.finish();
  return Ok{};
}

Status lower_solve_triangular(Lowering& l, const Node& node, const Args& args) {
  const bool left = args.flag("left");
  const Turn turn = left ? Turn::No : Turn::Yes;
  FactorNode f(l, FactorKind::triangular);
  f.flag(kFactorUpper, args.flag("upper") == left);
  f.flag(kFactorUnit, args.flag("unitriangular"));
  f.batch(solution_batch(l, node));
  f.in(args.tensor("self"), 2, turn);
  f.in(args.tensor("B"), 2, turn);
  f.out(node.outs[0], 2, turn);
  f.finish();
  return Ok{};
}

Status lower_ldl_factor(Lowering& l, const Node&, const Args& args) {
  const ValueId self = args.tensor("self");
  FactorNode f(l, FactorKind::ldl);
  f.flag(kFactorHermitian, args.flag("hermitian") && is_complex(l.type(self).dtype));
  return lower_factor(l, f, self, {2, 1, 0});
}

Status lower_ldl_solve(Lowering& l, const Node& node, const Args& args) {
  FactorNode f(l, FactorKind::ldl_solve);
  f.flag(kFactorHermitian, args.flag("hermitian") && is_complex(l.type(node.outs[0]).dtype));
  f.batch(solution_batch(l, node));
  f.in(args.tensor("LD"), 2);
  f.in(args.tensor("pivots"), 1);
  f.in(args.tensor("B"), 2);
  f.out(node.outs[0], 2);
  f.finish();
  return Ok{};
}

Status lower_qr(Lowering& l, const Node&, const Args& args) {
  FactorNode f(l, FactorKind::qr);
  return lower_factor(l, f, args.tensor("self"), {2, 1});
}

Status lower_reflectors(Lowering& l, const Node& node, const Args& args) {
  FactorNode f(l, FactorKind::reflectors);
  f.batch(l.type(node.outs[0]), 2);
  f.in(args.tensor("input"), 2);
  f.in(args.tensor("tau"), 1);
  f.out(node.outs[0], 2);
  f.finish();
  return Ok{};
}

Status lower_eigh(Lowering& l, const Node& node, const Args& args) {
  FactorNode f(l, FactorKind::eigh);
  f.flag(kFactorUpper, args.text("UPLO") == "U" || args.text("UPLO") == "u");
  if (args.flag("compute_v")) return lower_factor(l, f, args.tensor("A"), {1, 2});
  set_nothing(l, node.outs[1]);
  return lower_factor(l, f, args.tensor("A"), {1});
}

Status lower_eig(Lowering& l, const Node& node, const Args& args) {
  FactorNode f(l, FactorKind::eig);
  const std::vector<std::size_t> dims = {1, 2};
  return lower_factor(l, f, args.tensor("self"),
                      {dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(node.outs.size())});
}

Status lower_svd(Lowering& l, const Node& node, const Args& args) {
  const ValueId a = args.tensor("A");
  FactorNode f(l, FactorKind::svd);
  f.batch(l.type(a), 2);
  f.in(a, 2);
  f.out(node.outs[1], 1);
  for (const std::size_t part : {0, 2})
    if (args.flag("compute_uv"))
      f.out(node.outs[part], 2);
    else
      set_nothing(l, node.outs[part]);
  f.finish();
  return Ok{};
}

Status lower_matrix_exp(Lowering& l, const Node&, const Args& args) {
  FactorNode f(l, FactorKind::matrix_exp);
  return lower_factor(l, f, args.tensor("self"), {2});
}

namespace {

/// The result `v` with `value(point)` at each point of its shape; complex ones have no imaginary
/// part of their own but what `value` gives at the last index.
template <class F>
void fill_matrix(Lowering& l, ValueId v, const F& value) {
  const BufferId out = l.result(v);
  BodyBuilder b(l, l.name_of(v));
  const Exprs at = b.dims(l.program.buffers[out].shape);
  b.store(out, at, value(b, at));
  b.finish();
}

/// One of the parts of a factor: the elements below or above the diagonal, and ones or the
/// diagonal.
enum class Half : u8 { Lower, Upper };

void unpack_triangle(Lowering& l, ValueId v, ValueId lu, Half half) {
  const bool upper = half == Half::Upper;
  const Access packed = l.access(lu);
  const bool pairs = is_complex(l.type(v).dtype);
  fill_matrix(l, v, [&](BodyBuilder& b, const Exprs& at) {
    const std::size_t row = at.size() - (pairs ? 3 : 2);
    const Expr i = at[row], j = at[row + 1];
    const DType dtype = compute_dtype(l.dtype_of(packed));
    const Val kept = b.test(upper ? l.syms.le(i, j) : l.syms.lt(j, i));
    const Val inside = b.load_if(kept, ops::Scalar::of_float(l.dtype_of(packed), 0), packed, at);
    if (upper) return inside;
    Expr is_one = l.syms.eq(i, j);
    if (pairs) is_one = l.syms.logical_and(is_one, l.syms.eq(at.back(), l.syms.constant(0)));
    return b.where(b.test(is_one), b.constant(dtype, 1), b.cast(inside, dtype));
  });
}

}  // namespace

Status lower_lu_unpack(Lowering& l, const Node& node, const Args& args) {
  const ValueId lu = args.tensor("LU_data");
  for (const std::size_t part : {1, 2})
    if (args.flag("unpack_data"))
      unpack_triangle(l, node.outs[part], lu, part == 2 ? Half::Upper : Half::Lower);
    else
      set_nothing(l, node.outs[part]);
  if (!args.flag("unpack_pivots")) {
    set_nothing(l, node.outs[0]);
    return Ok{};
  }
  const Type& type = l.type(node.outs[0]);
  FactorNode f(l, FactorKind::permutation);
  f.batch(type, 2);
  f.in(args.tensor("LU_pivots"), 1);
  const Access order = f.temp("order", DType::i64, {type.shape.back()});
  f.finish();
  const bool pairs = is_complex(type.dtype);
  const Access by_batch =
      reshape(l.syms, l.prover, order, std::span(type.shape).first(type.ndim() - 1));
  // Row order[j] of A is row j of L U.
  fill_matrix(l, node.outs[0], [&](BodyBuilder& b, const Exprs& at) {
    const std::size_t row = at.size() - (pairs ? 3 : 2);
    Exprs column(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(row));
    column.push_back(at[row + 1]);
    const DType dtype = compute_dtype(is_complex(type.dtype) ? real_of(type.dtype) : type.dtype);
    const Val same = b.op(ops::ScalarOp::eq, {b.load(by_batch, column), b.value(at[row])});
    const Val one = pairs ? b.cast(b.test(l.syms.eq(at.back(), l.syms.constant(0))), dtype)
                          : b.constant(dtype, 1);
    return b.where(same, one, b.constant(dtype, 0));
  });
  return Ok{};
}

}  // namespace coil::lowering
