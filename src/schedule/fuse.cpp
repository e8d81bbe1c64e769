// "May these two fuse?" is decided here: a body joins the group of its producer, or the reason why not.

#include "schedule/fuse.h"

#include <algorithm>

namespace coil {
namespace {

bool has_kind(const Body& body, InstKind kind) {
  return std::any_of(body.insts.begin(), body.insts.end(), [&](const Inst& i) { return i.kind == kind; });
}

/// Bodies whose every point stands alone, so that they can run inside another's loop.
bool is_pointwise(const Body& body) {
  const bool parallel = std::all_of(body.dims.begin(), body.dims.end(),
                                    [](const Dim& d) { return d.kind == DimKind::Parallel; });
  const bool plain = std::all_of(body.insts.begin(), body.insts.end(), [](const Inst& i) {
    return i.kind != InstKind::Store || i.store_combine == StoreCombine::None;
  });
  return parallel && plain && !has_kind(body, InstKind::Index);
}

bool is_identity(const Body& body, const std::vector<sym::Expr>& index) {
  if (index.size() != body.dims.size()) return false;
  for (std::size_t i = 0; i < index.size(); ++i)
    if (index[i] != body.dims[i].var) return false;
  return true;
}

/// Whether every access of `body` to `buffer` names the iteration point itself, without a mask.
bool touches_own_point_only(const Body& body, BufferId buffer) {
  return std::all_of(body.insts.begin(), body.insts.end(), [&](const Inst& i) {
    const bool access = i.kind == InstKind::Load || i.kind == InstKind::Store;
    return !access || i.buffer != buffer || (is_identity(body, i.index) && !i.mask.valid());
  });
}

}  // namespace

Decision may_fuse(const LoopProgram& program, const Body& producer, const Body& consumer,
                  BufferId through) {
  Decision d{false, producer.name, consumer.name, ""};
  const auto no = [&](std::string reason) {
    d.reason = std::move(reason);
    return d;
  };
  if (producer.init != consumer.init) return no("one runs at init, the other in each call");
  if (!is_pointwise(producer)) return no(str("{} is not pointwise", producer.name));
  if (!is_pointwise(consumer)) return no(str("{} is not pointwise", consumer.name));
  if (producer.dims.size() != consumer.dims.size()) return no("their loops have different ranks");
  sym::Prover prover(*program.syms, program.facts);
  for (std::size_t i = 0; i < producer.dims.size(); ++i)
    if (!prover.is_equal(producer.dims[i].extent, consumer.dims[i].extent))
      return no(str("dim {} has extent {} in one, {} in the other", i,
                    program.syms->text(producer.dims[i].extent),
                    program.syms->text(consumer.dims[i].extent)));
  if (!touches_own_point_only(producer, through) || !touches_own_point_only(consumer, through))
    return no(str("%{} is read at another place than it is written", program.buffers[through].name));
  if (program.buffers[through].starts.valid())
    return no(str("%{} starts as another buffer", program.buffers[through].name));
  d.yes = true;
  d.reason = str("same element; saves a read of %{}", program.buffers[through].name);
  return d;
}

}  // namespace coil
