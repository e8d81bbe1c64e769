#include "schedule/accesses.h"

#include <algorithm>

namespace coil {
namespace {

class Reader {
 public:
  Reader(const LoopProgram& program, const Side<BufferId, BodyId>& recomputed)
      : program_(program), recomputed_(recomputed) {}

  using Substitution = std::vector<std::pair<sym::Expr, sym::Expr>>;

  void read(const Body& body, const Substitution& dims, bool masked, bool after_row) {
    for (const Inst& inst : body.insts) {
      after_row |= inst.kind == InstKind::Reduce;
      if (inst.kind != InstKind::Load) continue;
      Reading r{inst.buffer, inst.index, masked || inst.mask.valid(), after_row};
      for (sym::Expr& e : r.index) e = program_.syms->substitute(e, dims);
      const BodyId by = recomputed_.get(inst.buffer);
      if (!by.valid()) {
        out.push_back(std::move(r));
        continue;
      }
      const Body& again = program_.bodies[by];
      Substitution at;
      for (std::size_t i = 0; i < again.dims.size(); ++i)
        at.push_back({again.dims[i].var, r.index[i]});
      read(again, at, r.masked, after_row);
    }
  }

  std::vector<Reading> out;

 private:
  const LoopProgram& program_;
  const Side<BufferId, BodyId>& recomputed_;
};

}  // namespace

std::vector<Reading> readings(const LoopProgram& program, const Side<BufferId, BodyId>& recomputed,
                              const Body& body) {
  Reader reader(program, recomputed);
  reader.read(body, {}, false, false);
  return std::move(reader.out);
}

std::vector<BufferId> buffers_stored(const Body& body) {
  std::vector<BufferId> out;
  for (const Inst& i : body.insts)
    if (i.kind == InstKind::Store && std::find(out.begin(), out.end(), i.buffer) == out.end())
      out.push_back(i.buffer);
  return out;
}

bool has_kind(const Body& body, InstKind kind) {
  return std::any_of(body.insts.begin(), body.insts.end(),
                     [&](const Inst& i) { return i.kind == kind; });
}

bool stores_may_meet(const LoopProgram& program, const Body& body) {
  const auto uses_data = [&](sym::Expr e) {
    return std::any_of(body.insts.begin(), body.insts.end(), [&](const Inst& i) {
      return i.kind == InstKind::Index && program.syms->uses(e, i.expr);
    });
  };
  return std::any_of(body.insts.begin(), body.insts.end(), [&](const Inst& i) {
    return i.kind == InstKind::Store && (i.store_combine != StoreCombine::None ||
                                         std::any_of(i.index.begin(), i.index.end(), uses_data));
  });
}

bool is_pointwise(const Body& body) {
  const bool parallel = std::all_of(body.dims.begin(), body.dims.end(),
                                    [](const Dim& d) { return d.kind == DimKind::Parallel; });
  return parallel && std::all_of(body.insts.begin(), body.insts.end(), [](const Inst& i) {
           return i.kind != InstKind::Store || i.store_combine == StoreCombine::None;
         });
}

bool is_identity(const LoopProgram& program, const Body& body,
                 const std::vector<sym::Expr>& index) {
  if (index.size() != body.dims.size()) return false;
  for (std::size_t i = 0; i < index.size(); ++i) {
    const Dim& d = body.dims[i];
    const bool is_point =
        program.syms->is_const(d.extent, 1) && program.syms->is_const(index[i], 0);
    if (index[i] != d.var && !is_point) return false;
  }
  return true;
}

}  // namespace coil
