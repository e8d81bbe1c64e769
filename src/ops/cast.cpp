#include "ops/cast.h"

#include "ops/loop.h"
#include "ops/memory.h"

namespace coil::ops {
namespace {

template <class From, class To>
void cast_loop(i64 n, const void* operand, void* result) {
  using Stored = typename From::Stored;
  const auto one = [](Stored x) { return To::store(convert<typename To::Value>(From::load(x))); };
  map_elements(one, n, static_cast<typename To::Stored*>(result),
               static_cast<const Stored*>(operand));
}

}  // namespace

void cast_elements(DType from, DType to, i64 n, const void* operand, void* result) {
  if (from == to) {
    std::memmove(result, operand, static_cast<std::size_t>(n * size_of(to)));
    return;
  }
  with_memory(from, [&]<class From>(From) {
    with_memory(to, [&]<class To>(To) { cast_loop<From, To>(n, operand, result); });
  });
}

}  // namespace coil::ops
