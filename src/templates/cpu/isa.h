#pragma once
// What the files compiled once per instruction set share: the prelude under a name of its own for
// each, and walking from a DType to a C++ type. Nothing here may be instantiated out of line under
// a name that another instruction set also has (scripts/check_isa.py).

#define COIL_ISA_JOIN2(a, b) a##b
#define COIL_ISA_JOIN(a, b) COIL_ISA_JOIN2(a, b)
#define COIL_KERNEL_NAMESPACE COIL_ISA_JOIN(coil_kernel_, COIL_ISA)

#include "base/dtype.h"
#include "runtime/threads.h"
#include "target/cpp/prelude/prelude.h"

namespace coil::templates {
/// Throws: the caller asked for element types that gemm_supports and its like deny.
[[noreturn]] void fail_unsupported(DType dtype);
}  // namespace coil::templates

namespace coil::templates::COIL_ISA {

namespace kernel = ::COIL_KERNEL_NAMESPACE;

constexpr i64 kCacheLine = 64;
constexpr i64 round_up(i64 x, i64 multiple) { return (x + multiple - 1) / multiple * multiple; }
constexpr i64 smaller(i64 a, i64 b) { return a < b ? a : b; }
constexpr i64 larger(i64 a, i64 b) { return a > b ? a : b; }

template <class T>
struct TypeTag {
  using type = T;
};

#define COIL_FLOAT_CASES(F)                                   \
  case DType::f32: return F(TypeTag<float>{});                \
  case DType::f64: return F(TypeTag<double>{});               \
  case DType::f16: return F(TypeTag<kernel::f16>{});          \
  case DType::bf16: return F(TypeTag<kernel::bf16>{});        \
  case DType::f8e4m3fn: return F(TypeTag<kernel::f8e4m3fn>{}); \
  case DType::f8e5m2: return F(TypeTag<kernel::f8e5m2>{});
#define COIL_INT_CASES(F)                    \
  case DType::u8: return F(TypeTag<u8>{});   \
  case DType::i8: return F(TypeTag<i8>{});   \
  case DType::i16: return F(TypeTag<i16>{}); \
  case DType::i32: return F(TypeTag<i32>{}); \
  case DType::i64: return F(TypeTag<i64>{}); \
  case DType::u16: return F(TypeTag<u16>{}); \
  case DType::u32: return F(TypeTag<u32>{}); \
  case DType::u64: return F(TypeTag<u64>{});
#define COIL_COMPLEX_CASES \
  case DType::c32:         \
  case DType::c64:         \
  case DType::c128:

/// f(TypeTag<T>) for a numeric element type: in memory T, for arithmetic what load1 gives.
template <class F>
[[gnu::always_inline]] inline void with_number(DType dtype, F f) {
  switch (dtype) {
    COIL_FLOAT_CASES(f)
    COIL_INT_CASES(f)
    COIL_COMPLEX_CASES
    case DType::b8: break;
  }
  fail_unsupported(dtype);
}
/// with_number and b8.
template <class F>
[[gnu::always_inline]] inline void with_real(DType dtype, F f) {
  if (dtype == DType::b8) return f(TypeTag<kernel::b8>{});
  with_number(dtype, f);
}

/// Runs f(i, worker) for i in [0, count) on the pool; f is passed by address.
template <class F>
inline void for_each_task(runtime::ThreadPool& pool, i64 count, const F& f) {
  pool.parallel_for(
      0, count, 1,
      [](void* context, i64 lo, i64 hi, int worker) {
        const F& body = *static_cast<const F*>(context);
        for (i64 i = lo; i < hi; ++i) body(i, worker);
      },
      const_cast<F*>(&f));
}

}  // namespace coil::templates::COIL_ISA
