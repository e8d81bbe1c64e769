// Fourier transforms. Layouts are those of ATen's kernels on x86 processors, which bring the dims
// that are transformed innermost.

#include <algorithm>
#include <numeric>

#include "graph/rule.h"

namespace coil {
namespace {

using Order = std::vector<std::size_t>;

/// Sorts the dims from `first` to `last` of `order` by falling stride.
void sort_by_stride(const Call& call, const Sizes& strides, Order::iterator first,
                    Order::iterator last) {
  for (auto i = first; i != last; ++i)
    for (auto j = i; j != first; --j) {
      if (compare_strides(call.graph, strides[*(j - 1)], strides[*j]) >= 0) break;
      std::swap(*(j - 1), *j);
    }
}

Order sorted(const Call& call, const Sizes& strides, Order dims) {
  sort_by_stride(call, strides, dims.begin(), dims.end());
  return dims;
}

/// Dense strides with the batch dims outermost, by falling stride of the input, then `dims`.
Sizes transformed_strides(const Call& call, const Sizes& strides, const Sizes& shape,
                          const Order& dims) {
  Order order(shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto batch_end = std::partition(order.begin(), order.end(), [&](std::size_t d) {
    return std::ranges::find(dims, d) == dims.end();
  });
  sort_by_stride(call, strides, order.begin(), batch_end);
  std::copy(dims.begin(), dims.end(), batch_end);
  Sizes permuted;
  for (std::size_t d : order) permuted.push_back(shape[d]);
  const Sizes dense = contiguous_strides(call.syms, permuted);
  Sizes out(shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) out[order[i]] = dense[i];
  return out;
}

/// What all three ops ask of their arguments; gives the dims.
Result<Order> checked_dims(const Call& call, bool wants_complex) {
  const Type& self = call.self();
  const DType real = is_complex(self.dtype) ? real_of(self.dtype) : self.dtype;
  if (is_complex(self.dtype) != wants_complex || (real != DType::f32 && real != DType::f64))
    return call.fail("takes no {}", name(self.dtype));
  COIL_TRY(call.constant("normalization"));
  Order dims;
  for (i64 d : COIL_TRY(call.dims("dim", self.ndim()))) dims.push_back(static_cast<std::size_t>(d));
  return dims;
}

Result<Types> fft_c2c(const Call& call) {
  const Order dims = COIL_TRY(checked_dims(call, true));
  const Type& self = call.self();
  if (dims.empty())
    return Types{call.strided(self.dtype, self.shape,
                              pointwise_strides(call.graph, std::span(&self, 1), self.shape))};
  return Types{call.strided(
      self.dtype, self.shape,
      transformed_strides(call, self.strides, self.shape, sorted(call, self.strides, dims)))};
}

Result<Types> fft_r2c(const Call& call) {
  Order dims = COIL_TRY(checked_dims(call, false));
  if (dims.empty()) return call.fail("needs a dim");
  const Type& self = call.self();
  Sizes shape = self.shape;
  sym::Expr& last = shape[dims.back()];
  if (known_value(call.graph, last, 0)) return call.fail("a transform of no elements");
  if (call.flag("onesided"))
    last = call.syms.add(call.syms.floordiv(last, call.number(2)), call.number(1));
  sort_by_stride(call, self.strides, dims.begin(), dims.end() - 1);
  Sizes strides = transformed_strides(call, self.strides, shape, dims);
  return Types{call.strided(complex_of(self.dtype), std::move(shape), std::move(strides))};
}

Result<Types> fft_c2r(const Call& call) {
  const Order dims = COIL_TRY(checked_dims(call, true));
  if (dims.empty()) return call.fail("needs a dim");
  const Type& self = call.self();
  const std::size_t last = dims.back();
  const sym::Expr size = call.integer("last_dim_size");
  const sym::Expr half = call.syms.add(call.syms.floordiv(size, call.number(2)), call.number(1));
  if (known_less(call.graph, size, call.number(0)) ||
      known_less(call.graph, self.shape[last], half))
    return call.fail("last_dim_size is {} for {}", call.syms.text(size), text(call.syms, self));
  Sizes strides = self.strides;
  const Order others(dims.begin(), dims.end() - 1);
  if (!others.empty())
    strides = transformed_strides(call, strides, self.shape, sorted(call, strides, others));
  Sizes shape = self.shape;
  shape[last] = size;
  strides = transformed_strides(call, strides, shape, {last});
  return Types{call.strided(real_of(self.dtype), std::move(shape), std::move(strides))};
}

constexpr RuleRow kRules[] = {
    {"_fft_c2c", fft_c2c},
    {"_fft_r2c", fft_r2c},
    {"_fft_c2r", fft_c2r},
};

}  // namespace

std::span<const RuleRow> fft_rules() { return kRules; }

}  // namespace coil
