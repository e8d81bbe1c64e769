// Rows of AliasOps that choose, split or reorder dims.

#include <algorithm>
#include <numeric>

#include "graph/builder.h"
#include "graph/rules.h"
#include "import/alias_ops.h"

namespace coil {

TensorId AliasOps::permuted(TensorId of, const std::vector<i64>& order, std::size_t result) {
  if (std::ranges::is_sorted(order)) return builder_.alias(of, call_, result);
  Exprs dims;
  for (i64 d : order) dims.push_back(builder_.syms().constant(d));
  return step(of, "permute", {std::move(dims)}, result);
}

AliasOps::Results AliasOps::transpose() {
  std::vector<i64> order(static_cast<std::size_t>(ndim()));
  std::iota(order.begin(), order.end(), 0);
  const i64 a = dim(1), b = dim(2);
  if (!order.empty()) std::swap(order[a], order[b]);
  return one(permuted(tensor(0), order));
}

AliasOps::Results AliasOps::transpose_last() {
  std::vector<i64> order(static_cast<std::size_t>(ndim()));
  std::iota(order.begin(), order.end(), 0);
  if (call_.op == "t" && order.size() > 2)
    throw BuildError{builder_.error_at(call_, str("t of a tensor with {} dims", order.size()))};
  if (order.size() >= 2) std::swap(order[order.size() - 1], order[order.size() - 2]);
  const bool conjugates = call_.op == "mH" || call_.op == "adjoint" || call_.op == "matrix_H";
  const bool is_conjugated = conjugates && is_complex(type().dtype);
  const TensorId turned = permuted(tensor(0), order, is_conjugated ? call_.names.size() : 0);
  return one(is_conjugated ? copied("conj_physical", turned, {}) : ImportValue(turned));
}

AliasOps::Results AliasOps::reverse_dims() {
  std::vector<i64> order(static_cast<std::size_t>(ndim()));
  std::iota(order.rbegin(), order.rend(), 0);
  return one(permuted(tensor(0), order));
}

std::optional<EinsumOperand> AliasOps::view_of_einsum() {
  const std::string* equation = std::get_if<std::string>(&arg(0));
  if (equation == nullptr || tensors(1).size() != 1) return std::nullopt;
  const std::size_t rank = builder_.type(tensors(1)[0]).ndim();
  const Result<Einsum> e = parse_einsum(*equation, std::span(&rank, 1));
  if (!e.ok() || e->dims != e->result_dims) return std::nullopt;
  return e->operands[0];
}

AliasOps::Results AliasOps::einsum() {
  sym::Arena& syms = builder_.syms();
  const EinsumOperand how = view_of_einsum().value();
  const bool moves = !std::ranges::is_sorted(how.order);
  TensorId view = tensors(1)[0];
  for (const auto& dims : how.diagonals) {
    const bool is_result = !moves && &dims == &how.diagonals.back();
    view = step(view, "diagonal",
                {syms.constant(0), syms.constant(dims.first), syms.constant(dims.second)},
                is_result ? 0 : call_.names.size());
  }
  return one(permuted(view, how.order));
}

AliasOps::Results AliasOps::permute() {
  std::vector<i64> order = integers(1);
  for (i64& d : order) d = wrap(d, ndim());
  std::vector<i64> sorted = order;
  std::ranges::sort(sorted);
  const bool is_each_once = std::ranges::adjacent_find(sorted) == sorted.end();
  if (static_cast<i64>(order.size()) != ndim() || !is_each_once)
    throw BuildError{builder_.error_at(call_, str("dims must name each of {} dims once", ndim()))};
  return one(permuted(tensor(0), order));
}

AliasOps::Results AliasOps::movedim() {
  std::vector<i64> from = integers(1), to = integers(2);
  for (i64& d : from) d = wrap(d, ndim());
  for (i64& d : to) d = wrap(d, ndim());
  const std::size_t count = static_cast<std::size_t>(ndim());
  std::vector<i64> order(count, -1);
  std::vector<bool> is_moved(count, false);
  bool fits = from.size() == to.size();
  for (std::size_t i = 0; fits && i < from.size(); ++i) {
    fits = count > 0 && order[to[i]] < 0 && !is_moved[from[i]];
    if (!fits) break;
    order[to[i]] = from[i];
    is_moved[from[i]] = true;
  }
  if (!fits && count > 0)
    throw BuildError{builder_.error_at(call_, "source and destination must name different dims")};
  std::size_t next = 0;
  for (i64& d : order) {
    if (d >= 0) continue;
    while (is_moved[next]) ++next;
    d = static_cast<i64>(next++);
  }
  return one(permuted(tensor(0), order));
}

AliasOps::Results AliasOps::select() {
  if (ndim() == 0) throw BuildError{builder_.error_at(call_, "select of a 0-d tensor")};
  return one(step(tensor(0), "select.int", {builder_.syms().constant(dim(1)), expr(2)}));
}

TensorId AliasOps::sliced(TensorId of, i64 dim, sym::Expr start, sym::Expr end,
                          std::size_t result) {
  sym::Arena& syms = builder_.syms();
  const bool is_whole = syms.is_const(start, 0) && end == builder_.type(of).shape[dim];
  if (is_whole) return builder_.alias(of, call_, result);
  return step(of, "slice.Tensor", {syms.constant(dim), start, end, syms.constant(1)}, result);
}

AliasOps::Results AliasOps::slice() {
  if (ndim() == 0) throw BuildError{builder_.error_at(call_, "slice of a 0-d tensor")};
  sym::Arena& syms = builder_.syms();
  const i64 at = dim(1);
  const sym::Expr start = is_none(2) ? syms.constant(0) : expr(2);
  const sym::Expr end = is_none(3) ? syms.constant(INT64_MAX) : expr(3);
  const sym::Expr stride = is_none(4) ? syms.constant(1) : expr(4);
  const bool is_open = syms.is_const(end, INT64_MAX) || end == type().shape[at];
  if (syms.is_const(start, 0) && is_open && syms.is_const(stride, 1)) return same();
  return one(step(tensor(0), "slice.Tensor", {syms.constant(at), start, end, stride}));
}

AliasOps::Results AliasOps::narrow() {
  if (ndim() == 0) throw BuildError{builder_.error_at(call_, "narrow of a 0-d tensor")};
  const i64 at = dim(1);
  sym::Expr start = expr(2);
  const std::optional<i64> fixed = builder_.syms().as_const(start);
  if (fixed && *fixed < 0) start = builder_.syms().add(start, type().shape[at]);
  return one(sliced(tensor(0), at, start, builder_.syms().add(start, expr(3)), 0));
}

AliasOps::Results AliasOps::unsqueeze() {
  const i64 at = wrap(integer(1), ndim() + 1);
  return one(step(tensor(0), "unsqueeze", {builder_.syms().constant(at)}));
}

TensorId AliasOps::squeezed(TensorId of, const std::vector<i64>& dims) {
  const Exprs shape = builder_.type(of).shape;
  Exprs gone;
  for (i64 d : dims)
    if (d < static_cast<i64>(shape.size()) && builder_.syms().is_const(shape[d], 1))
      gone.push_back(builder_.syms().constant(d));
  if (gone.empty()) return builder_.alias(of, call_);
  return step(of, "squeeze.dims", {std::move(gone)});
}

AliasOps::Results AliasOps::squeeze() {
  std::vector<i64> dims;
  if (call_.args.size() < 2) {
    dims.resize(static_cast<std::size_t>(ndim()));
    std::iota(dims.begin(), dims.end(), 0);
  } else {
    for (i64 d : integers(1)) dims.push_back(wrap(d, ndim()));
  }
  return one(squeezed(tensor(0), dims));
}

AliasOps::Results AliasOps::diagonal() {
  const i64 first = dim(2), second = dim(3);
  if (first == second)
    throw BuildError{builder_.error_at(call_, "diagonal needs two different dims")};
  sym::Arena& syms = builder_.syms();
  return one(step(tensor(0), "diagonal", {expr(1), syms.constant(first), syms.constant(second)}));
}

AliasOps::Results AliasOps::unfold() {
  return one(step(tensor(0), "unfold", {builder_.syms().constant(dim(1)), expr(2), expr(3)}));
}

AliasOps::Results AliasOps::pieces(i64 dim, const Exprs& starts, const Exprs& ends) {
  if (starts.size() != call_.names.size())
    throw BuildError{builder_.error_at(call_, str("it gives {} pieces where the program has {}",
                                                  starts.size(), call_.names.size()))};
  Results results;
  for (std::size_t i = 0; i < starts.size(); ++i)
    results.push_back(sliced(tensor(0), dim, starts[i], ends[i], i));
  return results;
}

AliasOps::Results AliasOps::chunk() {
  if (ndim() == 0) throw BuildError{builder_.error_at(call_, "chunk of a 0-d tensor")};
  const i64 at = dim(2);
  sym::Arena& syms = builder_.syms();
  const sym::Expr size = type().shape[at];
  if (syms.is_const(size, 0)) {
    const Exprs zeros(call_.names.size(), syms.constant(0));
    return pieces(at, zeros, zeros);
  }
  const i64 count = integer(1);
  if (count <= 0) throw BuildError{builder_.error_at(call_, "chunks must be positive")};
  const sym::Expr each = syms.ceildiv(size, syms.constant(count));
  return split_evenly(at, each);
}

/// Pieces of `each`, the last one shorter where the size is no multiple.
AliasOps::Results AliasOps::split_evenly(i64 dim, sym::Expr each) {
  sym::Arena& syms = builder_.syms();
  const sym::Expr size = type().shape[dim];
  Exprs starts, ends;
  for (std::size_t i = 0; i < call_.names.size(); ++i) {
    starts.push_back(syms.mul(each, syms.constant(static_cast<i64>(i))));
    const bool is_last = i + 1 == call_.names.size();
    ends.push_back(is_last ? size : syms.mul(each, syms.constant(static_cast<i64>(i) + 1)));
  }
  const std::optional<i64> fixed_size = syms.as_const(size), fixed_each = syms.as_const(each);
  if (fixed_size && fixed_each && *fixed_each > 0) {
    const i64 expected =
        std::max<i64>(1, *fixed_size / *fixed_each + (*fixed_size % *fixed_each != 0));
    if (expected != static_cast<i64>(starts.size()))
      throw BuildError{builder_.error_at(
          call_, str("it gives {} pieces where the program has {}", expected, starts.size()))};
  }
  return pieces(dim, starts, ends);
}

AliasOps::Results AliasOps::split() {
  if (ndim() == 0) throw BuildError{builder_.error_at(call_, "split of a 0-d tensor")};
  return split_evenly(dim(2), expr(1));
}

/// Pieces that begin at 0 and at each bound; bounds count from the end where they are negative, and
/// are cut to the size.
AliasOps::Results AliasOps::split_at(i64 dim, const Exprs& inner_bounds) {
  sym::Arena& syms = builder_.syms();
  const sym::Expr size = type().shape[dim];
  Exprs bounds = {syms.constant(0)};
  for (sym::Expr bound : inner_bounds) {
    const std::optional<i64> fixed = syms.as_const(bound);
    if (fixed && *fixed < 0) bound = syms.max(syms.add(bound, size), syms.constant(0));
    const bool is_inside =
        sym::Prover(syms, builder_.graph().facts).less_equal(bound, size) == sym::Answer::Yes;
    bounds.push_back(is_inside ? bound : syms.min(bound, size));
  }
  bounds.push_back(size);
  return pieces(dim, Exprs(bounds.begin(), bounds.end() - 1),
                Exprs(bounds.begin() + 1, bounds.end()));
}

AliasOps::Results AliasOps::split_sizes() {
  if (ndim() == 0) throw BuildError{builder_.error_at(call_, "split of a 0-d tensor")};
  const i64 at = dim(2);
  Exprs starts, ends;
  sym::Expr next = builder_.syms().constant(0);
  for (sym::Expr size : exprs(1)) {
    starts.push_back(next);
    next = builder_.syms().add(next, size);
    ends.push_back(next);
  }
  Status fits =
      require_equal(builder_.graph(), next, type().shape[at], "the sum of the split sizes");
  if (!fits) throw BuildError{builder_.error_at(call_, fits.error().message)};
  return pieces(at, starts, ends);
}

AliasOps::Results AliasOps::tensor_split() {
  if (ndim() == 0) throw BuildError{builder_.error_at(call_, "split of a 0-d tensor")};
  const i64 at = dim(2);
  if (call_.op.ends_with(".indices")) return split_at(at, exprs(1));
  sym::Arena& syms = builder_.syms();
  const i64 count = integer(1);
  if (count != static_cast<i64>(call_.names.size()))
    throw BuildError{builder_.error_at(
        call_, str("it gives {} pieces where the program has {}", count, call_.names.size()))};
  // The first size % count pieces have one element more.
  const sym::Expr each = syms.floordiv(type().shape[at], syms.constant(count));
  const sym::Expr longer = syms.mod(type().shape[at], syms.constant(count));
  Exprs bounds;
  for (i64 i = 1; i < count; ++i)
    bounds.push_back(
        syms.add(syms.mul(each, syms.constant(i)), syms.min(longer, syms.constant(i))));
  return split_at(at, bounds);
}

AliasOps::Results AliasOps::axis_split() {
  const std::string_view name = base_name(call_.op);
  const i64 at = name == "vsplit" ? 0 : name == "dsplit" ? 2 : ndim() == 1 ? 0 : 1;
  if (at >= ndim()) throw BuildError{builder_.error_at(call_, "the tensor has too few dims")};
  if (call_.op.ends_with(".array")) return split_at(at, exprs(1));
  return split_evenly(at, builder_.syms().floordiv(type().shape[at], expr(1)));
}

AliasOps::Results AliasOps::unbind() {
  if (ndim() == 0) throw BuildError{builder_.error_at(call_, "unbind of a 0-d tensor")};
  sym::Arena& syms = builder_.syms();
  const i64 at = dim(1);
  const sym::Expr count = syms.constant(static_cast<i64>(call_.names.size()));
  Status fits =
      require_equal(builder_.graph(), type().shape[at], count, "the number of tensors unbound");
  if (!fits) throw BuildError{builder_.error_at(call_, fits.error().message)};
  Results results;
  for (std::size_t i = 0; i < call_.names.size(); ++i)
    results.push_back(
        step(tensor(0), "select.int", {syms.constant(at), syms.constant(static_cast<i64>(i))}, i));
  return results;
}

/// `of` with at least as many dims as the op's name says.
TensorId AliasOps::with_dims(TensorId of, std::size_t result) {
  const std::string_view name = base_name(call_.op);
  const std::size_t wanted = name == "atleast_1d" ? 1 : name == "atleast_2d" ? 2 : 3;
  Exprs shape = builder_.type(of).shape;
  const sym::Expr unit = builder_.syms().constant(1);
  if (shape.size() >= wanted) return builder_.alias(of, call_, result);
  if (shape.empty()) {
    shape.assign(wanted, unit);
  } else if (wanted == 2 || shape.size() == 1) {
    shape.insert(shape.begin(), unit);
    if (wanted == 3) shape.push_back(unit);
  } else {
    shape.push_back(unit);
  }
  return reshaped(of, std::move(shape), result);
}

AliasOps::Results AliasOps::at_least() { return one(with_dims(tensor(0), 0)); }

AliasOps::Results AliasOps::at_least_each() {
  Results results;
  for (TensorId t : tensors(0)) results.push_back(with_dims(t, results.size()));
  return results;
}

}  // namespace coil
