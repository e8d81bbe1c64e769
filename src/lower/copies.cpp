// Ops that move elements: one body, whose loads are masked or whose index is arithmetic.

#include "base/check.h"
#include "lower/body_builder.h"
#include "lower/pointwise.h"
#include "lower/registry.h"

namespace coil::lowering {
namespace {

/// The result is `in`, read at `source(at)`.
template <class Source>
Status move_elements(Lowering& l, const Access& in, Source source) {
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(l.program.buffers[out].shape);
  Exprs point = at;
  source(point);
  b.store(out, at, b.load(in, point));
  b.finish();
  return Ok{};
}

ops::Scalar zero_of(DType dtype) { return ops::Scalar::of_int(dtype, 0); }

/// Keeps the elements with column - row <= diagonal (lower) or >= diagonal (upper).
enum class Triangle : u8 { Lower, Upper };
Status triangle(Lowering& l, const Args& args, Triangle which) {
  sym::Arena& syms = l.syms;
  const Access in = l.access(args.tensor("self"));
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(in.extents);
  const Expr column = at.at(at.size() - 1), row = at.at(at.size() - 2);
  const Expr distance = syms.sub(column, row), diagonal = args.size("diagonal");
  const Val kept =
      b.test(which == Triangle::Lower ? syms.le(distance, diagonal) : syms.le(diagonal, distance));
  b.store(out, at, b.load_if(kept, zero_of(l.dtype_of(in)), in, at));
  b.finish();
  return Ok{};
}

/// Reads each padded dim through `inside(x, extent)`, where x counts from the first real element.
template <class Inside>
Status pad_by_index(Lowering& l, const Args& args, Inside inside) {
  const Access in = l.access(args.tensor("self"));
  const Exprs padding = args.sizes("padding");
  return move_elements(l, in, [&](Exprs& point) {
    for (std::size_t k = 0; 2 * k < padding.size(); ++k) {
      const std::size_t d = in.extents.size() - 1 - k;
      point[d] = inside(l.syms.sub(point[d], padding[2 * k]), in.extents[d]);
    }
  });
}

}  // namespace

Status lower_cat(Lowering& l, const Node& node, const Args& args) {
  sym::Arena& syms = l.syms;
  const std::size_t rank = l.type(node.outs[0]).ndim();
  const std::size_t d = args.dim("dim", rank);
  const BufferId out = l.result();
  const DType dtype = l.program.buffers[out].dtype;
  std::vector<Access> parts;
  for (ValueId v : args.tensors("tensors")) {
    const Access& part = l.access(v);
    // An empty 1-d tensor is let through by PyTorch, whatever the others look like.
    if (l.type(v).ndim() == rank && !syms.is_const(part.extents[d], 0)) parts.push_back(part);
  }
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(l.program.buffers[out].shape);
  Expr begin = syms.constant(0);
  std::vector<std::pair<Val, Val>> pieces;  // mask, value
  for (const Access& part : parts) {
    const Expr end = syms.add(begin, part.extents[d]);
    Val mask = b.integer(DType::b8, 1);
    if (parts.size() > 1)
      mask = b.test(syms.logical_and(syms.le(begin, at[d]), syms.lt(at[d], end)));
    Exprs point = at;
    point[d] = syms.sub(at[d], begin);
    Val held = mask;
    if (part.extents.size() <
        at.size()) {  // a real tensor among complex ones: its second part is 0
      point.pop_back();
      held = b.op(ops::ScalarOp::bits_and, {mask, b.test(syms.eq(at.back(), syms.constant(0)))});
    }
    const Val v = b.load_if(held, zero_of(l.dtype_of(part)), part, point);
    pieces.push_back({mask, b.cast(v, compute_dtype(dtype))});
    begin = end;
  }
  if (pieces.empty()) {
    b.store(out, at, b.cast(b.integer(compute_dtype(dtype), 0), dtype));
  } else {
    Val v = pieces.back().second;
    for (std::size_t k = pieces.size() - 1; k-- > 0;)
      v = b.where(pieces[k].first, pieces[k].second, v);
    b.store(out, at, b.cast(v, dtype));
  }
  b.finish();
  return Ok{};
}

Status lower_constant_pad(Lowering& l, const Node&, const Args& args) {
  sym::Arena& syms = l.syms;
  const Access in = l.access(args.tensor("self"));
  const Exprs padding = args.sizes("pad");
  const BufferId out = l.result();
  const DType dtype = l.program.buffers[out].dtype;
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(l.program.buffers[out].shape);
  Exprs point = at;
  Expr inside = syms.constant(1);
  for (std::size_t k = 0; 2 * k < padding.size(); ++k) {
    const std::size_t d = in.extents.size() - 1 - k;
    point[d] = syms.sub(at[d], padding[2 * k]);
    if (!syms.is_const(padding[2 * k], 0))
      inside = syms.logical_and(inside, syms.le(syms.constant(0), point[d]));
    if (!syms.is_const(padding[2 * k + 1], 0))
      inside = syms.logical_and(inside, syms.lt(point[d], in.extents[d]));
  }
  const Arg& value = args["value"];
  const auto* number = std::get_if<double>(&value);
  const auto* integer = std::get_if<Expr>(&value);
  const auto fixed = integer ? syms.as_const(*integer) : std::nullopt;
  ops::Scalar other = zero_of(dtype);
  if (number)
    other = ops::Scalar::of_float(dtype, *number);
  else if (fixed)
    other = ops::Scalar::of_int(dtype, *fixed);
  else if (std::holds_alternative<bool>(value))
    other = ops::Scalar::of_int(dtype, args.flag("value"));
  else
    return l.unsupported_case("a fill value that is known only at run time");
  b.store(out, at, b.load_if(b.test(inside), other, in, point));
  b.finish();
  return Ok{};
}

Status lower_flip(Lowering& l, const Node&, const Args& args) {
  sym::Arena& syms = l.syms;
  const Access in = l.access(args.tensor("self"));
  const std::size_t rank = l.type(args.tensor("self")).ndim();
  return move_elements(l, in, [&](Exprs& point) {
    if (rank == 0) return;
    for (i64 dim : args.integers("dims")) {
      const std::size_t d = static_cast<std::size_t>(dim < 0 ? dim + static_cast<i64>(rank) : dim);
      point[d] = syms.sub(syms.sub(in.extents[d], syms.constant(1)), point[d]);
    }
  });
}

Status lower_roll(Lowering& l, const Node&, const Args& args) {
  sym::Arena& syms = l.syms;
  const Access in = l.access(args.tensor("self"));
  const std::size_t rank = l.type(args.tensor("self")).ndim();
  const Exprs shifts = args.sizes("shifts");
  const std::vector<i64> dims = args.integers("dims");
  return move_elements(l, in, [&](Exprs& point) {
    if (rank == 0) return;
    const auto rolled = [&](Expr at, Expr shift, Expr extent) {
      return syms.is_const(extent, 0) ? at : syms.mod(syms.sub(at, shift), extent);
    };
    if (dims.empty()) {  // over the flattened tensor
      const Exprs shape(in.extents.begin(), in.extents.begin() + static_cast<std::ptrdiff_t>(rank));
      const Exprs front(point.begin(), point.begin() + static_cast<std::ptrdiff_t>(rank));
      const Expr flat = rolled(ravel(syms, front, shape), shifts.at(0), numel(syms, shape));
      const Exprs moved = unravel(syms, flat, shape);
      std::copy(moved.begin(), moved.end(), point.begin());
      return;
    }
    for (std::size_t k = 0; k < dims.size(); ++k) {
      const std::size_t d =
          static_cast<std::size_t>(dims[k] < 0 ? dims[k] + static_cast<i64>(rank) : dims[k]);
      point[d] = rolled(point[d], shifts.at(k), in.extents[d]);
    }
  });
}

Status lower_repeat(Lowering& l, const Node&, const Args& args) {
  sym::Arena& syms = l.syms;
  const Access in = l.access(args.tensor("self"));
  const std::size_t lead = args.sizes("repeats").size() - l.type(args.tensor("self")).ndim();
  const Exprs repeats = args.sizes("repeats");
  return move_elements(l, in, [&](Exprs& point) {
    Exprs inner;
    for (std::size_t k = lead; k < point.size(); ++k) {
      const Expr extent = in.extents[k - lead];
      const bool once = k < repeats.size() ? syms.is_const(repeats[k], 1) : true;
      if (syms.is_const(extent, 1))
        inner.push_back(syms.constant(0));
      else
        inner.push_back(once ? point[k] : syms.mod(point[k], extent));
    }
    point = inner;
  });
}

Status lower_tril(Lowering& l, const Node&, const Args& args) {
  return triangle(l, args, Triangle::Lower);
}

Status lower_triu(Lowering& l, const Node&, const Args& args) {
  return triangle(l, args, Triangle::Upper);
}

Status lower_reflection_pad(Lowering& l, const Node&, const Args& args) {
  sym::Arena& syms = l.syms;
  return pad_by_index(l, args, [&](Expr x, Expr extent) {
    const Expr last = syms.sub(extent, syms.constant(1));
    const Expr left = syms.max(x, syms.neg(x));
    return syms.min(left, syms.sub(syms.mul(last, syms.constant(2)), left));
  });
}

Status lower_replication_pad(Lowering& l, const Node&, const Args& args) {
  sym::Arena& syms = l.syms;
  return pad_by_index(l, args, [&](Expr x, Expr extent) {
    const Expr last = syms.sub(extent, syms.constant(1));
    return syms.min(syms.max(x, syms.constant(0)), last);
  });
}

}  // namespace coil::lowering
