#include "statistics.h"

#include <algorithm>
#include <set>

#include "runtime/bind.h"
#include "runtime/frame.h"

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
    for (const PlanStep& step : plan.run) {
      std::set<u32> buffers;
      if (const auto* l = std::get_if<Launch>(&step)) {
        ++out_.kernels;
        buffers.insert(l->buffers.begin(), l->buffers.end());
      } else if (const auto* c = std::get_if<Call>(&step)) {
        ++out_.calls;
        for (const PlanOperand& o : c->operands) buffers.insert(o.buffer);
        if (c->epilogue) buffers.insert(c->epilogue->buffers.begin(), c->epilogue->buffers.end());
        buffers.erase(runtime::kBlockBuffer);
        std::erase_if(buffers, [&](u32 b) { return plan.buffers[b].where == runtime::Where::Nowhere; });
      } else if (const auto* copy = std::get_if<CopyStep>(&step)) {
        buffers = {copy->from, copy->to};
      }
      for (u32 b : buffers)
        if (const Result<i64> bytes = frame.eval(plan.buffers[b].bytes); bytes.ok()) out_.bytes_moved += *bytes;
    }
    for (const Plan& p : plan.subplans) count(p);
  }

 private:
  CallContext& context_;
  PlanStatistics& out_;
};

/// Operations of bodies with several instances, per point of the loops, from the second instance on.
i64 recomputed(const LoopProgram& program, const Schedule& schedule) {
  std::set<BodyId> seen;
  i64 total = 0;
  for (const Group& g : schedule.groups)
    for (const Instance& i : g.instances) {
      if (seen.insert(i.body).second) continue;
      const Body& body = program.bodies[i.body];
      i64 points = std::count_if(body.insts.begin(), body.insts.end(), [](const Inst& x) { return x.kind == InstKind::Op; });
      for (const Dim& d : body.dims) points *= program.syms->as_const(d.extent).value_or(1);
      total += points;
    }
  return total;
}

}  // namespace

PlanStatistics statistics(const Compilation& compilation, const std::vector<Value>& inputs) {
  PlanStatistics out;
  const Model& model = *compilation.model;
  CallContext context{model, std::vector<i64>(model.plan.symbols.size()), std::vector<double>(model.plan.scalars.size()),
                      *model.pool};
  if (!bind_inputs(model.plan, inputs, context).ok()) return out;
  Counter(context, out).count(model.plan);
  out.recomputed = recomputed(compilation.program, compilation.schedule);
  return out;
}

}  // namespace coil::cli
