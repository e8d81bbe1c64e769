#pragma once
// What every convolution does around its sums: weights and scratch before, bias, epilogue and
// storing after. Included by *.isa.cpp only.

#include "templates/cpu/conv_shape.h"

namespace coil::templates::COIL_ISA {

enum class ConvKind : u8 {
  Direct,     // output channels x positions; inputs read through a table of offsets
  Depthwise,  // each output channel from one plane
  Gathered,   // transposed: the columns are gathered, so no two threads write one element
};

/// How a convolution runs and the scratch that it takes.
template <class Acc>
struct ConvPlan {
  ConvShape s;
  Planes planes;  // of the direct and the depthwise kind
  ConvKind kind = ConvKind::Direct;
  bool padded = false;            // some output may read padding, of floats
  bool x_in_place = false;        // the direct kernel reads x itself
  bool weights_in_place = false;  // w is the matrix [oc][k] of accumulators
  i64 height;                     // of a tile
  i64 panel;                      // output channels of a panel of packed weights
  i64 images = 1;                 // whose planes stand in scratch at a time
  i64 dw_rows = 1;                // output rows of a depthwise task

  ConvPlan(const ConvArgs& c, int threads) : s(c), planes(s) {
    height = tile_height<Acc>(s.oc);
    const bool single = !c.transposed && s.ic == 1 && s.oc < Tile<Acc>::kRows && s.k <= kBlockK;
    panel = single ? 1 : height;  // must not depend on the sizes of images
    const bool flat = s.d[0].kernel == 1 && s.d[0].output == 1;
    if (c.transposed)
      kind = ConvKind::Gathered;
    else if (single && flat)
      kind = ConvKind::Depthwise;
    weights_in_place = lie_as_matrix(c);
    if (s.positions <= 0 || c.n <= 0) return;
    padded = kernel::kIsFloat<Acc> && (c.transposed || reaches_outside());
    if (kind == ConvKind::Direct) {
      x_in_place = inputs_lie_well(c);
      images = choose_images(c, threads);
    }
    if (kind == ConvKind::Depthwise) dw_rows = choose_rows(c, threads);
  }

  WeightLayout packed_layout() const { return {panel, round_up(s.oc, panel), s.k}; }
  i64 packed_bytes(const ConvArgs& c) const {
    return round_up(c.groups * packed_layout().group_elements() * i64(sizeof(Acc)), kCacheLine);
  }
  i64 weight_bytes(const ConvArgs& c) const {
    return c.packed_w || weights_in_place ? 0 : packed_bytes(c);
  }
  i64 bias_bytes(const ConvArgs& c) const {
    return c.bias ? round_up(c.oc * i64(sizeof(Acc)), kCacheLine) : 0;
  }
  i64 table_bytes() const {
    return kind == ConvKind::Gathered ? 0 : round_up(s.k * i64(sizeof(i64)), kCacheLine);
  }
  /// The planes of one image, and room for a register beyond the last.
  i64 image_elements(const ConvArgs& c) const { return c.ic * planes.channel; }
  i64 plane_bytes(const ConvArgs& c) const {
    if (kind != ConvKind::Direct || x_in_place) return 0;
    return round_up(images * image_elements(c) * i64(sizeof(Acc)) + 4 * kCacheLine, kCacheLine);
  }
  i64 dw_input_rows() const {
    return (dw_rows - 1) * planes.step[1] + (s.d[1].kernel - 1) * s.d[1].dilation + 1;
  }
  i64 dw_input_bytes() const {
    return round_up(dw_input_rows() * planes.pitch * i64(sizeof(Acc)) + 4 * kCacheLine, kCacheLine);
  }
  i64 worker_bytes() const {
    if (kind != ConvKind::Depthwise) return Workspace<Acc>::kBytes;
    const i64 sums = dw_rows * s.d[2].output * i64(sizeof(Acc)) + 4 * kCacheLine;
    return dw_input_bytes() + round_up(sums, kCacheLine);
  }
  i64 shared_bytes(const ConvArgs& c) const {
    return weight_bytes(c) + bias_bytes(c) + table_bytes() + plane_bytes(c);
  }

