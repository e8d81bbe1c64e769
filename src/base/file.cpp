#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace coil {
namespace {

Error system_error(std::string_view doing, const std::string& path) {
  return error("cannot {} {}: {}", doing, path, std::strerror(errno));
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return system_error("read", path);
  struct stat info {};
  if (fstat(file, &info) == 0 && S_ISDIR(info.st_mode)) {
    close(file);
    return error("cannot read {}: it is a folder", path);
  }
  std::string out;
  char buffer[1 << 16];
  ssize_t got = 0;
  while ((got = read(file, buffer, sizeof buffer)) > 0)
    out.append(buffer, static_cast<std::size_t>(got));
  const bool failed = got < 0;
  const Error problem = failed ? system_error("read", path) : Error{};
  close(file);
  if (failed) return problem;
  return out;
}

Status write_file(const std::string& path, std::string_view bytes) {
  std::string beside = path + ".XXXXXX";
  const int file = mkostemp(beside.data(), O_CLOEXEC);
  if (file < 0) return system_error("write", path);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = write(file, bytes.data() + done, bytes.size() - done);
    if (put <= 0) break;
    done += static_cast<std::size_t>(put);
  }
  const bool whole = done == bytes.size() && fchmod(file, 0644) == 0;
  Error problem = whole ? Error{} : system_error("write", path);
  if (close(file) != 0 && whole) problem = system_error("write", path);
  if (problem.message.empty() && rename(beside.c_str(), path.c_str()) == 0) return Ok{};
  if (problem.message.empty()) problem = system_error("write", path);
  unlink(beside.c_str());
  return problem;
}

Status make_folders(const std::string& path) {
  std::error_code problem;
  std::filesystem::create_directories(path, problem);
  if (problem) return error("cannot make the folder {}: {}", path, problem.message());
  return Ok{};
}

Result<std::string> make_temporary_folder(const std::string& prefix) {
  std::string path = prefix + "XXXXXX";
  if (!mkdtemp(path.data())) return system_error("make the folder", prefix + "...");
  return path;
}

void remove_folder(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace coil
