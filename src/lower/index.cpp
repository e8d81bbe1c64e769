// Reads and writes at indices from data.

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "lower/body_builder.h"
#include "lower/pointwise.h"
#include "lower/registry.h"

namespace coil::lowering {
namespace {

using ops::ScalarOp;

/// The checked index that `indices` holds at `at`.
Expr load_index(BodyBuilder& b, const Access& indices, std::span<const Expr> at, Expr extent,
                IndexPolicy policy) {
  const Val v = b.load(indices, at);
  // One without elements may have another dtype.
  const bool is_index = b.dtype(v) == DType::i64 || b.dtype(v) == DType::i32;
  return b.index(is_index ? v : b.cast(v, DType::i64), extent, policy);
}

/// The result buffer of the present node, which begins as `base`.
BufferId updated(Lowering& l, ValueId base, ValueId out) {
  return l.result_from(out, l.whole_buffer(l.access(base), "base"));
}

/// The dims of `index.Tensor` and its kin: what each dim of `self` is indexed by, where the dims of
/// the index tensors stand in the result, and the result's shape.
struct AdvancedIndex {
  std::vector<ValueId> by;  // one for each dim of self; invalid: the whole dim
  Exprs index_shape;        // of the index tensors, broadcast
  std::size_t place = 0;    // where index_shape begins in the result
  Exprs shape;
};

AdvancedIndex advanced_index(Lowering& l, const Access& self, const Args& args) {
  AdvancedIndex a;
  a.by = args.tensors("indices");
  a.by.resize(self.extents.size());
  std::size_t first = a.by.size(), last = 0;
  for (std::size_t k = 0; k < a.by.size(); ++k) {
    if (!a.by[k].valid()) continue;
    first = std::min(first, k);
    last = k;
    const Exprs& shape = l.access(a.by[k]).extents;
    if (shape.size() > a.index_shape.size())
      a.index_shape.insert(a.index_shape.begin(), shape.size() - a.index_shape.size(),
                           l.syms.constant(1));
    for (std::size_t d = 0; d < shape.size(); ++d) {
      Expr& target = a.index_shape[a.index_shape.size() - shape.size() + d];
      if (!l.syms.is_const(shape[d], 1)) target = shape[d];
    }
  }
  // Index dims stand where the indexed ones stood if those are neighbours, else in front.
  bool together = true;
  for (std::size_t k = first; k <= last && k < a.by.size(); ++k)
    together = together && a.by[k].valid();
  a.place = together && first < a.by.size() ? first : 0;
  for (std::size_t k = 0; k < a.by.size(); ++k)
    if (!a.by[k].valid()) a.shape.push_back(self.extents[k]);
  a.shape.insert(a.shape.begin() + static_cast<std::ptrdiff_t>(a.place), a.index_shape.begin(),
                 a.index_shape.end());
  return a;
}

/// The index into self of the element at `at` of the result.
Exprs advanced_point(BodyBuilder& b, const AdvancedIndex& a, const Access& self, const Exprs& at) {
  Lowering& l = b.lowering();
  const std::span<const Expr> at_index = std::span(at).subspan(a.place, a.index_shape.size());
  Exprs rest(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(a.place));
  rest.insert(rest.end(), at.begin() + static_cast<std::ptrdiff_t>(a.place + a.index_shape.size()),
              at.end());
  Exprs point;
  std::size_t next = 0;
  for (std::size_t k = 0; k < a.by.size(); ++k) {
    if (!a.by[k].valid()) {
      point.push_back(rest.at(next++));
      continue;
    }
    const Access indices = broadcast_to(l.syms, l.access(a.by[k]), a.index_shape);
    point.push_back(load_index(b, indices, at_index, self.extents[k], IndexPolicy::Wrap));
  }
  return point;
}

/// Bool masks are made into indices by decomposition.
Status check_indices(Lowering& l, const Args& args) {
  for (ValueId v : args.tensors("indices"))
    if (v.valid() && !is_int(l.type(v).dtype))
      return l.unsupported_case("an index that is no integer");
  return Ok{};
}

}  // namespace

Status lower_embedding(Lowering& l, const Node&, const Args& args) {
  const Access weight = l.access(args.tensor("weight")), indices = l.access(args.tensor("indices"));
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(l.program.buffers[out].shape);
  const Expr row = load_index(b, indices, std::span(at).first(at.size() - 1), weight.extents[0],
                              IndexPolicy::Assert);
  b.store(out, at, b.load(weight, Exprs{row, at.back()}));
  b.finish();
  return Ok{};
}

Status lower_index(Lowering& l, const Node&, const Args& args) {
  COIL_TRY(check_indices(l, args));
  const Access self = l.access(args.tensor("self"));
  const AdvancedIndex a = advanced_index(l, self, args);
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(l.program.buffers[out].shape);
  b.store(out, at, b.load(self, advanced_point(b, a, self, at)));
  b.finish();
  return Ok{};
}

Status lower_index_put(Lowering& l, const Node& node, const Args& args) {
  COIL_TRY(check_indices(l, args));
  const Access self = l.access(args.tensor("self"));
  const AdvancedIndex a = advanced_index(l, self, args);
  const Access values = broadcast_to(l.syms, l.access(args.tensor("values")), a.shape);
  const BufferId out = updated(l, args.tensor("self"), node.outs[0]);
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(a.shape);
  const Exprs point = advanced_point(b, a, self, at);
  const Val v = b.load(values, at);
  if (args.flag("accumulate"))
    b.store_combining(StoreCombine::Sum, out, point, v);
  else
    b.store(out, point, v);
  b.finish();
  return Ok{};
}

namespace {

/// The point of a tensor of this rank: one without dims counts as one of a single element.
Exprs for_rank(BodyBuilder& b, const Exprs& at, std::size_t rank) {
  if (at.size() == rank) return at;
  return rank == 0 ? Exprs{} : Exprs{b.syms().constant(0)};
}

}  // namespace

Status lower_gather(Lowering& l, const Node&, const Args& args) {
  const Access self = l.access(args.tensor("self")), indices = l.access(args.tensor("index"));
  const BufferId out = l.result();
  if (is_empty(l.syms, indices.extents)) {  // its dims may be as many as they like
    l.fill(out, 0, l.name());
    return Ok{};
  }
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(l.program.buffers[out].shape);
  Exprs point = for_rank(b, at, self.extents.size());
  if (!point.empty()) {
    const std::size_t d = args.dim("dim", point.size());
    const Exprs place = for_rank(b, at, indices.extents.size());
    point[d] = load_index(b, indices, place, self.extents[d], IndexPolicy::Assert);
  }
  b.store(out, at, b.load(self, point));
  b.finish();
  return Ok{};
}

Status lower_index_select(Lowering& l, const Node&, const Args& args) {
  const Access self = l.access(args.tensor("self")), indices = l.access(args.tensor("index"));
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(l.program.buffers[out].shape);
  Exprs point = at;
  if (!point.empty()) {
    const std::size_t d = args.dim("dim", point.size());
    const Exprs place = indices.extents.empty() ? Exprs{} : Exprs{at[d]};
    point[d] = load_index(b, indices, place, self.extents[d], IndexPolicy::Assert);
  }
  b.store(out, at, b.load(self, point));
  b.finish();
  return Ok{};
}

namespace {

/// Which elements a scatter writes: those of `indices`, at their index along dim `d`.
struct Scatter {
  Access indices;
  std::size_t d;
  BufferId out;

