#include "base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
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

constexpr std::string_view kWentWell = "+";  // else the child writes its Error's message

/// The child's side of run_in_child.
[[noreturn]] void answer(const std::function<Status()>& f, int pipe) {
  // The host's handlers are not for the child's faults, and no core is left behind.
  for (int s : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTERM, SIGINT}) signal(s, SIG_DFL);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  // What the child buffers, or its parent had buffered, reaches no file.
  pipe = fcntl(pipe, F_DUPFD, 3);
  const int null = open("/dev/null", O_RDWR);
  for (int stream : {0, 1, 2}) dup2(null, stream);
  pipe = dup2(pipe, 3);
  close_range(4, ~0u, 0);
  std::string text(kWentWell);
  try {
    if (const Status status = f(); !status.ok()) text = status.error().message;
  } catch (const std::exception& e) {
    text = e.what();
  }
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t wrote = write(pipe, text.data() + done, text.size() - done);
    if (wrote <= 0 && errno != EINTR) break;
    if (wrote > 0) done += static_cast<std::size_t>(wrote);
  }
  _exit(0);
}

/// What the child writes until it ends; false where it has not ended in time.
bool read_answer(int pipe, int limit_ms, std::string& text) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(limit_ms);
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd wait = {pipe, POLLIN, 0};
    const int ready = left > 0 ? poll(&wait, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char buffer[4096];
    const ssize_t got = read(pipe, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(buffer, static_cast<std::size_t>(got));
  }
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

Status run_in_child(const std::function<Status()>& f, int limit_ms) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return error("no pipe: {}", std::strerror(errno));
  const pid_t child = fork();
  if (child == 0) answer(f, ends[1]);
  const int problem = errno;
  close(ends[1]);
  std::string text;
  const bool in_time = child > 0 && read_answer(ends[0], limit_ms, text);
  close(ends[0]);
  if (child < 0) return error("no fork: {}", std::strerror(problem));
  if (!in_time) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!in_time) return error("gave no answer in {} s", limit_ms / 1000.0);
  if (text == kWentWell) return Ok{};
  if (!text.empty()) return Error{text};
  if (WIFSIGNALED(status)) return error("was ended by signal {}", WTERMSIG(status));
  return error("ended the process with exit code {}", WEXITSTATUS(status));
}

}  // namespace coil
