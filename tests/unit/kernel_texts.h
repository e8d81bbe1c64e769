#pragma once
// What tests of kernel texts share.

#include <sstream>
#include <string>

namespace coil::kernel_texts {

/// The text as it is without comments, which are no part of a kernel's identity.
inline std::string without_comments(const std::string& text) {
  std::stringstream in(text);
  std::string out, line;
  while (std::getline(in, line))
    if (const std::size_t at = line.find_first_not_of(' '); at == line.npos || line[at] != '#')
      out += line + "\n";
  return out;
}

}  // namespace coil::kernel_texts