  /// The index into the result of the element at `at`.
  Exprs point(BodyBuilder& b, const Exprs& at) const {
    const Exprs& shape = b.lowering().program.buffers[out].shape;
    Exprs point = for_rank(b, at, shape.size());
    if (!point.empty()) point[d] = load_index(b, indices, at, shape[d], IndexPolicy::Assert);
    return point;
  }
};

Scatter begin_scatter(Lowering& l, const Node& node, const Args& args) {
  const Access indices = l.access(args.tensor("index"));
  const std::size_t rank = indices.extents.size();
  return {indices, rank ? args.dim("dim", rank) : 0, updated(l, args.tensor("self"), node.outs[0])};
}

bool writes_nothing(const Lowering& l, const Args& args) {
  return is_empty(l.syms, l.access(args.tensor("index")).extents);
}
Status keep_self(Lowering& l, const Node& node, const Args& args) {
  l.copy(l.access(args.tensor("self")), l.result(node.outs[0]), l.name());
  return Ok{};
}

/// The value that a scatter writes at `at`: an element of src, or the scalar.
Val scattered_value(BodyBuilder& b, const Args& args, const Exprs& at, DType dtype) {
  Lowering& l = b.lowering();
  if (args.has("src")) {
    const Access& src = l.access(args.tensor("src"));
    return b.load(src, for_rank(b, at, src.extents.size()));
  }
  return scalar_value(b, args["value"], compute_dtype(dtype));
}

/// A combining store's identity: what an element holds that is left out of the reduction.
ops::Scalar identity_of(StoreCombine how, DType dtype) {
  const bool floats = is_float(dtype);
  const double inf = std::numeric_limits<double>::infinity();
  const ops::Scalar smallest =
      floats ? ops::Scalar::of_float(dtype, -inf) : ops::named_combine("max", dtype)->identity[0];
  const ops::Scalar largest =
      floats ? ops::Scalar::of_float(dtype, inf) : ops::named_combine("min", dtype)->identity[0];
  switch (how) {
    case StoreCombine::Max: return smallest;
    case StoreCombine::Min: return largest;
    case StoreCombine::Prod: return ops::Scalar::of_int(dtype, 1);
    case StoreCombine::Sum:
    case StoreCombine::None: break;
  }
  return ops::Scalar::of_int(dtype, 0);
}

/// One body: out[point] (how)= value.
void scatter_body(Lowering& l, const Args& args, const Scatter& s, StoreCombine how,
                  const std::string& name) {
  BodyBuilder b(l, name);
  const Exprs at = b.dims(s.indices.extents);
  const Exprs point = s.point(b, at);
  const Val v = scattered_value(b, args, at, l.program.buffers[s.out].dtype);
  if (how == StoreCombine::None)
    b.store(s.out, point, v);
  else
    b.store_combining(how, s.out, point, v);
  b.finish();
}

/// A temporary that begins as `start`, which is contiguous, with `value` stored at each point of
/// the scatter `s`, whose result does not exist yet.
BufferId cleared(Lowering& l, Scatter s, BufferId start, const ops::Scalar& value) {
  const Buffer begin = l.program.buffers[start];
  s.out = l.temp("cleared", begin.dtype, begin.shape);
  l.program.buffers[s.out].starts = start;
  BodyBuilder b(l, str("{}.cleared", l.name()));
  const Exprs at = b.dims(s.indices.extents);
  const Exprs point = s.point(b, at);
  b.store(s.out, point, b.constant(value));
  b.finish();
  return s.out;
}

/// The mean: sums, and how many there are of each; an element that nothing was added to stays.
void scatter_mean(Lowering& l, const Node& node, const Args& args, const Scatter& sum) {
  const Buffer like = l.program.buffers[sum.out];
  const bool with_self = args.flag("include_self");
  const BufferId start = l.temp("start", DType::i64, like.shape);
  l.fill(start, with_self ? 1 : 0, str("{}.start", l.name()));
  const BufferId counts = l.temp("counts", DType::i64, like.shape);
  l.program.buffers[counts].starts = start;
  {
    Scatter count = sum;
    count.out = counts;
    BodyBuilder b(l, str("{}.counts", l.name()));
    const Exprs at = b.dims(sum.indices.extents);
    const Exprs point = count.point(b, at);
    b.store_combining(StoreCombine::Sum, counts, point, b.integer(DType::i64, 1));
    b.finish();
  }
  const BufferId out = l.result(node.outs[0]);
  const DType dtype = compute_dtype(like.dtype);
  BodyBuilder b(l, str("{}.mean", l.name()));
  const Exprs at = b.dims(like.shape);
  const Val total = b.cast(b.load(sum.out, at), dtype);
  const Val count = b.max(b.load(counts, at), b.integer(DType::i64, 1));
  const Val divisor = b.cast(count, dtype);
  b.store(out, at,
          is_float(dtype) ? b.div(total, divisor) : b.op(ScalarOp::floordiv, {total, divisor}));
  b.finish();
}

}  // namespace

Status lower_scatter(Lowering& l, const Node& node, const Args& args) {
  if (writes_nothing(l, args)) return keep_self(l, node, args);
  StoreCombine how = StoreCombine::None;
  if (args.has("reduce")) {
    const std::string reduce = args.text("reduce");
    how = reduce == "multiply" ? StoreCombine::Prod : StoreCombine::Sum;
  }
  scatter_body(l, args, begin_scatter(l, node, args), how, l.name());
  return Ok{};
}

Status lower_scatter_add(Lowering& l, const Node& node, const Args& args) {
  if (writes_nothing(l, args)) return keep_self(l, node, args);
  scatter_body(l, args, begin_scatter(l, node, args), StoreCombine::Sum, l.name());
  return Ok{};
}

Status lower_scatter_reduce(Lowering& l, const Node& node, const Args& args) {
  if (writes_nothing(l, args)) return keep_self(l, node, args);
  const std::string reduce = args.text("reduce");
  StoreCombine how = StoreCombine::Sum;
  if (reduce == "prod")
    how = StoreCombine::Prod;
  else if (reduce == "amax")
    how = StoreCombine::Max;
  else if (reduce == "amin")
    how = StoreCombine::Min;
  Scatter s;
  s.indices = l.access(args.tensor("index"));
  s.d = s.indices.extents.empty() ? 0 : args.dim("dim", s.indices.extents.size());
  const Access self = l.access(args.tensor("self"));
  BufferId start;
  if (args.flag("include_self")) {
    start = l.whole_buffer(self, "base");
  } else {  // what is written to begins at the identity instead of self
    start = l.materialise(self, "base");
    start = cleared(l, s, start, identity_of(how, l.program.buffers[start].dtype));
  }
  s.out = l.result_from(node.outs[0], start);
  scatter_body(l, args, s, how, l.name());
  if (reduce == "mean") scatter_mean(l, node, args, s);
  return Ok{};
}

namespace {

/// index_add, index_copy and index_fill: whole slices along `dim`.
struct SliceIndex {
  Access indices;
  std::size_t d = 0;
  BufferId out;
  Exprs shape;  // what is looped over: the source's shape

