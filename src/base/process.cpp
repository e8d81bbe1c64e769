#include "base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

extern char** environ;

namespace coil {
namespace {

struct Running {
  std::size_t index = 0;
  pid_t pid = 0;
  int errors = -1;  // the reading end of its error stream
};

Result<Running> start(const std::vector<std::string>& command, std::size_t index) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return error("cannot start {}: {}", command[0], std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  std::vector<char*> words;
  for (const std::string& w : command) words.push_back(const_cast<char*>(w.c_str()));
  words.push_back(nullptr);
  Running r{index, 0, ends[0]};
  const int problem = posix_spawn(&r.pid, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (problem == 0) return r;
  close(ends[0]);
  return error("cannot start {}: {}", command[0], std::strerror(problem));
}

/// Reads what is there; at the end of the stream collects the exit code and says true.
bool drain(Running& r, ProcessResult& result) {
  char buffer[4096];
  const ssize_t got = read(r.errors, buffer, sizeof buffer);
  if (got > 0) {
    result.output.append(buffer, static_cast<std::size_t>(got));
    return false;
  }
  if (got < 0 && errno == EINTR) return false;
  close(r.errors);
  int status = 0;
  while (waitpid(r.pid, &status, 0) < 0 && errno == EINTR) continue;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

}  // namespace

Result<std::vector<ProcessResult>> run_processes(
    const std::vector<std::vector<std::string>>& commands, int parallel) {
  std::vector<ProcessResult> results(commands.size());
  std::vector<Running> running;
  std::size_t next = 0;
  Error problem;
  while (next < commands.size() || !running.empty()) {
    while (next < commands.size() && problem.message.empty() &&
           running.size() < static_cast<std::size_t>(parallel)) {
      Result<Running> started = start(commands[next], next);
      if (started.ok())
        running.push_back(*started);
      else
        problem = started.error();
      ++next;
    }
    if (running.empty()) break;
    std::vector<pollfd> polls;
    for (const Running& r : running) polls.push_back({r.errors, POLLIN, 0});
    poll(polls.data(), polls.size(), -1);
    for (std::size_t i = running.size(); i-- > 0;)
      if (polls[i].revents != 0 && drain(running[i], results[running[i].index]))
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    if (!problem.message.empty()) next = commands.size();
  }
  if (!problem.message.empty()) return problem;
  return results;
}

}  // namespace coil
