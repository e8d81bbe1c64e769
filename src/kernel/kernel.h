#pragma once
// Level 3: a kernel as stages over tiles, complete with its mapping to a machine. Printers only
// print.

#include <algorithm>
#include <string>
#include <vector>

#include "base/machine.h"
#include "schedule/epilogue.h"

namespace coil {

struct KernelBuffer {
  std::string name;
  DType dtype = DType::f32;
  std::vector<sym::Expr> shape;
  Layout layout;
  bool written = false;
  bool kept = false;  // no argument: scratch that each grid point has for itself, of constant shape
};

enum class KernelOp : u8 {
  Load,
  Store,
  Const,
  Value,
  Scalar,
  Index,
  Op,          // as in a body
  Accumulate,  // a0 = accumulate.name v over the stage's loop
  Finish,      // v, ... = finish a0: folds the slots; in the stage after the loop
  Scan,        // v, ... = scan.name v along the stage's loop, in order
};

/// A body's instruction with values and buffers renumbered for the kernel.
struct KernelInst {
  KernelOp kind = KernelOp::Op;
  Inst inst;            // operands, results: kernel values; combine: index into Kernel::combines
  u32 buffer = 0;       // Load, Store: index into Kernel::buffers
  u32 accumulator = 0;  // Accumulate, Finish
};

/// Straight code once for each grid point, or a loop over axes with the last one innermost. Closing
/// stages come last and run once, when all points of the grid are done; they share no value with
/// others, and are a launch of their own (launches.h).
struct Stage {
  std::vector<Axis> loop;
  std::vector<KernelInst> insts;
  bool closing = false;
};

/// One dim of a tile: an axis and how many of its points are handled at once.
struct TileDim {
  sym::Expr axis;
  i64 extent = 1;
};

/// How a kernel without closing stages runs on a machine; chosen in mapping.cpp by rules, each with
/// its reason.
struct Mapping {
  // Empty: scalar code. Of an axis of the grid: the lanes; the second one: see `is_turned`. Of the
  // last axis of loops: lanes go along these.
  std::vector<TileDim> tile;
  i64 chunk = 0;            // grid lanes: points of the lane axis in one unit of work
  i64 abreast = 1;          // grid lanes: tiles that go through the loops in step with each other
  sym::Expr units;          // units of work that threads share: the launch's grid
  bool serial = false;      // one thread, in iteration order
  i64 grain = 1;            // units that a thread takes at least
  std::vector<u32> rolled;  // stages whose loop has one body for all slots of its accumulators
  std::vector<std::string> reasons;
};

struct Kernel {
  std::string name;
  std::shared_ptr<sym::Arena> syms;
  std::vector<KernelBuffer> buffers;  // arguments, in order
  std::vector<sym::Expr> symbols;     // size, value and step variables: i64 arguments, in order
  std::vector<u32> scalars;           // f64 arguments: indices into LoopProgram::scalars
  std::vector<Axis> grid;
  std::vector<Stage> stages;
  std::vector<DType> val_dtypes;
  std::vector<ops::Combine> combines;
  u32 num_accumulators = 0;
  Mapping mapping;
  std::vector<std::string> from;        // ops and places, for comments; not part of the identity
  std::vector<std::string> index_from;  // the same for each Index, in order, for messages

  bool closes() const { return !stages.empty() && stages.back().closing; }
  /// The axis that lanes run along, or invalid; one of them, where loops go over different rows.
  sym::Expr lane_axis() const { return mapping.tile.empty() ? sym::Expr() : mapping.tile[0].axis; }
  bool has_lanes(sym::Expr axis) const {
    return std::any_of(mapping.tile.begin(), mapping.tile.end(),
                       [&](const TileDim& t) { return t.axis == axis; });
  }
};

/// A kernel and the program's buffers, one for each of its own; kept ones are no arguments of the
/// launch. An epilogue's first buffer is the block, which has no BufferId.
struct BuiltKernel {
  Kernel kernel;
  std::vector<BufferId> arguments;
  Block block;  // of an epilogue
};

/// Whether a load or store is contiguous along tile[1] and strided along the lanes, so that it
/// moves a whole tile, which is transposed in registers.
bool is_turned(const Kernel& kernel, const KernelInst& inst);

/// Merges a group's bodies, drops what stays inside, joins axes that are one in memory.
BuiltKernel build_kernel(const LoopProgram& program, const Schedule& schedule, GroupId group);
/// Fills in `mapping` of one launch for a CPU; see launches_cpu.h.
void map_to_cpu(Kernel& kernel, const Machine& machine);
/// The same for an epilogue: a unit of work is a row of the block.
void map_epilogue_to_cpu(Kernel& kernel);

/// Text form: parse_kernel(to_text(k)) prints the same again.
std::string to_text(const Kernel& kernel);
Result<Kernel> parse_kernel(std::string_view text, const std::string& file);
/// A file of kernels, each of which starts a line with the word `kernel`.
Result<std::vector<Kernel>> parse_kernels(std::string_view text, const std::string& file);
Status verify(const Kernel& kernel);

}  // namespace coil
