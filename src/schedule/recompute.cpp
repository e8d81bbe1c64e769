#include "schedule/recompute.h"

#include <algorithm>

#include "schedule/epilogue.h"

namespace coil {
namespace {

constexpr i64 kLikelySize = 64;           // of a dynamic size without a hint
constexpr i64 kCheapOperations = 4;       // a point that costs no more than a read of it
constexpr i64 kBroadcastOperations = 16;  // where hardly anything is read: masks, positions, scales
constexpr i64 kBroadcastRatio = 8;        // bytes made for each byte read, from which that holds
constexpr i64 kMostInstructions = 200;    // of a body with all that it computes again
constexpr i64 kLongRow = 8192;            // points of a row that are worth a thread
constexpr i64 kMany = i64{1} << 31;       // points are counted up to here: no product overflows

class Chooser {
 public:
  Chooser(const LoopProgram& program, Schedule& schedule)
      : program_(program), schedule_(schedule) {}

  void run() {
    find_readers();
    for (const Step& step : program_.order) {
      if (const auto* body = std::get_if<BodyId>(&step)) consider(*body);
      if (const auto* node = std::get_if<StructuredId>(&step)) {
        const Structured& s = program_.structured[*node];
        if (no_hole(program_, s).empty()) on_blocks_[s.outputs[0].buffer] = s.name;
      }
    }
  }

 private:
  void find_readers() {
    for (BodyId id : program_.bodies.ids())
      for (const Inst& i : program_.bodies[id].insts)
        if (i.kind == InstKind::Load) readers_[i.buffer].push_back(id);
    const auto pin = [&](BufferId b) {
      if (b.valid()) pinned_[b] = true;
    };
    for (const ProgramOutput& o : program_.outputs) pin(o.buffer);
    for (const ProgramState& s : program_.states) pin(s.updated);
    for (const ProgramSize& s : program_.sizes) pin(s.from);
    for (const Buffer& b : program_.buffers) pin(b.starts);
    for (const Structured& s : program_.structured)
      for (const Access& a : s.inputs) pin(a.buffer);
    for (const Control& c : program_.controls) {
      if (const auto* branch = std::get_if<If>(&c.kind)) pin(branch->predicate);
      for (BufferId b : c.carried) pin(b);
      for (BufferId b : c.operands) pin(b);
    }
  }

  /// One plain store of every element, nothing that can fail.
  bool can_be_recomputed(const Body& body) const {
    if (!is_pointwise(body) || has_kind(body, InstKind::Index)) return false;
    const std::vector<BufferId> stored = buffers_stored(body);
    if (stored.size() != 1 || pinned_.get(stored[0]) || program_.buffers[stored[0]].starts.valid())
      return false;
    if (program_.buffers[stored[0]].kind != BufferKind::Temp || readers_.get(stored[0]).empty())
      return false;
    return std::count_if(body.insts.begin(), body.insts.end(),
                         [&](const Inst& i) {
                           return i.kind == InstKind::Store &&
                                  is_identity(program_, body, i.index) && !i.mask.valid();
                         }) == 1 &&
           std::count_if(body.insts.begin(), body.insts.end(),
                         [](const Inst& i) { return i.kind == InstKind::Store; }) == 1;
  }

  /// A pointwise body over the result of a node with a hole may run on the blocks of that result.
  void follow_blocks(const Body& body) {
    if (!is_pointwise(body) || has_kind(body, InstKind::Index)) return;
    for (const Inst& i : body.insts) {
      if (i.kind != InstKind::Load || i.mask.valid() || !is_identity(program_, body, i.index))
        continue;
      const std::string node = on_blocks_.get(i.buffer);
      if (node.empty()) continue;
      for (BufferId b : buffers_stored(body)) on_blocks_[b] = node;
    }
  }

  void consider(BodyId id) {
    const Body& body = program_.bodies[id];
    i64 cost = cost_of_point(body), insts = static_cast<i64>(body.insts.size());
    for (const Inst& i : body.insts)
      if (i.kind == InstKind::Load && schedule_.recomputed.get(i.buffer).valid()) {
        cost += cost_.get(schedule_.recomputed.get(i.buffer));
        insts += insts_.get(schedule_.recomputed.get(i.buffer));
      }
    cost_[id] = cost;
    insts_[id] = insts;
    follow_blocks(body);
    if (!can_be_recomputed(body)) return;
    const BufferId b = buffers_stored(body)[0];
    Decision d{false, body.name, program_.bodies[readers_[b][0]].name, "", Question::Recompute};
    d.yes = is_worth_it(body, id, b, d.reason);
    if (d.yes) schedule_.recomputed[b] = id;
    schedule_.decisions.push_back(std::move(d));
  }