 private:
  bool lie_as_matrix(const ConvArgs& c) const {
    if (c.transposed || !in_place<Acc>(c.in)) return false;
    i64 expected = 1;
    for (int i = 2; i >= 0; --i) {
      if (s.d[i].kernel != 1 && s.w_stride[i] != expected) return false;
      expected *= s.d[i].kernel;
    }
    return (s.ic == 1 || c.w_strides[1] == expected) && (c.oc == 1 || c.w_strides[0] == s.k);
  }
  bool reaches_outside() const {
    for (const ConvDim& d : s.d) {
      const i64 last = (d.output - 1) * d.stride + (d.kernel - 1) * d.dilation - d.pad;
      if (d.pad > 0 || last >= d.input) return true;
    }
    return false;
  }
  /// Whether rows of x are contiguous and no kernel position leaves x; elements that need a
  /// conversion are converted once, so not where several positions read them.
  bool inputs_lie_well(const ConvArgs& c) const {
    if (s.d[2].stride != 1 || s.x_stride[2] != 1 || reaches_outside()) return false;
    return in_place<Acc>(c.in) || s.kernel == 1;
  }
  i64 choose_images(const ConvArgs& c, int threads) const {
    constexpr i64 target_bytes = 2 << 20, blocks_of_a_thread = 4;
    const i64 bytes = larger(image_elements(c) * i64(sizeof(Acc)), 1);
    const i64 blocks = c.groups * (s.oc / 48 + 1) * ((s.positions + kBlockN - 1) / kBlockN);
    const i64 wanted = (blocks_of_a_thread * threads + blocks - 1) / blocks;
    return smaller(larger(larger(target_bytes / bytes, wanted), 1), c.n);
  }
  i64 choose_rows(const ConvArgs& c, int threads) const {
    constexpr i64 most_sums = 8192, fewest_rows = 8;
    i64 rows = smaller(larger(most_sums / s.d[2].output, 1), s.d[1].output);
    const auto tasks = [&] { return c.n * c.groups * ((s.d[1].output + rows - 1) / rows); };
    while (rows > fewest_rows && tasks() < 4 * threads) rows = (rows + 1) / 2;
    return rows;
  }
};

/// What the tasks of a call share.
template <class Acc>
struct ConvCall {
  const ConvArgs& c;
  const ConvPlan<Acc>& plan;
  const ConvShape& s;
  ElementFunctions<Acc> in, out;
  Acc (*read)(const void* x, i64 offset);
  void (*copy)(const ConvShape&, const Planes&, const void* x, i64 row, i64 rows, Acc* out);
  ConvWeights<Acc> weights{};
  const Acc* bias = nullptr;     // [oc] or null
  const i64* offsets = nullptr;  // of a group's k, from the place of an output
  char* workers = nullptr;
};

/// Packs output channels [o, o + panel) of a group.
template <class Acc>
static void pack_weights(const ConvArgs& c, const ConvPlan<Acc>& plan,
                         const ElementFunctions<Acc>& in, i64 group, i64 o, Acc* out) {
  const ConvShape& s = plan.s;
  const WeightLayout layout = plan.packed_layout();
  const i64 count = smaller(plan.panel, s.oc - o);
  const i64 step = c.w_strides[c.transposed ? 1 : 0];  // from one output channel to the next
  // Elements [p, p + n) of k, which are p_stride apart from `from` on.
  const auto pack = [&](i64 from, i64 p_stride, i64 p, i64 n) {
    while (n > 0) {
      const i64 piece = smaller(n, kBlockK - p % kBlockK);
      in.pack({advance(c.w, from, c.in), step, p_stride}, count, piece, plan.panel,
              out + group * layout.group_elements() + layout.offset(o, p));
      p += piece;
      n -= piece;
      from += piece * p_stride;
    }
  };
  if (plan.weights_in_place) return pack((group * s.oc + o) * s.k, 1, 0, s.k);
  const i64 row = s.d[2].kernel;
  for (i64 p = 0; p < s.k; p += row) {
    const i64 channel = p / s.kernel;
    i64 tap[3];
    tap_of(s, p % s.kernel, tap);
    const i64 lead = c.transposed ? group * s.ic + channel : group * s.oc + o;
    pack(lead * c.w_strides[0] + (c.transposed ? o : channel) * c.w_strides[1] +
             tap[0] * s.w_stride[0] + tap[1] * s.w_stride[1],
         s.w_stride[2], p, row);
  }
}
/// All weights; run(count, f) calls f(i) for i < count.
template <class Acc, class Run>
static void pack_all_weights(const ConvArgs& c, const ConvPlan<Acc>& plan, Acc* out, Run run) {
  const ElementFunctions<Acc> in = functions_for<Acc>(c.in);
  const i64 panels = (plan.s.oc + plan.panel - 1) / plan.panel;
  run(c.groups * panels,
      [&](i64 i) { pack_weights(c, plan, in, i / panels, i % panels * plan.panel, out); });
}

/// One element of the sum without the products of padding, in the order of the sum.
template <class Acc>
static Acc sum_inside(const ConvCall<Acc>& call, i64 image, i64 group, i64 o, const i64* at) {
  const ConvShape& s = call.s;
  const i64 base = image * call.c.x_strides[0] + group * s.ic * call.c.x_strides[1];
  Acc total = 0, partial = 0;
  for (i64 p = 0; p < s.k; ++p) {
    i64 tap[3], offset = base + p / s.kernel * call.c.x_strides[1];
    tap_of(s, p % s.kernel, tap);
    bool inside = true;
    for (int i = 0; i < 3; ++i) {
      const i64 index = input_index(s.d[i], call.c.transposed, at[i], tap[i]);
      inside = inside && index >= 0;
      offset += index * s.x_stride[i];
    }
    if (inside)
      partial = multiply_add(call.weights.at(group, o, p), call.read(call.c.x, offset), partial);
    if ((p + 1) % kBlockK == 0 || p + 1 == s.k) {
      total = p < kBlockK ? partial : kernel::add(total, partial);
      partial = 0;
    }
  }
  return total;
}

/// Adds `bias` to count elements, up to a register's width more; whether a result is NaN.
template <class Acc>
static bool add_bias(Acc* x, i64 count, Acc bias) {
  constexpr int lanes = Tile<Acc>::kLanes;
  using V = typename Tile<Acc>::Vector;
  const V add = kernel::like<V>(bias);
  const auto zeros = kernel::native<Acc, lanes>{};
  auto found = zeros != zeros;
  for (i64 j = 0; j < count; j += lanes) {
    const V v = kernel::add(kernel::load_lanes<Acc, lanes>(x + j), add);
    found |= v.v != v.v;
    kernel::to_array(v, x + j);
  }
  bool any = false;
  for (int i = 0; i < lanes; ++i) any = any || found[i] != 0;
  return any;
}

/// A finished block: output channels [row, row + rows) of a group, positions [col, col + cols).
template <class Acc>
struct ConvBlock {
  const ConvCall<Acc>& call;
  i64 image, group, row, rows, col, cols;
  Acc* sums;
  i64 ld;

