// What the files compiled for one instruction set define, in the namespace COIL_ISA. Without include
// guard: table.cpp includes it once for each.

#include "templates/cpu/attention.h"
#include "templates/cpu/conv.h"
#include "templates/cpu/gemm.h"
#include "templates/cpu/sort.h"

namespace coil::templates::COIL_ISA {

void gemm(const GemmArgs& args, runtime::ThreadPool& pool, void* scratch);
i64 gemm_scratch_bytes(const GemmArgs& args, int threads);
i64 packed_b_bytes(const GemmArgs& args);
void pack_b(const GemmArgs& args, void* packed);

void conv(const ConvArgs& args, runtime::ThreadPool& pool, void* scratch);
i64 conv_scratch_bytes(const ConvArgs& args, int threads);

void attention(const AttentionArgs& args, runtime::ThreadPool& pool, void* scratch);
i64 attention_scratch_bytes(const AttentionArgs& args, int threads);

void sort(const SortArgs& args, runtime::ThreadPool& pool, void* scratch);
i64 sort_scratch_bytes(const SortArgs& args, int threads);
void topk(const TopkArgs& args, runtime::ThreadPool& pool, void* scratch);
i64 topk_scratch_bytes(const TopkArgs& args, int threads);

}  // namespace coil::templates::COIL_ISA
