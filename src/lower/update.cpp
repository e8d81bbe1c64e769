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
  // A view of a complex tensor moves elements; their two parts follow, as a dim set aside.
  Expr part;
  const auto set_aside = [&] {
    part = place.vars.back();
    place.vars.pop_back();
    place.extents.pop_back();
  };
  const auto put_back = [&] {
    if (!part.valid()) return;
    place.vars.push_back(part);
    place.extents.push_back(l.syms.constant(2));
    part = {};
  };
  if (is_complex(l.type(base).dtype)) set_aside();
  for (const ViewStep& step : node.view) {
    if (step.op == "view_as_real" || step.op == "real" || step.op == "imag") put_back();
    place = COIL_TRY(apply_view(l, step.op, Args(l.syms, step.op, step.args, 1), place, nullptr));
    if (step.op == "view_as_complex") set_aside();
  }
  put_back();
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