  /// Adds the bias to row i. The kernels multiply the zeros of padding too, which is right unless
  /// the weight is infinite or NaN; then, and only then, the sum is NaN and is made again without
  /// them.
  void settle(i64 i) const {
    const i64 channel = group * call.s.oc + row + i;
    const Acc bias = call.bias ? call.bias[channel] : Acc(-0.0);  // which changes nothing
    if (!add_bias(sums + i * ld, cols, bias) || !call.plan.padded) return;
    for (i64 j = 0; j < cols; ++j) {
      Acc& x = sums[i * ld + j];
      if (x == x) continue;
      Run run;
      cut_runs(call.s, col + j, 1, &run);
      if (may_touch_padding(run.o)) {
        x = kernel::add(sum_inside(call, image, group, row + i, run.o), bias);
      }
    }
  }
  bool may_touch_padding(const i64* at) const {
    if (call.c.transposed) return true;
    for (int i = 0; i < 3; ++i) {
      const ConvDim& d = call.s.d[i];
      const i64 first = at[i] * d.stride - d.pad;
      if (first < 0 || first + (d.kernel - 1) * d.dilation >= d.input) return true;
    }
    return false;
  }

  void finish() const {
    const ConvArgs& c = call.c;
    const i64 channel = group * call.s.oc + row;
    for (i64 i = 0; (call.bias || call.plan.padded) && i < rows; ++i) settle(i);
    if (c.epilogue) {
      c.epilogue(c.epilogue_context, image, channel, rows, col, cols, sums, ld);
    }
    if (c.y) store(image * c.y_strides[0] + channel * c.y_strides[1]);
  }

  void store(i64 base) const {
    const ConvArgs& c = call.c;
    const ConvShape& s = call.s;
    const auto put = [&](i64 start, i64 count, i64 offset) {
      call.out.store(sums + start, ld, rows, count, advance(c.y, base + offset, c.out),
                     c.y_strides[1], s.y_stride[2]);
    };
    const i64 width = s.d[2].output, height = s.d[1].output;
    const bool even = (height == 1 || s.y_stride[1] == width * s.y_stride[2]) &&
                      (s.d[0].output == 1 || s.y_stride[0] == height * width * s.y_stride[2]);
    if (even) return put(0, cols, col * s.y_stride[2]);
    Run run;
    for (i64 done = 0; done < cols; done += run.count) {
      const i64 row_end = (col + done) / width * width + width;
      cut_runs(s, col + done, smaller(row_end - col - done, cols - done), &run);
      put(done, run.count,
          run.o[0] * s.y_stride[0] + run.o[1] * s.y_stride[1] + run.o[2] * s.y_stride[2]);
    }
  }
};

}  // namespace coil::templates::COIL_ISA