  bool is_worth_it(const Body& body, BodyId id, BufferId b, std::string& reason) const {
    const std::string& name = program_.buffers[b].name;
    const i64 cost = cost_.get(id), points = likely_points(program_, body);
    double times = 0;  // that a point is computed
    for (BodyId r : readers_.get(b)) {
      const Body& reader = program_.bodies[r];
      times += std::max(1.0, static_cast<double>(likely_points(program_, reader)) /
                                 static_cast<double>(std::max<i64>(1, points)));
      if (reader.init != body.init)
        return reason = str("%{} is made at init and read in each call", name), false;
      if (insts_.get(id) + static_cast<i64>(reader.insts.size()) > kMostInstructions)
        return reason = str("{} would become too long", reader.name), false;
      if (cost > kCheapOperations && is_serial(reader))
        return reason = str("{} runs on few threads, {} on all", reader.name, body.name), false;
    }
    if (times <= 1) return reason = str("%{} is read once", name), true;
    if (const std::string& node = on_blocks_.get(b); !node.empty())
      return reason = str("%{} costs nothing on the blocks of {}", name, node), false;
    const i64 made = points * size_of(program_.buffers[b].dtype);
    i64 read = 0;
    for (const Reading& r : readings(program_, schedule_.recomputed, body))
      read += bytes_read(r, points);
    if (read <= made + made / kBroadcastRatio && cost <= kCheapOperations)
      return reason = str("%{} costs no more to compute than to read", name), true;
    if (read * kBroadcastRatio <= made && cost <= kBroadcastOperations)
      return reason = str("%{} is made from next to nothing", name), true;
    return reason = str("%{} is read {} times and costs {} operations a point", name,
                        readers_.get(b).size(), cost),
           false;
  }

  /// Stores that may meet, or a reduction with fewer rows than threads want.
  bool is_serial(const Body& reader) const {
    std::vector<sym::Expr> grid, inner;
    for (const Dim& d : reader.dims)
      (d.kind == DimKind::Parallel ? grid : inner).push_back(d.extent);
    i64 block = 0;
    for (const Inst& i : reader.insts) {
      if (i.kind == InstKind::Store && i.store_combine != StoreCombine::None) return true;
      if (i.kind == InstKind::Reduce) block = i.tree.block;
    }
    return leaves_threads_idle(program_, grid, inner, block);
  }

  i64 bytes_read(const Reading& r, i64 points) const {
    const Buffer& b = program_.buffers[r.buffer];
    return std::min(likely_product(program_, b.shape), points) * size_of(b.dtype);
  }

  const LoopProgram& program_;
  Schedule& schedule_;
  Side<BufferId, std::vector<BodyId>> readers_;  // one for each load
  Side<BufferId, bool> pinned_;
  Side<BufferId, std::string> on_blocks_;  // the node whose blocks a buffer can be made on
  Side<BodyId, i64> cost_, insts_;         // with all that is computed again inside
};

}  // namespace

i64 likely(const LoopProgram& program, sym::Expr e) {
  const auto value = [&](sym::Expr v) -> std::optional<i64> {
    for (const ProgramSize& s : program.sizes)
      if (s.var == v && s.hint) return s.hint;
    return kLikelySize;
  };
  return program.syms->eval(e, value).value_or(kLikelySize);
}

i64 likely_product(const LoopProgram& program, std::span<const sym::Expr> extents) {
  i64 product = 1;
  for (sym::Expr e : extents)
    product = std::min(kMany, product * std::clamp<i64>(likely(program, e), 0, kMany));
  return product;
}

i64 likely_points(const LoopProgram& program, const Body& body) {
  std::vector<sym::Expr> extents;
  for (const Dim& d : body.dims) extents.push_back(d.extent);
  return likely_product(program, extents);
}

bool leaves_threads_idle(const LoopProgram& program, std::span<const sym::Expr> grid,
                         std::span<const sym::Expr> row, i64 block) {
  const i64 points = likely_product(program, row);
  return likely_product(program, grid) < kFewRows && points >= kLongRow &&
         (block == 0 || points <= (kSharedBlocks - 1) * block);
}

i64 cost_of_point(const Body& body) {
  i64 cost = 0;
  for (const Inst& i : body.insts)
    if (i.kind == InstKind::Op && i.op != ops::ScalarOp::cast)
      cost += ops::is_elementary(i.op) ? kElementary : 1;
  return cost;
}

void choose_recomputed(const LoopProgram& program, Schedule& schedule) {
  Chooser(program, schedule).run();
}

}  // namespace coil
