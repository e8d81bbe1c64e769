#include "statistics.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/bind.h"
#include "runtime/frame.h"
#include "schedule/recompute.h"

namespace coil::cli {
namespace {

using runtime::Call;
using runtime::CallContext;
using runtime::CopyStep;
using runtime::Frame;
using runtime::Launch;
using runtime::Model;
using runtime::Plan;
using runtime::PlanOperand;
using runtime::PlanStep;
using runtime::Value;

class Counter {
 public:
  Counter(CallContext& context, PlanStatistics& out) : context_(context), out_(out) {}

  void count(const Plan& plan) {
    const Frame frame(plan, context_);
    if (const Result<i64> bytes = frame.arena_bytes(); bytes.ok()) out_.arena_bytes += *bytes;
    std::set<u32> of_kernel;  // buffers of the launches of one kernel: each counts once
    for (const PlanStep& step : plan.run) {
      std::set<u32> buffers;
      if (const auto* l = std::get_if<Launch>(&step)) {
        out_.kernels += !l->follows;
        if (!l->follows) of_kernel.clear();
        for (u32 b : l->buffers)
          if (of_kernel.insert(b).second) buffers.insert(b);
      } else if (const auto* c = std::get_if<Call>(&step)) {
        ++out_.calls;
        for (const PlanOperand& o : c->operands) buffers.insert(o.buffer);
        if (c->epilogue) buffers.insert(c->epilogue->buffers.begin(), c->epilogue->buffers.end());
        buffers.erase(runtime::kBlockBuffer);
        std::erase_if(buffers,
                      [&](u32 b) { return plan.buffers[b].where == runtime::Where::Nowhere; });
      } else if (const auto* copy = std::get_if<CopyStep>(&step)) {
        buffers = {copy->from, copy->to};
      }
      for (u32 b : buffers)
        if (const Result<i64> bytes = frame.eval(plan.buffers[b].bytes); bytes.ok())
          out_.bytes_moved += *bytes;
    }
    for (const Plan& p : plan.subplans) count(p);
  }

 private:
  CallContext& context_;
  PlanStatistics& out_;
};

/// Operations beyond one for each point of each body. A reader of a body without a place of its own
/// runs it at each of its points; what several readers of one kernel share is counted for each of
/// them.
class Recomputed {
 public:
  Recomputed(const LoopProgram& program, const Schedule& schedule)
      : program_(program), schedule_(schedule) {}

  i64 count() {
    for (const Step& step : program_.order)
      if (const auto* body = std::get_if<BodyId>(&step))
        for (const Inst& i : program_.bodies[*body].insts)
          if (i.kind == InstKind::Load) readers_[i.buffer].push_back(*body);
    double total = 0;
    for (BufferId b : program_.buffers.ids()) {
      const BodyId id = schedule_.recomputed.get(b);
      if (!id.valid()) continue;
      const std::vector<Inst>& insts = program_.bodies[id].insts;
      const auto ops = std::count_if(insts.begin(), insts.end(),
                                     [](const Inst& i) { return i.kind == InstKind::Op; });
      total += std::max(0.0, runs(id, b) - points(id)) * static_cast<double>(ops);
    }
    return static_cast<i64>(total);
  }

 private:
  double points(BodyId id) const {
    double points = 1;
    for (const Dim& d : program_.bodies[id].dims)
      points *= static_cast<double>(likely(program_, d.extent));
    return points;
  }
  /// How often a body without a place runs, over all its readers.
  double runs(BodyId id, BufferId b) {
    if (const auto known = runs_.find(id); known != runs_.end()) return known->second;
    double total = 0;
    for (BodyId reader : readers_[b]) {
      const std::vector<BufferId> stored = buffers_stored(program_.bodies[reader]);
      const bool again = schedule_.recomputed.get(stored[0]) == reader;
      total += again ? runs(reader, stored[0]) : points(reader);
    }
    return runs_[id] = total;
  }

  const LoopProgram& program_;
  const Schedule& schedule_;
  Side<BufferId, std::vector<BodyId>> readers_;
  std::map<BodyId, double> runs_;
};

}  // namespace

PlanStatistics statistics(const Compilation& compilation, const std::vector<Value>& inputs) {
  PlanStatistics out;
  const Model& model = *compilation.model;
  runtime::ThreadPool pool(1);
  CallContext context{model, std::vector<i64>(model.plan.symbols.size()),
                      std::vector<double>(model.plan.scalars.size()), pool};
  if (!bind_inputs(model.plan, inputs, context).ok()) return out;
  Counter(context, out).count(model.plan);
  out.recomputed = Recomputed(compilation.program, compilation.schedule).count();
  return out;
}

}  // namespace coil::cli
