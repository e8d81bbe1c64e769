#include "target/triton/prelude_files.h"

#include <cctype>
#include <vector>

namespace coil::triton {
namespace {

struct Function {
  std::string_view name;
  std::string_view text;  // from its decorator to the end of its body
};

std::vector<Function> functions_of(std::string_view file) {
  constexpr std::string_view kStart = "@triton.jit\ndef ";
  std::vector<Function> out;
  for (std::size_t at = file.find(kStart); at != file.npos;) {
    const std::size_t name = at + kStart.size();
    const std::size_t next = file.find(kStart, name);
    std::string_view text = file.substr(at, next == file.npos ? file.npos : next - at);
    text = text.substr(0, text.find("\n\n"));  // a body has no blank line
    while (text.ends_with('\n')) text.remove_suffix(1);
    out.push_back({file.substr(name, file.find('(', name) - name), text});
    at = next;
  }
  return out;
}

/// Whether `text` has a call of a function of this very name.
bool calls(std::string_view text, std::string_view name) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  };
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if (end < text.size() && text[end] == '(' && (at == 0 || !is_part(text[at - 1]))) return true;
  }
  return false;
}

}  // namespace

std::string prelude_for(std::string_view text) {
  std::vector<Function> all;
  for (const PreludeFile& file : prelude_files())
    for (const Function& f : functions_of(file.text)) all.push_back(f);
  std::vector<bool> wanted(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) wanted[i] = calls(text, all[i].name);
  for (bool grows = true; grows;) {
    grows = false;
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t j = 0; wanted[i] && j < all.size(); ++j)
        if (i != j && !wanted[j] && calls(all[i].text, all[j].name)) wanted[j] = grows = true;
  }
  std::string out;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (wanted[i]) out += std::string(all[i].text) + "\n\n\n";
  return out;
}

}  // namespace coil::triton
