// Pooling, resampling and windows.

#include <algorithm>
#include <cmath>

#include "graph/rule.h"

namespace coil {
namespace {

/// Item i of an int[n] argument; a list of one stands for all dims, an empty one for `otherwise`.
sym::Expr item(const Call& call, std::string_view name, std::size_t i, sym::Expr otherwise) {
  const Sizes& list = call.sizes(name);
  if (list.empty()) return otherwise;
  return list.size() == 1 ? list[0] : list.at(i);
}

Status check_window(const Call& call, std::size_t spatial) {
  const Type& self = call.self();
  if (self.ndim() != spatial + 1 && self.ndim() != spatial + 2)
    return call.fail("does not take {}", text(call.syms, self));
  for (std::string_view name : {"kernel_size", "stride", "padding", "dilation"}) {
    if (call.schema.arg_index(name) < 0) continue;
    const std::size_t count = call.sizes(name).size();
    const bool may_be_empty = name == "stride";
    if (count != 1 && count != spatial && !(may_be_empty && count == 0))
      return call.fail("{} has {} numbers for {} dims", name, count, spatial);
    const bool positive = name != "padding";
    for (sym::Expr e : call.sizes(name))
      if (known_less(call.graph, e, call.number(positive ? 1 : 0)))
        return call.fail("{} holds {}", name, call.syms.text(e));
  }
  return Ok{};
}

/// How many windows start within the padded dim; with ceil_mode also one that overhangs its end, if
/// it starts within the input or its left padding.
sym::Expr pooled_size(const Call& call, sym::Expr size, std::size_t i) {
  sym::Arena& syms = call.syms;
  const sym::Expr one = call.number(1);
  const sym::Expr kernel = item(call, "kernel_size", i, one);
  const sym::Expr stride = item(call, "stride", i, kernel);
  const sym::Expr pad = item(call, "padding", i, call.number(0));
  sym::Expr dilation = one;
  if (call.schema.arg_index("dilation") >= 0) dilation = item(call, "dilation", i, one);
  const sym::Expr reach = syms.add(syms.mul(dilation, syms.sub(kernel, one)), one);
  const sym::Expr room = syms.sub(syms.add(size, syms.mul(call.number(2), pad)), reach);
  if (!call.flag("ceil_mode")) return syms.add(syms.floordiv(room, stride), one);
  const sym::Expr count = syms.add(syms.ceildiv(room, stride), one);
  const sym::Expr start = syms.mul(syms.sub(count, one), stride);
  const sym::Expr end = syms.add(size, pad);
  if (known_less(call.graph, start, end)) return count;
  const sym::Expr fewer = syms.sub(count, one);
  if (known_less_equal(call.graph, end, start)) return fewer;
  return syms.select(syms.lt(start, end), count, fewer);
}

/// Whether eager computes the op on volumes in a contiguous copy, and its result is laid out as
/// that. A mean over whole volumes is not one of these.
bool drops_channels_last(const Call& call, const Sizes& sizes) {
  const std::string_view op = call.base();
  const auto is_one = [&](sym::Expr n) { return known_value(call.graph, n, 1); };
  if (op == "adaptive_avg_pool3d") return !std::ranges::all_of(sizes, is_one);
  return op == "avg_pool3d" || op == "_adaptive_avg_pool3d" || op == "adaptive_max_pool3d" ||
         op == "avg_pool3d_backward" || op == "_adaptive_avg_pool3d_backward";
}

/// Eager pools lines as images of one row, which may lie in channels_last; only max_pool1d has a
/// kernel of its own.
bool is_pooled_as_image(const Call& call, const Type& self) {
  return self.ndim() == 3 && call.base() != "max_pool1d" &&
         call.base().find("pool1d") != std::string_view::npos;
}

/// (N, C, L) as (N, C, 1, L).
Type as_image(const Call& call, Type line) {
  const sym::Expr step = call.syms.mul(line.shape[2], line.strides[2]);
  line.shape.insert(line.shape.begin() + 2, call.number(1));
  line.strides.insert(line.strides.begin() + 2, step);
  return line;
}

/// The self type with new spatial sizes, in channels_last if self is.
Type resized(const Call& call, const Type& self, const Sizes& sizes) {
  Sizes shape(self.shape.begin(), self.shape.end() - static_cast<i64>(sizes.size()));
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  Type out = call.contiguous(self.dtype, std::move(shape));
  const bool is_line = is_pooled_as_image(call, self);
  const Type from = is_line ? as_image(call, self) : self;
  if (!suggests_channels_last(call.graph, from) || drops_channels_last(call, sizes)) return out;
  out.strides = channels_last_strides(call.graph, is_line ? as_image(call, out) : out);
  if (is_line) out.strides.erase(out.strides.begin() + 2);
  return out;
}

enum class PoolResults : u8 { Values, ValuesAndIndices };

Types pool_results(Type out, PoolResults results) {
  if (results == PoolResults::Values) return {std::move(out)};
  Type indices = out;
  indices.dtype = DType::i64;
  return {std::move(out), std::move(indices)};
}

template <std::size_t spatial, PoolResults results>
Result<Types> pool(const Call& call) {
  COIL_TRY(check_window(call, spatial));
  const Type& self = call.self();
  Sizes sizes;
  for (std::size_t i = 0; i < spatial; ++i) {
    sizes.push_back(pooled_size(call, self.shape[self.ndim() - spatial + i], i));
    if (known_less(call.graph, sizes.back(), call.number(1)))
      return call.fail("windows are larger than {}", text(call.syms, self));
  }
  return pool_results(resized(call, self, sizes), results);
}

/// Eager takes the mean of a tensor of any dims, if there is one window over all of the last ones.
template <std::size_t spatial>
bool is_mean(const Call& call, const Sizes& sizes) {
  return (call.base() == "adaptive_avg_pool2d" || call.base() == "adaptive_avg_pool3d") &&
         call.self().ndim() >= spatial &&
         std::ranges::all_of(sizes, [&](sym::Expr n) { return known_value(call.graph, n, 1); });
}

template <std::size_t spatial, PoolResults results>
Result<Types> adaptive_pool(const Call& call) {
  const Type& self = call.self();
  Sizes sizes = call.sizes("output_size");
  if (sizes.size() == 1) sizes.resize(spatial, sizes[0]);
  if (sizes.size() != spatial) return call.fail("output_size has {} numbers", sizes.size());
  if (self.ndim() != spatial + 1 && self.ndim() != spatial + 2) {
    if (!is_mean<spatial>(call, sizes)) return call.fail("does not take {}", text(call.syms, self));
    Sizes shape(self.shape.begin(), self.shape.end() - static_cast<i64>(spatial));
    shape.insert(shape.end(), sizes.begin(), sizes.end());
    return Types{call.contiguous(self.dtype, std::move(shape))};
  }
  return pool_results(resized(call, self, sizes), results);
}

/// floor(size * scale). A dynamic size needs a scale that is a fraction with a small power of two.
Result<sym::Expr> scaled(const Call& call, sym::Expr size, double scale) {
  if (!(scale > 0 && scale < 1e6)) return call.fail("scale {} is out of range", scale);
  if (std::optional<i64> fixed = call.syms.as_const(size)) {
    const double value = std::floor(static_cast<double>(*fixed) * scale);
    if (!(value < 9e15)) return call.fail("the result would be too large");
    return call.number(static_cast<i64>(value));
  }
  i64 denominator = 1;
  while (std::floor(scale * static_cast<double>(denominator)) !=
             scale * static_cast<double>(denominator) &&
         denominator < 4096)
    denominator *= 2;
  const double numerator = scale * static_cast<double>(denominator);
  if (std::floor(numerator) != numerator)
    return call.fail("size {} cannot be scaled by {}: give output_size", call.syms.text(size),
                     scale);
  return call.syms.floordiv(call.syms.mul(size, call.number(static_cast<i64>(numerator))),
                            call.number(denominator));
}

template <std::size_t spatial>
Result<Types> upsample(const Call& call) {
  const Type& self = call.self();
  if (self.ndim() != spatial + 2) return call.fail("does not take {}", text(call.syms, self));
  Sizes sizes;
  if (call.has("output_size")) {
    sizes = call.sizes("output_size");
  } else if (call.schema.arg_index("scale_factors") >= 0 && call.has("scale_factors")) {
    const std::vector<double>& scales = std::get<std::vector<double>>(call.arg("scale_factors"));
    if (scales.size() != spatial) return call.fail("{} scale factors are given", scales.size());
    for (std::size_t i = 0; i < spatial; ++i)
      sizes.push_back(COIL_TRY(scaled(call, self.shape[2 + i], scales[i])));
  }
  if (sizes.size() != spatial) return call.fail("needs {} output sizes or scale factors", spatial);
  return Types{resized(call, self, sizes)};
}

template <std::size_t spatial>
Result<Types> grid_sampler(const Call& call) {
  const Type& input = call.tensor("input");
  const Type& grid = call.tensor("grid");
  const std::size_t dims = spatial == 0 ? input.ndim() - 2 : spatial;
  if (input.ndim() < 4 || input.ndim() != dims + 2 || grid.ndim() != dims + 2)
    return call.fail("does not take {} with a grid {}", text(call.syms, input),
                     text(call.syms, grid));
  const bool is_empty = known_empty(call.graph, input) && known_empty(call.graph, grid);
  for (const auto& [name, modes] :
       {std::pair("interpolation_mode", 3), std::pair("padding_mode", 3)}) {
    const std::optional<i64> mode = call.syms.as_const(call.integer(name));
    if (!is_empty && (!mode || *mode < 0 || *mode >= modes))
      return call.fail("{} is from 0 to {}", name, modes - 1);
  }
  if (grid.dtype != input.dtype)
    return call.fail("the grid is {}, the input {}", name(grid.dtype), name(input.dtype));
  Sizes shape = {input.shape[0], input.shape[1]};
  shape.insert(shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
  return Types{call.contiguous(input.dtype, std::move(shape))};
}

Result<Types> im2col(const Call& call) {
  const Type& self = call.self();
  if (self.ndim() != 3 && self.ndim() != 4)
    return call.fail("does not take {}", text(call.syms, self));
  for (std::string_view name : {"kernel_size", "dilation", "padding", "stride"})
    if (call.sizes(name).size() != 2) return call.fail("{} must hold 2 numbers", name);
  sym::Arena& syms = call.syms;
  const sym::Expr one = call.number(1);
  sym::Expr windows = one;
  sym::Expr channels = self.shape[self.ndim() - 3];
  for (std::size_t i = 0; i < 2; ++i) {
    const sym::Expr kernel = call.sizes("kernel_size")[i];
    const sym::Expr reach =
        syms.add(syms.mul(call.sizes("dilation")[i], syms.sub(kernel, one)), one);
    const sym::Expr pads = syms.mul(call.number(2), call.sizes("padding")[i]);
    const sym::Expr room = syms.sub(syms.add(self.shape[self.ndim() - 2 + i], pads), reach);
    const sym::Expr stride = call.sizes("stride")[i];
    if (known_less(call.graph, stride, one)) return call.fail("stride must be positive");
    windows = syms.mul(windows, syms.add(syms.floordiv(room, stride), one));
    channels = syms.mul(channels, kernel);
  }
  Sizes shape(self.shape.begin(), self.shape.end() - 3);
  shape.insert(shape.end(), {channels, windows});
  return Types{call.contiguous(self.dtype, std::move(shape))};
}

Result<Types> col2im(const Call& call) {
  const Type& self = call.self();
  if (self.ndim() != 2 && self.ndim() != 3)
    return call.fail("does not take {}", text(call.syms, self));
  if (call.sizes("kernel_size").size() != 2 || call.sizes("output_size").size() != 2)
    return call.fail("kernel_size and output_size must hold 2 numbers");
  Sizes shape(self.shape.begin(), self.shape.end() - 2);
  const sym::Expr window = call.syms.product(call.sizes("kernel_size"));
  if (known_less(call.graph, window, call.number(1))) return call.fail("the kernel is empty");
  shape.push_back(call.syms.floordiv(self.shape[self.ndim() - 2], window));
  for (sym::Expr size : call.sizes("output_size")) shape.push_back(size);
  return Types{call.contiguous(self.dtype, std::move(shape))};
}

/// The gradient of an input: laid out as `self`, in channels_last if that suggests it.
Result<Types> gradient_of_self(const Call& call) {
  const Type& self = call.tensor("self");
  Type out = resized(call, self, {});
  out.dtype = call.tensor("grad_output").dtype;
  return Types{std::move(out)};
}

Result<Types> upsample_backward(const Call& call) {
  const Type& gradient = call.tensor("grad_output");
  const Sizes& shape = call.sizes("input_size");
  if (shape.size() != gradient.ndim())
    return call.fail("input_size has {} numbers for {}", shape.size(), text(call.syms, gradient));
  return Types{resized(call, gradient, Sizes(shape.begin() + 2, shape.end()))};
}

/// The one whose result is contiguous whatever the gradient's layout is.
Result<Types> contiguous_upsample_backward(const Call& call) {
  const Types out = COIL_TRY(upsample_backward(call));
  return Types{call.contiguous(out[0].dtype, out[0].shape)};
}

Result<Types> grid_sampler_backward(const Call& call) {
  const Type& input = call.tensor("input");
  const Type& grid = call.tensor("grid");
  return Types{call.contiguous(input.dtype, input.shape), call.contiguous(grid.dtype, grid.shape)};
}

template <std::size_t spatial>
Result<Types> fractional_pool(const Call& call) {
  const Type& self = call.self();
  if (self.ndim() != spatial + 1 && self.ndim() != spatial + 2)
    return call.fail("does not take {}", text(call.syms, self));
  Sizes shape(self.shape.begin(), self.shape.end() - spatial);
  for (sym::Expr size : call.sizes("output_size")) shape.push_back(size);
  return pool_results(call.contiguous(self.dtype, std::move(shape)), PoolResults::ValuesAndIndices);
}

constexpr PoolResults kValues = PoolResults::Values;
constexpr PoolResults kIndices = PoolResults::ValuesAndIndices;
constexpr RuleRow kRules[] = {
    {"max_pool1d", pool<1, kValues>},
    {"max_pool2d", pool<2, kValues>},
    {"max_pool3d", pool<3, kValues>},
    {"max_pool1d_with_indices", pool<1, kIndices>},
    {"max_pool2d_with_indices", pool<2, kIndices>},
    {"max_pool3d_with_indices", pool<3, kIndices>},
    {"avg_pool1d", pool<1, kValues>},
    {"avg_pool2d", pool<2, kValues>},
    {"avg_pool3d", pool<3, kValues>},
    {"adaptive_avg_pool1d", adaptive_pool<1, kValues>},
    {"adaptive_avg_pool2d", adaptive_pool<2, kValues>},
    {"adaptive_avg_pool3d", adaptive_pool<3, kValues>},
    {"_adaptive_avg_pool2d", adaptive_pool<2, kValues>},
    {"_adaptive_avg_pool3d", adaptive_pool<3, kValues>},
    {"adaptive_max_pool1d", adaptive_pool<1, kIndices>},
    {"adaptive_max_pool2d", adaptive_pool<2, kIndices>},
    {"adaptive_max_pool3d", adaptive_pool<3, kIndices>},
    {"upsample_nearest1d", upsample<1>},
    {"upsample_nearest2d", upsample<2>},
    {"upsample_nearest3d", upsample<3>},
    {"upsample_nearest1d.vec", upsample<1>},
    {"upsample_nearest2d.vec", upsample<2>},
    {"upsample_nearest3d.vec", upsample<3>},
    {"_upsample_nearest_exact1d", upsample<1>},
    {"_upsample_nearest_exact2d", upsample<2>},
    {"_upsample_nearest_exact3d", upsample<3>},
    {"_upsample_nearest_exact1d.vec", upsample<1>},
    {"_upsample_nearest_exact2d.vec", upsample<2>},
    {"_upsample_nearest_exact3d.vec", upsample<3>},
    {"upsample_linear1d", upsample<1>},
    {"upsample_linear1d.vec", upsample<1>},
    {"upsample_bilinear2d", upsample<2>},
    {"upsample_bilinear2d.vec", upsample<2>},
    {"upsample_bicubic2d", upsample<2>},
    {"upsample_bicubic2d.vec", upsample<2>},
    {"upsample_trilinear3d", upsample<3>},
    {"upsample_trilinear3d.vec", upsample<3>},
    {"_upsample_bilinear2d_aa", upsample<2>},
    {"_upsample_bilinear2d_aa.vec", upsample<2>},
    {"_upsample_bicubic2d_aa", upsample<2>},
    {"_upsample_bicubic2d_aa.vec", upsample<2>},
    {"grid_sampler", grid_sampler<0>},
    {"grid_sampler_2d", grid_sampler<2>},
    {"grid_sampler_3d", grid_sampler<3>},
    {"avg_pool2d_backward", gradient_of_self},
    {"avg_pool3d_backward", gradient_of_self},
    {"_adaptive_avg_pool2d_backward", gradient_of_self},
    {"_adaptive_avg_pool3d_backward", gradient_of_self},
    {"upsample_nearest1d_backward", upsample_backward},
    {"upsample_nearest2d_backward", upsample_backward},
    {"upsample_nearest3d_backward", upsample_backward},
    {"_upsample_nearest_exact1d_backward", upsample_backward},
    {"_upsample_nearest_exact2d_backward", upsample_backward},
    {"_upsample_nearest_exact3d_backward", upsample_backward},
    {"upsample_linear1d_backward", upsample_backward},
    {"upsample_bilinear2d_backward", upsample_backward},
    {"upsample_trilinear3d_backward", upsample_backward},
    {"upsample_bicubic2d_backward", upsample_backward},
    {"_upsample_bilinear2d_aa_backward", upsample_backward},
    {"_upsample_bicubic2d_aa_backward", contiguous_upsample_backward},
    {"grid_sampler_2d_backward", grid_sampler_backward},
    {"grid_sampler_3d_backward", grid_sampler_backward},
    {"fractional_max_pool2d", fractional_pool<2>},
    {"fractional_max_pool3d", fractional_pool<3>},
    {"im2col", im2col},
    {"col2im", col2im},
};

}  // namespace

std::span<const RuleRow> pool_rules() { return kRules; }

}  // namespace coil
