// Indexing, gathers and scatters, sorting, and results whose size depends on data.

#include <algorithm>

#include "graph/rule.h"

namespace coil {
namespace {

Result<Types> preserved(const Call& call) {
  Type out = call.self();
  out.strides = pointwise_strides(call.graph, std::span(&out, 1), out.shape);
  return Types{std::move(out)};
}

/// A copy of self in its own strides, gaps included, unless elements share memory.
Result<Types> scatter_into_view(const Call& call) {
  Type out = call.self();
  for (std::size_t d = 0; d < out.ndim(); ++d)
    if (known_value(call.graph, out.strides[d], 0) && !known_value(call.graph, out.shape[d], 1))
      return preserved(call);
  return Types{std::move(out)};
}

Result<Types> contiguous_self(const Call& call) {
  COIL_TRY(call.dim("dim", call.self().ndim()));
  return Types{call.contiguous(call.self().dtype, call.self().shape)};
}

bool is_index_dtype(DType d) { return d == DType::i64 || d == DType::i32; }

/// The argument `index`, of whole numbers.
Result<const Type*> index_of(const Call& call) {
  const Type& index = call.tensor("index");
  if (!is_index_dtype(index.dtype)) return call.fail("index is {}", name(index.dtype));
  return &index;
}

/// A tensor without dims counts as one of a single element.
bool ranks_agree(const Type& a, const Type& b) {
  return std::max<std::size_t>(a.ndim(), 1) == std::max<std::size_t>(b.ndim(), 1);
}

/// The same of gather and scatter, which has as many dims as self: one that has no elements may be
/// of any dtype and any number of dims.
Result<const Type*> index_or_nothing(const Call& call) {
  const Type& index = call.tensor("index");
  if (known_empty(call.graph, index)) return &index;
  if (!ranks_agree(index, call.self()))
    return call.fail("index {} and {} differ in number of dims", text(call.syms, index),
                     text(call.syms, call.self()));
  return index_of(call);
}

Result<Types> embedding(const Call& call) {
  const Type& weight = call.tensor("weight");
  const Type& indices = call.tensor("indices");
  if (weight.ndim() != 2)
    return call.fail("weight must be a matrix, not {}", text(call.syms, weight));
  if (!is_index_dtype(indices.dtype)) return call.fail("indices are {}", name(indices.dtype));
  Sizes shape = indices.shape;
  shape.push_back(weight.shape[1]);
  return Types{call.contiguous(weight.dtype, std::move(shape))};
}

/// A fresh size for what data selects out of `of`: at most all of its elements.
sym::Expr data_size(const Call& call, const Type& of) {
  const sym::Range total = call.syms.range(numel(call.syms, of.shape));
  return data_variable(call.graph, {0, total.hi});
}

/// A size that a mask gives has a value only where the op itself counts the mask's elements.
bool is_from_data(const Call& call, sym::Expr size) {
  return call.syms.kind(size) == sym::Kind::Var && call.syms.var(size).role == sym::Role::Value;
}

/// What index.Tensor does with the dims of self: one entry a dim, whole dims being invalid.
struct Indexing {
  std::vector<std::optional<Sizes>> per_dim;  // shapes of the index tensors
};

Result<Indexing> read_indices(const Call& call) {
  const Type& self = call.self();
  Indexing out;
  for (ValueId v : std::get<std::vector<ValueId>>(call.arg("indices"))) {
    if (!v.valid()) {
      out.per_dim.push_back(std::nullopt);
      continue;
    }
    const Type& index = call.graph.type(v);
    if (!is_bool(index.dtype) && index.dtype != DType::u8) {
      if (!is_int(index.dtype)) return call.fail("an index is {}", name(index.dtype));
      out.per_dim.push_back(index.shape);
      continue;
    }
    if (out.per_dim.size() + index.ndim() > self.ndim() || index.ndim() == 0)
      return call.fail("a mask {} does not fit {}", text(call.syms, index), text(call.syms, self));
    for (std::size_t i = 0; i < index.ndim(); ++i)
      COIL_TRY(call.sizes_agree(index.shape[i], self.shape[out.per_dim.size() + i]));
    const sym::Expr count = data_size(call, index);
    for (std::size_t i = 0; i < index.ndim(); ++i) out.per_dim.push_back(Sizes{count});
  }
  if (out.per_dim.size() > self.ndim())
    return call.fail("{} indices for {}", out.per_dim.size(), text(call.syms, self));
  out.per_dim.resize(self.ndim());
  return out;
}

/// Index tensors broadcast with each other. Their dims stand where the indexed dims stood, if those
/// are next to each other; else in front. The layout is that of self with the indexed dims as one
/// block that tells nothing of its order.
Result<Types> index(const Call& call) {
  const Type& self = call.self();
  const Indexing indexing = COIL_TRY(read_indices(call));
  Sizes block;
  std::size_t first = self.ndim(), last = 0, count = 0;
  for (std::size_t d = 0; d < self.ndim(); ++d) {
    if (!indexing.per_dim[d]) continue;
    block = COIL_TRY(call.named(broadcast(call.graph, block, *indexing.per_dim[d])));
    first = std::min(first, d);
    last = d;
    ++count;
  }
  if (count == 0) return call.fail("has no index");
  const bool adjacent = last - first + 1 == count;
  Type walked = call.strided(self.dtype, {}, {});
  const auto add_block = [&] {
    for (sym::Expr size : block) {
      walked.shape.push_back(size);
      walked.strides.push_back(call.number(0));
    }
  };
  if (!adjacent) add_block();
  for (std::size_t d = 0; d < self.ndim(); ++d) {
    if (adjacent && d == first) add_block();
    if (indexing.per_dim[d]) continue;
    walked.shape.push_back(self.shape[d]);
    walked.strides.push_back(self.strides[d]);
  }
  Sizes strides = pointwise_strides(call.graph, std::span(&walked, 1), walked.shape);
  return Types{call.strided(self.dtype, std::move(walked.shape), std::move(strides))};
}

Result<Types> index_put(const Call& call) {
  const Type place = COIL_TRY(index(call)).at(0);
  const Type& values = call.tensor("values");
  if (values.ndim() > place.ndim())
    return call.fail("values are {}, their place is {}", text(call.syms, values),
                     text(call.syms, place));
  for (std::size_t i = 1; i <= values.ndim(); ++i) {
    const sym::Expr given = values.shape[values.ndim() - i];
    const sym::Expr wanted = place.shape[place.ndim() - i];
    if (call.syms.is_const(given, 1) || is_from_data(call, wanted)) continue;
    const Status fits = require_equal(call.graph, given, wanted, "sizes");
    if (!fits.ok()) return call.fail("values: {}", fits.error().message);
  }
  if (call.tensor("values").dtype != call.self().dtype)
    return call.fail("values are {}, not {}", name(call.tensor("values").dtype),
                     name(call.self().dtype));
  return preserved(call);
}

Result<Types> index_select(const Call& call) {
  const Type& self = call.self();
  const Type& index = *COIL_TRY(index_of(call));
  const std::size_t dim = static_cast<std::size_t>(COIL_TRY(call.dim("dim", self.ndim())));
  if (index.ndim() > 1) return call.fail("index must have one dim, not {}", text(call.syms, index));
  Sizes shape = self.shape;
  if (self.ndim() > 0) shape[dim] = index.ndim() == 0 ? call.number(1) : index.shape[0];
  return Types{call.contiguous(self.dtype, std::move(shape))};
}

Result<Types> gather(const Call& call) {
  const Type& index = *COIL_TRY(index_or_nothing(call));
  COIL_TRY(call.dim("dim", call.self().ndim()));
  return Types{call.contiguous(call.self().dtype, index.shape)};
}

Result<Types> take(const Call& call) {
  return Types{call.contiguous(call.self().dtype, COIL_TRY(index_of(call))->shape)};
}

Result<Types> scatter(const Call& call) {
  const Type& index = *COIL_TRY(index_or_nothing(call));
  if (call.schema.arg_index("src") >= 0) {
    const Type& src = call.tensor("src");
    if (src.dtype != call.self().dtype ||
        !(known_empty(call.graph, index) || ranks_agree(src, index)))
      return call.fail("src is {} beside {}", text(call.syms, src), text(call.syms, call.self()));
  }
  return contiguous_self(call);
}

/// index_add, index_copy and index_reduce: slices of `source` at the places that a 1-d index names.
Result<Types> index_write(const Call& call) {
  const Type& source = call.tensor("source");
  const Type& index = *COIL_TRY(index_of(call));
  if (index.ndim() > 1) return call.fail("index is {}", text(call.syms, index));
  const bool is_element =
      source.ndim() == 0 && call.self().ndim() == 1 && call.op() == "index_copy";
  if (is_element && index.ndim() == 1)
    COIL_TRY(call.sizes_agree(index.shape[0], call.syms.constant(1)));
  if (source.dtype != call.self().dtype || (source.ndim() != call.self().ndim() && !is_element))
    return call.fail("source is {} beside {}", text(call.syms, source),
                     text(call.syms, call.self()));
  return contiguous_self(call);
}

Result<Types> index_fill(const Call& call) {
  const Type& index = *COIL_TRY(index_of(call));
  if (index.ndim() > 1) return call.fail("index is {}", text(call.syms, index));
  COIL_TRY(call.dim("dim", call.self().ndim()));
  return preserved(call);
}

Result<Types> masked_scatter(const Call& call) {
  Sizes shape =
      COIL_TRY(call.named(broadcast(call.graph, call.self().shape, call.tensor("mask").shape)));
  return Types{call.contiguous(call.self().dtype, std::move(shape))};
}

Result<Types> masked_select(const Call& call) {
  Type all = call.self();
  all.shape = COIL_TRY(call.named(broadcast(call.graph, all.shape, call.tensor("mask").shape)));
  return Types{call.contiguous(all.dtype, {data_size(call, all)})};
}

/// One row a non-zero element; eager collects them by dims, so that the columns are dense.
Result<Types> nonzero(const Call& call) {
  const Type& self = call.self();
  const sym::Expr rows = data_size(call, self);
  return Types{call.strided(DType::i64, {rows, call.number(static_cast<i64>(self.ndim()))},
                            {call.number(1), rows})};
}

/// The first `size` rows of nonzero; missing ones hold a fill value.
Result<Types> nonzero_static(const Call& call) {
  const sym::Expr size = call.integer("size");
  if (known_less(call.graph, size, call.number(0)))
    return call.fail("size is {}", call.syms.text(size));
  const sym::Expr ndim = call.number(static_cast<i64>(call.self().ndim()));
  return Types{call.contiguous(DType::i64, {size, ndim})};
}

/// As many elements as the repeats add up to.
Result<Types> repeat_interleave(const Call& call) {
  const Type& repeats = call.tensor("repeats");
  if (!is_int(repeats.dtype) || is_bool(repeats.dtype) || repeats.ndim() != 1)
    return call.fail("repeats are {}", text(call.syms, repeats));
  const sym::Expr size = call.has("output_size") ? call.integer("output_size")
                                                 : data_variable(call.graph, {0, sym::kMaxInt});
  return Types{call.contiguous(repeats.dtype, {size})};
}

Result<Types> item(const Call& call) {
  const Type& self = call.self();
  Status single = require_equal(call.graph, numel(call.syms, self.shape), call.number(1), "sizes");
  if (!single.ok()) return call.fail("{} does not hold one element", text(call.syms, self));
  Type out;
  if (is_float(self.dtype)) {
    out.kind = TypeKind::Float;
  } else if (is_bool(self.dtype)) {
    out.kind = TypeKind::Bool;
    out.expr = data_variable(call.graph, {0, 1});
  } else if (is_int(self.dtype)) {
    out.kind = TypeKind::Int;
    out.expr = data_variable(call.graph, {});
  } else {
    return call.fail("{} is not supported", name(self.dtype));
  }
  return Types{std::move(out)};
}

Result<Types> sort(const Call& call) {
  COIL_TRY(call.dim("dim", call.self().ndim()));
  Types out = COIL_TRY(preserved(call));
  out.push_back(out[0]);
  out[1].dtype = DType::i64;
  return out;
}

Result<Types> argsort(const Call& call) { return Types{COIL_TRY(sort(call)).at(1)}; }

Result<Types> topk(const Call& call) {
  const Type& self = call.self();
  const std::size_t dim = static_cast<std::size_t>(COIL_TRY(call.dim("dim", self.ndim())));
  Sizes shape = self.shape;
  const sym::Expr k = call.integer("k");
  if (self.ndim() > 0) {
    if (known_less(call.graph, shape[dim], k) || known_less(call.graph, k, call.number(0)))
      return call.fail("k is {} in a dim of size {}", call.syms.text(k),
                       call.syms.text(shape[dim]));
    shape[dim] = k;
  } else if (known_less(call.graph, call.number(1), k)) {
    return call.fail("k is {} of one element", call.syms.text(k));
  }
  return Types{call.contiguous(self.dtype, shape), call.contiguous(DType::i64, shape)};
}

Result<Types> bucketize(const Call& call) {
  const DType dtype = call.flag("out_int32") ? DType::i32 : DType::i64;
  return Types{call.contiguous(dtype, call.tensor("self").shape)};
}

/// The place of one number.
Result<Types> bucketize_number(const Call& call) {
  const std::string_view among = call.base() == "bucketize" ? "boundaries" : "sorted_sequence";
  if (call.tensor(among).ndim() != 1) return call.fail("{} must have one dim", among);
  return Types{call.contiguous(call.flag("out_int32") ? DType::i32 : DType::i64, {})};
}

Result<Types> embedding_renorm(const Call& call) {
  if (call.self().ndim() != 2)
    return call.fail("self must be a matrix, not {}", text(call.syms, call.self()));
  const DType indices = call.tensor("indices").dtype;
  if (!is_index_dtype(indices)) return call.fail("indices are {}", name(indices));
  return preserved(call);
}

constexpr RuleRow kRules[] = {
    {"embedding", embedding},
    {"embedding_renorm", embedding_renorm},
    {"index.Tensor", index},
    {"_unsafe_index.Tensor", index},
    {"index_put", index_put},
    {"_unsafe_index_put", index_put},
    {"index_select", index_select},
    {"index_add", index_write},
    {"index_copy", index_write},
    {"index_reduce", index_write},
    {"index_fill.int_Scalar", index_fill},
    {"index_fill.int_Tensor", index_fill},
    {"gather", gather},
    {"take", take},
    {"scatter.src", scatter},
    {"scatter.value", scatter},
    {"scatter.reduce", scatter},
    {"scatter.value_reduce", scatter},
    {"scatter_add", scatter},
    {"scatter_reduce.two", scatter},
    {"slice_scatter", scatter_into_view},
    {"select_scatter", scatter_into_view},
    {"diagonal_scatter", scatter_into_view},
    {"as_strided_scatter", preserved},
    {"masked_scatter", masked_scatter},
    {"masked_select", masked_select},
    {"nonzero", nonzero},
    {"nonzero_static", nonzero_static},
    {"repeat_interleave.Tensor", repeat_interleave},
    {"item", item},
    {"_local_scalar_dense", item},
    {"sort", sort},
    {"sort.stable", sort},
    {"argsort", argsort},
    {"argsort.stable", argsort},
    {"topk", topk},
    {"bucketize.Tensor", bucketize},
    {"bucketize.Scalar", bucketize_number},
    {"searchsorted.Tensor", bucketize},
    {"searchsorted.Scalar", bucketize_number},
};

}  // namespace

std::span<const RuleRow> index_rules() { return kRules; }

}  // namespace coil
