// The one translation unit that holds fmt's function bodies, so that no other pays for them.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

#include "base/format.h"

namespace coil {

std::string format_args_text(std::string_view text, fmt::format_args args) {
  return fmt::vformat(fmt::string_view(text.data(), text.size()), args);
}

}  // namespace coil
