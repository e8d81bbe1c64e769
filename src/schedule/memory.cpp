#include "schedule/memory.h"

#include <algorithm>

#include "schedule/accesses.h"

namespace coil {

sym::Expr bytes_of(sym::Arena& syms, const Buffer& buffer) {
  // The furthest element, which is the last one where strides are not negative.
  std::vector<sym::Expr> last;
  sym::Expr any = syms.constant(1);
  for (sym::Expr extent : buffer.shape) {
    last.push_back(syms.sub(extent, syms.constant(1)));
    any = syms.mul(any, extent);
  }
  Layout layout = buffer.layout;
  layout.offset = sym::Expr();
  const sym::Expr elements = syms.add(address(syms, layout, last), syms.constant(1));
  const sym::Expr bytes = syms.mul(elements, syms.constant(size_of(buffer.dtype)));
  return syms.select(syms.eq(any, syms.constant(0)), syms.constant(0), bytes);
}

StepBuffers buffers_of(const LoopProgram& program, const Schedule& schedule,
                       const ScheduleStep& step) {
  StepBuffers out;
  const auto add = [](std::vector<BufferId>& list, BufferId b) {
    if (b.valid() && std::find(list.begin(), list.end(), b) == list.end()) list.push_back(b);
  };
  const auto add_node = [&](const Structured& node) {
    for (const Access& a : node.inputs) add(out.reads, a.buffer);
    for (const Access& a : node.outputs) add(out.writes, a.buffer);
  };
  if (const auto* group = std::get_if<GroupId>(&step)) {
    if (schedule.groups[*group].node.valid())
      add_node(program.structured[schedule.groups[*group].node]);
    for_each_instance(schedule.groups[*group], [&](const Instance& instance) {
      const Body& body = program.bodies[instance.body];
      for (const Reading& r : readings(program, schedule.recomputed, body))
        add(out.reads, r.buffer);
      for (BufferId b : buffers_stored(body)) add(out.writes, b);
    });
  } else if (const auto* node = std::get_if<StructuredId>(&step)) {
    add_node(program.structured[*node]);
  } else {
    const Control& c = program.controls[std::get<ControlId>(step)];
    if (const auto* branch = std::get_if<If>(&c.kind)) add(out.reads, branch->predicate);
    for (BufferId b : c.carried) add(out.reads, b);
    for (BufferId b : c.operands) add(out.reads, b);
    for (BufferId b : c.results) add(out.writes, b);
  }
  for (std::size_t i = 0; i < out.writes.size(); ++i)
    add(out.reads, program.buffers[out.writes[i]].starts);
  return out;
}

namespace {

constexpr i64 kKeptBytes = 16384;  // of a row that a kernel keeps in its first cache

class MemoryPlanner {
 public:
  MemoryPlanner(const LoopProgram& program, Schedule& schedule)
      : program_(program), schedule_(schedule), syms_(*program.syms) {}

  void run() {
    find_lives();
    settle_places();
    assign_slots();
  }

 private:
  u32 end() const { return static_cast<u32>(schedule_.order.size()); }

  void find_lives() {
    for (u32 at = 0; at < end(); ++at) {
      const StepBuffers used = buffers_of(program_, schedule_, schedule_.order[at]);
      const auto* group = std::get_if<GroupId>(&schedule_.order[at]);
      for (BufferId b : used.writes) {
        BufferPlan& life = schedule_.buffers[b];
        if (!written_[b]) life.first = at;
        life.last = std::max(life.last, at);
        if (group && schedule_.groups[*group].init) derived_[b] = true;
        only_group_[b] = group && !written_[b];
        written_[b] = true;
      }
      if (const auto* node = std::get_if<StructuredId>(&schedule_.order[at]);
          node && program_.structured[*node].init)
        for (BufferId b : used.writes) derived_[b] = true;
      if (group) hand_to_closing(schedule_.groups[*group]);
      for (BufferId b : used.reads) {
        schedule_.buffers[b].last = std::max(schedule_.buffers[b].last, at);
        if (at != schedule_.buffers[b].first) only_group_[b] = false;
      }
    }
    for (const ProgramOutput& o : program_.outputs)
      if (o.buffer.valid()) pin(o.buffer);
    for (const ProgramState& s : program_.states) pin(s.updated);
    for (const ProgramSize& s : program_.sizes)
      if (s.from.valid()) pin(s.from);
    for (BufferId b : program_.buffers.ids())
      if (program_.buffers[b].starts.valid()) only_group_[b] = false;
  }