  Exprs point(BodyBuilder& b, const Exprs& at, IndexPolicy policy) const {
    Exprs point = at;
    if (point.empty()) return point;
    const Exprs place = indices.extents.empty() ? Exprs{} : Exprs{at[d]};
    point[d] = load_index(b, indices, place, b.lowering().program.buffers[out].shape[d], policy);
    return point;
  }
};

SliceIndex begin_slices(Lowering& l, const Node& node, const Args& args) {
  SliceIndex s;
  s.indices = l.access(args.tensor("index"));
  s.out = updated(l, args.tensor("self"), node.outs[0]);
  s.shape = l.program.buffers[s.out].shape;
  if (!s.shape.empty()) {
    s.d = args.dim("dim", s.shape.size());
    s.shape[s.d] = s.indices.extents.empty() ? l.syms.constant(1) : s.indices.extents[0];
  }
  return s;
}

}  // namespace

Status lower_index_add(Lowering& l, const Node& node, const Args& args) {
  const SliceIndex s = begin_slices(l, node, args);
  const DType dtype = compute_dtype(l.program.buffers[s.out].dtype);
  const Access source = l.access(args.tensor("source"));
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(s.shape);
  const Exprs point = s.point(b, at, IndexPolicy::Assert);
  Val v = b.load(broadcast_to(l.syms, source, s.shape), at);
  const Arg& alpha = args["alpha"];
  const auto* factor = std::get_if<Expr>(&alpha);
  if (!factor || !l.syms.is_const(*factor, 1)) {
    const ScalarOp times = is_bool(dtype) ? ScalarOp::bits_and : ScalarOp::mul;
    v = b.op(times, {scalar_value(b, alpha, dtype), b.cast(v, dtype)});
  }
  b.store_combining(StoreCombine::Sum, s.out, point, v);
  b.finish();
  return Ok{};
}

Status lower_index_copy(Lowering& l, const Node& node, const Args& args) {
  const SliceIndex s = begin_slices(l, node, args);
  const Access source = broadcast_to(l.syms, l.access(args.tensor("source")), s.shape);
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(s.shape);
  const Exprs point = s.point(b, at, IndexPolicy::Assert);
  b.store(s.out, point, b.load(source, at));
  b.finish();
  return Ok{};
}

Status lower_index_fill(Lowering& l, const Node& node, const Args& args) {
  const SliceIndex s = begin_slices(l, node, args);
  const DType dtype = compute_dtype(l.program.buffers[s.out].dtype);
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(s.shape);
  const Exprs point = s.point(b, at, IndexPolicy::Wrap);
  b.store(s.out, point, scalar_value(b, args["value"], dtype));
  b.finish();
  return Ok{};
}

namespace {

/// Whether `out` may have fewer rows than there are positions; those beyond it are dropped.
enum class Excess : u8 { None, Dropped };

/// The coordinates of the k-th element that is not zero, in row-major order, go to row k of `out`.
void store_positions(Lowering& l, const Access& self, BufferId out, Excess excess) {
  sym::Arena& syms = l.syms;
  const Expr rows = l.program.buffers[out].shape[0];
  BodyBuilder b(l, l.name());
  const Exprs at = unravel(syms, b.scan_dim(numel(syms, self.extents)), self.extents);
  const Val filled = b.cast(b.load(self, at), DType::b8);
  const Val place = b.scan("sum", b.cast(filled, DType::i64))[0];
  Val stored = filled;
  if (excess == Excess::Dropped)
    stored = b.op(ScalarOp::bits_and, {filled, b.op(ScalarOp::le, {place, b.value(rows)})});
  // Where this is outside, nothing is stored.
  const Expr row = b.index(b.sub(place, b.integer(DType::i64, 1)), rows, IndexPolicy::Clamp);
  for (std::size_t k = 0; k < at.size(); ++k)
    b.store_if(stored, out, Exprs{row, syms.constant(static_cast<i64>(k))}, b.value(at[k]));
  b.finish();
}

}  // namespace

Status lower_nonzero(Lowering& l, const Node& node, const Args& args) {
  const Access self = l.access(args.tensor("self"));
  const Expr found = l.type(node.outs[0]).shape.at(0);
  const BufferId count = l.temp("count", DType::i64, {});
  {
    BodyBuilder b(l, str("{}.count", l.name()));
    const Rows rows = make_rows(b, self, std::vector<bool>(self.extents.size(), true), DType::i64,
                                RowOrder::Memory);
    const Val filled = b.cast(b.load(self, rows.at), DType::b8);
    b.store(count, {}, b.reduce("sum", b.cast(filled, DType::i64), rows.tree)[0]);
    b.finish();
  }
  l.define_size(found, count);
  const BufferId out = l.result();
  if (self.extents.empty()) {  // rows of no coordinates
    l.fill(out, 0, l.name());
    return Ok{};
  }
  store_positions(l, self, out, Excess::None);
  return Ok{};
}

Status lower_nonzero_static(Lowering& l, const Node& node, const Args& args) {
  const Access self = l.access(args.tensor("self"));
  const Expr size = args.size("size");
  if (self.extents.empty() || l.syms.is_const(size, 0)) {  // no position has a number
    l.fill(l.result(), args.integer("fill_value"), l.name());
    return Ok{};
  }
  const BufferId start = l.temp("start", DType::i64, l.type(node.outs[0]).shape);
  l.fill(start, args.integer("fill_value"), str("{}.start", l.name()));
  store_positions(l, self, l.result_from(node.outs[0], start), Excess::Dropped);
  return Ok{};
}

Status lower_item(Lowering& l, const Node& node, const Args& args) {
  const Access self = l.access(args.tensor("self"));
  const Access flat = reshape(l.syms, l.prover, self, {});
  const Type& type = l.type(node.outs[0]);
  if (type.kind == TypeKind::Float) {
    l.set(node.outs[0], flat);
    return Ok{};
  }
  BufferId holder = self.buffer;
  if (l.dtype_of(flat) != DType::i64 || !is_identity(flat, l.program.buffers[flat.buffer])) {
    holder = l.temp("value", DType::i64, {});
    BodyBuilder b(l, l.name());
    b.store(holder, {}, b.load(flat, {}));
    b.finish();
  }
  l.define_size(type.expr, holder);
  return Ok{};
}

}  // namespace coil::lowering
