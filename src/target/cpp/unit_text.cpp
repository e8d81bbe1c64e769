#include "target/cpp/unit_text.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "target/cpp/prelude_files.h"

namespace coil::cpp {
namespace {

using Names = std::set<std::string_view>;

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Calls `use` with each word of the text, and where it ends.
template <class Use>
void each_word(std::string_view text, const Use& use) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_letter(text[end])) ++end;
    if (end > at) use(text.substr(at, end - at), end);
    at = std::max(end, at + 1);
  }
}

/// The names that a line at the outermost level defines: the word before the first parenthesis, or
/// before `=`; the word after `struct`, `class` or `#define`; all that a macro is called with.
void add_defined(std::string_view line, Names& names) {
  const std::size_t open = line.find('('), equals = line.find(" =");
  std::string_view before;
  each_word(line, [&](std::string_view word, std::size_t end) {
    const bool is_macro = before.empty() && end == open;
    if (is_macro)
      each_word(line.substr(open), [&](std::string_view w, std::size_t) { names.insert(w); });
    else if (end == open || (open == line.npos && end == equals) || before == "struct" ||
             before == "class" || before == "define")
      names.insert(word);
    before = word;
  });
}

struct File {
  std::string text;  // without the lines that tie the files together
  Names defined, used;
};

/// The prelude's files in order; views in `defined` and `used` are of the embedded text.
const std::vector<File>& files() {
  static const std::vector<File> all = [] {
    std::vector<File> out;
    for (const PreludeFile& file : prelude_files()) {
      if (file.name == "prelude.h") continue;
      File& f = out.emplace_back();
      for (std::size_t at = 0; at < file.text.size();) {
        const std::size_t end = std::min(file.text.find('\n', at), file.text.size());
        const std::string_view line = file.text.substr(at, end - at);
        at = end + 1;
        if (line.starts_with("#include \"") || line.starts_with("#pragma once")) continue;
        f.text.append(line).append("\n");
        const bool defines = !line.empty() && !line.starts_with("template <") &&
                             (is_letter(line[0]) || line.starts_with("#define"));
        if (defines) add_defined(line, f.defined);
      }
      each_word(file.text, [&](std::string_view word, std::size_t) { f.used.insert(word); });
    }
    return out;
  }();
  return all;
}

}  // namespace

std::string translation_unit(const std::vector<std::string>& kernels) {
  Names used;
  for (const std::string& k : kernels)
    each_word(k, [&](std::string_view word, std::size_t) { used.insert(word); });
  std::vector<const File*> kept;
  for (auto f = files().rbegin(); f != files().rend(); ++f) {
    const bool needed = std::any_of(f->defined.begin(), f->defined.end(),
                                    [&](std::string_view name) { return used.contains(name); });
    if (!needed) continue;
    used.insert(f->used.begin(), f->used.end());
    kept.push_back(&*f);
  }
  std::string out;
  for (auto f = kept.rbegin(); f != kept.rend(); ++f) out += (*f)->text;
  out += "\nusing namespace COIL_KERNEL_NAMESPACE;\n";
  for (const std::string& k : kernels) out += "\n" + k;
  return out;
}

}  // namespace coil::cpp
