#pragma once
// The oracle of level 3: runs a kernel as its stages and its mapping say, without printing or
// compiling it.

#include <random>
#include <span>
#include <vector>

#include "kernel/kernel.h"

namespace coil::kernel_eval {

/// Memory of one argument: its element at address 0, and how many elements addresses may reach.
struct Argument {
  std::byte* data = nullptr;
  i64 elements = 0;
};

/// What a launch passes: one entry for each buffer that is not kept, each symbol and each scalar,
/// in order.
struct Launch {
  std::vector<Argument> buffers;
  std::vector<i64> symbols;
  std::vector<double> scalars;
};

/// Runs all units of work: in order where the mapping is serial, else in an order from `order`,
/// since threads share them. A block of lanes goes through an instruction before the next one
/// begins; slots and lanes take elements and are folded as printed kernels do. An Error tells of an
/// access outside of a buffer's shape or memory, of an index from data out of range, or of a
/// mapping that does not fit a tree.
Status run(const Kernel& kernel, const Launch& launch, std::mt19937_64& order);

}  // namespace coil::kernel_eval
