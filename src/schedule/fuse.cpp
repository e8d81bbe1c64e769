// "May these two fuse?" is decided here: a body joins a group at the same points of the grid and,
// where it goes over the group's row, in a stage after all that it reads; or the reason why not.

#include "schedule/fuse.h"

#include <algorithm>
#include <numeric>

#include "schedule/match.h"
#include "schedule/recompute.h"

namespace coil {
namespace {

constexpr std::size_t kMostInstructions = 1000;  // of one kernel
constexpr i64 kMostClosingPoints = 65536;       // of a group that one thread runs at a kernel's end
constexpr std::size_t kMostBlockAccesses = 48;  // and sizes, of an epilogue: its arguments are few

class Joiner {
 public:
  Joiner(const LoopProgram& program, const Side<BufferId, BodyId>& recomputed, Draft& draft,
         BodyId id)
      : program_(program),
        syms_(*program.syms),
        draft_(draft),
        id_(id),
        body_(program.bodies[id]),
        reads_(readings(program, recomputed, body_)) {}

  Decision run() {
    Decision d{false, draft_.group.name, body_.name, alone(), Question::Share};
    if (d.reason.empty()) d.reason = check_tree();
    if (!d.reason.empty()) return d;
    const std::variant<Fit, std::string> found =
        match(program_, draft_.group, body_, shared_accesses());
    if (const auto* why = std::get_if<std::string>(&found)) {
      d.reason = *why;
      return d;
    }
    fit_ = std::get<Fit>(found);
    for (std::size_t i = 0; i < body_.dims.size(); ++i)
      to_axes_.push_back({body_.dims[i].var, fit_.dims[i]});
    for (const std::vector<Axis>* axes : {&fit_.grid, &fit_.inner})
      for (const Axis& a : *axes)
        if (syms_.is_const(a.extent, 1)) to_axes_.push_back({a.var, syms_.constant(0)});
    d.reason = draft_.block ? check_columns() : check_rows();
    if (d.reason.empty() && draft_.stores_meet &&
        (!fit_.moved.empty() || fit_.inner.size() != draft_.group.inner.size()))
      d.reason = str("stores of {} may meet: their order stays", draft_.group.name);
    if (d.reason.empty()) d.reason = find_stage();
    if (!d.reason.empty()) return d;
    d.yes = true;
    d.reason = saving();
    apply();
    return d;
  }

 private:
  /// What keeps the body out of any group.
  std::string alone() const {
    if (draft_.group.init != body_.init) return "one runs at init, the other in each call";
    if (stores_may_meet(program_, body_)) return str("stores of {} may meet", body_.name);
    for (const Inst& i : body_.insts) {
      if (i.kind != InstKind::Store) continue;
      if (program_.buffers[i.buffer].starts.valid())
        return str("%{} starts as another buffer", program_.buffers[i.buffer].name);
    }
    if (draft_.group.node.valid() && (!is_pointwise(body_) || has_kind(body_, InstKind::Index)))
      return str("{} is not pointwise, or its indices can be out of range", body_.name);
    if (draft_.group.node.valid() &&
        (draft_.reads.size() + draft_.stores.size() + reads_.size() > kMostBlockAccesses ||
         program_.sizes.size() > kMostBlockAccesses))
      return "the epilogue would have too many arguments";
    if (draft_.reads.size() + draft_.stores.size() + body_.insts.size() > kMostInstructions)
      return "the kernel would become too long";
    return "";
  }

  /// Reductions of a kernel go over its row together, in rounds that fit.
  std::string check_tree() const {
    std::optional<ops::Tree> tree = draft_.tree;
    for (const Inst& i : body_.insts) {
      if (i.kind != InstKind::Reduce) continue;
      if (tree && (tree->lanes != i.tree.lanes || tree->block != i.tree.block))
        return str("their reductions have trees {}x{} block {} and {}x{} block {}", tree->lanes,
                   tree->accs, tree->block, i.tree.lanes, i.tree.accs, i.tree.block);
      if (tree && std::lcm(tree->accs, i.tree.accs) > std::max(tree->accs, i.tree.accs))
        return str("their reductions go in rounds of {} and {}", tree->accs, i.tree.accs);
      if (!tree || tree->accs < i.tree.accs) tree = i.tree;
    }
    if (tree && tree->lanes > 1 && (draft_.scans || has_kind(body_, InstKind::Scan)))
      return "lanes run along the row, and a scan goes in order";
    return "";
  }

  const StoreSite* stored(BufferId b) const {
    for (const StoreSite& s : draft_.stores)
      if (s.buffer == b) return &s;
    return nullptr;
  }

