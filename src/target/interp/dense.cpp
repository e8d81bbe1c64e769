#include "target/interp/dense.h"

#include <algorithm>

#include "target/interp/index_code.h"

namespace coil::interp {

std::vector<i64> access_shape(Frame& frame, const Access& access) {
  std::vector<i64> shape;
  for (sym::Expr extent : access.extents) shape.push_back(frame.env().at(extent));
  return shape;
}

Result<i64> checked_numel(std::span<const i64> shape) {
  const std::vector<i64> strides = runtime::contiguous_strides(shape);
  const i64 count = COIL_TRY(runtime::span_elements(shape, strides));
  // The bound of allocate_bytes, for elements of 8 bytes.
  constexpr i64 kMostElements = i64{1} << 44;
  if (count > kMostElements) return error("{} elements are too many", count);
  return count;
}

Status gather(Frame& frame, const Access& access, DType to, std::byte* out) {
  const MemoryRef memory = COIL_TRY(frame.read(access.buffer));
  const std::vector<i64> shape = access_shape(frame, access);
  const i64 total = COIL_TRY(checked_numel(shape));
  std::vector<std::vector<i64>> columns(shape.size(), std::vector<i64>(kChunk));
  std::vector<const i64*> column_data;
  std::vector<Bounds> bounds;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    column_data.push_back(columns[d].data());
    bounds.push_back({0, shape[d] - 1});
  }
  std::vector<IndexCode> index;
  for (sym::Expr e : access.index) index.emplace_back(e, access.vars, frame.env());
  // A dense view of the logical shape gives the values of the dims.
  std::vector<i64> address(kChunk);
  std::vector<i64> value(kChunk);
  std::vector<i64> position(shape.size());
  Bytes elements(kChunk * 8);
  for (i64 start = 0; start < total; start += kChunk) {
    const i64 n = std::min(kChunk, total - start);
    for (i64 i = 0; i < n; ++i) {
      for (std::size_t d = 0; d < shape.size(); ++d) columns[d][i] = position[d];
      for (std::size_t d = shape.size(); d-- > 0;) {
        if (++position[d] < shape[d]) break;
        position[d] = 0;
      }
    }
    std::fill_n(address.data(), n, memory->offset);
    for (std::size_t k = 0; k < index.size(); ++k) {
      index[k].evaluate(n, column_data, value.data());
      const i64 extent = memory->shape[k];
      if (!index[k].is_within(extent, bounds))
        for (i64 i = 0; i < n; ++i)
          COIL_CHECK(value[i] >= 0 && value[i] < extent, "index {} of %{} is {}, outside 0..{}", k,
                     frame.program().buffers[access.buffer].name, value[i], extent - 1);
      for (const LayoutPart& part : memory->parts) {
        if (part.dim != k) continue;
        for (i64 i = 0; i < n; ++i) {
          const i64 x = value[i] / part.factor;
          address[i] += (part.modulus != 0 ? x % part.modulus : x) * part.stride;
        }
      }
    }
    load_elements(*memory, n, address.data(), elements.data());
    convert(memory->dtype, to, n, elements.data(), out + start * size_of(to));
  }
  return Ok{};
}

Status scatter(Frame& frame, const Access& access, DType from, const std::byte* in) {
  const MemoryRef memory = COIL_TRY(frame.define(access.buffer));
  const i64 total = memory->numel();
  std::vector<i64> address(kChunk);
  Bytes elements(kChunk * 8);
  for (i64 start = 0; start < total; start += kChunk) {
    const i64 n = std::min(kChunk, total - start);
    convert(from, memory->dtype, n, in + start * size_of(from), elements.data());
    memory->addresses(start, n, address.data());
    store_elements(*memory, n, address.data(), elements.data());
  }
  return Ok{};
}

namespace {

/// Runs `f` with the type that computes on operands of this dtype: f32 for narrow floats.
template <class F>
Status with_compute_type(DType held, F f) {
  if (!is_float(held)) return f(u64{});
  return held == DType::f64 ? f(double{}) : f(float{});
}

Status run_attrs(Frame& frame, const Structured& node) {
  const DType held = frame.held(frame.program().buffers[node.inputs[0].buffer].dtype);
  if (const auto* sort = std::get_if<Sort>(&node.attrs)) return run_sort(frame, node, *sort);
  if (const auto* factor = std::get_if<Factor>(&node.attrs))
    return run_factor(frame, node, *factor);
  if (const auto* fft = std::get_if<Fft>(&node.attrs)) return run_fft(frame, node, *fft);
  return with_compute_type(held, [&]<class T>(T) -> Status {
    if (const auto* conv = std::get_if<Conv>(&node.attrs)) return run_conv<T>(frame, node, *conv);
    if constexpr (std::is_floating_point_v<T>)
      if (const auto* a = std::get_if<Attention>(&node.attrs))
        return run_attention<T>(frame, node, *a);
    return run_gemm<T>(frame, node);
  });
}

}  // namespace

Status run_structured(Frame& frame, const Structured& node) {
  const Status status = run_attrs(frame, node);
  if (status.ok()) return status;
  return in_context("node " + node.name + place_text(frame.program(), node.locs), status.error());
}

}  // namespace coil::interp
