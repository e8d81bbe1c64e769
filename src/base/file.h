#pragma once
// Files: whole reads, and writes that are there completely or not at all.

#include <string>
#include <string_view>

#include "base/result.h"

namespace coil {

Result<std::string> read_file(const std::string& path);
/// Writes beside the target, then renames. An Error (a full disk, no permission) leaves nothing.
Status write_file(const std::string& path, std::string_view bytes);
/// Makes a folder and its parents.
Status make_folders(const std::string& path);
/// A new, empty folder whose name starts with `prefix`.
Result<std::string> make_temporary_folder(const std::string& prefix);
/// Removes a folder and all in it; nothing happens where there is none.
void remove_folder(const std::string& path);

}  // namespace coil
