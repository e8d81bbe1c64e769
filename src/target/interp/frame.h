#pragma once
// One execution of a program or sub-program: its buffers and the values of its variables.

#include <vector>

#include "target/interp/combine_code.h"
#include "target/interp/interp.h"
#include "target/interp/memory.h"

namespace coil::interp {

class Frame {
 public:
  Frame(const LoopProgram& program, bool widen, Env env)
      : program_(program), widen_(widen), env_(std::move(env)), memory_(program.buffers.size()) {}

  const LoopProgram& program() const { return program_; }
  bool widen() const { return widen_; }
  Env& env() { return env_; }
  DType held(DType dtype) const { return held_dtype(dtype, widen_); }

  /// Gives an input, constant or state its content.
  void set(BufferId id, MemoryRef memory) { memory_[id] = std::move(memory); }
  /// The content of a buffer that is defined by now; copies what it starts as, if nothing wrote it.
  Result<MemoryRef> read(BufferId id);
  /// Makes the memory of a buffer that the present step writes.
  Result<MemoryRef> define(BufferId id);
  /// The content in the layout that the program states, which addresses of outputs refer to.
  Result<MemoryRef> in_stated_layout(BufferId id);

  /// Runs all steps.
  Status run();
  /// Gives variables values from the shape of an input; see bind.cpp.
  Status check_range(const ProgramSize& size, i64 value) const;

 private:
  Status run_step(const Step& step);
  Status bind_sizes();

  const LoopProgram& program_;
  bool widen_;
  Env env_;
  Side<BufferId, MemoryRef> memory_;
};

Status run_body(Frame& frame, const Body& body);
Status run_structured(Frame& frame, const Structured& node);
Status run_control(Frame& frame, const Control& control);

/// A strided window on a buffer, as an output states it.
Result<Memory> output_window(Frame& frame, const ProgramOutput& output);
/// " (model.py:12)" of the first known place, or "".
std::string place_text(const LoopProgram& program, std::span<const LocId> locs);

}  // namespace coil::interp
