#pragma once
// The whole way from a graph to something that can be called, and every level it passed.

#include <memory>
#include <string>
#include <vector>

#include "base/machine.h"
#include "base/options.h"
#include "graph/graph.h"
#include "kernel/kernel.h"
#include "loop/program.h"
#include "runtime/model.h"
#include "schedule/schedule.h"

namespace coil {

/// What the surroundings give: read by the command line or the Python package from the environment.
struct Environment {
  std::string search_path;  // $PATH, to find a compiler
  std::string cache_dir;    // where compiled objects are kept; "" keeps none
  std::shared_ptr<runtime::ThreadPool> pool = nullptr;  // null: the model makes one
};

struct StageTime {
  std::string name;
  double ms = 0;
};

/// Everything a compilation made. Levels that were not reached (stop_after) are empty.
struct Compilation {
  Options options;
  Environment environment;
  Machine machine;
  bool from_graph = false;  // false: it began at level 1, and `graph` is empty
  Graph graph;              // after the passes
  LoopProgram program;
  Schedule schedule;
  std::vector<Kernel> kernels;       // unique ones, in the order of their first use
  std::vector<std::string> sources;  // C++ text by kernel
  std::shared_ptr<runtime::Model> model;
  std::vector<StageTime> times;
  int units_compiled = 0, units_cached = 0;
};

/// Runs the pass table on a graph, or from level 1 on. The result owns all it needs.
Result<std::shared_ptr<Compilation>> compile(Graph graph, const Options& options,
                                             const Environment& environment);
Result<std::shared_ptr<Compilation>> compile(LoopProgram program, const Options& options,
                                             const Environment& environment);

}  // namespace coil
