#pragma once
// Launches that are built from instructions of a whole kernel: what splits for a CPU and for a GPU
// share.

#include "kernel/launches.h"

namespace coil {

using Places = std::vector<std::pair<sym::Expr, sym::Expr>>;

/// Works on one launch at a time. Instructions of the whole kernel are copied into it, where the
/// axes may be others, and new ones are written between them.
class LaunchBuilder {
 protected:
  /// Partial results of an accumulator or a scan: one buffer for each of its values.
  struct Partials {
    u32 accumulator = 0;  // of the whole kernel
    u32 combine = 0;
    std::vector<u32> buffers;
  };

  LaunchBuilder(const Kernel& whole, Launches& out)
      : whole_(whole), out_(out), syms_(*whole.syms) {}

  /// A launch over `grid` without stages; it has the buffers of the whole kernel, then all scratch.
  void begin(std::vector<Axis> grid);
  void open(std::vector<Axis> loop) { now_.stages.push_back({std::move(loop), {}, false}); }
  std::vector<KernelInst>& insts() { return now_.stages.back().insts; }
  Axis axis(std::string name, sym::Role role, sym::Expr extent) const;

  // ---- instructions ----

  Val fresh(DType dtype);
  Val constant(const ops::Scalar& value);
  Val value(sym::Expr expr);
  Val op(ops::ScalarOp what, DType dtype, std::vector<Val> operands);
  /// An instruction of the whole kernel; false, and nothing, where it needs a value that is not
  /// there.
  bool copy(const KernelInst& k, const Places& places);
  /// A buffer that lives as long as a run of the whole kernel; its index among the launch's.
  u32 scratch(std::string_view what, DType dtype, std::vector<sym::Expr> shape);
  Val load(u32 buffer, std::vector<sym::Expr> index);
  void store(u32 buffer, std::vector<sym::Expr> index, Val v);

  // ---- combines ----

  /// The combine that takes partial values instead of elements.
  u32 on_partials(u32 combine);
  /// The partial values of one element, whose place in the whole row is `position`.
  std::vector<Val> lifted(const Inst& inst, sym::Expr position);
  /// Of partial values; gives the accumulator.
  u32 accumulate(u32 combine, std::vector<Val> operands, ops::Tree tree);
  std::vector<Val> finish(u32 accumulator, u32 combine);
  /// left (+) right as instructions.
  std::vector<Val> combined(u32 combine, const std::vector<Val>& left,
                            const std::vector<Val>& right);

  const Kernel& whole_;
  Launches& out_;
  sym::Arena& syms_;
  std::vector<Kernel> launches_;
  // of the launch that is being built
  Kernel now_;
  std::vector<Val> values_;  // by value of the whole kernel; invalid: not there

 private:
  Val emit(KernelOp kind, Inst inst);
  bool lifts_to_itself(u32 combine) const;

  std::vector<KernelBuffer> scratch_;
};

}  // namespace coil
