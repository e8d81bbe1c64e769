#include "cli.h"

#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace coil::cli {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

Environment read_environment() {
  Environment e;
  e.search_path = variable("PATH");
  e.cache_dir = variable("COIL_CACHE_DIR");
  if (e.cache_dir.empty() && !variable("XDG_CACHE_HOME").empty())
    e.cache_dir = variable("XDG_CACHE_HOME") + "/coil";
  if (e.cache_dir.empty() && !variable("HOME").empty())
    e.cache_dir = variable("HOME") + "/.cache/coil";
  return e;
}

Result<Options> make_options(const Common& common) {
  Options options;
  if (const std::string cxx = variable("COIL_CXX"); !cxx.empty()) COIL_TRY(options.set("cxx", cxx));
  if (!common.target.empty()) COIL_TRY(options.set("target", common.target));
  if (common.threads != 0) COIL_TRY(options.set("threads", std::to_string(common.threads)));
  for (const std::string& text : common.options) {
    const std::size_t at = text.find('=');
    if (at == text.npos) return error("option '{}' lacks a value; write -O key=value", text);
    COIL_TRY(options.set(text.substr(0, at), text.substr(at + 1)));
  }
  return options;
}

Result<LoadedModel> load(const Common& common) {
  Result<LoadedModel> model = load_model(common.model);
  if (model.ok()) set_random_seed(*model, common.seed);
  if (model.ok())
    for (const std::string& w : model->warnings) print_error("warning: " + w);
  return model;
}

Result<ReadyModel> prepare(const Common& common) {
  const Options options = COIL_TRY(make_options(common));
  const Progress progress("compiling " + common.model);
  const LoadedModel model = COIL_TRY(load(common));
  Environment environment = read_environment();
  if (const std::string& folder = options.text("cache_dir"); !folder.empty())
    environment.cache_dir = folder;
  return make_ready(model, options, environment);
}

Result<std::shared_ptr<Compilation>> prepare_until(Common common, const std::string& stage) {
  common.options.push_back("stop_after=" + stage);
  const Options options = COIL_TRY(make_options(common));
  return compile(COIL_TRY(load(common)), options, read_environment());
}

Terminal::Terminal(int descriptor)
    : is_terminal_(isatty(descriptor) == 1 && variable("NO_COLOR").empty()) {}

std::string Terminal::paint(const char* code, const std::string& text) const {
  return is_terminal_ ? str("\x1b[{}m{}\x1b[0m", code, text) : text;
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void print_error(const std::string& text) {
  const std::string line = str("{} {}\n", Terminal(2).bold("coil:"), text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

struct Progress::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::thread watcher;
};

Progress::Progress(std::string doing) {
  if (!Terminal(2).is_terminal()) return;
  state_ = std::make_shared<State>();
  state_->watcher = std::thread([state = state_.get(), doing = std::move(doing)] {
    std::unique_lock<std::mutex> lock(state->mutex);
    int seconds = 0;
    while (!state->changed.wait_for(lock, std::chrono::seconds(1), [&] { return state->done; }))
      std::fprintf(stderr, "\r\x1b[Kcoil: %s (%d s)", doing.c_str(), ++seconds);
    if (seconds > 0) std::fprintf(stderr, "\r\x1b[K");
  });
}

Progress::~Progress() {
  if (!state_) return;
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->done = true;
  }
  state_->changed.notify_all();
  state_->watcher.join();
}

std::string milliseconds(double ms) {
  return ms < 10 ? str("{:.2f} ms", ms) : str("{:.1f} ms", ms);
}

std::string byte_count(i64 bytes) {
  if (bytes < 10000) return str("{} B", bytes);
  if (bytes < 10 * 1000 * 1000) return str("{:.1f} KB", static_cast<double>(bytes) / 1e3);
  return str("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace coil::cli
