#pragma once
// What the compiler may know about the machine that will run the code.

#include <string>

#include "base/ids.h"
#include "base/result.h"

namespace coil {

/// Instruction sets of the cpp target, each a superset of plain.
enum class Isa : u8 { Plain, Avx2, Avx512, Neon };

std::string_view name(Isa isa);

struct Machine {
  Isa isa = Isa::Plain;
  int cores = 1;
  i64 l1d_bytes = 32 << 10;
  i64 l2_bytes = 512 << 10;

  /// Reads the processor this process runs on.
  static Machine host();
  /// The host with the instruction set of option `isa`; an Error if the host lacks it.
  static Result<Machine> with_isa(std::string_view option);
};

}  // namespace coil
