// Grouping: walks the program in order and puts each body into a group of its own, of a producer,
// or of a neighbour that reads the same; then brings groups and nodes into an order.

#include "schedule/schedule.h"

#include <algorithm>
#include <queue>

#include "schedule/fuse.h"
#include "schedule/memory.h"
#include "schedule/recompute.h"

namespace coil {
namespace {

constexpr std::size_t kMostNeighbours =
    4;  // groups that are tried because they read the same buffer

struct StepTag;
using StepId = Id<StepTag>;

class Grouper {
 public:
  Grouper(const LoopProgram& program, bool fuse) : program_(program), fuse_(fuse) {}

  Schedule run() {
    if (fuse_) choose_recomputed(program_, out_);
    for (at_ = 0; at_ < program_.order.size(); ++at_) {
      const Step& step = program_.order[at_];
      if (const auto* body = std::get_if<BodyId>(&step)) {
        if (!is_recomputed(*body)) place(*body);
      } else if (const auto* node = std::get_if<StructuredId>(&step)) {
        const Structured& s = program_.structured[*node];
        const StepId id = new_step(*node);
        for (const Access& a : s.inputs) {
          depend(id, maker(a.buffer));
          for (sym::Expr e : a.index) depend_on_sizes(id, e);
          for (sym::Expr e : a.extents) depend_on_sizes(id, e);
        }
        for (const Access& a : s.outputs) defined_by_[a.buffer] = id;
      } else {
        add_control(std::get<ControlId>(step));
      }
    }
    if (fuse_) close_groups();
    put_in_order();
    return std::move(out_);
  }

 private:
  struct Node {
    std::variant<std::size_t, StructuredId, ControlId> what;  // size_t: index into drafts_
    std::vector<StepId> deps, users;
    std::vector<StepId> sizes;        // of `deps`: whose sizes it names
    std::size_t first = 0, last = 0;  // places in the program of what it holds
    std::size_t reach = 0;            // the largest `first` of itself and all that it waits for
    StepId moved;                     // the step that has taken this one over
  };

  bool is_recomputed(BodyId id) const {
    const std::vector<BufferId> stored = buffers_stored(program_.bodies[id]);
    return !stored.empty() && out_.recomputed.get(stored[0]) == id;
  }

  StepId new_step(std::variant<std::size_t, StructuredId, ControlId> what) {
    return steps_.add(Node{what, {}, {}, {}, at_, at_, at_, StepId()});
  }

  /// Where the work of a step has gone.
  StepId home_of(StepId s) const {
    while (s.valid() && steps_[s].moved.valid()) s = steps_[s].moved;
    return s;
  }
  StepId maker(BufferId b) const { return home_of(defined_by_.get(b)); }

  void depend(StepId step, StepId on) {
    if (!on.valid() || on == step) return;
    std::vector<StepId>& deps = steps_[step].deps;
    if (std::find(deps.begin(), deps.end(), on) != deps.end()) return;
    deps.push_back(on);
    steps_[on].users.push_back(step);
    raise_reach(step, steps_[on].reach);
  }

  /// A group that was there before may come to wait for a step that is younger than its own users.
  void raise_reach(StepId step, std::size_t reach) {
    std::vector<StepId> work = {step};
    while (!work.empty()) {
      Node& node = steps_[work.back()];
      work.pop_back();
      if (node.reach >= reach) continue;
      node.reach = reach;
      work.insert(work.end(), node.users.begin(), node.users.end());
    }
  }

  /// Steps that make sizes which `e` names: they are read on the host in between.
  void sizes_of(sym::Expr e, std::vector<StepId>& out) const {
    if (!e.valid()) return;
    for (const ProgramSize& s : program_.sizes)
      if (s.from.valid() && program_.syms->uses(e, s.var)) {
        const StepId by = maker(s.from);
        if (by.valid() && std::find(out.begin(), out.end(), by) == out.end()) out.push_back(by);
      }
  }
  void depend_on_sizes(StepId step, sym::Expr e) {
    std::vector<StepId> made;
    sizes_of(e, made);
    for (StepId s : made) depend(step, s);
  }

