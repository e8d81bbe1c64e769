// Any bytes as a stored plan: an Error, or a plan whose references all name something, and which
// is stored as itself.

#include <cstdint>

#include "runtime/plan_format.h"

namespace {

coil::Status bind_any(coil::runtime::Call&) { return coil::Ok{}; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace coil::runtime;
  const PlanSurroundings around{64, 64, bind_any};
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const coil::Result<Plan> plan = unpack(bytes, around);
  if (!plan.ok()) return 0;
  const std::string packed = pack(*plan);
  const coil::Result<Plan> again = unpack(packed, around);
  COIL_CHECK(again.ok() && pack(*again) == packed);
  COIL_CHECK(to_text(*again) == to_text(*plan));
  COIL_CHECK(!has_marks(with_names(to_text(*plan), names_of(Plan{}))));
  return 0;
}
