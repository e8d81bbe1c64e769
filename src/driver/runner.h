#pragma once
// One interface to whatever runs a model: compiled kernels or the interpreter.

#include <memory>
#include <span>
#include <vector>

#include "driver/compile.h"
#include "driver/load.h"
#include "target/interp/interp.h"

namespace coil {

class Runner {
 public:
  virtual ~Runner() = default;
  /// One call; state lives on between calls.
  virtual Result<std::vector<runtime::Value>> call(std::span<const runtime::Value> inputs) = 0;
};

/// `compile` for whichever level the file begins at.
Result<std::shared_ptr<Compilation>> compile(const LoadedModel& model, const Options& options,
                                             const Environment& environment);

/// Compiles a model for the target of the options. `compilation` keeps every level for reports.
struct ReadyModel {
  std::shared_ptr<Compilation> compilation;
  std::unique_ptr<Runner> runner;
};
Result<ReadyModel> make_ready(const LoadedModel& model, const Options& options,
                              const Environment& environment);

/// A new use of a compilation, with its state as the file has it.
Result<std::unique_ptr<Runner>> make_runner(const std::shared_ptr<Compilation>& compilation,
                                            bool f64_outputs = false);

}  // namespace coil
