#include "target/cpp/toolchain.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/disk_cache.h"
#include "base/file.h"
#include "base/process.h"
#include "base/sha256.h"
#include "target/cpp/unit_text.h"

namespace coil::cpp {
namespace {

constexpr std::size_t kKernelsPerUnit = 8;  // one more costs 10 ms, a compiler process 50 ms
constexpr std::size_t kMaxUnits = 16;
constexpr std::size_t kLongText = 6000;  // letters of kernels that two compilers share

std::string find_on(const std::string& search_path, const std::string& program) {
  if (program.find('/') != program.npos) return access(program.c_str(), X_OK) == 0 ? program : "";
  std::size_t at = 0;
  while (at <= search_path.size()) {
    const std::size_t end = std::min(search_path.find(':', at), search_path.size());
    const std::string path = search_path.substr(at, end - at) + "/" + program;
    if (end > at && access(path.c_str(), X_OK) == 0) return path;
    at = end + 1;
  }
  return "";
}

/// Spreads kernels over translation units so that their texts are about equally long; a function of
/// the sources alone.
std::vector<std::vector<std::size_t>> divide(const std::vector<std::string>& sources) {
  std::size_t letters = 0;
  for (const std::string& s : sources) letters += s.size();
  const std::size_t units =
      std::clamp<std::size_t>((sources.size() + kKernelsPerUnit - 1) / kKernelsPerUnit,
                              letters > kLongText ? 2 : 1, kMaxUnits);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < sources.size(); ++i) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sources[a].size() > sources[b].size();
  });
  std::vector<std::vector<std::size_t>> out;
  std::vector<std::size_t> length;
  out.resize(std::min(units, sources.size()));
  length.resize(out.size(), 0);
  for (std::size_t i : order) {
    const auto least = std::min_element(length.begin(), length.end()) - length.begin();
    out[static_cast<std::size_t>(least)].push_back(i);
    length[static_cast<std::size_t>(least)] += sources[i].size() + 500;
  }
  for (auto& unit : out) std::sort(unit.begin(), unit.end());
  return out;
}

Error compiler_error(const Toolchain& toolchain, const ProcessResult& result) {
  // The line that names the error; "In function" and the like come before it.
  std::size_t at = result.output.find(": error:");
  at = at == result.output.npos ? 0 : result.output.rfind('\n', at) + 1;
  const std::string first = result.output.substr(at, result.output.find('\n', at) - at);
  if (result.output.find("No space left") != std::string::npos)
    return error("the disk is full: {} could not write its output", toolchain.path);
  return error("{} could not compile a kernel (exit code {}){}", toolchain.path, result.exit_code,
               first.empty() ? " and did not say why" : ": " + first);
}

struct Unit {
  KernelUnit names;
  std::string text;
  std::string library;  // path, once there
};

/// A fresh folder for the compiler's files.
Result<std::string> working_folder(const std::string& cache_dir) {
  std::error_code problem;
  std::string parent = cache_dir;
  if (parent.empty()) parent = std::filesystem::temp_directory_path(problem).string();
  if (parent.empty()) parent = "/tmp";
  COIL_TRY(make_folders(parent));
  return make_temporary_folder(str("{}/{}", parent, cache_dir.empty() ? "coil-" : kWorkPrefix));
}

Result<LoadedKernels> load(const std::vector<Unit>& units, std::size_t kernels) {
  LoadedKernels out;
  out.functions.resize(kernels);
  auto handles = std::make_shared<std::vector<std::shared_ptr<void>>>();
  for (const Unit& u : units) {
    void* handle = dlopen(u.library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) return error("cannot load compiled kernels: {}", dlerror());
    handles->push_back(std::shared_ptr<void>(handle, dlclose));
    for (u32 i : u.names.kernels) {
      void* symbol = i < kernels ? dlsym(handle, str("k{}", i).c_str()) : nullptr;
      if (!symbol) return error("a compiled library lacks kernel k{}", i);
      out.functions[i] = reinterpret_cast<runtime::KernelFunction>(symbol);
    }
    out.units.push_back(u.names);
  }
  out.libraries = handles;
  return out;
}

}  // namespace

Result<Toolchain> find_toolchain(const Options& options, const std::string& search_path) {
  std::vector<std::string> names = {"c++", "g++", "clang++"};
  const std::string& wanted = options.text("cxx");
  if (!wanted.empty()) names = {wanted};
  for (const std::string& n : names) {
    const std::string path = find_on(search_path, n);
    struct stat info {};
    if (path.empty() || stat(path.c_str(), &info) != 0) continue;
    return Toolchain{path, str("{} {} {}", path, info.st_size, info.st_mtime)};
  }
  if (!wanted.empty())
    return error("there is no C++ compiler '{}' (option cxx, $COIL_CXX)", wanted);
  return error(
      "no C++ compiler found (c++, g++ or clang++); install one, for example the package g++, or "
      "use --target interp");
}

