// Convolution as a sum of products over (input channel, kernel position) in tiles of output
// channels x output positions. Inputs are read through a table of offsets, an indirect convolution
// (M. Dukhan, "The Indirect Convolution Algorithm", 2019) whose indirection is over kernel
// positions: padded planes make one table serve every output.

#include "templates/cpu/conv.h"

#include "templates/cpu/conv_call.h"
#include "templates/cpu/conv_depthwise.h"
#include "templates/cpu/conv_gather.h"

// After the headers that define COIL_ISA's namespace.
#include "templates/cpu/entries.inc"

namespace coil::templates::COIL_ISA {

namespace {

// A panel of inputs is read where it lies for at most so many tiles of output channels; for more, a
// dense copy is quicker.
constexpr i64 kMostTilesDirect = 16;

/// Columns of a panel: runs of positions, each with the offset of its first input.
struct PanelRuns {
  i64 offset[kBlockN], start[kBlockN], count[kBlockN];
  int runs;
};

/// out[p*width + i] = input of position i at offsets[p]; what follows a run is written over by the
/// next run or row. Reads nothing beyond the runs if Exact, else up to 16 elements more.
template <class Acc, class T, bool Exact>
void fill_panel(const T* x, const i64* offsets, i64 kc, const PanelRuns& runs, i64 width,
                Acc* out) {
  for (i64 p = 0; p < kc; ++p, out += width) {
    const T* from = x + offsets[p];
    for (int r = 0; r < runs.runs; ++r) {
      const T* run = from + runs.offset[r];
      for (i64 i = 0; i < runs.count[r]; i += 16) {
        Acc* to = out + runs.start[r] + i;
        if constexpr (Exact) {
          const i64 n = smaller(16, runs.count[r] - i);
          kernel::to_array(kernel::cast<Acc>(kernel::load_n(run + i, n)), to);
        } else {
          kernel::to_array(kernel::load_lanes<Acc, 16>(run + i), to);
        }
      }
    }
  }
}

/// The code that knows the type of x.
template <class Acc>
struct InputFunctions {
  void (*copy)(const ConvShape&, const Planes&, const void* x, i64 row, i64 rows,
               Acc* out) = nullptr;
  void (*gather)(const GatherBlock&, i64 k0, i64 kc, const Run*, int runs, i64 filled, i64 width,
                 Acc* out) = nullptr;
  void (*fill)(const void* x, i64 offset, const i64* offsets, i64 kc, const PanelRuns&, i64 width,
               Acc* out) = nullptr;
  Acc (*read)(const void* x, i64 offset) = nullptr;
};
template <class Acc, class T>
void fill_exactly(const void* x, i64 offset, const i64* offsets, i64 kc, const PanelRuns& runs,
                  i64 width, Acc* out) {
  fill_panel<Acc, T, true>(static_cast<const T*>(x) + offset, offsets, kc, runs, width, out);
}
template <class Acc, class T>
Acc read_element(const void* x, i64 offset) {
  return kernel::cast_scalar<Acc>(kernel::load1(static_cast<const T*>(x) + offset));
}
template <class Acc>
InputFunctions<Acc> input_functions(DType dtype) {
  InputFunctions<Acc> r;
  const auto pick = [&](auto tag) {
    using T = typename decltype(tag)::type;
    r = {copy_plane<Acc, T>, gather_panel<Acc, T>, fill_exactly<Acc, T>, read_element<Acc, T>};
  };
  if constexpr (kernel::kIsFloat<Acc>) {
    switch (dtype) {
      COIL_FLOAT_CASES(pick)
      COIL_NOT_FLOAT_CASES break;
    }
  } else {
    switch (dtype) {
      COIL_INT_CASES(pick)
      COIL_NOT_INT_CASES break;
    }
  }
  if (!r.copy) fail_unsupported(dtype);
  return r;
}

/// One block of the direct and the gathered kind.
template <class Acc>
struct ConvTask {
  const ConvCall<Acc>& call;
  const InputFunctions<Acc>& input;
  const Acc* planes;  // of the image and group, null where x is read in place
  i64 image, group, row, rows, col, cols;
  Workspace<Acc> work;

