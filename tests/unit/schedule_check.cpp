// Inputs for a program, and its three ways to run: the interpreter, unfused and fused.

#include "schedule_check.h"

#include <cmath>
#include <exception>

#include "base/options.h"
#include "ops/scalar.h"
#include "target/interp/interp.h"

namespace coil::schedule_check {
namespace {

using schedule_run::Counts;

// ---- inputs ----

ops::Scalar element(DType dtype, std::mt19937_64& random) {
  const i64 n = static_cast<i64>(random() % 33) - 16;
  if (is_bool(dtype)) return ops::Scalar::of_bool(n > 0);
  if (!is_float(dtype)) return ops::Scalar::of_int(dtype, n);
  switch (random() % 200) {
    case 0: return ops::Scalar::of_float(dtype, std::nan(""));
    case 1: return ops::Scalar::of_float(dtype, -0.0);
    case 2: return ops::Scalar::of_float(dtype, HUGE_VAL);
    case 3: return ops::Scalar::of_float(dtype, 1e30);
    default: return ops::Scalar::of_float(dtype, static_cast<double>(n) / 7);
  }
}

/// The same data for the same name, so that a smaller program reads what the larger one did.
Result<runtime::Value> input(const Buffer& buffer, const interp::Env& env) {
  std::vector<i64> shape, strides;
  for (sym::Expr e : buffer.shape) shape.push_back(env.at(e));
  for (const LayoutEntry& e : buffer.layout.entries) strides.push_back(env.at(e.stride));
  runtime::Tensor t = COIL_TRY(runtime::Tensor::allocate(buffer.dtype, shape, strides));
  std::mt19937_64 random(std::hash<std::string>{}(buffer.name));
  const i64 space = COIL_TRY(runtime::span_elements(shape, strides));
  for (i64 i = 0; i < space; ++i)
    ops::write_element(buffer.dtype, t.data, i, element(buffer.dtype, random));
  return runtime::Value(std::move(t));
}

// ---- one program, three ways ----

/// What a schedule has decided that the test wants to have seen.
void note(const LoopProgram& program, const Schedule& schedule, Counts& counts) {
  for (const Group& g : schedule.groups) {
    if (g.instances.size() > 1) ++counts["fused group"];
    for (std::size_t i = 1; i < g.instances.size(); ++i)
      for (sym::Expr e : g.instances[i].dims)
        if (program.syms->kind(e) != sym::Kind::Var && program.syms->kind(e) != sym::Kind::Const)
          ++counts["fused view of another rank"];
    for (std::size_t i = 0; i < g.instances.size(); ++i)
      for (const Inst& store : program.bodies[g.instances[i].body].insts) {
        if (store.kind != InstKind::Store) continue;
        const Place place = schedule.buffers.get(store.buffer).place;
        for (std::size_t j = i + 1; j < g.instances.size(); ++j)
          for (const Inst& load : program.bodies[g.instances[j].body].insts)
            if (load.kind == InstKind::Load && load.buffer == store.buffer &&
                place != Place::Gone && place != Place::Kept)
              ++counts["stored and read in one group"];
      }
  }
  for (const Decision& d : schedule.decisions)
    if (d.yes && d.reason.starts_with("both read")) ++counts["neighbours of one read"];
  for (const Body& body : program.bodies)
    for (const Inst& i : body.insts)
      if (i.kind == InstKind::Load && schedule.recomputed.get(i.buffer).valid())
        ++counts[i.mask.valid() ? "recomputed under a mask" : "recomputed"];
  for (BufferId b : program.buffers.ids()) {
    if (schedule.buffers.get(b).place == Place::Within) ++counts["memory taken over"];
    if (program.buffers[b].starts.valid()) ++counts["partial write"];
    if (schedule.buffers.get(b).place == Place::Derived) ++counts["made at init"];
  }
  if (program.outputs.size() > 1) ++counts["several outputs"];
  if (!program.sizes.empty()) ++counts["size of a call"];
}

std::string difference(const LoopProgram& program, const char* what,
                       const std::vector<std::vector<std::byte>>& want,
                       const std::vector<std::vector<std::byte>>& got) {
  for (std::size_t o = 0; o < want.size(); ++o) {
    const Buffer& b = program.buffers[program.outputs[o].buffer];
    if (want[o].size() != got[o].size())
      return str("{}: %{} has {} bytes, not {}", what, b.name, got[o].size(), want[o].size());
    if (want[o] == got[o]) continue;
    for (i64 i = 0; i < static_cast<i64>(want[o].size()) / size_of(b.dtype); ++i) {
      const ops::Scalar x = ops::read_element(b.dtype, want[o].data(), i),
                        y = ops::read_element(b.dtype, got[o].data(), i);
      if (!(x == y))
        return str("{}: element {} of %{} is {}, not {}", what, i, b.name, y.as_double(),
                   x.as_double());
    }
  }
  return "";
}

Result<std::string> compare(const LoopProgram& program, const Sizes& sizes, Outcome& outcome) {
  interp::Env env;
  env.syms = program.syms.get();
  for (const ProgramSize& s : program.sizes)
    if (!s.from.valid()) env.values[s.var] = sizes.at(program.syms->var(s.var).name);
  std::vector<runtime::Value> inputs;
  for (const ProgramInput& i : program.inputs)
    inputs.push_back(COIL_TRY(input(program.buffers[i.buffer], env)));
  interp::Interp reference = COIL_TRY(interp::Interp::create(program, {}));
  std::vector<std::vector<std::byte>> want;
  for (const runtime::Value& v : COIL_TRY(reference.run(inputs)))
    want.push_back(schedule_run::dense(std::get<runtime::Tensor>(v)));
  outcome.runs = true;
  for (const char* fuse : {"off", "on"}) {
    Options options;
    COIL_TRY(options.set("fuse", fuse));
    const Schedule s = schedule(program, options);
    const std::string what = str("fuse={}", fuse);
    const Result<schedule_run::Ran> ran = schedule_run::run(program, s, inputs, env, 1);
    if (!ran.ok()) return what + ": " + ran.error().message;
    if (std::string d = difference(program, what.c_str(), want, ran->outputs); !d.empty()) return d;
    if (options.flag("fuse")) {
      outcome.counts = ran->counts;
      note(program, s, outcome.counts);
    }
  }
  return std::string();
}

}  // namespace

Outcome check(const std::string& text, const Sizes& sizes) {
  Outcome outcome;
  try {
    const Result<LoopProgram> program = parse_program(text, "t");
    if (!program.ok()) {
      outcome.difference = program.error().message;
      return outcome;
    }
    const Result<std::string> difference = compare(*program, sizes, outcome);
    outcome.difference = difference.ok() ? *difference : difference.error().message;
  } catch (const std::exception& e) {
    outcome.difference = e.what();
  }
  return outcome;
}

}  // namespace coil::schedule_check
