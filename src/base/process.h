#pragma once
// Running of other programs, by posix_spawn: forking a process with much memory is slow.

#include <string>
#include <vector>

#include "base/result.h"

namespace coil {

struct ProcessResult {
  int exit_code = 0;   // 128 + signal where one ended it
  std::string output;  // what it wrote to its error stream
};

/// Runs all commands (words, the first is the program), at most `parallel` at a time, with no
/// input, their output dropped and their errors collected. An Error where one cannot be started.
Result<std::vector<ProcessResult>> run_processes(
    const std::vector<std::vector<std::string>>& commands, int parallel);

}  // namespace coil
