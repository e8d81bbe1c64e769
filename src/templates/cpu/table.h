#pragma once
// The prebuilt kernels of the CPU, one table for each instruction set they were compiled for.

#include "base/machine.h"
#include "templates/cpu/attention.h"
#include "templates/cpu/conv.h"
#include "templates/cpu/fft.h"
#include "templates/cpu/gemm.h"
#include "templates/cpu/sort.h"

namespace coil::templates {

/// Scratch is `..._scratch_bytes(args, pool.threads())` bytes, aligned to 64, of any content; it is
/// used during the call only. All functions are safe from many threads at once. Element types must
/// be ones that gemm_supports, attention_supports, sort_supports or fft_supports admits.
struct CpuTemplates {
  void (*gemm)(const GemmArgs& args, runtime::ThreadPool& pool, void* scratch);
  i64 (*gemm_scratch_bytes)(const GemmArgs& args, int threads);
  /// B in the kernel's own layout, for GemmArgs::packed_b. Depends on k, n, batch, b and the
  /// dtypes. Packed memory is only for the table that made it.
  i64 (*packed_b_bytes)(const GemmArgs& args);
  void (*pack_b)(const GemmArgs& args, void* packed);

  void (*conv)(const ConvArgs& args, runtime::ThreadPool& pool, void* scratch);
  i64 (*conv_scratch_bytes)(const ConvArgs& args, int threads);
  /// The weights in the kernel's own layout, for ConvArgs::packed_w. Depends on groups, ic, oc, w,
  /// the dims' kernels and the dtypes, not on n, x, y or the sizes of images. As pack_b otherwise.
  i64 (*packed_w_bytes)(const ConvArgs& args);
  void (*pack_w)(const ConvArgs& args, void* packed);

  void (*attention)(const AttentionArgs& args, runtime::ThreadPool& pool, void* scratch);
  i64 (*attention_scratch_bytes)(const AttentionArgs& args, int threads);

  void (*sort)(const SortArgs& args, runtime::ThreadPool& pool, void* scratch);
  i64 (*sort_scratch_bytes)(const SortArgs& args, int threads);
  void (*topk)(const TopkArgs& args, runtime::ThreadPool& pool, void* scratch);
  i64 (*topk_scratch_bytes)(const TopkArgs& args, int threads);

  void (*fft)(const FftArgs& args, runtime::ThreadPool& pool, void* scratch);
  i64 (*fft_scratch_bytes)(const FftArgs& args, int threads);
};

/// The table for `isa`, or for the best one below it that this build has. The caller has made sure
/// that the machine has the instructions (Machine::with_isa).
const CpuTemplates& cpu_templates(Isa isa);

}  // namespace coil::templates
