#pragma once
// Runs a schedule without compiled code: kernels by kernel_eval, nodes by the interpreter, in the
// memory that the schedule plans.

#include <map>
#include <random>
#include <string>
#include <vector>

#include "runtime/tensor.h"
#include "schedule/schedule.h"
#include "target/interp/memory.h"

namespace coil::schedule_run {

/// How often something arose that a test wants to have seen, by name.
using Counts = std::map<std::string, i64>;

struct Ran {
  std::vector<std::vector<std::byte>>
      outputs;  // of kind Value: the buffer's elements in row-major order
  Counts counts;
};

/// One call. `inputs` are as LoopProgram::inputs, all tensors; `env` gives each size a value that
/// is not from data. Memory is poisoned before a buffer's life and after it. Each kernel is
/// verified, and runs as built or as parsed from its text. Units of work run in any order; an
/// epilogue sees the node's result in blocks cut at random.
Result<Ran> run(const LoopProgram& program, const Schedule& schedule,
                const std::vector<runtime::Value>& inputs, const interp::Env& env, u64 seed);

/// The elements of a tensor in row-major order.
std::vector<std::byte> dense(const runtime::Tensor& tensor);

}  // namespace coil::schedule_run
