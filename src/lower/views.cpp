// Views: no body, only another way to index the same buffer.

#include <algorithm>

#include "base/check.h"
#include "graph/builder.h"
#include "graph/rules.h"
#include "lower/body_builder.h"
#include "lower/registry.h"

namespace coil::lowering {
namespace {

/// `index` counted from the front, where it may be negative.
Expr from_front(Lowering& l, Expr index, Expr extent) {
  sym::Arena& syms = l.syms;
  const Expr negative = syms.lt(index, syms.constant(0));
  switch (l.prover.holds(negative)) {
    case sym::Answer::No: return index;
    case sym::Answer::Yes: return syms.add(index, extent);
    case sym::Answer::Unknown: break;
  }
  return syms.select(negative, syms.add(index, extent), index);
}

/// A slice's bound, brought into 0..extent.
Expr clamp_bound(Lowering& l, Expr bound, Expr extent) {
  sym::Arena& syms = l.syms;
  const Expr zero = syms.constant(0);
  bound = from_front(l, bound, extent);
  if (l.prover.less_equal(zero, bound) != sym::Answer::Yes) bound = syms.max(bound, zero);
  if (l.prover.less_equal(bound, extent) != sym::Answer::Yes) bound = syms.min(bound, extent);
  return bound;
}

/// A view that moves along single dims: starts as the identity over `in`.
class DimView {
 public:
  DimView(Lowering& l, const Access& in)
      : l_(l),
        in_(in),
        extents_(in.extents),
        vars_(fresh_vars(l.syms, in.extents)),
        point_(vars_) {}

  /// Dim `d` now has `extent` elements; element v of it is element start + v*step of the old one.
  void slice(std::size_t d, Expr extent, Expr start, Expr step) {
    sym::Arena& syms = l_.syms;
    extents_[d] = extent;
    vars_[d] = fresh_var(syms, str("d{}", d), sym::Role::Loop, extent);
    point_[d] = syms.add(start, syms.mul(vars_[d], step));
  }
  /// Dim `d` is gone; its index is fixed.
  void fix(std::size_t d, Expr index) {
    point_[d] = index;
    gone_.push_back(d);
  }
  Access finish() {
    std::sort(gone_.rbegin(), gone_.rend());
    for (std::size_t d : gone_) {
      extents_.erase(extents_.begin() + static_cast<std::ptrdiff_t>(d));
      vars_.erase(vars_.begin() + static_cast<std::ptrdiff_t>(d));
    }
    return view_of(l_.syms, in_, vars_, extents_, point_);
  }

