#include "base/check.h"

namespace coil {

void fail_check(const char* file, int line, const char* condition, const std::string& message) {
  std::string_view path = file;
  if (std::size_t at = path.rfind("src/"); at != path.npos) path.remove_prefix(at);
  std::string text = str("{}:{}: {}", path, line, condition);
  if (!message.empty()) text += str(": {}", message);
  throw InternalError(text);
}

}  // namespace coil