  std::vector<SharedAccess> shared_accesses() const {
    std::vector<SharedAccess> out;
    for (const Reading& r : reads_)
      if (const StoreSite* s = stored(r.buffer)) out.push_back({s->index, r.index});
    for (const Reading& r : reads_)
      for (const Reading& mine : draft_.reads)
        if (mine.buffer == r.buffer && !stored(r.buffer)) out.push_back({mine.index, r.index});
    return out;
  }

  bool reduces() const { return has_kind(body_, InstKind::Reduce); }

  /// A row kernel shares its rows among threads: bodies without a reduction must not lose them.
  std::string check_rows() const {
    std::vector<sym::Expr> grid, inner;
    for (const Axis& a : fit_.grid) grid.push_back(a.extent);
    for (const Axis& a : fit_.inner) inner.push_back(a.extent);
    const i64 block = draft_.tree ? draft_.tree->block : 0;
    if (leaves_threads_idle(program_, grid, inner, block) && fit_.is_row && !reduces())
      return str("{} rows are too few to share among threads", likely_product(program_, grid));
    return "";
  }

  /// Lanes of an epilogue run along the columns of a block: every access must be linear there.
  std::string check_columns() {
    const auto is_linear = [&](BufferId b, std::vector<sym::Expr> index) {
      for (sym::Expr& e : index)
        e = syms_.substitute(syms_.substitute(e, to_axes_), draft_.block->dims);
      return syms_.stride(address(syms_, program_.buffers[b].layout, index), draft_.block->col.var)
          .has_value();
    };
    for (const Reading& r : reads_)
      if (!stored(r.buffer) && !is_linear(r.buffer, r.index))
        return str("%{} is not linear along the columns of a block",
                   program_.buffers[r.buffer].name);
    for (const Inst& i : body_.insts)
      if (i.kind == InstKind::Store && !is_linear(i.buffer, i.index))
        return str("%{} is not linear along the columns of a block",
                   program_.buffers[i.buffer].name);
    return "";
  }

  std::string find_stage() {
    const bool widened = draft_.group.inner.empty() && !fit_.inner.empty();
    stage_ = fit_.is_row ? 1 : 0;
    for (const Reading& r : reads_) {
      const StoreSite* s = stored(r.buffer);
      if (!s) continue;
      const std::string& name = program_.buffers[r.buffer].name;
      u32 ready = ready_stage(*s, widened);
      if (std::count_if(draft_.stores.begin(), draft_.stores.end(),
                        [&](const StoreSite& o) { return o.buffer == r.buffer; }) > 1 ||
          s->masked)
        return str("%{} is stored in parts", name);
      if (!is_same_element(*s, r))
        return str("%{} is read at another place than it is written", name);
      if (ready % 2 == 1 && (!fit_.is_row || r.after_row))
        return str("%{} is a row, {} has one point for it", name, body_.name);
      if (ready % 2 == 0 && fit_.is_row) ++ready;
      stage_ = std::max(stage_, ready);
    }
    return "";
  }

  u32 ready_stage(const StoreSite& s, bool widened) const {
    if (s.instance == kByNode) return 0;
    const Instance& by = draft_.group.instances[s.instance];
    return (widened ? 1 : by.stage) +
           (has_kind(program_.bodies[by.body], InstKind::Reduce) ? 1 : 0);
  }

  bool is_same_element(const StoreSite& s, const Reading& r) {
    if (s.index.size() != r.index.size() || r.masked) return false;
    for (std::size_t d = 0; d < s.index.size(); ++d) {
      const sym::Expr written =
          syms_.substitute(syms_.substitute(s.index[d], fit_.moved), to_axes_);
      const sym::Expr read = syms_.substitute(r.index[d], to_axes_);
      if (written != syms_.substitute(read, to_axes_)) return false;
    }
    return true;
  }

  std::string saving() const {
    for (const Reading& r : reads_)
      if (stored(r.buffer))
        return str("{}; saves a read of %{}",
                   draft_.block  ? "on each block of the result"
                   : fit_.is_row ? "same row"
                                 : "same element",
                   program_.buffers[r.buffer].name);
    for (const Reading& r : reads_)
      for (const Reading& mine : draft_.reads)
        if (mine.buffer == r.buffer) return str("both read %{}", program_.buffers[r.buffer].name);
    return "same loops";
  }

  void apply() {
    Group& g = draft_.group;
    const bool widened = g.inner.empty() && !fit_.inner.empty();
    const auto move = [&](std::vector<sym::Expr>& tuple) {
      for (sym::Expr& e : tuple) e = syms_.substitute(e, fit_.moved);
    };
    for (Instance& i : g.instances) {
      move(i.dims);
      if (widened) i.stage = 1;
    }
    for (StoreSite& s : draft_.stores) move(s.index);
    for (Reading& r : draft_.reads) move(r.index);
    if (!g.node.valid()) g.grid = fit_.grid;
    g.inner = fit_.inner;
    add(fit_.dims, stage_);
  }

