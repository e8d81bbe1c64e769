// Sort and topk: a structured node over the rows [rows, n] of the tensor, its results viewed back.

#include "base/check.h"
#include "lower/body_builder.h"
#include "lower/registry.h"

namespace coil::lowering {
namespace {

/// The tensor with dim `d` last.
std::vector<i64> last_order(std::size_t rank, std::size_t d) {
  std::vector<i64> order;
  for (std::size_t k = 0; k < rank; ++k)
    if (k != d) order.push_back(static_cast<i64>(k));
  if (rank > 0) order.push_back(static_cast<i64>(d));
  return order;
}

std::vector<i64> inverse(const std::vector<i64>& order) {
  std::vector<i64> out(order.size());
  for (std::size_t k = 0; k < order.size(); ++k)
    out[static_cast<std::size_t>(order[k])] = static_cast<i64>(k);
  return out;
}

Status sort_rows(Lowering& l, const Node& node, const Args& args, Sort attrs) {
  sym::Arena& syms = l.syms;
  const Access in = l.access(args.tensor("self"));
  const std::size_t rank = in.extents.size();
  const std::vector<i64> order = last_order(rank, rank ? args.dim("dim", rank) : 0);
  const Access last = permute(syms, in, order);
  const Exprs& shape = last.extents;
  const Expr n = rank ? shape.back() : syms.constant(1);
  const Expr rows = rank ? numel(syms, std::span(shape).first(rank - 1)) : syms.constant(1);
  const Expr k = attrs.is_topk && rank ? args.size("k") : n;  // without dims the one element
  Structured s;
  s.name = l.name();
  s.attrs = attrs;
  s.inputs = {l.linear(reshape(syms, l.prover, last, Exprs{rows, n}), "rows")};
  Exprs result_shape(shape.begin(), shape.end());
  if (rank) result_shape.back() = k;
  for (std::size_t r = 0; r < 2; ++r) {
    const DType dtype = r == 0 ? l.dtype_of(in) : DType::i64;
    const BufferId sorted = l.temp(r == 0 ? "sorted" : "order", dtype, {rows, k});
    s.outputs.push_back(l.whole(sorted));
    const Access back = reshape(syms, l.prover, l.whole(sorted), result_shape);
    l.set(node.outs[r], permute(syms, back, inverse(order)));
  }
  l.add_structured(std::move(s));
  return Ok{};
}

}  // namespace

Status lower_sort(Lowering& l, const Node& node, const Args& args) {
  return sort_rows(l, node, args, {args.flag("descending"), false});
}

Status lower_topk(Lowering& l, const Node& node, const Args& args) {
  return sort_rows(l, node, args, {args.flag("largest"), true});
}

}  // namespace coil::lowering
