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

#define COIL_FLOAT_CASES(F)                                    \
  case DType::f32: F(TypeTag<float>{}); break;                 \
  case DType::f64: F(TypeTag<double>{}); break;                \
  case DType::f16: F(TypeTag<kernel::f16>{}); break;           \
  case DType::bf16: F(TypeTag<kernel::bf16>{}); break;         \
  case DType::f8e4m3fn: F(TypeTag<kernel::f8e4m3fn>{}); break; \
  case DType::f8e5m2:                                          \
    F(TypeTag<kernel::f8e5m2>{});                              \
    break;
#define COIL_INT_CASES(F)                    \
  case DType::u8: F(TypeTag<u8>{}); break;   \
  case DType::i8: F(TypeTag<i8>{}); break;   \
  case DType::i16: F(TypeTag<i16>{}); break; \
  case DType::i32: F(TypeTag<i32>{}); break; \
  case DType::i64: F(TypeTag<i64>{}); break; \
  case DType::u16: F(TypeTag<u16>{}); break; \
  case DType::u32: F(TypeTag<u32>{}); break; \
  case DType::u64: F(TypeTag<u64>{}); break;
// The rest of the enum, for switches without default.
#define COIL_OTHER_CASES \
  case DType::b8:        \
  case DType::c32:       \
  case DType::c64:       \
  case DType::c128:
#define COIL_NOT_INT_CASES \
  COIL_OTHER_CASES         \
  case DType::f32:         \
  case DType::f64:         \
  case DType::f16:         \
  case DType::bf16:        \
  case DType::f8e4m3fn:    \
  case DType::f8e5m2:
#define COIL_NOT_FLOAT_CASES \
  COIL_OTHER_CASES           \
  case DType::u8:            \
  case DType::i8:            \
  case DType::i16:           \
  case DType::i32:           \
  case DType::i64:           \
  case DType::u16:           \
  case DType::u32:           \
  case DType::u64:

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
