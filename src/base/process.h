#pragma once
// Running of other programs, by posix_spawn: forking a process with much memory is slow; and of a
// function that may never return, in a fork.

#include <functional>
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

/// Runs `f` in a fork of this process and tells what it returned; an Error with the reason where
/// the child was ended by a signal, exited, or had not answered after `limit_ms` and was killed.
///
/// For code that nobody vouches for. A host of coil may have no program of coil at hand that could
/// be spawned instead, so it is a fork, of a process with many threads. That is sound here: glibc
/// gives a fork its own state of malloc and of the loader, the child starts no thread, has no file
/// of its parent's but one pipe, and leaves by _exit, so it flushes and destroys nothing of its
/// parent's. Another lock that some thread held at the fork can at worst make the child wait until
/// it is killed: an Error, never a hang.
Status run_in_child(const std::function<Status()>& f, int limit_ms);

}  // namespace coil
