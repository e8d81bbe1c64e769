// update: the base, with the elements that a view chain selects replaced.

#include "base/check.h"
#include "lower/body_builder.h"
#include "lower/registry.h"

namespace coil::lowering {

Status lower_update(Lowering& l, const Node& node) {
  const ValueId base = std::get<ValueId>(node.args.at(0)),
                value = std::get<ValueId>(node.args.at(1));
  const BufferId out = l.result_from(node.outs[0], l.whole_buffer(l.access(base), "base"));
  Access place = l.whole(out);
  Element element = element_of(l.type(base));
  for (const ViewStep& step : node.view) {
    const Args args(l.syms, step.op, step.args, 1);
    const View view{step.op, args, element};
    place = COIL_TRY(apply_view(l, view, place));
    element = element_after(view);
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

}  // namespace coil::lowering
