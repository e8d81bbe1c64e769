#pragma once
// What the subcommands share: the model argument, options, terminal, exit codes.

#include <chrono>
#include <string>
#include <vector>

#include "driver/runner.h"

namespace coil::cli {

/// 0 right, 1 a mismatch, 2 the user's or the environment's error, 3 a defect of coil.
enum ExitCode : int { kRight = 0, kMismatch = 1, kUserError = 2, kDefect = 3 };

/// Arguments that more than one subcommand takes.
struct Common {
  std::string model;
  std::string inputs;  // .npz
  std::string target;  // "" leaves the option as it is
  int threads = 0;
  u64 seed = 0;
  std::vector<std::string> options;  // key=value
};

/// The environment variables that coil reads: PATH, COIL_CXX, COIL_CACHE_DIR, XDG_CACHE_HOME, HOME.
Environment read_environment();
Result<Options> make_options(const Common& common);
/// Loads the model and prints its warnings to the error stream.
Result<LoadedModel> load(const Common& common);
/// Loads and compiles.
Result<ReadyModel> prepare(const Common& common);
/// Loads and compiles up to a stage of the pass table: what needs no C++ compiler.
Result<std::shared_ptr<Compilation>> prepare_until(Common common, const std::string& stage);

/// Colours on a terminal, unless NO_COLOR is set.
class Terminal {
 public:
  explicit Terminal(int descriptor);
  std::string green(const std::string& text) const { return paint("32", text); }
  std::string red(const std::string& text) const { return paint("31", text); }
  std::string yellow(const std::string& text) const { return paint("33", text); }
  std::string bold(const std::string& text) const { return paint("1", text); }
  std::string dim(const std::string& text) const { return paint("2", text); }
  bool is_terminal() const { return is_terminal_; }

 private:
  std::string paint(const char* code, const std::string& text) const;
  bool is_terminal_;
};

void print(const std::string& text);        // to the output stream
void print_error(const std::string& text);  // "coil: ..." to the error stream

/// Says what is going on, on the error stream of a terminal, once it has taken a second.
class Progress {
 public:
  explicit Progress(std::string doing);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

std::string milliseconds(double ms);
std::string byte_count(i64 bytes);

// The subcommands, one file each.
struct RunArguments {
  Common common;
  std::string outputs, expect;
  double rtol = -1, atol = -1;
};
Result<int> run(const RunArguments& arguments);
struct CheckArguments {
  Common common;
};
Result<int> check(const CheckArguments& arguments);
struct BenchArguments {
  Common common;
  bool json = false;
  bool counts = false;  // only what a call does; nothing is compiled or timed
};
Result<int> bench(const BenchArguments& arguments);
Result<int> explain(const Common& arguments);
struct DumpArguments {
  Common common;
  std::string stages = "graph,loops,schedule,kernels,plan,code";
  std::string folder;
};
Result<int> dump(const DumpArguments& arguments);
Result<int> cache(const std::string& action);

}  // namespace coil::cli