  static constexpr i64 kCols = Tile<Acc>::kCols;

  /// The place of output `o` relative to its group's inputs.
  i64 place(const i64* o) const {
    const ConvShape& s = call.s;
    if (planes) return call.plan.planes.offset_of_output(o);
    return o[0] * s.d[0].stride * s.x_stride[0] + o[1] * s.d[1].stride * s.x_stride[1] + o[2];
  }
  i64 group_offset() const {
    return image * call.c.x_strides[0] + group * call.s.ic * call.c.x_strides[1];
  }

  void multiply_panel(const Acc* b, const i64* offsets, i64 k0, i64 kc, i64 j) const {
    const i64 step = call.plan.height;
    i64 i = 0;
    if constexpr (kRowsAreLanes<Acc>) {
      constexpr i64 height = Tile<Acc>::kRows, many = kTilesOfRows * height;
      const bool is_packed = call.weights.layout.panel == height;
      for (; is_packed && !offsets && cols - j <= kFewCols && i + many <= rows; i += many) {
        const Acc* a = call.weights.tile(group, row + i, k0, height).data;
        const Acc* next = call.weights.tile(group, row + i + height, k0, height).data;
        multiply_few_columns(a, next - a, b, kCols, cols - j, kc, work.sums + i * kBlockN + j,
                             kBlockN, k0 == 0);
      }
    }
    for (; i < rows; i += step) {
      const auto a = call.weights.tile(group, row + i, k0, smaller(step, rows - i));
      Acc* to = work.sums + i * kBlockN + j;
      if (offsets) {
        multiply_tile_by<Acc, Tile<Acc>::kVectors>(a, b, ListedRows{offsets}, kc, to, kBlockN,
                                                   k0 == 0);
      } else {
        multiply_tile<Acc>(a, b, kc, to, kBlockN, k0 == 0, cols - j);
      }
    }
  }

  void direct_panel(i64 k0, i64 kc, i64 j, const Run* runs, int count) const {
    const i64* offsets = call.offsets + k0;
    const bool lies_there = planes || in_place<Acc>(call.c.in);
    const bool is_whole = count == 1 && runs[0].count == kCols;
    if (is_whole && lies_there && rows <= kMostTilesDirect * call.plan.height) {
      const Acc* base =
          planes ? planes : static_cast<const Acc*>(advance(call.c.x, group_offset(), call.c.in));
      return multiply_panel(base + place(runs[0].o), offsets, k0, kc, j);
    }
    PanelRuns panel;
    panel.runs = count;
    for (int r = 0; r < count; ++r) {
      panel.offset[r] = place(runs[r].o);
      panel.start[r] = runs[r].start;
      panel.count[r] = runs[r].count;
    }
    if (planes)
      fill_panel<Acc, Acc, false>(planes, offsets, kc, panel, kCols, work.b);
    else
      input.fill(call.c.x, group_offset(), offsets, kc, panel, kCols, work.b);
    multiply_panel(work.b, nullptr, k0, kc, j);
  }

