// update: the base, with the elements that a view chain selects replaced.

#include "base/check.h"
#include "lower/body_builder.h"
#include "lower/registry.h"

namespace coil::lower {

Status lower_update(Lowering& l, const Node& node) {
  const ValueId base = std::get<ValueId>(node.args.at(0)), value = std::get<ValueId>(node.args.at(1));
  const Access from = l.access(base);
  BufferId start = from.buffer;
  if (!is_identity(from, l.program.buffers[from.buffer])) {
    start = l.temp("base", l.dtype_of(from), from.extents);
    l.copy(from, start, str("{}.base", l.name()));
  }
  const BufferId out = l.result();
  l.program.buffers[out].starts = start;
  Access place = l.whole(out);
  // The parts of a complex tensor follow its elements, whatever view is taken of those.
  const bool parts = is_complex(l.type(base).dtype);
  Expr which;
  if (parts) {
    which = place.vars.back();
    place.vars.pop_back();
    place.extents.pop_back();
  }
  for (const ViewStep& step : node.view) {
    const Args args(l.syms, step.op, step.args, 1);
    if (parts && step.op.starts_with("view_as"))
      return l.unsupported_case("a write through another element type");
    place = COIL_TRY(apply_view(l, step.op, args, place, nullptr));
  }
  if (parts) {
    place.vars.push_back(which);
    place.extents.push_back(l.syms.constant(2));
  }
  BodyBuilder b(l, l.name());
  const Exprs at = b.dims(place.extents);
  const Access source = broadcast_to(l.syms, l.access(value), place.extents);
  const DType target = l.program.buffers[out].dtype;
  Val v = b.load(source, at);
  if (b.dtype(v) != target) v = b.cast(v, compute_dtype(target));
  b.store(out, index_at(l.syms, place, at), v);
  b.finish();
  return Ok{};
}

}  // namespace coil::lower
