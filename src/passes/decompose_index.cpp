// Indexing with masks, scatters into views, look-ups.

#include <algorithm>

#include "passes/composite.h"

namespace coil {
namespace {

bool is_mask(Composite& c, ValueId v) {
  return v.valid() && (c.dtype(v) == DType::b8 || c.dtype(v) == DType::u8);
}

/// Masks replaced by the positions of their true elements, one index a dim of the mask.
Values without_masks(Composite& c, const Values& indices) {
  Values out;
  for (ValueId index : indices) {
    if (!is_mask(c, index)) {
      out.push_back(index);
      continue;
    }
    const ValueId positions = c.call("nonzero", {index});
    for (i64 d = 0; d < c.ndim(index); ++d) out.push_back(c.select(positions, 1, c.n(d)));
  }
  return out;
}

Values index(Composite& c) {
  return {c.call("index.Tensor", {c.self(), without_masks(c, c.tensors("indices"))})};
}

/// One mask over the leading dims and one value: masked_fill, as eager does.
std::optional<ValueId> as_masked_fill(Composite& c) {
  const Values indices = c.tensors("indices");
  const ValueId value = c.tensor("values");
  if (c.flag("accumulate") || !c.is(c.count(value), 1)) return std::nullopt;
  if (indices.size() != 1 || !is_mask(c, indices[0])) return std::nullopt;
  ValueId mask = c.to(indices[0], DType::b8);
  while (c.ndim(mask) < c.ndim(c.self())) mask = c.unsqueeze(mask, c.ndim(mask));
  return c.call("masked_fill.Tensor",
                {c.self(), mask, c.to(c.reshape(value, {}), c.dtype(c.self()))});
}

Values index_put(Composite& c) {
  if (std::optional<ValueId> filled = as_masked_fill(c)) return {*filled};
  return {c.call("index_put", {c.self(), without_masks(c, c.tensors("indices")), c.tensor("values"),
                               c.flag("accumulate")})};
}

Values masked_select(Composite& c) {
  Values both = c.broadcast_all({c.self(), c.tensor("mask")});
  // A mask without dims would add one to self's.
  if (c.ndim(both[0]) == 0)
    for (ValueId& v : both) v = c.unsqueeze(v, 0);
  return {c.call("index.Tensor", {both[0], Values{both[1]}})};
}

Values nonzero_numpy(Composite& c) {
  ValueId v = c.self();
  if (c.ndim(v) == 0) v = c.unsqueeze(v, 0);
  return c.call_all("unbind.int", {c.call("nonzero", {v}), c.n(1)});
}

Values argwhere(Composite& c) { return {c.call("nonzero", {c.self()})}; }

Values take(Composite& c) {
  const ValueId flat = c.reshape(c.self(), {c.count(c.self())});
  return {c.call("index.Tensor", {flat, Values{c.tensor("index")}})};
}

/// gather over the broadcast of both tensors in all dims but `dim`.
Values take_along_dim(Composite& c) {
  ValueId v = c.self(), indices = c.tensor("indices");
  if (!c.has("dim")) {
    const ValueId flat = c.reshape(indices, {c.count(indices)});
    return {c.call("gather", {c.reshape(v, {c.count(v)}), c.n(0), flat})};
  }
  const i64 dim = c.dim("dim", v);
  if (c.ndim(indices) != c.ndim(v)) c.fail("the indices must have as many dims as the tensor");
  Exprs v_shape = c.shape(v), index_shape = c.shape(indices);
  for (std::size_t d = 0; d < v_shape.size(); ++d) {
    if (static_cast<i64>(d) == dim) continue;
    if (c.is(v_shape[d], 1)) v_shape[d] = index_shape[d];
    if (c.is(index_shape[d], 1)) index_shape[d] = v_shape[d];
  }
  return {c.call("gather", {c.expand(v, v_shape), c.n(dim), c.expand(indices, index_shape)})};
}

/// `self` with a view of it replaced by src.
Values scatter_into_view(Composite& c) {
  const std::string name(c.base().substr(0, c.base().find("_scatter")));
  const std::string op = name == "slice" ? "slice.Tensor" : name == "select" ? "select.int" : name;
  ViewStep step;
  step.op = op;
  step.args.assign(c.args().begin() + 2, c.args().end());
  const ValueId src = c.to(c.tensor("src"), c.dtype(c.self()));
  // Elements that share memory get their own.
  const std::vector<sym::Expr>& shape = c.type(c.self()).shape;
  bool shares = false;
  for (std::size_t d = 0; d < shape.size(); ++d)
    shares |= c.syms.is_const(c.type(c.self()).strides[d], 0) && !c.syms.is_const(shape[d], 1);
  const ValueId self = shares ? c.call("clone", {c.self(), None{}}) : c.self();
  return {c.builder.update(self, {std::move(step)}, src)};
}

Values diag_embed_of(Composite& c, ValueId v, sym::Expr offset, i64 dim1, i64 dim2) {
  const i64 ndim = c.ndim(v) + 1;
  dim1 = c.wrap(dim1, ndim);
  dim2 = c.wrap(dim2, ndim);
  if (dim1 == dim2) c.fail("the two dims must differ");
  const i64 shift = c.syms.as_const(offset).value_or(0);
  const sym::Expr side = c.syms.add(c.size(v, -1), c.n(std::abs(shift)));
  Exprs shape = c.shape(v);
  shape.pop_back();
  shape.insert(shape.begin() + std::min(dim1, dim2), side);
  shape.insert(shape.begin() + std::max(dim1, dim2), side);
  const ValueId zeros = c.filled(shape, 0, c.dtype(v));
  return {c.builder.update(zeros, {ViewStep{"diagonal", {offset, c.n(dim1), c.n(dim2)}}}, v)};
}

Values diag_embed(Composite& c) {
  return diag_embed_of(c, c.self(), c.integer("offset"), c.fixed("dim1"), c.fixed("dim2"));
}

Values diag(Composite& c) {
  if (c.ndim(c.self()) == 1) return diag_embed_of(c, c.self(), c.integer("diagonal"), 0, 1);
  const ValueId view = c.call("diagonal", {c.self(), c.integer("diagonal")});
  return {c.call("clone", {view, MemoryFormat::Contiguous})};
}

Values diagflat(Composite& c) {
  return diag_embed_of(c, c.reshape(c.self(), {c.count(c.self())}), c.integer("offset"), 0, 1);
}

Values one_hot(Composite& c) {
  const i64 classes = c.fixed("num_classes");
  if (classes <= 0) c.fail("num_classes must be given: else it depends on the data");
  const ValueId numbers = c.call("arange.start_step", {c.n(0), c.n(classes), c.n(1), DType::i64});
  return {c.to(c.eq(c.unsqueeze(c.self(), -1), numbers), DType::i64)};
}

Values isin(Composite& c) {
  const ValueId elements = c.tensor("elements"), test = c.tensor("test_elements");
  const ValueId flat = c.reshape(test, {c.count(test)});
  ValueId found = c.call("any.dim", {c.eq(c.unsqueeze(elements, -1), flat), c.n(-1)});
  return {c.flag("invert") ? c.call("logical_not", {found}) : found};
}

Values isin_scalar(Composite& c) {
  return {c.binary(c.flag("invert") ? "ne" : "eq", c.tensor("elements"), c.arg("test_element"))};
}

/// How many boundaries lie before each value: all for NaN.
ValueId position_among(Composite& c, ValueId boundaries, ValueId values, bool right) {
  const ValueId behind = c.binary(right ? "gt" : "ge", boundaries, c.unsqueeze(values, -1));
  const ValueId before = c.call("logical_not", {behind});
  const ValueId count = c.sum(before, {c.ndim(before) - 1}, KeepDim::No);
  return c.to(count, c.flag("out_int32") ? DType::i32 : DType::i64);
}

/// The same of one number, which takes part in the promotion as a number does.
ValueId position_of_number(Composite& c, ValueId boundaries, bool right) {
  const ValueId behind = c.binary(right ? "gt" : "ge", boundaries, c.arg("self"));
  const ValueId count = c.sum(c.call("logical_not", {behind}));
  return c.to(count, c.flag("out_int32") ? DType::i32 : DType::i64);
}

Values bucketize_number(Composite& c) {
  return {position_of_number(c, c.tensor("boundaries"), c.flag("right"))};
}

Values bucketize(Composite& c) {
  return {position_among(c, c.tensor("boundaries"), c.self(), c.flag("right"))};
}

/// The sequence in its order.
ValueId sorted_sequence(Composite& c) {
  const ValueId sequence = c.tensor("sorted_sequence");
  return c.has("sorter") ? c.call("gather", {sequence, c.n(-1), c.tensor("sorter")}) : sequence;
}

bool from_the_right(Composite& c) {
  return c.has("side") ? c.word("side") == "right" : c.flag("right");
}

Values searchsorted_number(Composite& c) {
  return {position_of_number(c, sorted_sequence(c), from_the_right(c))};
}

Values searchsorted(Composite& c) {
  ValueId sequence = sorted_sequence(c);
  const bool right = from_the_right(c);
  if (c.ndim(sequence) > 1) sequence = c.unsqueeze(sequence, -2);
  return {position_among(c, sequence, c.tensor("self"), right)};
}

/// The rows that are named, perhaps from the end, and whose norm is above max_norm, shortened to
/// it; eager's factor is a double.
Values embedding_renorm(Composite& c) {
  const ValueId weight = c.self();
  const DType dtype = c.dtype(weight);
  const ValueId rows = c.reshape(c.tensor("indices"), {c.n(-1)});
  const ValueId named = c.call("index.Tensor", {weight, Values{rows}});
  const ValueId norm =
      c.to(c.call("linalg_vector_norm", {named, c.real("norm_type"), Exprs{c.n(1)}, true, None{}}),
           DType::f64);
  const double most = c.real("max_norm");
  const ValueId factor = c.div(c.filled({}, most, DType::f64), c.add(norm, 1e-7));
  const bool is_whole = dtype == DType::f64 || is_complex(dtype);
  const DType wide = is_whole ? dtype : DType::f32;
  const DType real = is_complex(wide) ? real_of(wide) : wide;
  const ValueId shorter = c.to(c.mul(c.to(named, wide), c.to(factor, real)), dtype);
  const ValueId kept = c.call("where.self", {c.binary("gt", norm, most), shorter, named});
  return {c.call("index_put", {weight, Values{rows}, kept, false})};
}

Values cross(Composite& c) {
  const Values both = c.broadcast_all({c.self(), c.tensor("other")});
  i64 dim = -1;
  if (c.has("dim")) {
    dim = c.dim("dim", both[0]);
  } else {
    for (i64 d = c.ndim(both[0]) - 1; d >= 0; --d)
      if (c.is(c.size(both[0], d), 3)) dim = d;
    if (dim < 0) c.fail("no dim has size 3");
  }
  const auto turned = [&](ValueId v, i64 by) {
    return c.call("roll", {v, Exprs{c.n(by)}, Exprs{c.n(dim)}});
  };
  const ValueId plus = c.mul(turned(both[0], -1), turned(both[1], -2));
  const ValueId minus = c.mul(turned(both[0], -2), turned(both[1], -1));
  return {c.contiguous(c.sub(plus, minus))};
}

/// The elements where the mask is true, in order, take the first elements of the source.
Values masked_scatter(Composite& c) {
  const Values both = c.broadcast_all({c.self(), c.tensor("mask")});
  const ValueId flat = c.to(c.reshape(both[1], {c.n(-1)}), DType::i64);
  const ValueId rank = c.sub(c.call("cumsum", {flat, c.n(0)}), c.n(1));
  const ValueId source = c.reshape(c.tensor("source"), {c.n(-1)});
  const ValueId taken =
      c.call("index.Tensor", {source, Values{c.call("clamp_min", {rank, c.n(0)})}});
  return {c.contiguous(c.call("where.self", {both[1], c.view(taken, c.shape(both[0])), both[0]}))};
}

constexpr DecompositionRow kRows[] = {
    {"_unsafe_index.Tensor", index},
    {"_unsafe_index_put", index_put},
    {"masked_select", masked_select},
    {"masked_scatter", masked_scatter},
    {"nonzero_numpy", nonzero_numpy},
    {"where", nonzero_numpy},
    {"argwhere", argwhere},
    {"take", take},
    {"take_along_dim", take_along_dim},
    {"slice_scatter", scatter_into_view},
    {"select_scatter", scatter_into_view},
    {"diagonal_scatter", scatter_into_view},
    {"as_strided_scatter", scatter_into_view},
    {"diag_embed", diag_embed},
    {"diag", diag},
    {"diagflat", diagflat},
    {"one_hot", one_hot},
    {"isin.Tensor_Tensor", isin},
    {"isin.Tensor_Scalar", isin_scalar},
    {"bucketize.Tensor", bucketize},
    {"bucketize.Scalar", bucketize_number},
    {"searchsorted.Tensor", searchsorted},
    {"searchsorted.Scalar", searchsorted_number},
    {"embedding_renorm", embedding_renorm},
    {"cross", cross},
    {"linalg_cross", cross},
    // Core but where an index is a mask.
    {"index.Tensor", index},
    {"index_put", index_put},
};

}  // namespace

bool indexes_by_mask(const Graph& graph, const Node& node) {
  if (node.op != "index.Tensor" && node.op != "index_put") return false;
  return std::ranges::any_of(std::get<Values>(node.args.at(1)), [&](ValueId v) {
    return v.valid() && (graph.type(v).dtype == DType::b8 || graph.type(v).dtype == DType::u8);
  });
}

std::span<const DecompositionRow> index_decompositions() { return kRows; }

}  // namespace coil
