#pragma once
// From C++ text to loaded functions: finds a compiler, runs it in parallel, keeps objects in the
// cache.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/machine.h"
#include "base/options.h"
#include "runtime/fault.h"

namespace coil::cpp {

/// A C++ compiler on this machine.
struct Toolchain {
  std::string path;      // of the executable
  std::string identity;  // path, size and time of the file: a part of object keys
};
/// Option cxx, else `c++`, `g++`, `clang++` on PATH; an Error that names the package where none is.
/// The command line and the Python package turn $COIL_CXX into the option.
Result<Toolchain> find_toolchain(const Options& options, const std::string& search_path);

/// Flags that make code for an instruction set.
std::vector<std::string> flags_for(Isa isa);

/// What the code of kernels depends on besides their text: the compiler and its flags.
std::string code_identity(const Toolchain& toolchain, Isa isa);

/// A library of the cache, and which kernels it holds.
struct KernelUnit {
  std::string key;
  std::vector<u32> kernels;
};

struct LoadedKernels {
  std::vector<runtime::KernelFunction> functions;  // in the order of the sources
  std::shared_ptr<void> libraries;
  std::vector<KernelUnit> units;
  int compiled = 0;  // translation units that the compiler had to build
  int cached = 0;    // those found in the cache
};

/// Compiles `sources`, functions named k0, k1, ..., and loads them. `cache_dir` "" keeps nothing.
Result<LoadedKernels> compile_kernels(const std::vector<std::string>& sources,
                                      const Toolchain& toolchain, Isa isa,
                                      const std::string& cache_dir, int processes);

/// Loads kernels from the cache alone; nothing if one is not there.
std::optional<LoadedKernels> load_kernels(const std::vector<KernelUnit>& units, std::size_t kernels,
                                          const std::string& cache_dir);

}  // namespace coil::cpp
