#pragma once
// The oracle: runs level 1 directly and exactly, with the reference evaluator of ops/.

#include <memory>
#include <span>
#include <vector>

#include "loop/program.h"
#include "runtime/tensor.h"

namespace coil::interp {

struct InterpOptions {
  /// Every float, in memory and in arithmetic, is an f64; casts between floats do nothing.
  bool widen = false;
  /// Float results are returned as f64 (complex ones as c128) instead of in their own dtype.
  bool f64_outputs = false;
};

/// A program with its state. Calls take turns: `run` is not safe from several threads at once.
class Interp {
 public:
  /// Verifies the program and loads its constants and state. An Error names what has no data.
  static Result<Interp> create(LoopProgram program, InterpOptions options);
  Interp(Interp&&) noexcept;
  Interp& operator=(Interp&&) noexcept;
  ~Interp();

  /// One call. `inputs` are as LoopProgram::inputs; complex tensors have a complex dtype. Results
  /// are the outputs but for MutatedInput rows, which are written into the inputs when all went
  /// well; then also the state changes. A result owns its memory unless the program says that it
  /// aliases.
  Result<std::vector<runtime::Value>> run(std::span<const runtime::Value> inputs);

  const LoopProgram& program() const;

 private:
  struct Impl;
  explicit Interp(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// One call of a program without state of its own.
Result<std::vector<runtime::Value>> run(const LoopProgram& program,
                                        std::span<const runtime::Value> inputs,
                                        const InterpOptions& options);

}  // namespace coil::interp
