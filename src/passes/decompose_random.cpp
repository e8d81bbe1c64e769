// Random numbers: each op is a formula over 64-bit draws, of which every element has its own, given
// by the seed, the op's number and the element's position alone (random_bits of ops/).

#include <cmath>
#include <limits>

#include "graph/rules.h"
#include "passes/composite.h"

namespace coil {
namespace {

/// Where the elements of a result lie.
struct Place {
  Exprs shape, strides;
};

Place contiguous_place(Composite& c, const Exprs& shape) {
  return {shape, contiguous_strides(c.syms, shape)};
}

Place place_like(Composite& c, ValueId v, MemoryFormat format) {
  const Type type = c.type(v);
  Graph& graph = c.builder.graph();
  return {type.shape, format == MemoryFormat::Preserve
                          ? pointwise_strides(graph, std::span(&type, 1), type.shape)
                          : strides_for(graph, type, format)};
}
Place place_like(Composite& c, ValueId v) { return place_like(c, v, MemoryFormat::Preserve); }

/// Draw number `which` (below kStreamsPerOp) of each element.
ValueId bits(Composite& c, const Place& place, int which) {
  if (!c.has(ops::kRandomKey)) c.fail("{} draws random numbers, but has no random_key", c.op());
  const sym::Expr first = c.syms.mul(c.n(ops::kStreamsPerOp), c.integer(ops::kRandomOp));
  return c.call("random_bits", {c.tensor(ops::kRandomKey), c.syms.add(first, c.n(which)),
                                place.shape, place.strides});
}

/// `count` bits of each draw from bit `from` on, as integers from 0.
ValueId field(Composite& c, ValueId draws, int from, int count) {
  if (from > 0) draws = c.call("bitwise_right_shift.Tensor_Scalar", {draws, c.n(from)});
  const i64 mask = std::numeric_limits<i64>::max() >> (63 - count);
  const ValueId whole = c.call("bitwise_and.Scalar", {draws, c.n(mask)});
  return count < 32 ? c.to(whole, DType::i32) : whole;
}

/// Bits of a float's significand: so many bits of a draw make a fraction without rounding.
int digits(DType dtype) {
  if (dtype == DType::f64) return std::numeric_limits<double>::digits;
  if (dtype == DType::f16) return 11;
  if (dtype == DType::bf16) return 8;
  return std::numeric_limits<float>::digits;
}

DType working_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

ValueId as_fraction(Composite& c, ValueId whole, DType dtype) {
  return c.mul(c.to(whole, dtype), std::ldexp(1.0, -digits(dtype)));
}

/// In [0, 1), each multiple of 2^-digits as likely as any other.
ValueId fraction(Composite& c, const Place& place, DType dtype) {
  const int count = digits(dtype);
  return as_fraction(c, field(c, bits(c, place, 0), 64 - count, count), dtype);
}

/// The same in (0, 1], for logarithms.
ValueId positive_fraction(Composite& c, ValueId draws, DType dtype) {
  const int count = digits(dtype);
  return as_fraction(c, c.add(field(c, draws, 64 - count, count), c.n(1)), dtype);
}

/// Mean 0, deviation 1, in f32 or f64 (G. Box, M. Muller: A Note on the Generation of Random Normal
/// Deviates, 1958).
ValueId normal(Composite& c, const Place& place, DType dtype) {
  const ValueId draws = bits(c, place, 0);
  const int count = digits(dtype);
  // One draw has room for both numbers of f32.
  const ValueId second = dtype == DType::f64 ? field(c, bits(c, place, 1), 64 - count, count)
                                             : field(c, draws, 0, count);
  const ValueId length =
      c.call("sqrt", {c.mul(c.call("log", {positive_fraction(c, draws, dtype)}), -2.0)});
  const ValueId angle = c.mul(as_fraction(c, second, dtype), 2 * M_PI);
  return c.mul(length, c.call("cos", {angle}));
}

ValueId exponential(Composite& c, const Place& place, DType dtype) {
  const ValueId draws = bits(c, place, 0);
  const ValueId value = c.call("neg", {c.call("log", {positive_fraction(c, draws, dtype)})});
  // Never 0: callers divide by it.
  return c.call("clamp_min", {value, std::ldexp(1.0, -digits(dtype) - 1)});
}

/// low..high-1 in i64. For up to 2^31 numbers the high word of a product; else a remainder, which
/// prefers small numbers by less than one part in 2^63 / (high - low).
ValueId integers(Composite& c, const Place& place, sym::Expr low, sym::Expr high) {
  const std::optional<i64> first = c.syms.as_const(low), last = c.syms.as_const(high);
  if (i64 difference; first && last && __builtin_sub_overflow(*last, *first, &difference))
    c.fail("from {} to below {} there are more than 2^63 integers", *first, *last);
  const sym::Expr count = c.syms.sub(high, low);
  const std::optional<i64> fixed = c.syms.as_const(count);
  if (fixed && *fixed <= 0)
    c.fail("there is no integer from {} to below {}", c.syms.text(low), c.syms.text(high));
  const ValueId draws = bits(c, place, 0);
  ValueId value;
  constexpr i64 kSmall = i64{1} << 31;
  if (fixed && *fixed <= kSmall) {
    const ValueId word = c.to(field(c, draws, 32, 32), DType::i64);
    value = c.call("bitwise_right_shift.Tensor_Scalar", {c.mul(word, count), c.n(32)});
  } else {
    value = c.call("remainder.Scalar", {field(c, draws, 1, 63), count});
  }
  return c.syms.is_const(low, 0) ? value : c.add(value, low);
}

// ---- tensors from nothing ----

Place place_of_new(Composite& c) {
  if (c.base().ends_with("_like")) {
    const Arg& format = c.arg("memory_format");
    const MemoryFormat* wanted = std::get_if<MemoryFormat>(&format);
    return place_like(c, c.self(), wanted != nullptr ? *wanted : MemoryFormat::Preserve);
  }
  return contiguous_place(c, c.integers("size"));
}

DType float_dtype_of_new(Composite& c) {
  const bool is_like = c.base().ends_with("_like");
  const DType dtype = c.dtype_or("dtype", is_like ? c.dtype(c.self()) : DType::f32);
  if (!is_float(dtype)) c.fail("{} makes floats, not {}", c.op(), name(dtype));
  return dtype;
}

Values rand(Composite& c) {
  const DType dtype = float_dtype_of_new(c);
  return {fraction(c, place_of_new(c), dtype)};
}

Values randn(Composite& c) {
  const DType dtype = float_dtype_of_new(c);
  return {c.to(normal(c, place_of_new(c), working_dtype(dtype)), dtype)};
}

Values randint(Composite& c) {
  const bool has_low = c.op().find("low") != std::string::npos;
  const bool is_like = c.base().ends_with("_like");
  const DType dtype = c.dtype_or("dtype", is_like ? c.dtype(c.self()) : DType::i64);
  const sym::Expr low = has_low ? c.integer("low") : c.n(0);
  return {c.to(integers(c, place_of_new(c), low, c.integer("high")), dtype)};
}

/// The order of random numbers. Two of 64 bits are as good as never equal.
Values randperm(Composite& c) {
  const ValueId keys = bits(c, contiguous_place(c, {c.integer("n")}), 0);
  const Values sorted = c.call_all("sort.stable", {keys, true, c.n(0), false});
  return {c.to(sorted.at(1), c.dtype_or("dtype", DType::i64))};
}

// ---- tensors in place of others ----

/// In the tensor's own dtype, so that no rounding reaches `to`.
Values uniform(Composite& c) {
  const DType dtype = c.dtype(c.self());
  const double from = c.real("from"), to = c.real("to");
  if (!(from <= to)) c.fail("uniform from {} to {}", from, to);
  ValueId value = fraction(c, place_like(c, c.self()), dtype);
  if (to - from != 1) value = c.mul(value, to - from);
  return {from != 0 ? c.add(value, from) : value};
}

ValueId normal_of(Composite& c, const Place& place, DType dtype) {
  const ValueId value = normal(c, place, working_dtype(dtype));
  return c.add(c.mul(value, c.real("std")), c.real("mean"));
}

Values normal_like(Composite& c) {
  const DType dtype = c.dtype(c.self());
  return {c.to(normal_of(c, place_like(c, c.self()), dtype), dtype)};
}

Values log_normal(Composite& c) {
  const DType dtype = c.dtype(c.self());
  return {c.to(c.call("exp", {normal_of(c, place_like(c, c.self()), dtype)}), dtype)};
}

Values normal_of_size(Composite& c) {
  const DType dtype = c.dtype_or("dtype", DType::f32);
  return {c.to(normal_of(c, contiguous_place(c, c.integers("size")), dtype), dtype)};
}

/// The mean, the deviation or both are tensors; the first one's dtype is the result's.
Values normal_of_tensors(Composite& c) {
  const bool has_mean = std::holds_alternative<ValueId>(c.arg("mean"));
  const DType dtype = c.dtype(has_mean ? c.tensor("mean") : c.tensor("std"));
  const DType work = working_dtype(dtype);
  Values tensors;
  for (std::string_view name : {"mean", "std"})
    if (std::holds_alternative<ValueId>(c.arg(name))) tensors.push_back(c.tensor(name));
  const Exprs shape = c.shape(c.broadcast_all(tensors).at(0));
  const auto parameter = [&](std::string_view name) -> Arg {
    if (!std::holds_alternative<ValueId>(c.arg(name))) return c.arg(name);
    return c.contiguous(c.expand(c.to(c.tensor(name), work), shape));
  };
  const ValueId value = normal(c, contiguous_place(c, shape), work);
  return {c.to(c.add(c.mul(value, parameter("std")), parameter("mean")), dtype)};
}

Values exponential_like(Composite& c) {
  const DType dtype = c.dtype(c.self());
  const double rate = c.real("lambd");
  if (!(rate > 0)) c.fail("lambd is {}, but must be positive", rate);
  const ValueId value = exponential(c, place_like(c, c.self()), working_dtype(dtype));
  return {c.to(c.div(value, rate), dtype)};
}

/// How many trials until the first success: the integer part of an exponential number, from 1.
Values geometric(Composite& c) {
  const DType dtype = c.dtype(c.self());
  const double p = c.real("p");
  if (!(p > 0 && p < 1)) c.fail("p is {}, but must lie between 0 and 1", p);
  const ValueId value = exponential(c, place_like(c, c.self()), working_dtype(dtype));
  return {c.to(c.call("ceil", {c.div(value, -std::log1p(-p))}), dtype)};
}

Values cauchy(Composite& c) {
  const DType dtype = c.dtype(c.self());
  const ValueId middle =
      c.sub(positive_fraction(c, bits(c, place_like(c, c.self()), 0), working_dtype(dtype)), 0.5);
  const ValueId value = c.call("tan", {c.mul(middle, M_PI)});
  return {c.to(c.add(c.mul(value, c.real("sigma")), c.real("median")), dtype)};
}

/// The largest of the integers from 0 that `random_` gives: all of an integer dtype's, and of a
/// float's those below which there is no gap.
i64 largest_of(DType dtype) {
  if (is_bool(dtype)) return 1;
  if (is_float(dtype)) return i64{1} << digits(dtype);
  const int width = 8 * size_of(dtype);
  if (width == 64) return std::numeric_limits<i64>::max();
  return (i64{1} << (is_unsigned(dtype) ? width : width - 1)) - 1;
}

Values random(Composite& c) {
  const DType dtype = c.dtype(c.self());
  const Place place = place_like(c, c.self());
  sym::Expr low = c.n(0), high;
  if (c.op() == "random.from") low = c.integer("from");
  if (c.op() != "random" && c.has("to")) high = c.integer("to");
  if (!high.valid()) {
    const i64 largest = largest_of(dtype);
    if (largest == std::numeric_limits<i64>::max()) {  // one more is no i64
      if (!c.syms.is_const(low, 0)) c.fail("random_ of {} needs `to`", name(dtype));
      return {c.to(field(c, bits(c, place, 0), 1, 63), dtype)};
    }
    high = c.n(largest + 1);
  }
  return {c.to(integers(c, place, low, high), dtype)};
}

// ---- choices ----

/// Whether each of independent trials succeeds, as bool.
ValueId succeeds(Composite& c, const Place& place, double p) {
  return c.call("lt.Scalar", {fraction(c, place, DType::f32), p});
}

Values bernoulli(Composite& c) {
  const ValueId self = c.self();
  const DType dtype = c.dtype(self);
  if (c.op() == "bernoulli.p")
    return {c.to(succeeds(c, contiguous_place(c, c.shape(self)), c.real("p")), dtype)};
  const bool is_own = c.op() == "bernoulli";  // the probabilities are the tensor's own elements
  const ValueId given = is_own ? self : c.tensor("p");
  const Place place = is_own ? contiguous_place(c, c.shape(self)) : place_like(c, self);
  const DType work = working_dtype(c.dtype(given));
  const ValueId p = c.expand(c.to(given, work), c.shape(self));
  return {c.to(c.call("lt.Tensor", {fraction(c, place, work), p}), dtype)};
}

/// Elements of weight 0 never come up. Without replacement: the largest of p / exponential numbers
/// (P. Efraimidis, P. Spirakis: Weighted Random Sampling with a Reservoir, 2006).
Values multinomial(Composite& c) {
  const DType work = working_dtype(c.dtype(c.self()));
  const ValueId weights = c.contiguous(c.to(c.self(), work));
  const i64 last = c.ndim(weights) - 1;
  if (last < 0 || last > 1) c.fail("the weights have {} dims", last + 1);
  if (!c.flag("replacement")) {
    const ValueId rank = c.div(weights, exponential(c, place_like(c, weights), work));
    return {c.call_all("topk", {rank, c.integer("num_samples"), c.n(-1), true, true}).at(1)};
  }
  const ValueId sums = c.call("cumsum", {weights, c.n(last)});
  const ValueId total =
      c.slice(sums, last, c.syms.sub(c.size(sums, last), c.n(1)), c.size(sums, last));
  Exprs shape = c.shape(weights);
  shape.back() = c.integer("num_samples");
  const ValueId at = fraction(c, contiguous_place(c, shape), work);
  const ValueId behind =
      c.call("gt.Tensor", {c.unsqueeze(c.div(sums, total), -2), c.unsqueeze(at, -1)});
  return {c.sum(c.call("logical_not", {behind}), {last + 1}, KeepDim::No)};
}

// ---- dropout ----

/// Which elements are kept, and what the kept ones are multiplied by.
struct Kept {
  ValueId mask;
  double scale = 1;
};

Kept kept(Composite& c, const Place& place) {
  const double p = c.real("p");
  if (!(p >= 0 && p <= 1)) c.fail("p is {}, but must lie between 0 and 1", p);
  return {succeeds(c, place, 1 - p), p == 1 ? 0.0 : 1 / (1 - p)};
}

bool trains(Composite& c) { return (!c.has("train") || c.flag("train")) && c.real("p") != 0; }

Values native_dropout(Composite& c) {
  const ValueId input = c.tensor("input");
  if (!trains(c)) return {c.call("clone", {input}), c.call("full_like", {input, true, DType::b8})};
  const Kept k = kept(c, place_like(c, input));
  return {c.mul(c.mul(input, k.mask), k.scale), k.mask};
}

Values dropout(Composite& c) {
  const ValueId input = c.self();
  if (!trains(c)) return {input};
  const Kept k = kept(c, place_like(c, input));
  return {c.mul(c.mul(input, k.mask), k.scale)};
}

/// One choice for a whole channel.
Place place_of_channels(Composite& c, ValueId input) {
  if (c.ndim(input) < 2) c.fail("the input must have at least 2 dims");
  Exprs shape(static_cast<std::size_t>(c.ndim(input)), c.n(1));
  shape[0] = c.size(input, 0);
  shape[1] = c.size(input, 1);
  return contiguous_place(c, shape);
}

Values feature_dropout(Composite& c) {
  const ValueId input = c.self();
  if (!trains(c)) return {input};
  const Kept k = kept(c, place_of_channels(c, input));
  return {c.mul(c.mul(input, k.mask), k.scale)};
}

/// Dropped elements become the value that SELU tends to, and mean and deviation are restored
/// (G. Klambauer and others: Self-Normalizing Neural Networks, 2017).
Values alpha_dropout(Composite& c) {
  constexpr double kAlpha = 1.7580993408473766;
  const ValueId input = c.self();
  if (!trains(c)) return {input};
  const double p = c.real("p");
  const bool of_channels = c.base() == "feature_alpha_dropout";
  const Kept k = kept(c, of_channels ? place_of_channels(c, input) : place_like(c, input));
  if (p == 1) return {c.mul(input, k.mask)};
  const double scale = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  const ValueId mask = c.to(k.mask, c.dtype(input));
  const ValueId shift = c.add(c.mul(c.sub(mask, 1.0), kAlpha * scale), kAlpha * scale * p);
  return {c.add(c.mul(input, c.mul(mask, scale)), shift)};
}

/// The result, and by what each element was multiplied.
Values random_relu(Composite& c) {
  const ValueId self = c.self();
  const DType dtype = c.dtype(self);
  const double lower = c.real("lower"), upper = c.real("upper");
  ValueId slope = fraction(c, place_like(c, self), working_dtype(dtype));
  slope = c.to(c.add(c.mul(slope, upper - lower), lower), dtype);
  const ValueId is_positive = c.call("gt.Scalar", {self, c.n(0)});
  const ValueId noise = c.call("where.ScalarSelf", {is_positive, 1.0, slope});
  return {c.mul(self, noise), noise};
}

ValueId mean_relu(Composite& c) {
  return c.call("leaky_relu", {c.self(), (c.real("lower") + c.real("upper")) / 2});
}

Values rrelu(Composite& c) { return {c.flag("training") ? random_relu(c).at(0) : mean_relu(c)}; }

Values rrelu_with_noise(Composite& c) {
  if (c.flag("training")) return random_relu(c);
  return {mean_relu(c), c.call("clone", {c.tensor("noise")})};
}

Values rrelu_backward(Composite& c) {
  if (c.flag("training")) return {c.mul(c.tensor("noise"), c.tensor("grad_output"))};
  const double slope = (c.real("lower") + c.real("upper")) / 2;
  return {c.call("leaky_relu_backward",
                 {c.tensor("grad_output"), c.tensor("self"), slope, c.flag("self_is_result")})};
}

/// softmax(q k^T * scale + mask), dropped, times v.
Values attention_with_dropout(Composite& c) {
  const ValueId query = c.tensor("query");
  ValueId key = c.tensor("key"), value = c.tensor("value");
  if (c.flag("enable_gqa")) {
    const auto spread = [&](ValueId v) {
      Exprs shape = c.shape(v);
      const sym::Expr times = c.syms.floordiv(c.size(query, -3), c.size(v, -3));
      const std::size_t head = shape.size() < 3 ? 0 : shape.size() - 3;
      Exprs split = shape;
      split.insert(split.begin() + static_cast<std::ptrdiff_t>(head) + 1, times);
      shape[head] = c.size(query, -3);
      return c.reshape(c.expand(c.unsqueeze(v, -3), split), shape);
    };
    key = spread(key);
    value = spread(value);
  }
  const std::optional<i64> width = c.syms.as_const(c.size(query, -1));
  if (!c.has("scale") && !width) c.fail("the head size must be fixed");
  const double scale =
      c.has("scale") ? c.real("scale") : 1 / std::sqrt(static_cast<double>(*width));
  ValueId scores = c.mul(matmul(c, query, c.transpose(key, -1, -2)), scale);
  const auto masked = [&](ValueId keep) {
    const ValueId gone = c.call("logical_not", {keep});
    scores = c.call("masked_fill.Scalar", {scores, gone, -INFINITY});
  };
  if (c.flag("is_causal"))
    masked(c.call("tril", {c.filled({c.size(query, -2), c.size(key, -2)}, 1, DType::b8)}));
  if (c.has("attn_mask")) {
    const ValueId mask = c.tensor("attn_mask");
    if (is_bool(c.dtype(mask)))
      masked(mask);
    else
      scores = c.add(scores, mask);
  }
  const ValueId weights = softmax(c, "_softmax", scores, -1, c.dtype(query));
  const double p = c.real("dropout_p");
  const ValueId mask = succeeds(c, place_like(c, weights), 1 - p);
  const ValueId dropped = c.mul(c.mul(weights, mask), p == 1 ? 0.0 : 1 / (1 - p));
  return {matmul(c, dropped, value)};
}

constexpr DecompositionRow kRows[] = {
    {"rand", rand},
    {"rand_like", rand},
    {"randn", randn},
    {"randn_like", randn},
    {"randint", randint},
    {"randint.low", randint},
    {"randint_like", randint},
    {"randint_like.low_dtype", randint},
    {"randperm", randperm},
    {"uniform", uniform},
    {"normal_functional", normal_like},
    {"normal.float_float", normal_of_size},
    {"normal.Tensor_Tensor", normal_of_tensors},
    {"normal.Tensor_float", normal_of_tensors},
    {"normal.float_Tensor", normal_of_tensors},
    {"log_normal", log_normal},
    {"exponential", exponential_like},
    {"geometric", geometric},
    {"cauchy", cauchy},
    {"random", random},
    {"random.from", random},
    {"random.to", random},
    {"bernoulli", bernoulli},
    {"bernoulli.p", bernoulli},
    {"bernoulli.Tensor", bernoulli},
    {"multinomial", multinomial},
    {"native_dropout", native_dropout},
    {"dropout", dropout},
    {"feature_dropout", feature_dropout},
    {"alpha_dropout", alpha_dropout},
    {"feature_alpha_dropout", alpha_dropout},
    {"rrelu", rrelu},
    {"rrelu_with_noise_functional", rrelu_with_noise},
    {"rrelu_with_noise_backward", rrelu_backward},
    {"scaled_dot_product_attention", attention_with_dropout},
};

}  // namespace

bool drops_attention(const Node& node) {
  if (node.op != "scaled_dot_product_attention") return false;
  const std::optional<ops::Schema> schema = ops::find_schema(node.op);
  const Arg& p = node.args.at(static_cast<std::size_t>(schema->arg_index("dropout_p")));
  const double* number = std::get_if<double>(&p);
  return number == nullptr || *number != 0;
}

std::span<const DecompositionRow> random_decompositions() { return kRows; }

}  // namespace coil
