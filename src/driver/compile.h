#pragma once
// The whole way from a graph to something that can be called, and every level it passed.

#include <memory>
#include <string>
#include <vector>

#include "base/machine.h"
#include "base/options.h"
#include "candidates/candidate.h"
#include "graph/graph.h"
#include "kernel/kernel.h"
#include "loop/program.h"
#include "runtime/model.h"
#include "schedule/schedule.h"
#include "target/cpp/toolchain.h"

namespace coil {

/// What the surroundings give: read by the command line or the Python package from the environment.
struct Environment {
  std::string search_path;  // $PATH, to find a compiler
  std::string cache_dir;    // where programs and objects are kept; "" keeps none
  std::shared_ptr<runtime::ThreadPool> pool = nullptr;  // null: the model makes one
};

struct StageTime {
  std::string name;
  double ms = 0;
};

/// What one group became, and the kernels that are its launches.
struct WholeKernel {
  Kernel kernel;
  std::vector<u32> launches;  // indices into Compilation::kernels
};

/// Everything a compilation made. Levels that were not reached (stop_after) are empty. After a hit
/// of the program cache `graph` is the one that was given, `program` says what its caller sees
/// (inputs, kinds of outputs, sizes, constants), and schedule, kernels and sources are empty.
struct Compilation {
  Options options;
  Environment environment;
  Machine machine;
  bool from_graph = false;  // false: it began at level 1, and `graph` is empty
  Graph graph;              // after the passes
  LoopProgram program;
  Schedule schedule;
  std::vector<Choice> choices;             // for each structured node, in the order of the plan
  std::vector<WholeKernel> whole_kernels;  // unique ones, in the order of their first use
  std::vector<Kernel> kernels;             // their launches, unique as well
  std::vector<std::string> sources;        // C++ text by kernel
  std::shared_ptr<runtime::Model> model;
  std::vector<StageTime> times;
  std::vector<cpp::KernelUnit> units;  // the objects of the kernels
  int units_compiled = 0, units_cached = 0;
  bool from_cache = false;                  // a hit of the program cache
  std::string program_key;                  // in that cache; "" where it is not used
  std::vector<std::string> constant_names;  // of the given graph, by position
};

/// Runs the pass table on a graph, or from level 1 on. The result owns all it needs.
Result<std::shared_ptr<Compilation>> compile(Graph graph, const Options& options,
                                             const Environment& environment);
Result<std::shared_ptr<Compilation>> compile(LoopProgram program, const Options& options,
                                             const Environment& environment);

}  // namespace coil
