// A tensor's bytes seen as another dtype: each element of the result is put together from the bits
// of one or of several elements of self.

#include "lower/body_builder.h"
#include "lower/registry.h"

namespace coil::lowering {
namespace {

using ops::ScalarOp;

DType signed_of_size(int bytes) {
  for (DType d : {DType::i8, DType::i16, DType::i32})
    if (size_of(d) == bytes) return d;
  return DType::i64;
}

/// The bits of a value at the low end of an i64; what is above them is of no account.
Val bits_of(BodyBuilder& b, Val v) {
  const DType from = b.dtype(v);
  return b.cast(is_float(from) ? b.bitcast(v, signed_of_size(size_of(from))) : v, DType::i64);
}
/// The value of a dtype whose bits stand at the low end.
Val of_bits(BodyBuilder& b, Val bits, DType to) {
  if (is_bool(to)) return b.cast(b.cast(bits, DType::u8), to);  // bools are bytes of 0 and 1
  if (!is_float(to)) return b.cast(bits, to);
  return b.bitcast(b.cast(bits, signed_of_size(size_of(to))), to);
}

/// The last dim of a tensor as a row of real elements.
Access as_rows(Lowering& l, Access in, const Type& type) {
  if (type.ndim() == 0) return is_complex(type.dtype) ? in : unsqueeze(l.syms, in, 0);
  if (!is_complex(type.dtype)) return in;
  Exprs shape = in.extents;
  shape.pop_back();
  shape.back() = l.syms.mul(shape.back(), l.syms.constant(2));
  return reshape(l.syms, l.prover, in, shape);
}

/// The element at `place` of a row, of dtype `to`. Bytes are in little-endian order.
Val element_at(BodyBuilder& b, const Access& rows, Exprs at, DType to) {
  sym::Arena& syms = b.syms();
  const Expr place = at.back();
  const int have = size_of(b.lowering().dtype_of(rows)), want = size_of(to);
  const auto bits_at = [&](Expr i) {
    at.back() = i;
    return bits_of(b, b.load(rows, at));
  };
  if (have >= want) {
    const Expr parts = syms.constant(have / want);
    const Val bits = bits_at(syms.floordiv(place, parts));
    const Expr shift = syms.mul(syms.mod(place, parts), syms.constant(8 * want));
    return of_bits(b, have == want ? bits : b.op(ScalarOp::shr, {bits, b.value(shift)}), to);
  }
  const int parts = want / have;
  const Val low = b.integer(DType::i64, (i64(1) << (8 * have)) - 1);
  Val all;
  for (int k = 0; k < parts; ++k) {
    const Expr i = syms.add(syms.mul(place, syms.constant(parts)), syms.constant(k));
    Val part = b.op(ScalarOp::bits_and, {bits_at(i), low});
    if (k > 0) part = b.op(ScalarOp::shl, {part, b.integer(DType::i64, 8 * have * k)});
    all = k == 0 ? part : b.op(ScalarOp::bits_or, {all, part});
  }
  return of_bits(b, all, to);
}

/// The point of the rows at which the result's element at `at` begins.
Exprs row_point(Lowering& l, const Exprs& at, const Type& type) {
  Exprs point(at.begin(),
              at.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(type.ndim(), 1) - 1));
  Expr place = l.syms.constant(0);
  if (type.ndim() > 0) place = at[type.ndim() - 1];
  if (is_complex(type.dtype)) place = l.syms.add(l.syms.mul(place, l.syms.constant(2)), at.back());
  point.push_back(place);
  return point;
}

}  // namespace

Status lower_bitcast_view(Lowering& l, const Node& node, const Args& args) {
  const ValueId self = args.tensor("self");
  const Type& type = l.type(node.outs[0]);
  const Access in = l.access(self);
  if (l.type(self).dtype == type.dtype) {
    l.set(node.outs[0], in);
    return Ok{};
  }
  const DType from = l.dtype_of(in), to = is_complex(type.dtype) ? real_of(type.dtype) : type.dtype;
  for (DType d : {from, to})
    if (size_of(d) == 1 && is_float(d))
      return l.unsupported_case(str("the bits of an 8-bit float, {} as {}", name(from), name(to)));
  const Access rows = as_rows(l, in, l.type(self));
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(l.program.buffers[out].shape);
  const Exprs point = row_point(l, at, type);
  b.store(out, at, from == to ? b.load(rows, point) : element_at(b, rows, point, to));
  b.finish();
  return Ok{};
}

}  // namespace coil::lowering