  void add_control(ControlId id) {
    const Control& c = program_.controls[id];
    const StepId step = new_step(id);
    if (const auto* branch = std::get_if<If>(&c.kind)) {
      if (branch->predicate.valid()) depend(step, maker(branch->predicate));
      depend_on_sizes(step, branch->condition);
    }
    if (const auto* loop = std::get_if<For>(&c.kind)) depend_on_sizes(step, loop->extent);
    for (BufferId b : c.carried) depend(step, maker(b));
    for (BufferId b : c.operands) depend(step, maker(b));
    // A sub-program may name any size that is known by now.
    for (const ProgramSize& s : program_.sizes)
      if (s.from.valid()) depend(step, maker(s.from));
    for (BufferId b : c.results) defined_by_[b] = step;
  }

  struct Needs {
    std::vector<StepId> data;   // steps that make what the body reads
    std::vector<StepId> sizes;  // steps that make its sizes
  };
  Needs needs_of(const Body& body, const std::vector<Reading>& reads) const {
    Needs out;
    const auto add = [&](StepId s) {
      if (s.valid() && std::find(out.data.begin(), out.data.end(), s) == out.data.end())
        out.data.push_back(s);
    };
    for (const Reading& r : reads) {
      add(maker(r.buffer));
      for (sym::Expr e : r.index) sizes_of(e, out.sizes);
      for (sym::Expr e : program_.buffers[r.buffer].shape) sizes_of(e, out.sizes);
    }
    for (const Dim& d : body.dims) sizes_of(d.extent, out.sizes);
    for (const Inst& i : body.insts) {
      if (i.kind == InstKind::Store && program_.buffers[i.buffer].starts.valid())
        add(maker(program_.buffers[i.buffer].starts));
      for (sym::Expr e : i.index) sizes_of(e, out.sizes);
      sizes_of(i.expr, out.sizes);
      sizes_of(i.extent, out.sizes);
      if (i.kind == InstKind::Load && out_.recomputed.get(i.buffer).valid())
        value_sizes(program_.bodies[out_.recomputed.get(i.buffer)], out.sizes);
    }
    return out;
  }
  void value_sizes(const Body& body, std::vector<StepId>& out) const {
    for (const Inst& i : body.insts) {
      sizes_of(i.expr, out);
      if (i.kind == InstKind::Load && out_.recomputed.get(i.buffer).valid())
        value_sizes(program_.bodies[out_.recomputed.get(i.buffer)], out);
    }
  }

  void place(BodyId id) {
    const Body& body = program_.bodies[id];
    const std::vector<Reading> reads = readings(program_, out_.recomputed, body);
    const Needs needs = needs_of(body, reads);
    StepId home;
    if (fuse_) {
      for (StepId candidate : candidates(needs, reads)) {
        if (!reaches_around(candidate, needs) && joins(candidate, id)) {
          home = candidate;
          break;
        }
      }
    }
    if (!home.valid()) {
      drafts_.push_back(start_group(program_, out_.recomputed, id));
      home = new_step(drafts_.size() - 1);
    }
    steps_[home].last = at_;
    for (StepId s : needs.data) depend(home, s);
    for (StepId s : needs.sizes) depend(home, s);
    std::vector<StepId>& sizes = steps_[home].sizes;
    sizes.insert(sizes.end(), needs.sizes.begin(), needs.sizes.end());
    for (BufferId b : buffers_stored(body)) defined_by_[b] = home;
    for (const Reading& r : reads) {
      std::vector<StepId>& list = readers_[r.buffer];
      if (list.empty() || list.back() != home) list.push_back(home);
    }
    if (fuse_) absorb_into_producers(home, needs);
  }

