#include "extern/kernels/library.h"

#include <dlfcn.h>

namespace coil::external {

Result<Library> Library::open(const std::string& setting, const std::vector<std::string>& sonames) {
  const std::vector<std::string> names =
      setting == "auto" ? sonames : std::vector<std::string>{setting};
  std::string reasons;
  for (const std::string& name : names) {
    Library out;
    out.handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (out.handle_) return out;
    const char* reason = dlerror();
    reasons += str("{}{}", reasons.empty() ? "" : "; ", reason ? reason : "cannot be opened");
  }
  return Error{reasons};
}

void* Library::symbol(const char* name) const { return dlsym(handle_, name); }

}  // namespace coil::external
