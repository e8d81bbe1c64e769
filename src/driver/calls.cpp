#include "driver/calls.h"

#include <algorithm>
#include <bit>

#include "templates/cpu/factor.h"
#include "templates/cpu/table.h"

namespace coil {
namespace {

using runtime::CallOperand;
using runtime::CallTools;
using runtime::ThreadPool;
using templates::CpuTemplates;

/// What every call needs besides its operands.
struct CpuCall {
  const CpuTemplates* table = nullptr;
  StructuredAttrs attrs;
  DType out = DType::f32;
};

const CpuCall& call_of(const void* bound) { return *static_cast<const CpuCall*>(bound); }

/// Runs one template with scratch memory of the size that it asks for.
template <class Args>
Status run_template(const Args& args, const CallTools& tools,
                    void (*run)(const Args&, ThreadPool&, void*), i64 (*bytes)(const Args&, int)) {
  run(args, tools.pool, COIL_TRY(tools.scratch.take(bytes(args, tools.pool.threads()))));
  return Ok{};
}

/// Matrices have a leading batch dim or none.
i64 batch_stride(const CallOperand& o) { return o.strides.size() == 3 ? o.strides[0] : 0; }

templates::ConstMatrix matrix(const CallOperand& o) {
  const std::size_t row = o.strides.size() - 2;
  return {o.data, o.strides[row], o.strides[row + 1], batch_stride(o)};
}

/// The product's factor b: shape, strides and element types that its packing depends on.
templates::GemmArgs gemm_weight(const CallOperand& b, DType out) {
  templates::GemmArgs args;
  const std::size_t row = b.shape.size() - 2;
  args.batch = row == 1 ? b.shape[0] : 1;
  args.k = b.shape[row];
  args.n = b.shape[row + 1];
  args.b = matrix(b);
  args.in = b.dtype;
  args.out = out;
  return args;
}

Status run_gemm(const void* bound, std::span<const CallOperand> o, const CallTools& tools) {
  templates::GemmArgs args = gemm_weight(o[1], o[2].dtype);
  const std::size_t row = o[2].shape.size() - 2;
  args.m = o[2].shape[row];
  args.a = matrix(o[0]);
  args.c = {o[2].data, o[2].strides[row], o[2].strides[row + 1], batch_stride(o[2])};
  args.packed_b = tools.packed;
  args.epilogue = tools.epilogue;
  args.epilogue_context = tools.epilogue_context;
  const CpuTemplates& t = *call_of(bound).table;
  return run_template(args, tools, t.gemm, t.gemm_scratch_bytes);
}

Status pack_gemm(const void* bound, std::span<const CallOperand> o, const CallTools& tools) {
  const CpuCall& call = call_of(bound);
  call.table->pack_b(gemm_weight(o[1], call.out), tools.packed);
  return Ok{};
}

/// The weight of a convolution: all of its arguments that packing depends on.
templates::ConvArgs conv_weight(const Conv& conv, const CallOperand& w, DType out) {
  templates::ConvArgs args;
  args.rank = static_cast<int>(w.shape.size()) - 2;
  args.groups = conv.groups;
  args.transposed = conv.transposed;
  args.ic = conv.transposed ? w.shape[0] : w.shape[1] * conv.groups;
  args.oc = conv.transposed ? w.shape[1] * conv.groups : w.shape[0];
  for (std::size_t d = 0; d < static_cast<std::size_t>(args.rank); ++d)
    args.dims[d] = {1, w.shape[d + 2], conv.stride[d], conv.padding[d], conv.dilation[d], 1};
  args.w = w.data;
  std::copy(w.strides.begin(), w.strides.end(), args.w_strides);
  args.in = w.dtype;
  args.out = out;
  return args;
}

Status run_conv(const void* bound, std::span<const CallOperand> o, const CallTools& tools) {
  const CallOperand &x = o[0], &w = o[1], &y = o.back();
  templates::ConvArgs args = conv_weight(std::get<Conv>(call_of(bound).attrs), w, y.dtype);
  args.n = x.shape[0];
  for (std::size_t d = 0; d < static_cast<std::size_t>(args.rank); ++d) {
    args.dims[d].input = x.shape[d + 2];
    args.dims[d].output = y.shape[d + 2];
  }
  args.x = x.data;
  args.y = y.data;
  std::copy(x.strides.begin(), x.strides.end(), args.x_strides);
  std::copy(y.strides.begin(), y.strides.end(), args.y_strides);
  if (o.size() == 4) {
    args.bias = o[2].data;
    args.bias_stride = o[2].strides[0];
  }
  args.packed_w = tools.packed;
  args.epilogue = tools.epilogue;
  args.epilogue_context = tools.epilogue_context;
  const CpuTemplates& t = *call_of(bound).table;
  return run_template(args, tools, t.conv, t.conv_scratch_bytes);
}

Status pack_conv(const void* bound, std::span<const CallOperand> o, const CallTools& tools) {
  const CpuCall& call = call_of(bound);
  call.table->pack_w(conv_weight(std::get<Conv>(call.attrs), o[1], call.out), tools.packed);
  return Ok{};
}

Status run_attention(const void* bound, std::span<const CallOperand> o, const CallTools& tools) {
  const Attention& attention = std::get<Attention>(call_of(bound).attrs);
  const CallOperand &q = o[0], &k = o[1], &v = o[2], &out = o.back();
  templates::AttentionArgs args;
  args.batch = q.shape[0];
  args.heads = q.shape[1];
  args.kv_heads = k.shape[1];
  args.q_len = q.shape[2];
  args.kv_len = k.shape[2];
  args.head_dim = q.shape[3];
  args.v_dim = v.shape[3];
  args.scale = attention.scale;
  args.causal = attention.causal;
  args.nan_rows = attention.nan_rows;
  args.q = q.data;
  args.k = k.data;
  args.v = v.data;
  args.out = out.data;
  std::copy(q.strides.begin(), q.strides.end(), args.q_strides);
  std::copy(k.strides.begin(), k.strides.end(), args.k_strides);
  std::copy(v.strides.begin(), v.strides.end(), args.v_strides);
  std::copy(out.strides.begin(), out.strides.end(), args.out_strides);
  if (attention.has_mask) {
    args.mask = o[3].data;
    args.mask_dtype = o[3].dtype;
    std::copy(o[3].strides.begin(), o[3].strides.end(), args.mask_strides);
  }
  args.dtype = q.dtype;
  const CpuTemplates& t = *call_of(bound).table;
  return run_template(args, tools, t.attention, t.attention_scratch_bytes);
}

Status run_sort(const void* bound, std::span<const CallOperand> o, const CallTools& tools) {
  const CpuCall& call = call_of(bound);
  const Sort& sort = std::get<Sort>(call.attrs);
  templates::SortArgs args;
  args.rows = o[0].shape[0];
  args.n = o[0].shape[1];
  args.in = o[0].data;
  args.in_row_stride = o[0].strides[0];
  args.in_stride = o[0].strides[1];
  args.values = o[1].data;
  args.values_row_stride = o[1].strides[0];
  args.values_stride = o[1].strides[1];
  args.indices = reinterpret_cast<i64*>(o[2].data);
  args.indices_row_stride = o[2].strides[0];
  args.indices_stride = o[2].strides[1];
  args.dtype = o[0].dtype;
  args.descending = sort.descending;
  const CpuTemplates& t = *call.table;
  if (!sort.is_topk) return run_template(args, tools, t.sort, t.sort_scratch_bytes);
  return run_template(templates::TopkArgs{args, o[1].shape[1]}, tools, t.topk,
                      t.topk_scratch_bytes);
}

Status run_factor(const void* bound, std::span<const CallOperand> o, const CallTools& tools) {
  const Factor& factor = std::get<Factor>(call_of(bound).attrs);
  const runtime::FactorArgs args{factor.kind, factor.flags, o};
  COIL_TRY(runtime::check_factor(args));
  const i64 bytes = templates::factor_scratch_bytes(args, tools.pool.threads());
  return templates::factor(args, tools.pool, COIL_TRY(tools.scratch.take(bytes)));
}

/// The dims of a transform but the one that it runs along, and that of the parts.
struct FftBatch {
  std::vector<i64> shape, x_strides, y_strides;
};

FftBatch batch_of(const Fft& fft, const CallOperand& x, const CallOperand& y) {
  FftBatch batch;
  const std::size_t rank = x.shape.size() - (fft.kind == FftKind::R2c ? 0 : 1);
  for (std::size_t d = 0; d < rank; ++d) {
    if (static_cast<i64>(d) == fft.dim) continue;
    batch.shape.push_back(y.shape[d]);
    batch.x_strides.push_back(x.strides[d]);
    batch.y_strides.push_back(y.strides[d]);
  }
  return batch;
}

Status run_fft(const void* bound, std::span<const CallOperand> o, const CallTools& tools) {
  const Fft& fft = std::get<Fft>(call_of(bound).attrs);
  const CallOperand &x = o[0], &y = o[1];
  const std::size_t d = static_cast<std::size_t>(fft.dim);
  const FftBatch batch = batch_of(fft, x, y);
  templates::FftArgs args;
  args.batch_rank = static_cast<i64>(batch.shape.size());
  args.batch_shape = batch.shape.data();
  args.n = fft.kind == FftKind::C2r ? y.shape[d] : x.shape[d];
  args.count = y.shape[d];
  COIL_TRY(check_fft_sizes(fft, x.shape[d], y.shape[d]));
  args.x_is_complex = fft.kind != FftKind::R2c;
  args.y_is_complex = fft.kind != FftKind::C2r;
  args.x = x.data;
  args.x_batch_strides = batch.x_strides.data();
  args.x_stride = x.strides[d];
  args.x_part_stride = x.strides.back();
  args.y = y.data;
  args.y_batch_strides = batch.y_strides.data();
  args.y_stride = y.strides[d];
  args.y_part_stride = y.strides.back();
  args.dtype = x.dtype;
  args.forward = fft.forward;
  args.scale = scale_of(fft, args.n);
  const CpuTemplates& t = *call_of(bound).table;
  return run_template(args, tools, t.fft, t.fft_scratch_bytes);
}

/// What carries out a kind of call, and the packing of its weight.
struct CallKind {
  std::string_view name;
  runtime::CallFunction run, pack;
};
constexpr CallKind kCallKinds[] = {
    {"gemm", run_gemm, pack_gemm},
    {"conv", run_conv, pack_conv},
    {"attention", run_attention, nullptr},
    {"sort", run_sort, nullptr},
    {"topk", run_sort, nullptr},
    {"factor", run_factor, nullptr},
    {"fft", run_fft, nullptr},
};

/// The attributes of a node as numbers, as a plan keeps them.
std::vector<i64> numbers_of(const StructuredAttrs& attrs, DType out) {
  std::vector<i64> n = {static_cast<i64>(out)};
  if (const auto* conv = std::get_if<Conv>(&attrs)) {
    n.insert(n.end(), {conv->groups, conv->transposed});
    for (const std::vector<i64>* list : {&conv->stride, &conv->padding, &conv->dilation})
      n.insert(n.end(), list->begin(), list->end());
  } else if (const auto* attention = std::get_if<Attention>(&attrs)) {
    n.insert(n.end(), {std::bit_cast<i64>(attention->scale), attention->causal, attention->has_mask,
                       attention->nan_rows});
  } else if (const auto* sort = std::get_if<Sort>(&attrs)) {
    n.insert(n.end(), {sort->descending, sort->is_topk});
  } else if (const auto* factor = std::get_if<Factor>(&attrs)) {
    n.insert(n.end(), {static_cast<i64>(factor->kind), factor->flags});
  } else if (const auto* fft = std::get_if<Fft>(&attrs)) {
    n.insert(n.end(),
             {static_cast<i64>(fft->kind), fft->dim, fft->forward, static_cast<i64>(fft->scale)});
  }
  return n;
}

/// The way back; nothing where the numbers are not those of that kind.
std::optional<CpuCall> read_numbers(std::string_view kind, std::span<const i64> n) {
  CpuCall call;
  if (n.empty() || n[0] < 0 || n[0] >= kNumDTypes) return std::nullopt;
  call.out = static_cast<DType>(n[0]);
  n = n.subspan(1);
  if (kind == "gemm" && n.empty()) {
    call.attrs = Gemm{};
  } else if (kind == "conv" && n.size() > 2 && n.size() <= 11 && (n.size() - 2) % 3 == 0) {
    const std::size_t rank = (n.size() - 2) / 3;
    const auto list = [&](std::size_t k) {
      const auto part = n.subspan(2 + k * rank, rank);
      return std::vector<i64>(part.begin(), part.end());
    };
    call.attrs = Conv{list(0), list(1), list(2), {}, n[0], n[1] != 0};
  } else if (kind == "attention" && n.size() == 4) {
    call.attrs = Attention{std::bit_cast<double>(n[0]), n[1] != 0, n[2] != 0, n[3] != 0};
  } else if ((kind == "sort" || kind == "topk") && n.size() == 2) {
    call.attrs = Sort{n[0] != 0, n[1] != 0};
  } else if (kind == "factor" && n.size() == 2 && n[0] >= 0 && n[0] < kNumFactors && n[1] >= 0 &&
             (n[1] & ~i64{flags_of(static_cast<FactorKind>(n[0]))}) == 0) {
    call.attrs = Factor{static_cast<FactorKind>(n[0]), static_cast<u8>(n[1])};
  } else if (kind == "fft" && n.size() == 4 && n[0] >= 0 && n[0] <= 2 && n[3] >= 0 && n[3] <= 2) {
    call.attrs = Fft{static_cast<FftKind>(n[0]), n[1], n[2] != 0, static_cast<FftScale>(n[3])};
  } else {
    return std::nullopt;
  }
  return call;
}

}  // namespace

Status bind_cpu_call(runtime::Call& call) {
  std::string_view kind = call.name;
  const bool is_pack = kind.starts_with("pack.");
  if (is_pack) kind.remove_prefix(5);
  const std::size_t dot = std::min(kind.find('.'), kind.size());
  const std::string_view isa_name = kind.substr(std::min(dot + 1, kind.size()));
  kind = kind.substr(0, dot);
  std::optional<CpuCall> bound = read_numbers(kind, call.attributes);
  for (const Isa isa : {Isa::Plain, Isa::Avx2, Isa::Avx512, Isa::Neon})
    if (bound && name(isa) == isa_name) bound->table = &templates::cpu_templates(isa);
  for (const CallKind& k : kCallKinds)
    if (k.name == kind) call.function = is_pack ? k.pack : k.run;
  if (!bound || !bound->table || !call.function)
    return error("there is no implementation '{}' with such attributes", call.name);
  call.bound = std::make_shared<CpuCall>(std::move(*bound));
  return Ok{};
}

Result<Implementation> implement_on_cpu(const LoopProgram& program, const Structured& node,
                                        const Machine& machine) {
  const auto dtype = [&](const Access& a) { return program.buffers[a.buffer].dtype; };
  const DType in = dtype(node.inputs[0]), out = dtype(node.outputs[0]);
  const CpuTemplates& table = templates::cpu_templates(machine.isa);
  Implementation chosen;
  const auto refuse = [&](const char* what) {
    return error("there is no {} of {} into {}", what, name(in), name(out));
  };
  if (std::holds_alternative<Gemm>(node.attrs)) {
    if (!templates::gemm_supports(in, out)) return refuse("matrix product");
    chosen.name = "gemm";
    chosen.packed_bytes = [&table, out](std::span<const CallOperand> o) {
      return table.packed_b_bytes(gemm_weight(o[1], out));
    };
  } else if (const auto* conv = std::get_if<Conv>(&node.attrs)) {
    if (!templates::gemm_supports(in, out)) return refuse("convolution");
    chosen.name = "conv";
    chosen.packed_bytes = [&table, out, conv = *conv](std::span<const CallOperand> o) {
      return table.packed_w_bytes(conv_weight(conv, o[1], out));
    };
  } else if (const auto* attention = std::get_if<Attention>(&node.attrs)) {
    if (!templates::attention_supports(in,
                                       attention->has_mask ? dtype(node.inputs[3]) : DType::f32))
      return refuse("attention");
    chosen.name = "attention";
  } else if (std::holds_alternative<Factor>(node.attrs)) {
    chosen.name = "factor";
  } else if (std::holds_alternative<Fft>(node.attrs)) {
    if (!templates::fft_supports(in)) return refuse("Fourier transform");
    chosen.name = "fft";
  } else {
    if (!templates::sort_supports(in)) return refuse("sort");
    chosen.name = std::get<Sort>(node.attrs).is_topk ? "topk" : "sort";
  }
  chosen.name += "." + std::string(name(machine.isa));
  chosen.attributes = numbers_of(node.attrs, out);
  chosen.bind = bind_cpu_call;
  return chosen;
}

}  // namespace coil