  /// A group whose last body reads from another one, too, moves into that one as a whole, if it
  /// can.
  void absorb_into_producers(StepId group, const Needs& needs) {
    for (StepId producer : needs.data) {
      Draft* into = draft_of(producer);
      Draft* from = draft_of(group);
      if (producer == group || !into || !from || into->block || from->block ||
          meet_between(producer, group) || reads_sizes_of(producer, group))
        continue;
      Draft trial = *into;
      const bool all = std::all_of(
          from->group.instances.begin(), from->group.instances.end(),
          [&](const Instance& i) { return join(program_, out_.recomputed, trial, i.body).yes; });
      if (!all) continue;
      out_.decisions.push_back({true, into->group.name, from->group.name,
                                "its bodies all run at the same points", Question::Share});
      *into = std::move(trial);
      take_over(producer, group);
      return;
    }
  }

  /// Whether a third step waits for one of two and is waited for by the other, or `earlier` waits
  /// for `later`.
  bool meet_between(StepId earlier, StepId later) {
    Needs others;
    for (StepId s : steps_[later].deps)
      if (s != earlier) others.data.push_back(s);
    if (reaches_around(earlier, others)) return true;
    return reaches_around(later, Needs{steps_[earlier].deps, {}});
  }

  void take_over(StepId into, StepId from) {
    const std::vector<StepId> deps = steps_[from].deps, users = steps_[from].users;
    std::vector<StepId>& sizes = steps_[into].sizes;
    sizes.insert(sizes.end(), steps_[from].sizes.begin(), steps_[from].sizes.end());
    steps_[from].moved = into;
    steps_[from].deps.clear();
    steps_[from].users.clear();
    steps_[into].first = std::min(steps_[into].first, steps_[from].first);
    steps_[into].last = std::max(steps_[into].last, steps_[from].last);
    for (StepId s : deps) {
      std::erase(steps_[s].users, from);
      depend(into, s);
    }
    for (StepId s : users) {
      std::erase(steps_[s].deps, from);
      depend(s, into);
    }
  }

  /// Small groups without a grid run at the end of the kernel that they wait for.
  void close_groups() {
    for (StepId s : steps_.ids()) {
      Draft* later = draft_of(s);
      if (!later || steps_[s].moved.valid()) continue;
      const std::vector<StepId> deps = steps_[s].deps;
      for (StepId producer : deps) {
        Draft* earlier = draft_of(producer);
        if (!earlier || reads_sizes_of(producer, s) || meet_between(producer, s)) continue;
        Decision d = may_close(program_, earlier->group, later->group);
        const bool yes = d.yes;
        if (yes) out_.decisions.push_back(std::move(d));
        if (!yes) continue;
        std::vector<Group> parts = std::move(later->group.closing);
        earlier->group.closing.push_back(std::move(later->group));
        for (Group& g : parts) earlier->group.closing.push_back(std::move(g));
        take_over(producer, s);
        break;
      }
    }
  }

  /// Whether `later` names a size that `earlier` makes: it is read on the host in between.
  bool reads_sizes_of(StepId earlier, StepId later) const {
    const std::vector<StepId>& sizes = steps_[later].sizes;
    return std::any_of(sizes.begin(), sizes.end(), [&](StepId s) { return home_of(s) == earlier; });
  }

  bool joins(StepId step, BodyId id) {
    Draft* draft = draft_of(step);
    std::optional<Draft> around;
    if (const auto* node = std::get_if<StructuredId>(&steps_[step].what)) {
      std::variant<Draft, std::string> started = start_group(program_, *node);
      if (const auto* why = std::get_if<std::string>(&started)) {
        out_.decisions.push_back({false, program_.structured[*node].name, program_.bodies[id].name,
                                  *why, Question::Share});
        return false;
      }
      around = std::get<Draft>(std::move(started));
      draft = &*around;
    }
    if (!draft) return false;  // a sub-program
    out_.decisions.push_back(join(program_, out_.recomputed, *draft, id));
    const bool yes = out_.decisions.back().yes;
    if (yes && around) {
      steps_[step].what = drafts_.size();
      drafts_.push_back(std::move(*around));
    }
    return yes;
  }