 private:
  Lowering& l_;
  const Access& in_;
  Exprs extents_, vars_, point_;
  std::vector<std::size_t> gone_;
};

Access slice(Lowering& l, const Args& args, const Access& in, const Exprs* shape) {
  sym::Arena& syms = l.syms;
  const std::size_t d = args.dim("dim", in.extents.size());
  const Expr extent = in.extents[d], step = args.size("step");
  const Expr start =
      args.has("start") ? clamp_bound(l, args.size("start"), extent) : syms.constant(0);
  Expr length;
  if (shape) {
    length = (*shape)[d];
  } else {
    const Expr end = args.has("end") ? clamp_bound(l, args.size("end"), extent) : extent;
    length = syms.ceildiv(syms.sub(end, start), step);
    if (l.prover.less_equal(syms.constant(0), length) != sym::Answer::Yes)
      length = syms.max(length, syms.constant(0));
  }
  DimView view(l, in);
  view.slice(d, length, start, step);
  return view.finish();
}

Access diagonal(Lowering& l, const Args& args, const Access& in, const Exprs* shape) {
  sym::Arena& syms = l.syms;
  const std::size_t rank = in.extents.size();
  const std::size_t d1 = args.dim("dim1", rank), d2 = args.dim("dim2", rank);
  const i64 offset = args.integer("offset");
  const Expr skip1 = syms.constant(std::max<i64>(-offset, 0));
  const Expr skip2 = syms.constant(std::max<i64>(offset, 0));
  Exprs extents, vars, point(rank);
  for (std::size_t k = 0; k < rank; ++k) {
    if (k == d1 || k == d2) continue;
    extents.push_back(in.extents[k]);
    vars.push_back(fresh_var(syms, str("d{}", k), sym::Role::Loop, in.extents[k]));
    point[k] = vars.back();
  }
  extents.push_back(shape ? shape->back()
                          : syms.max(syms.constant(0), syms.min(syms.sub(in.extents[d1], skip1),
                                                                syms.sub(in.extents[d2], skip2))));
  vars.push_back(fresh_var(syms, "d", sym::Role::Loop, extents.back()));
  point[d1] = syms.add(vars.back(), skip1);
  point[d2] = syms.add(vars.back(), skip2);
  return view_of(syms, in, vars, extents, point);
}

Access unfold(Lowering& l, const Args& args, const Access& in) {
  sym::Arena& syms = l.syms;
  const Expr size = args.size("size"), step = args.size("step");
  if (in.extents.empty()) {  // one element, seen `size` (0 or 1) times
    const Exprs extents = {size};
    return view_of(syms, in, fresh_vars(syms, extents), extents, {});
  }
  const std::size_t d = args.dim("dimension", in.extents.size());
  Exprs extents = in.extents;
  extents[d] = syms.add(syms.floordiv(syms.sub(in.extents[d], size), step), syms.constant(1));
  extents.push_back(size);
  const Exprs vars = fresh_vars(syms, extents);
  Exprs point(vars.begin(), vars.end() - 1);
  point[d] = syms.add(syms.mul(vars[d], step), vars.back());
  return view_of(syms, in, vars, extents, point);
}

/// The dims that squeeze removes.
std::vector<std::size_t> squeezed(Lowering& l, const Args& args, const Access& in) {
  std::vector<i64> dims;
  if (args.schema().arg_index("dim") >= 0)
    dims = args.integers("dim");
  else
    for (std::size_t k = 0; k < in.extents.size(); ++k) dims.push_back(static_cast<i64>(k));
  std::vector<std::size_t> out;
  const std::vector<bool> chosen = dim_set(dims, in.extents.size());
  for (std::size_t k = 0; k < in.extents.size(); ++k)
    if (!dims.empty() && chosen[k] && l.syms.is_const(in.extents[k], 1)) out.push_back(k);
  return out;
}

/// view's size, with -1 worked out.
Exprs view_shape(Lowering& l, const Args& args, const Access& in) {
  sym::Arena& syms = l.syms;
  Exprs shape = args.sizes(args.schema().arg_index("size") >= 0 ? "size" : "shape");
  Expr known = syms.constant(1);
  for (Expr e : shape)
    if (!syms.is_const(e, -1)) known = syms.mul(known, e);
  for (Expr& e : shape)
    if (syms.is_const(e, -1)) e = syms.floordiv(numel(syms, in.extents), known);
  return shape;
}

Exprs expand_shape(Lowering& l, const Args& args, const Access& in) {
  Exprs shape = args.sizes("size");
  const std::size_t lead = shape.size() - in.extents.size();
  for (std::size_t k = lead; k < shape.size(); ++k)
    if (l.syms.is_const(shape[k], -1)) shape[k] = in.extents[k - lead];
  return shape;
}

/// as_strided addresses the memory behind the view. The buffer must be dense, so that an address
/// tells which element it is: the dims by falling stride are then the digits of it.
Result<Access> as_strided(Lowering& l, const Args& args, const Access& in, Element element) {
  sym::Arena& syms = l.syms;
  const Expr unit = syms.constant(element == Element::Pair ? 2 : 1);  // buffer elements an element
  const Buffer& buffer = l.program.buffers[in.buffer];
  Exprs extents = args.sizes("size"), strides = args.sizes("stride");
  if (is_empty(syms, extents)) {  // nothing is read, wherever it lies
    if (element == Element::Pair) extents.push_back(unit);
    return Access{in.buffer, fresh_vars(syms, extents), extents,
                  Exprs(buffer.shape.size(), syms.constant(0))};
  }
  std::vector<std::pair<i64, std::size_t>> order;  // stride, dim
  for (const LayoutEntry& entry : buffer.layout.entries) {
    const auto stride = syms.as_const(entry.stride);
    if (!stride && buffer.shape.size() > 1)
      return l.unsupported_case("the strides of its base are not constant");
    if (!syms.is_const(buffer.shape[entry.dim], 1))
      order.push_back({stride.value_or(1), entry.dim});
  }
  std::sort(order.rbegin(), order.rend());
  Exprs shape;
  for (const auto& [stride, dim] : order) shape.push_back(buffer.shape[dim]);
  const Exprs dense = contiguous_strides(syms, shape);
  for (std::size_t k = 0; k < order.size(); ++k)
    if (!l.prover.is_equal(dense[k], syms.constant(order[k].first)))
      return l.unsupported_case("its base is not dense in memory");
  for (Expr& stride : strides) stride = syms.mul(stride, unit);
  if (element == Element::Pair) {
    extents.push_back(unit);
    strides.push_back(syms.constant(1));
  }
  const Exprs vars = fresh_vars(syms, extents);
  std::vector<std::pair<Expr, Expr>> at_zero;
  for (Expr var : in.vars) at_zero.push_back({var, syms.constant(0)});
  Expr place = args.has("storage_offset")
                   ? syms.mul(args.size("storage_offset"), unit)
                   : syms.substitute(address(syms, buffer.layout, in.index), at_zero);
  Expr last = place;
  for (std::size_t k = 0; k < vars.size(); ++k) {
    place = syms.add(place, syms.mul(vars[k], strides.at(k)));
    last = syms.add(last, syms.mul(syms.sub(extents[k], syms.constant(1)), strides.at(k)));
  }
  const auto reached = syms.as_const(last), elements = syms.as_const(syms.product(shape));
  if (reached && elements && *reached >= *elements)
    return l.unsupported_case("it reaches past the memory of its base");
  const Exprs digits = unravel(syms, place, shape);
  Exprs index(buffer.shape.size(), syms.constant(0));
  for (std::size_t k = 0; k < order.size(); ++k) index[order[k].second] = digits[k];
  return Access{in.buffer, vars, extents, index};
}

bool splits_pairs(std::string_view op) {
  return op == "view_as_real" || op == "real" || op == "imag";
}

/// A view by the dims of `in`.
Result<Access> single_view(Lowering& l, const View& view, const Access& in) {
  sym::Arena& syms = l.syms;
  const auto& [op, args, element, shape] = view;
  if (op == "view" || op == "_unsafe_view" || op == "reshape")
    return reshape(syms, l.prover, in, shape ? *shape : view_shape(l, args, in));
  if (op == "permute") return permute(syms, in, args.integers("dims"));
  if (op == "t") {
    if (in.extents.size() < 2) return in;
    return permute(syms, in, std::vector<i64>{1, 0});
  }
  if (op == "transpose.int") {
    std::vector<i64> order;
    for (std::size_t k = 0; k < in.extents.size(); ++k) order.push_back(static_cast<i64>(k));
    if (!order.empty())
      std::swap(order[args.dim("dim0", order.size())], order[args.dim("dim1", order.size())]);
    return permute(syms, in, order);
  }
  if (op == "expand") return broadcast_to(syms, in, shape ? *shape : expand_shape(l, args, in));
  if (op == "slice.Tensor") return slice(l, args, in, shape);
  if (op == "unsqueeze") return unsqueeze(syms, in, args.dim("dim", in.extents.size() + 1));
  if (op == "diagonal") return diagonal(l, args, in, shape);
  if (op == "unfold") return unfold(l, args, in);
  if (op == "as_strided") return as_strided(l, args, in, Element::Single);
  if (op == "alias" || op == "detach" || op == "lift_fresh_copy" || op == "view_as_real" ||
      op == "view_as_complex")
    return in;
  if (op == "real") return part_of(syms, in, 0);
  if (op == "imag") return part_of(syms, in, 1);
  DimView dims(l, in);
  if (op == "select.int") {
    const std::size_t d = args.dim("dim", in.extents.size());
    dims.fix(d, from_front(l, args.size("index"), in.extents[d]));
    return dims.finish();
  }
  if (op.starts_with("squeeze")) {
    for (std::size_t d : squeezed(l, args, in)) dims.fix(d, syms.constant(0));
    return dims.finish();
  }
  return l.unsupported_case(str("no view {}", op));
}

/// A view by the dims that `in` has without the parts: the view of one part, which stays a free
/// variable.
Result<Access> pair_view(Lowering& l, const View& view, Access in) {
  const Expr part = in.vars.back();
  in.vars.pop_back();
  in.extents.pop_back();
  Access out = COIL_TRY(single_view(l, view, in));
  out.vars.push_back(part);
  out.extents.push_back(l.syms.constant(2));
  return out;
}

}  // namespace

Element element_after(const View& view) {
  if (view.op == "view_as_complex") return Element::Pair;
  return splits_pairs(view.op) ? Element::Single : view.element;
}

Result<Access> apply_view(Lowering& l, const View& view, const Access& in) {
  if (view.element == Element::Single) {
    if (view.op == "real") return in;
    return single_view(l, view, in);
  }
  if (view.op == "as_strided") return as_strided(l, view.args, in, Element::Pair);
  return splits_pairs(view.op) ? single_view(l, view, in) : pair_view(l, view, in);
}

namespace {

/// The memory that as_strided of a result counts in: a copy where the result lies elsewise.
Access memory_of(Lowering& l, ValueId v) {
  const Access a = l.access(v);
  const NodeId maker = l.graph.values[v].def;
  if (!maker.valid() || is_view_op(l.graph.nodes[maker].op) || lies_as_typed(l, a, l.type(v)))
    return a;
  const std::string name = l.name() + ".base";
  const BufferId copied = l.add_buffer(l.buffer_for(l.type(v), name));
  l.copy(a, copied, name);
  return l.whole(copied);
}

}  // namespace

Status lower_view(Lowering& l, const Node& node, const Args& args) {
  const ValueId self = std::get<ValueId>(node.args.at(0));
  const Exprs shape = l.type(node.outs[0]).shape;
  const View view{node.op, args, element_of(l.type(self)), &shape};
  const Access in = node.op == "as_strided" ? memory_of(l, self) : l.access(self);
  l.set(node.outs[0], COIL_TRY(apply_view(l, view, in)));
  return Ok{};
}

Status lower_split(Lowering& l, const Node& node, const Args& args) {
  sym::Arena& syms = l.syms;
  const ValueId self = args.tensor("self");
  const Access in = l.access(self);
  const std::size_t d = args.dim("dim", l.type(self).ndim());
  Expr start = syms.constant(0);
  for (ValueId out : node.outs) {
    DimView view(l, in);
    if (node.op == "unbind.int") {
      view.fix(d, start);
      start = syms.add(start, syms.constant(1));
    } else {
      const Expr length = l.type(out).shape[d];
      view.slice(d, length, start, syms.constant(1));
      start = syms.add(start, length);
    }
    l.set(out, view.finish());
  }
  return Ok{};
}

}  // namespace coil::lowering