 public:
  void add(const std::vector<sym::Expr>& dims, u32 stage) {
    std::vector<std::pair<sym::Expr, sym::Expr>> by;
    for (std::size_t i = 0; i < dims.size(); ++i) by.push_back({body_.dims[i].var, dims[i]});
    const auto place = [&](std::vector<sym::Expr> tuple) {
      for (sym::Expr& e : tuple) e = syms_.substitute(e, by);
      return tuple;
    };
    for (const Inst& i : body_.insts) {
      if (i.kind == InstKind::Store)
        draft_.stores.push_back(
            {i.buffer, place(i.index), i.mask.valid(), draft_.group.instances.size()});
      if (i.kind == InstKind::Reduce && (!draft_.tree || draft_.tree->accs < i.tree.accs))
        draft_.tree = i.tree;
      draft_.scans |= i.kind == InstKind::Scan;
    }
    draft_.stores_meet |= stores_may_meet(program_, body_);
    for (Reading& r : reads_)
      draft_.reads.push_back({r.buffer, place(r.index), r.masked, r.after_row});
    draft_.group.instances.push_back({id_, dims, stage});
  }

 private:
  const LoopProgram& program_;
  sym::Arena& syms_;
  Draft& draft_;
  const BodyId id_;
  const Body& body_;
  std::vector<Reading> reads_;
  Fit fit_;
  std::vector<std::pair<sym::Expr, sym::Expr>> to_axes_;
  u32 stage_ = 0;
};

}  // namespace

Draft start_group(const LoopProgram& program, const Side<BufferId, BodyId>& recomputed, BodyId id) {
  const Body& body = program.bodies[id];
  Draft draft;
  draft.group.name = body.name;
  draft.group.init = body.init;
  std::vector<sym::Expr> dims;
  for (const Dim& d : body.dims) {
    (d.kind == DimKind::Parallel ? draft.group.grid : draft.group.inner)
        .push_back({d.var, d.extent});
    dims.push_back(d.var);
  }
  Joiner(program, recomputed, draft, id).add(dims, draft.group.inner.empty() ? 0 : 1);
  return draft;
}

std::variant<Draft, std::string> start_group(const LoopProgram& program, StructuredId id) {
  const Structured& node = program.structured[id];
  if (std::string why = no_hole(program, node); !why.empty()) return why;
  Draft draft;
  draft.group.name = node.name;
  draft.group.init = node.init;
  draft.group.node = id;
  const Access& out = node.outputs[0];
  for (std::size_t d = 0; d < out.vars.size(); ++d)
    draft.group.grid.push_back({out.vars[d], out.extents[d]});
  draft.stores.push_back({out.buffer, out.vars, false, kByNode});
  draft.block = block_of(program, node);
  return draft;
}

Decision join(const LoopProgram& program, const Side<BufferId, BodyId>& recomputed, Draft& draft,
              BodyId body) {
  return Joiner(program, recomputed, draft, body).run();
}

namespace {

bool has_partial_write(const LoopProgram& program, const Group& group) {
  bool found = false;
  for_each_instance(group, [&](const Instance& i) {
    for (BufferId b : buffers_stored(program.bodies[i.body]))
      found |= program.buffers[b].starts.valid();
  });
  return found;
}

}  // namespace

Decision may_close(const LoopProgram& program, const Group& earlier, const Group& later) {
  Decision d{false, earlier.name, later.name, "", Question::Share};
  std::vector<sym::Expr> row;
  for (const Axis& a : later.inner) row.push_back(a.extent);
  if (earlier.init != later.init) {
    d.reason = "one runs at init, the other in each call";
  } else if (earlier.node.valid() || later.node.valid()) {
    d.reason = "a template has no end of its own";
  } else if (has_partial_write(program, later)) {
    d.reason = str("{} writes to a part of another buffer, which must be there before", later.name);
  } else if (std::any_of(later.grid.begin(), later.grid.end(),
                         [&](const Axis& a) { return !program.syms->is_const(a.extent, 1); })) {
    d.reason = str("{} has parallel points", later.name);
  } else if (likely_product(program, row) > kMostClosingPoints) {
    d.reason = str("{} is too large for one thread", later.name);
  } else {
    d.yes = true;
    d.reason = str("runs once, when all of {} is done", earlier.name);
  }
  return d;
}

}  // namespace coil
