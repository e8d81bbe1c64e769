// Runs of equal elements: unique, mode, repeat_interleave.

#include "passes/composite.h"

namespace coil {
namespace {

/// 0, 1, .. along `dim` of `like`, in its number of dims.
ValueId positions_along(Composite& c, ValueId like, i64 dim) {
  Exprs shape(static_cast<std::size_t>(c.ndim(like)), c.n(1));
  shape[static_cast<std::size_t>(dim)] = c.size(like, dim);
  const ValueId line = c.call("arange.start_step", {c.n(0), c.size(like, dim), c.n(1), DType::i64});
  return c.view(line, shape);
}

/// Whether an element differs from the one before it along `dim`; the first one does.
ValueId differs_from_last(Composite& c, ValueId v, i64 dim) {
  const ValueId before = c.call("roll", {v, Exprs{c.n(1)}, Exprs{c.n(dim)}});
  return c.ne(v, before);
}

ValueId or_first(Composite& c, ValueId differs, ValueId like, i64 dim) {
  return c.call("logical_or", {c.eq(positions_along(c, like, dim), c.n(0)), differs});
}

/// The runs of a line of elements of which `starts` says where one begins.
struct Runs {
  ValueId begins;  // [runs]: the position of the first element
  ValueId number;  // [elements]: of the element's run
  sym::Expr count;
};

Runs runs_of(Composite& c, ValueId starts) {
  Runs runs;
  runs.begins = c.select(c.call("nonzero", {starts}), 1, c.n(0));
  runs.number = c.sub(c.call("cumsum", {c.to(starts, DType::i64), c.n(0)}), c.n(1));
  runs.count = c.size(runs.begins, 0);
  return runs;
}

ValueId lengths_of(Composite& c, const Runs& runs) {
  const ValueId zeros = c.filled({runs.count}, 0, DType::i64);
  const ValueId ones = c.filled(c.shape(runs.number), 1, DType::i64);
  return c.call("scatter_add", {zeros, c.n(0), runs.number, ones});
}

/// `number` of sorted elements in the order that they had: `order` is where they came from.
ValueId in_old_order(Composite& c, ValueId number, ValueId order) {
  const ValueId zeros = c.filled(c.shape(number), 0, DType::i64);
  return c.call("scatter.src", {zeros, c.n(0), order, number});
}

bool wants(Composite& c, std::string_view flag) { return c.has(flag) && c.flag(flag); }

/// unique of all elements, sorted or as they stand (then `order` is invalid).
Values unique_elements(Composite& c, ValueId line, ValueId order) {
  const Runs runs = runs_of(c, or_first(c, differs_from_last(c, line, 0), line, 0));
  const ValueId none = c.filled({c.n(0)}, 0, DType::i64);
  Values out = {c.call("index_select", {line, c.n(0), runs.begins}), none, none};
  if (wants(c, "return_inverse")) {
    const ValueId number = order.valid() ? in_old_order(c, runs.number, order) : runs.number;
    out[1] = c.view(number, c.shape(c.self()));
  }
  if (wants(c, "return_counts")) out[2] = lengths_of(c, runs);
  if (c.base() == "_unique") out.pop_back();
  return out;
}

Values unique(Composite& c) {
  const Values sorted =
      c.call_all("sort.stable", {c.reshape(c.self(), {c.count(c.self())}), true, c.n(0), false});
  return unique_elements(c, sorted[0], sorted[1]);
}

/// The order in which rows stand by their elements, the first ones foremost: a stable sort by each
/// column, from the last to the first. One step of a scan is one column.
ValueId order_of_rows(Composite& c, ValueId rows) {
  Graph& graph = c.builder.graph();
  const ValueId columns = c.contiguous(c.call("flip", {c.transpose(rows, 0, 1), Exprs{c.n(0)}}));
  const ValueId start = c.call("arange.start_step", {c.n(0), c.size(rows, 0), c.n(1), DType::i64});
  Graph step;
  step.name = "sort_by_column";
  step.syms = graph.syms;
  step.composites = graph.composites;
  Type column = c.type(columns);
  column.shape.erase(column.shape.begin());
  column.strides.erase(column.strides.begin());
  const ValueId order = step.add_value("order", c.type(start));
  const ValueId keys = step.add_value("column", column);
  for (ValueId v : {order, keys}) step.inputs.push_back({step.values[v].name, v, {}});
  GraphBuilder inner(step, LocId(), "v");
  const ValueId now = inner.call("gather", {keys, c.n(0), order});
  const Values sorted = inner.call_all("sort.stable", {now, true, c.n(0), false});
  Output next;
  next.value = inner.call("gather", {order, c.n(0), sorted[1]});
  step.outputs.push_back(next);
  Node scan;
  scan.op = "scan";
  scan.args = {Values{start}, Values{columns}, Values{}};
  scan.subgraphs = {static_cast<u32>(graph.subgraphs.size())};
  graph.subgraphs.push_back(std::move(step));
  return c.builder.append(std::move(scan)).at(0);
}

enum class RowOrder : u8 { Sorted, AsGiven };

/// unique of the slices along `dim`, as rows. All three results are always there.
Values unique_slices(Composite& c, RowOrder how) {
  const i64 dim = c.dim("dim", c.self());
  if (c.ndim(c.self()) == 0) c.fail("a tensor without dims has no slices");
  Dims order;
  for (i64 d = 0; d < c.ndim(c.self()); ++d) order.push_back(d);
  order.erase(order.begin() + dim);
  order.insert(order.begin(), dim);
  const ValueId turned = c.permute(c.self(), order);
  Exprs shape = c.shape(turned);
  ValueId rows = c.reshape(turned, {shape[0], c.product(shape, 1, shape.size())});
  ValueId from;
  if (how == RowOrder::Sorted) {
    from = order_of_rows(c, rows);
    rows = c.call("index_select", {rows, c.n(0), from});
  }
  const ValueId differs = c.call("any.dim", {differs_from_last(c, rows, 0), c.n(1), true});
  const Runs runs = runs_of(c, c.squeeze(or_first(c, differs, differs, 0), {1}));
  shape[0] = runs.count;
  const ValueId kept = c.view(c.call("index_select", {rows, c.n(0), runs.begins}), shape);
  Dims back(order.size());
  for (std::size_t d = 0; d < order.size(); ++d)
    back[static_cast<std::size_t>(order[d])] = static_cast<i64>(d);
  const ValueId values = c.contiguous(c.permute(kept, back));
  const ValueId number = from.valid() ? in_old_order(c, runs.number, from) : runs.number;
  return {values, number, lengths_of(c, runs)};
}

Values unique_dim(Composite& c) { return unique_slices(c, RowOrder::Sorted); }
Values unique_dim_consecutive(Composite& c) { return unique_slices(c, RowOrder::AsGiven); }

Values unique_consecutive(Composite& c) {
  if (c.has("dim")) return unique_slices(c, RowOrder::AsGiven);
  return unique_elements(c, c.reshape(c.self(), {c.count(c.self())}), ValueId());
}

/// The most frequent element of each row, the smallest of several, and its last position. In sorted
/// order it is the last one of the first among the longest runs.
Values mode(Composite& c) {
  const ValueId v = c.self();
  if (c.ndim(v) == 0) return {v, c.filled({}, 0, DType::i64)};
  const i64 dim = c.dim("dim", v);
  const Values sorted = c.call_all("sort.stable", {v, true, c.n(dim), false});
  const ValueId position = positions_along(c, v, dim);
  const ValueId starts = or_first(c, differs_from_last(c, sorted[0], dim), v, dim);
  const ValueId zero = c.filled({}, 0, DType::i64);
  const ValueId start = c.call("where.self", {starts, position, zero});
  const ValueId begin = c.call_all("cummax", {start, c.n(dim)}).at(0);
  const ValueId best = c.call("argmax", {c.sub(position, begin), c.n(dim), true});
  Values out;
  for (ValueId from : sorted) {
    const ValueId at = c.call("gather", {from, c.n(dim), best});
    out.push_back(c.keep() == KeepDim::Yes ? at : c.squeeze(at, {dim}));
  }
  return out;
}

/// Element i of the result is the number of the repeat that it comes from.
Values repeat_interleave(Composite& c) {
  const ValueId repeats = c.tensor("repeats");
  sym::Expr size;
  if (c.has("output_size")) {
    size = c.integer("output_size");
  } else {
    size = c.type(c.call("item", {c.sum(repeats)})).expr;
    c.syms.set_range(size, {0, sym::kMaxInt});
  }
  const ValueId ends = c.call("cumsum", {repeats, c.n(0)});
  return {c.call("clone",
                 {c.to(starts_before(c, ends, size), c.dtype(repeats)), MemoryFormat::Contiguous})};
}

/// The slices along `dim` as often as their repeats say.
Values repeat_interleave_slices(Composite& c) {
  ValueId v = c.self(), repeats = c.to(c.tensor("repeats"), DType::i64);
  i64 dim = 0;
  if (c.has("dim"))
    dim = c.dim("dim", v);
  else
    v = c.reshape(v, {c.count(v)});
  if (c.ndim(v) == 0) v = c.reshape(v, {c.n(1)});
  repeats =
      c.expand(c.ndim(repeats) == 0 ? c.reshape(repeats, {c.n(1)}) : repeats, {c.size(v, dim)});
  const ValueId from = c.call("repeat_interleave.Tensor", {repeats, c.arg("output_size")});
  return {c.call("index_select", {v, c.n(dim), from})};
}

constexpr DecompositionRow kRows[] = {
    {"_unique", unique},
    {"_unique2", unique},
    {"unique_dim", unique_dim},
    {"unique_dim_consecutive", unique_dim_consecutive},
    {"unique_consecutive", unique_consecutive},
    {"mode", mode},
    {"repeat_interleave.Tensor", repeat_interleave},
    {"repeat_interleave.self_Tensor", repeat_interleave_slices},
};

}  // namespace

std::span<const DecompositionRow> unique_decompositions() { return kRows; }

}  // namespace coil
