#pragma once
// What generated kernels need beyond values: index checks that report a fault, stores that combine.

#include "65_tile.h"
#include "85_special.h"

namespace COIL_KERNEL_NAMESPACE {

/// The first index out of range, in iteration order, that a launch met. The run time owns one per
/// call (runtime/fault.h has the same fields) and turns it into an error; the kernel stops early.
struct Fault {
  i32 lock;
  i32 is_set;
  i64 kernel;    // filled in by the run time
  i64 site;      // which checked index of the kernel
  i64 position;  // row-major iteration point
  i64 value;
  i64 extent;
};

COIL_COLD void report_fault(Fault* fault, i64 site, i64 position, i64 value, i64 extent) {
  while (__atomic_exchange_n(&fault->lock, 1, __ATOMIC_ACQUIRE) != 0) continue;
  if (!fault->is_set || position < fault->position) {
    fault->is_set = 1;
    fault->site = site;
    fault->position = position;
    fault->value = value;
    fault->extent = extent;
  }
  __atomic_store_n(&fault->lock, 0, __ATOMIC_RELEASE);
}

/// The first of 16 lanes whose index is bad; with `wraps`, a negative one stands extent too high.
COIL_COLD void report_lanes(Fault* fault, i64 site, i64 position, i64 step, const i64* lanes,
                            const bool* is_bad, bool wraps, i64 extent) {
  int l = 0;
  while (!is_bad[l]) ++l;
  report_fault(fault, site, position + l * step,
               wraps && lanes[l] < 0 ? lanes[l] - extent : lanes[l], extent);
}

enum class Policy { Assert, Wrap, Clamp, NotZero };
/// Stands for the extent where a divisor is 0 (runtime/fault.h has the same).
constexpr i64 kDivisor = -1;

/// The first n of 16 lanes.
COIL_INLINE mask16 active_lanes(i64 n) { return mask16(first_lanes<i8>(n)); }

/// Applies the policy to an index and checks it; false stands for a reported fault. Lanes (or a
/// scalar) that are off become 0. `position` is the first lane's, `step` what each lane adds.
template <Policy P>
COIL_INLINE bool check_index(i64x16& n, i64 extent, mask16 on, Fault* fault, i64 site, i64 position,
                             i64 step) {
  const i64x16 zero = splat16(i64(0)), end = splat16(extent);
  // A divisor as an index of extent 1: 0, and 1 where the divisor is 0.
  if constexpr (P == Policy::NotZero) n = where(eq(n, zero), splat16(i64(1)), zero);
  if constexpr (P == Policy::Wrap) n = where(lt(n, zero), add(n, end), n);
  if constexpr (P == Policy::Clamp) n = max(min(n, splat16(i64(extent - 1))), zero);
  n = where(on, n, zero);
  const mask16 bad = bit_and(on, mask16(bit_or(lt(n, zero), ge(n, end))));
  if (any(bad)) [[unlikely]] {
    i64 lanes[16];
    bool is_bad[16];
    to_array(n, lanes);
    to_array(bad, is_bad);
    report_lanes(fault, site, position, step, lanes, is_bad, P == Policy::Wrap,
                 P == Policy::NotZero ? kDivisor : extent);
    return false;
  }
  return true;
}
template <Policy P>
COIL_INLINE bool check_index(i64& n, i64 extent, bool on, Fault* fault, i64 site, i64 position,
                             i64) {
  const i64 given = n;
  if (P == Policy::Wrap && n < 0) n += extent;
  if (P == Policy::Clamp) n = n >= extent ? extent - 1 : n;
  if (P == Policy::Clamp && n < 0) n = 0;
  if (P == Policy::NotZero) n = n == 0;
  if (!on) n = 0;
  if (on && (n < 0 || n >= extent)) [[unlikely]] {
    report_fault(fault, site, position, given, P == Policy::NotZero ? kDivisor : extent);
    return false;
  }
  return true;
}

/// base[index[i]] = f(base[index[i]], lane i), lane after lane.
template <class T, class V, class F>
COIL_INLINE void store_combined(T* base, i64x16 index, V x, mask16 m, F f) {
  i64 at[16];
  to_array(index, at);
  for (int l = 0; l < 16; ++l)
    if (get_lane(m, l)) store1(base + at[l], f(load1(base + at[l]), get_lane(x, l)));
}

}  // namespace COIL_KERNEL_NAMESPACE
