// Grouping: walks the program in order and puts each body into a group of its own or of its producer.

#include "schedule/schedule.h"

#include <algorithm>

#include "schedule/fuse.h"
#include "schedule/memory.h"

namespace coil {
namespace {

std::vector<BufferId> buffers_of(const Body& body, InstKind kind) {
  std::vector<BufferId> out;
  for (const Inst& i : body.insts)
    if (i.kind == kind && std::find(out.begin(), out.end(), i.buffer) == out.end())
      out.push_back(i.buffer);
  return out;
}

class Grouper {
 public:
  Grouper(const LoopProgram& program, bool fuse) : program_(program), fuse_(fuse) {}

  Schedule run() {
    for (const Step& step : program_.order) {
      if (const auto* body = std::get_if<BodyId>(&step)) {
        place(*body);
      } else if (const auto* node = std::get_if<StructuredId>(&step)) {
        for (const Access& a : program_.structured[*node].outputs) defined_at_[a.buffer] = next();
        out_.order.push_back(*node);
      } else {
        const ControlId control = std::get<ControlId>(step);
        for (BufferId b : program_.controls[control].results) defined_at_[b] = next();
        out_.order.push_back(control);
      }
    }
    return std::move(out_);
  }

 private:
  u32 next() const { return static_cast<u32>(out_.order.size()) + 1; }  // 0: before all steps

  /// The latest step that `body` waits for: buffers it reads or starts from, sizes it names.
  u32 ready_at(const Body& body) const {
    u32 latest = 0;
    for (BufferId b : buffers_of(body, InstKind::Load)) latest = std::max(latest, defined_at_.get(b));
    for (BufferId b : buffers_of(body, InstKind::Store))
      if (program_.buffers[b].starts.valid())
        latest = std::max(latest, defined_at_.get(program_.buffers[b].starts));
    std::vector<sym::Expr> vars;
    for (const Dim& d : body.dims) program_.syms->variables(d.extent, vars);
    for (const Inst& i : body.insts) {
      for (sym::Expr e : i.index) program_.syms->variables(e, vars);
      if (i.kind == InstKind::Value) program_.syms->variables(i.expr, vars);
      if (i.extent.valid()) program_.syms->variables(i.extent, vars);
    }
    for (const ProgramSize& s : program_.sizes)
      if (s.from.valid() && std::find(vars.begin(), vars.end(), s.var) != vars.end())
        latest = std::max(latest, defined_at_.get(s.from));
    return latest;
  }

  void place(BodyId id) {
    const Body& body = program_.bodies[id];
    const u32 at = ready_at(body);
    if (fuse_ && at > 0)
      if (const auto* group = std::get_if<GroupId>(&out_.order[at - 1]); group && joins(*group, body)) {
        add_instance(out_.groups[*group], id);
        for (BufferId b : buffers_of(body, InstKind::Store)) define(b, at, id);
        return;
      }
    Group g;
    g.name = body.name;
    g.init = body.init;
    for (const Dim& d : body.dims)
      (d.kind == DimKind::Parallel ? g.grid : g.inner).push_back({d.var, d.extent});
    const GroupId group = out_.groups.add(std::move(g));
    add_instance(out_.groups[group], id);
    for (BufferId b : buffers_of(body, InstKind::Store)) define(b, next(), id);
    out_.order.push_back(group);
  }

  void define(BufferId buffer, u32 at, BodyId by) {
    defined_at_[buffer] = at;
    producer_[buffer] = by;
  }

  /// Whether `body` may run inside `group`: asks for each buffer that comes from it.
  bool joins(GroupId group, const Body& body) {
    const std::vector<Instance>& members = out_.groups[group].instances;
    std::vector<Decision> asked;
    for (BufferId b : buffers_of(body, InstKind::Store))
      if (program_.buffers[b].starts.valid()) {
        out_.decisions.push_back({false, out_.groups[group].name, body.name,
                                  str("%{} starts as another buffer", program_.buffers[b].name)});
        return false;
      }
    for (BufferId b : buffers_of(body, InstKind::Load)) {
      const BodyId by = producer_.get(b);
      const bool inside = by.valid() && std::any_of(members.begin(), members.end(),
                                                    [&](const Instance& m) { return m.body == by; });
      if (inside) asked.push_back(may_fuse(program_, program_.bodies[by], body, b));
    }
    const bool all = !asked.empty() && std::all_of(asked.begin(), asked.end(),
                                                   [](const Decision& d) { return d.yes; });
    for (Decision& d : asked)
      if (all || !d.yes) out_.decisions.push_back(std::move(d));
    return all;
  }

  /// Adds a body whose parallel dims are the group's grid axes, in order.
  void add_instance(Group& group, BodyId id) {
    Instance instance{id, {}};
    std::size_t grid = 0, inner = 0;
    for (const Dim& d : program_.bodies[id].dims)
      instance.dims.push_back(d.kind == DimKind::Parallel ? group.grid[grid++].var
                                                          : group.inner[inner++].var);
    group.instances.push_back(std::move(instance));
  }

  const LoopProgram& program_;
  const bool fuse_;
  Schedule out_;
  Side<BufferId, u32> defined_at_;
  Side<BufferId, BodyId> producer_;
};

}  // namespace

Schedule schedule(const LoopProgram& program, const Options& options) {
  Schedule out = Grouper(program, options.flag("fuse")).run();
  plan_memory(program, out);
  for (const LoopProgram& sub : program.subprograms)
    out.subschedules.push_back(schedule(sub, options));
  return out;
}

}  // namespace coil