  Draft* draft_of(StepId step) {
    const auto* index = std::get_if<std::size_t>(&steps_[step].what);
    return index ? &drafts_[*index] : nullptr;
  }

  /// Producers, the latest first; then groups that read the largest buffer the body reads.
  std::vector<StepId> candidates(const Needs& needs, const std::vector<Reading>& reads) const {
    std::vector<StepId> out = needs.data;
    std::sort(out.begin(), out.end(),
              [&](StepId a, StepId b) { return steps_[a].last > steps_[b].last; });
    i64 most = 0;
    for (const Reading& r : reads)
      most = std::max(most, likely_product(program_, program_.buffers[r.buffer].shape));
    for (const Reading& r : reads) {
      const std::vector<StepId> list = readers_.get(r.buffer);
      if (likely_product(program_, program_.buffers[r.buffer].shape) < most) continue;
      for (std::size_t i = 0; i < std::min(list.size(), kMostNeighbours); ++i) {
        const StepId s = home_of(list[list.size() - 1 - i]);
        if (std::find(out.begin(), out.end(), s) == out.end()) out.push_back(s);
      }
    }
    return out;
  }

  /// Whether something that the body waits for waits itself for `group`: then it cannot run inside.
  bool reaches_around(StepId group, const Needs& needs) {
    ++search_;
    std::vector<StepId> work;
    const auto visit = [&](StepId s) {
      if (steps_[s].reach < steps_[group].first || seen_.get(s) == search_) return;
      seen_[s] = search_;
      work.push_back(s);
    };
    for (StepId s : needs.data)
      if (s != group) visit(s);
    for (StepId s : needs.sizes) {
      if (s == group) return true;
      visit(s);
    }
    while (!work.empty()) {
      const StepId s = work.back();
      work.pop_back();
      if (s == group) return true;
      for (StepId d : steps_[s].deps) visit(d);
    }
    return false;
  }

  /// A step comes after all it waits for, and else in the order of the program.
  void put_in_order() {
    std::vector<u32> missing(steps_.size());
    std::vector<std::vector<StepId>> waiting(steps_.size());
    using Entry = std::pair<std::size_t, StepId>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    for (StepId s : steps_.ids()) {
      if (steps_[s].moved.valid()) continue;
      missing[s.index] = static_cast<u32>(steps_[s].deps.size());
      for (StepId d : steps_[s].deps) waiting[d.index].push_back(s);
      if (missing[s.index] == 0) ready.push({steps_[s].last, s});
    }
    while (!ready.empty()) {
      const StepId s = ready.top().second;
      ready.pop();
      if (Draft* draft = draft_of(s)) {
        out_.order.push_back(out_.groups.add(std::move(draft->group)));
      } else if (const auto* node = std::get_if<StructuredId>(&steps_[s].what)) {
        out_.order.push_back(*node);
      } else {
        out_.order.push_back(std::get<ControlId>(steps_[s].what));
      }
      for (StepId w : waiting[s.index])
        if (--missing[w.index] == 0) ready.push({steps_[w].last, w});
    }
    std::size_t left = 0;
    for (const Node& n : steps_) left += n.moved.valid() ? 0 : 1;
    COIL_CHECK(out_.order.size() == left, "steps of {} wait for each other", program_.name);
  }

  const LoopProgram& program_;
  const bool fuse_;
  Schedule out_;
  std::size_t at_ = 0;
  Table<StepId, Node> steps_;
  std::vector<Draft> drafts_;
  Side<BufferId, StepId> defined_by_;
  Side<BufferId, std::vector<StepId>> readers_;
  Side<StepId, u32> seen_;
  u32 search_ = 0;
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
