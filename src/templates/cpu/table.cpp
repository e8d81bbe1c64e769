#include "templates/cpu/table.h"

#include "base/check.h"

#define COIL_ISA plain
#include "templates/cpu/entries.inc"
#undef COIL_ISA
#if defined(__x86_64__)
#define COIL_ISA avx2
#include "templates/cpu/entries.inc"
#undef COIL_ISA
#define COIL_ISA avx512
#include "templates/cpu/entries.inc"
#undef COIL_ISA
#elif defined(__aarch64__)
#define COIL_ISA neon
#include "templates/cpu/entries.inc"
#undef COIL_ISA
#endif

namespace coil::templates {

#define COIL_TABLE(isa)                                           \
  constexpr CpuTemplates k_##isa = {isa::gemm,                    \
                                    isa::gemm_scratch_bytes,      \
                                    isa::packed_b_bytes,          \
                                    isa::pack_b,                  \
                                    isa::conv,                    \
                                    isa::conv_scratch_bytes,      \
                                    isa::packed_w_bytes,          \
                                    isa::pack_w,                  \
                                    isa::attention,               \
                                    isa::attention_scratch_bytes, \
                                    isa::sort,                    \
                                    isa::sort_scratch_bytes,      \
                                    isa::topk,                    \
                                    isa::topk_scratch_bytes,      \
                                    isa::fft,                     \
                                    isa::fft_scratch_bytes};

namespace {
COIL_TABLE(plain)
#if defined(__x86_64__)
COIL_TABLE(avx2)
COIL_TABLE(avx512)
#elif defined(__aarch64__)
COIL_TABLE(neon)
#endif
}  // namespace

const CpuTemplates& cpu_templates(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::Avx2: return k_avx2;
    case Isa::Avx512: return k_avx512;
    case Isa::Neon:
#elif defined(__aarch64__)
    case Isa::Neon: return k_neon;
    case Isa::Avx2:
    case Isa::Avx512:
#else
    case Isa::Avx2:
    case Isa::Avx512:
    case Isa::Neon:
#endif
    case Isa::Plain: return k_plain;
  }
  COIL_UNREACHABLE();
}

bool gemm_supports(DType in, DType out) {
  return (is_float(in) && is_float(out)) || (is_int(in) && is_int(out));
}

DType accumulator_of(DType in, DType out) {
  if (is_float(in)) return compute_dtype(in);
  return size_of(in) == 8 || size_of(out) == 8 ? DType::i64 : DType::i32;
}

bool attention_supports(DType dtype, DType mask_dtype) {
  return is_float(dtype) && (is_float(mask_dtype) || is_bool(mask_dtype));
}

bool sort_supports(DType dtype) { return !is_complex(dtype); }

bool fft_supports(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

void fail_unsupported(DType dtype) {
  COIL_CHECK(false, "no template for element type {}", name(dtype));
  COIL_UNREACHABLE();
}

}  // namespace coil::templates