  /// What a closing group reads of what ran before it comes through memory.
  void hand_to_closing(const Group& group) {
    for (const Group& part : group.closing) {
      Side<BufferId, bool> own;
      for (const Instance& i : part.instances)
        for (BufferId b : buffers_stored(program_.bodies[i.body])) own[b] = true;
      for (const Instance& i : part.instances)
        for (const Reading& r : readings(program_, schedule_.recomputed, program_.bodies[i.body]))
          if (!own.get(r.buffer)) only_group_[r.buffer] = false;
    }
  }

  /// The part of a kernel that stores `b`: the group itself, or one that closes it; null for a
  /// node's result.
  const Group* part_of(BufferId b) const {
    const Group& group =
        schedule_.groups[std::get<GroupId>(schedule_.order[schedule_.buffers.get(b).first])];
    const auto has_store = [&](const Group& g) {
      return std::any_of(g.instances.begin(), g.instances.end(),
                         [&](const Instance& i) { return stores(i, b); });
    };
    if (has_store(group)) return &group;
    for (const Group& part : group.closing)
      if (has_store(part)) return &part;
    return nullptr;
  }

  bool stores(const Instance& i, BufferId b) const {
    const std::vector<BufferId> stored = buffers_stored(program_.bodies[i.body]);
    return std::find(stored.begin(), stored.end(), b) != stored.end();
  }
  bool reads(const Instance& i, BufferId b) const {
    const std::vector<Reading> all =
        readings(program_, schedule_.recomputed, program_.bodies[i.body]);
    return std::any_of(all.begin(), all.end(), [&](const Reading& r) { return r.buffer == b; });
  }

  void pin(BufferId b) {
    schedule_.buffers[b].last = end();
    only_group_[b] = false;
  }

  bool depends_on_data(sym::Expr bytes) const {
    std::vector<sym::Expr> vars;
    syms_.variables(bytes, vars);
    return std::any_of(vars.begin(), vars.end(),
                       [&](sym::Expr v) { return syms_.var(v).role == sym::Role::Value; });
  }

  void settle_places() {
    Side<BufferId, bool> is_output;
    for (const ProgramOutput& o : program_.outputs)
      if (o.kind == OutputKind::Value || o.kind == OutputKind::AliasOfOutput)
        is_output[o.buffer] = true;
    for (BufferId b : program_.buffers.ids()) {
      const Buffer& buffer = program_.buffers[b];
      BufferPlan& plan = schedule_.buffers[b];
      if (buffer.kind != BufferKind::Temp) {
        plan.place = Place::External;
      } else if (derived_.get(b)) {
        plan.place = Place::Derived;
      } else if (schedule_.recomputed.get(b).valid()) {
        plan.place = Place::Gone;
      } else if (only_group_.get(b) && !crosses_stages(b)) {
        plan.place = Place::Gone;
      } else if (only_group_.get(b) && can_be_kept(b)) {
        plan.place = Place::Kept;
      } else if (is_output.get(b)) {
        plan.place = Place::Output;
      } else if (depends_on_data(bytes_of(syms_, buffer))) {
        plan.place = Place::Heap;
      } else {
        plan.place = Place::Arena;
      }
    }
  }

  /// Whether a later stage of its group reads elements of `b` that an earlier loop stored.
  bool crosses_stages(BufferId b) const {
    const Group* part = part_of(b);
    if (!part) return false;
    const Group& group = *part;
    const auto by = std::find_if(group.instances.begin(), group.instances.end(),
                                 [&](const Instance& i) { return stores(i, b); });
    if (!by->is_row() || has_kind(program_.bodies[by->body], InstKind::Reduce)) return false;
    return std::any_of(group.instances.begin(), group.instances.end(),
                       [&](const Instance& i) { return i.stage != by->stage && reads(i, b); });
  }