  void multiply() const {
    const ConvShape& s = call.s;
    const bool gathered = call.plan.kind == ConvKind::Gathered;
    const GatherBlock block{s, gathered ? advance(call.c.x, group_offset(), call.c.in) : nullptr,
                            call.c.x_strides[1]};
    for (i64 k0 = 0; k0 < s.k; k0 += kBlockK) {
      const i64 kc = smaller(kBlockK, s.k - k0);
      for (i64 j = 0; j < cols; j += kCols) {
        Run runs[kCols];
        const i64 filled = smaller(kCols, cols - j);
        const int n = cut_runs(s, col + j, filled, runs);
        if (gathered) {
          input.gather(block, k0, kc, runs, n, filled, kCols, work.b);
          multiply_panel(work.b, nullptr, k0, kc, j);
        } else {
          direct_panel(k0, kc, j, runs, n);
        }
      }
    }
    if (s.k == 0) {
      for (i64 i = 0; i < rows * kBlockN; ++i) work.sums[i] = Acc(0);
    }
  }
};

/// Offsets of a group's inputs by (channel, kernel position).
template <class Acc>
void list_offsets(const ConvArgs& c, const ConvPlan<Acc>& plan, i64* out) {
  const ConvShape& s = plan.s;
  const Planes& planes = plan.planes;
  const i64 channel = plan.x_in_place ? c.x_strides[1] : planes.channel;
  for (i64 q = 0; q < s.kernel; ++q) {
    i64 tap[3];
    tap_of(s, q, tap);
    i64 offset = 0;
    if (plan.x_in_place) {
      for (int i = 0; i < 3; ++i) offset += tap[i] * s.d[i].dilation * s.x_stride[i];
    } else {
      offset = planes.offset_of_tap(s, tap);
    }
    for (i64 ch = 0; ch < s.ic; ++ch) out[ch * s.kernel + q] = ch * channel + offset;
  }
}

/// Runs the blocks of images [first, first + images), whose planes stand in `planes` or null.
template <class Acc>
void run_blocks(const ConvCall<Acc>& call, const InputFunctions<Acc>& input, const Acc* planes,
                i64 first, i64 images, runtime::ThreadPool& pool) {
  const ConvArgs& c = call.c;
  const ConvShape& s = call.s;
  const i64 height = call.plan.height;
  const BlockCosts costs{.height = height,
                         .max_rows = Workspace<Acc>::kMaxRows / height * height,
                         .columns_setup = 8,
                         .rows_setup = 2,
                         .lanes = Tile<Acc>::kLanes,
                         .width = Tile<Acc>::kCols};
  const Blocks b = cut_blocks(s.oc, s.positions, images * c.groups, pool.threads(), costs);
  for_each_task(pool, b.count() * c.groups * images, [&](i64 task, int worker) {
    const auto [copy, row, col] = b.place(task);
    const i64 image = copy / c.groups, group = copy % c.groups;
    const i64 rows = smaller(b.rows, s.oc - row), cols = smaller(b.cols, s.positions - col);
    const Acc* group_planes = planes ? planes + image * call.plan.image_elements(c) +
                                           group * s.ic * call.plan.planes.channel
                                     : nullptr;
    const ConvTask<Acc> t{
        call, input, group_planes, first + image, group,
        row,  rows,  col,          cols,          Workspace<Acc>(call.workers, worker)};
    t.multiply();
    ConvBlock<Acc>{call, first + image, group, row, rows, col, cols, t.work.sums, kBlockN}.finish();
  });
}

template <class Acc>
void run_direct(const ConvCall<Acc>& call, const InputFunctions<Acc>& input, Acc* memory,
                runtime::ThreadPool& pool) {
  const ConvArgs& c = call.c;
  const i64 chunk = call.plan.images;
  if (call.plan.x_in_place || call.plan.kind == ConvKind::Gathered) {
    return run_blocks<Acc>(call, input, nullptr, 0, c.n, pool);
  }
  const Planes& planes = call.plan.planes;
  for (i64 first = 0; first < c.n; first += chunk) {
    const i64 images = smaller(chunk, c.n - first);
    for_each_task(pool, images * c.ic, [&](i64 i, int) {
      const i64 offset = (first + i / c.ic) * c.x_strides[0] + i % c.ic * c.x_strides[1];
      call.copy(call.s, planes, advance(c.x, offset, c.in), 0, planes.size[1],
                memory + i * planes.channel);
    });
    run_blocks<Acc>(call, input, memory, first, images, pool);
  }
}

template <class Acc>
void run_depthwise(const ConvCall<Acc>& call, runtime::ThreadPool& pool) {
  const i64 height = call.s.d[1].output, step = call.plan.dw_rows;
  const i64 blocks = (height + step - 1) / step;
  for_each_task(pool, call.c.n * call.c.groups * blocks, [&](i64 task, int worker) {
    const i64 row = task % blocks * step, rest = task / blocks;
    run_depthwise_task(call, rest / call.c.groups, rest % call.c.groups, row,
                       smaller(step, height - row), worker);
  });
}

template <class Acc>
void run_conv(const ConvArgs& c, runtime::ThreadPool& pool, void* scratch) {
  const ConvPlan<Acc> plan(c, pool.threads());
  const ConvShape& s = plan.s;
  if (c.n <= 0 || c.oc <= 0 || s.positions <= 0) return;
  char* memory = static_cast<char*>(scratch);
  const auto take = [&](i64 bytes) {
    char* r = memory;
    memory += bytes;
    return r;
  };
  const InputFunctions<Acc> input = input_functions<Acc>(c.in);
  ConvCall<Acc> call{c,          plan,      s, functions_for<Acc>(c.in), functions_for<Acc>(c.out),
                     input.read, input.copy};
  const void* weights = c.packed_w ? c.packed_w : c.w;
  if (i64 bytes = plan.weight_bytes(c); bytes > 0) {
    Acc* packed = reinterpret_cast<Acc*>(take(bytes));
    pack_all_weights(c, plan, packed, [&](i64 count, auto pack) {
      for_each_task(pool, count, [&](i64 i, int) { pack(i); });
    });
    weights = packed;
  }
  const bool is_matrix = !c.packed_w && plan.weights_in_place;
  call.weights = {static_cast<const Acc*>(weights),
                  is_matrix ? WeightLayout{1, s.oc, s.k} : plan.packed_layout()};
  if (c.bias) {
    Acc* bias = reinterpret_cast<Acc*>(take(plan.bias_bytes(c)));
    call.in.pack({c.bias, 0, c.bias_stride}, 1, c.oc, 1, bias);
    call.bias = bias;
  }
  i64* offsets = reinterpret_cast<i64*>(take(plan.table_bytes()));
  if (plan.kind != ConvKind::Gathered) list_offsets(c, plan, offsets);
  call.offsets = offsets;
  Acc* planes = reinterpret_cast<Acc*>(take(plan.plane_bytes(c)));
  call.workers = memory;
  if (plan.kind == ConvKind::Depthwise)
    run_depthwise(call, pool);
  else
    run_direct(call, input, planes, pool);
}

}  // namespace

void conv(const ConvArgs& c, runtime::ThreadPool& pool, void* scratch) {
  with_accumulator(c.in, c.out,
                   [&](auto acc) { run_conv<typename decltype(acc)::type>(c, pool, scratch); });
}

i64 conv_scratch_bytes(const ConvArgs& c, int threads) {
  i64 bytes = 0;
  with_accumulator(c.in, c.out, [&](auto acc) {
    const ConvPlan<typename decltype(acc)::type> plan(c, threads);
    if (c.n > 0 && plan.s.positions > 0)
      bytes = plan.shared_bytes(c) + plan.worker_bytes() * threads;
  });
  return bytes;
}

i64 packed_w_bytes(const ConvArgs& c) {
  i64 bytes = 0;
  with_accumulator(c.in, c.out, [&](auto acc) {
    bytes = ConvPlan<typename decltype(acc)::type>(c, 1).packed_bytes(c);
  });
  return bytes;
}

void pack_w(const ConvArgs& c, void* packed) {
  with_accumulator(c.in, c.out, [&](auto acc) {
    using Acc = typename decltype(acc)::type;
    pack_all_weights(c, ConvPlan<Acc>(c, 1), static_cast<Acc*>(packed), [](i64 count, auto pack) {
      for (i64 i = 0; i < count; ++i) pack(i);
    });
  });
}

}  // namespace coil::templates::COIL_ISA