std::vector<std::string> flags_for(Isa isa) {
  switch (isa) {
    case Isa::Plain:
    case Isa::Neon: return {};
    case Isa::Avx2: return {"-mavx2", "-mfma", "-mf16c"};
    case Isa::Avx512:
      return {"-mavx512f",
              "-mavx512vl",
              "-mavx512bw",
              "-mavx512dq",
              "-mfma",
              "-mf16c",
              "-mprefer-vector-width=512"};
  }
  COIL_UNREACHABLE();
}

namespace {

std::vector<std::string> all_flags(Isa isa) {
  std::vector<std::string> flags = {"-std=gnu++20",    "-O2",
                                    "-fPIC",           "-shared",
                                    "-nostdlib",       "-ffp-contract=off",
                                    "-fno-math-errno", "-fno-exceptions",
                                    "-fno-rtti",       "-w"};
  for (const std::string& f : flags_for(isa)) flags.push_back(f);
#if defined(__aarch64__)
  flags.push_back("-mno-outline-atomics");  // their helpers are in libgcc, which kernels do without
#endif
  if (isa == Isa::Plain) flags.push_back("-DCOIL_FORCE_PLAIN");
  return flags;
}

}  // namespace

std::string code_identity(const Toolchain& toolchain, Isa isa) {
  std::string out = toolchain.identity + "\n";
  for (const std::string& f : all_flags(isa)) out += f + " ";
  return out;
}

Result<LoadedKernels> compile_kernels(const std::vector<std::string>& sources,
                                      const Toolchain& toolchain, Isa isa,
                                      const std::string& cache_dir, int processes) {
  if (sources.empty()) return LoadedKernels{};
  const DiskCache cache(cache_dir, kObjects);
  const std::string identity = code_identity(toolchain, isa) + "\n";
  std::vector<Unit> units;
  int compiled = 0;
  for (const auto& kernels : divide(sources)) {
    Unit u;
    std::vector<std::string> texts;
    for (std::size_t i : kernels) texts.push_back(sources[i]);
    u.text = translation_unit(texts);
    u.names = {sha256_hex(identity + u.text), {kernels.begin(), kernels.end()}};
    if (cache.find(u.names.key)) u.library = cache.path(u.names.key);
    compiled += u.library.empty();
    units.push_back(std::move(u));
  }
  std::string folder;
  struct Cleaner {
    std::string& folder;
    ~Cleaner() {
      if (!folder.empty()) remove_folder(folder);
    }
  } cleaner{folder};
  if (compiled > 0) {
    folder = COIL_TRY(working_folder(cache_dir));
    std::vector<std::vector<std::string>> commands;
    std::vector<Unit*> pending;
    for (Unit& u : units) {
      if (!u.library.empty()) continue;
      const std::string base = folder + "/" + u.names.key.substr(0, 16);
      COIL_TRY(write_file(base + ".cpp", u.text));
      u.library = base + ".so";
      std::vector<std::string> command = {toolchain.path};
      const std::vector<std::string> flags = all_flags(isa);
      command.insert(command.end(), flags.begin(), flags.end());
      command.insert(command.end(), {base + ".cpp", "-o", u.library});
      commands.push_back(std::move(command));
      pending.push_back(&u);
    }
    const std::vector<ProcessResult> results =
        COIL_TRY(run_processes(commands, std::max(1, processes)));
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].exit_code != 0) return compiler_error(toolchain, results[i]);
      if (cache_dir.empty()) continue;
      Unit& u = *pending[i];
      u.library = COIL_TRY(cache.store(u.names.key, COIL_TRY(read_file(u.library))));
    }
  }
  LoadedKernels out = COIL_TRY(load(units, sources.size()));
  out.compiled = compiled;
  out.cached = static_cast<int>(units.size()) - compiled;
  return out;
}

std::optional<LoadedKernels> load_kernels(const std::vector<KernelUnit>& units, std::size_t kernels,
                                          const std::string& cache_dir) {
  const DiskCache cache(cache_dir, kObjects);
  std::vector<Unit> found;
  for (const KernelUnit& u : units) {
    if (!cache.find(u.key)) return std::nullopt;
    found.push_back({u, "", cache.path(u.key)});
  }
  Result<LoadedKernels> out = load(found, kernels);
  if (!out.ok() ||
      std::find(out->functions.begin(), out->functions.end(), nullptr) != out->functions.end())
    return std::nullopt;
  out->cached = static_cast<int>(units.size());
  return std::move(*out);
}

}  // namespace coil::cpp