  /// A row of known length that lanes run along.
  bool can_be_kept(BufferId b) const {
    const Group& group = *part_of(b);
    const auto has_lanes = [&](const Instance& i) {
      const Body& body = program_.bodies[i.body];
      return std::any_of(body.insts.begin(), body.insts.end(), [](const Inst& x) {
        return x.kind == InstKind::Reduce && x.tree.lanes > 1;
      });
    };
    if (!std::any_of(group.instances.begin(), group.instances.end(), has_lanes)) return false;
    i64 bytes = size_of(program_.buffers[b].dtype);
    for (const Axis& a : group.inner) {
      const std::optional<i64> extent = syms_.as_const(a.extent);
      if (!extent || *extent > kKeptBytes) return false;
      bytes *= *extent;
      if (bytes > kKeptBytes) return false;
    }
    return true;
  }

  /// Whether `b` can take over the memory of the buffer it starts as: nobody reads that one later,
  /// and the step that defines `b` does not read it either.
  bool can_take_over(BufferId b) const {
    const BufferId base = program_.buffers[b].starts;
    if (!base.valid()) return false;
    const BufferPlan& from = schedule_.buffers.get(base);
    const BufferPlan& to = schedule_.buffers.get(b);
    if (from.place != Place::Arena || to.place != Place::Arena || from.last != to.first)
      return false;
    const Layout& x = program_.buffers[base].layout;
    const Layout& y = program_.buffers[b].layout;
    if (x.entries != y.entries || x.offset != y.offset) return false;
    const auto* group = std::get_if<GroupId>(&schedule_.order[to.first]);
    if (!group) return false;
    bool is_read = false;
    for_each_instance(schedule_.groups[*group],
                      [&](const Instance& i) { is_read |= reads(i, base); });
    return !is_read;
  }

  void assign_slots() {
    std::vector<std::vector<BufferId>> born(end() + 1);
    for (BufferId b : program_.buffers.ids())
      if (schedule_.buffers[b].place == Place::Arena) born[schedule_.buffers[b].first].push_back(b);
    for (const std::vector<BufferId>& at_step : born)
      for (BufferId b : at_step) {
        BufferPlan& plan = schedule_.buffers[b];
        if (can_take_over(b)) {
          plan.slot = schedule_.buffers[program_.buffers[b].starts].slot;
          plan.place = Place::Within;
        } else {
          plan.slot = find_slot(bytes_of(syms_, program_.buffers[b]), plan.first);
        }
        busy_until_[plan.slot] = plan.last;
      }
  }

  /// A slot that is free at `step` and, best, of the same size; a constant slot may grow.
  u32 find_slot(sym::Expr bytes, u32 step) {
    const std::optional<i64> wanted = syms_.as_const(bytes);
    std::optional<u32> best;
    i64 best_waste = INT64_MAX;
    for (u32 s = 0; s < schedule_.slots.size(); ++s) {
      if (busy_until_[s] >= step) continue;
      const std::optional<i64> have = syms_.as_const(schedule_.slots[s].bytes);
      if (schedule_.slots[s].bytes == bytes) return s;
      if (!wanted || !have) continue;
      const i64 waste = *have >= *wanted ? *have - *wanted : *wanted - *have;
      if (waste < best_waste) {
        best_waste = waste;
        best = s;
      }
    }
    if (best) {
      const i64 have = *syms_.as_const(schedule_.slots[*best].bytes);
      schedule_.slots[*best].bytes = syms_.constant(std::max(have, *wanted));
      return *best;
    }
    schedule_.slots.push_back({bytes});
    busy_until_.push_back(0);
    return static_cast<u32>(schedule_.slots.size() - 1);
  }

  const LoopProgram& program_;
  Schedule& schedule_;
  sym::Arena& syms_;
  Side<BufferId, bool> written_;
  Side<BufferId, bool> derived_;
  Side<BufferId, bool> only_group_;
  std::vector<u32> busy_until_;
};

}  // namespace

void plan_memory(const LoopProgram& program, Schedule& schedule) {
  MemoryPlanner(program, schedule).run();
}

}  // namespace coil
