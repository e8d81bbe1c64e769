// Buffers, and what stands inside a body: loads through random views, arithmetic, stores.

#include "random_generator.h"

namespace coil::random_program {

// ---- buffers ----

std::string Generator::declare(const std::string& dtype, const Shape& shape,
                               const std::string& rest) {
  Buffer b;
  b.name = fresh(rest.starts_with("input") ? "x" : "b");
  b.dtype = dtype;
  b.shape = shape;
  b.is_temp = !rest.starts_with("input") && !rest.starts_with("const");
  std::vector<std::string> extents;
  for (const Size& s : shape) extents.push_back(s.text);
  std::string strides;
  if (shape.size() == 2 && is_static(shape) && points(shape) > 0 && rest.empty() && chance(10)) {
    const i64 padded = shape[0].value + below(3);
    strides = chance(50) ? str(" strides [1, {}]", padded)
                         : str(" strides [{}, 1]", shape[1].value + below(3));
  }
  b.strides = strides;
  for (Buffer& base : buffers_)  // a buffer that starts as another has its layout
    if (rest == "starts %" + base.name) base.strides.clear();
  text_ += str("  buffer %{}: {}{}{}{}\n", b.name, dtype, list(extents),
               b.is_temp ? " @" + b.name + "@" : " ", rest);
  buffers_.push_back(b);
  return b.name;
}

/// Mostly one of the last few; in a body, of those from before it.
std::size_t Generator::pick() {
  const i64 n = static_cast<i64>(std::min(visible_, buffers_.size()));
  return static_cast<std::size_t>(chance(70) ? n - 1 - below(std::min<i64>(n, 4)) : below(n));
}

Shape Generator::some_shape() {
  Shape shape;
  const i64 rank = chance(15) ? 1 : chance(70) ? 2 : 3;
  for (i64 d = 0; d < rank; ++d) {
    Size s = any(extents_);
    if (points(shape) * s.value > kMostPoints) s = constant(2);
    shape.push_back(s);
  }
  return shape;
}

// ---- inside a body ----

Value Generator::define(const std::string& dtype, const std::string& text) {
  line(str("v{} = {}", values_, text));
  return {values_++, dtype};
}

Value Generator::op(const std::string& name, std::vector<Value> operands) {
  const bool is_test = name == "lt" || name == "ge" || name == "eq" || name == "isnan";
  const std::string dtype = is_test ? "bool" : operands.back().dtype;
  return define(dtype, name + " " + join(operands, ", ", [](const Value& v) {
                         return str("v{}", v.number);
                       }));
}

Value Generator::as(const std::string& dtype, Value v) {
  if (v.dtype == dtype) return v;
  return define(dtype, str("cast {} v{}", dtype, v.number));
}

Value Generator::number(const std::string& dtype, i64 n) {
  return define(dtype, dtype == "bool" ? str("const bool {}", n % 2 ? "true" : "false")
                                       : str("const {} {}", dtype, n));
}

std::string Generator::other(const std::string& dtype) {
  if (dtype == "bool") return chance(50) ? "true" : "false";
  if ((dtype[0] == 'f' || dtype[0] == 'b') && chance(20)) return "-inf";
  return str("{}", below(4));
}

/// Row-major place in the loops, as an index of another shape.
std::vector<std::string> Generator::unflatten(const Shape& shape, const Loops& loops) {
  std::string flat;
  Shape space;
  for (const Loop& l : loops) space.push_back(l.size);
  for (std::size_t l = 0; l < loops.size(); ++l)
    flat += str("{}{}*{}", l == 0 ? "" : " + ", loops[l].name, product(space, l + 1).text);
  if (flat.empty()) flat = "0";
  std::vector<std::string> out;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const std::string digit = str("({}) // {}", flat, product(shape, d + 1).text);
    out.push_back(d == 0 ? digit : str("{} % {}", digit, shape[d].text));
  }
  return out;
}

/// Each dim of the shape runs with a loop of its size, the other way round or in a part of it, or
/// stands still.
std::optional<std::vector<std::string>> Generator::index_of(const Shape& shape,
                                                            const Loops& loops) {
  Shape space;
  for (const Loop& l : loops) space.push_back(l.size);
  if (points(shape) == points(space) && points(shape) > 0 && shape.size() != space.size())
    return unflatten(shape, loops);
  std::vector<bool> used(loops.size(), false);
  std::vector<std::string> out;
  const bool shuffled = chance(10);
  for (const Size& s : shape) {
    std::vector<std::size_t> same, smaller;
    for (std::size_t l = 0; l < loops.size(); ++l) {
      if (used[l]) continue;
      if (loops[l].size.text == s.text)
        same.push_back(l);
      else if (loops[l].size.value <= s.value && loops[l].size.value > 0)
        smaller.push_back(l);
    }
    if (!same.empty()) {
      const std::size_t l = shuffled ? any(same) : same[0];
      used[l] = true;
      out.push_back(chance(4) && s.value > 0 ? str("{} - 1 - {}", s.text, loops[l].name)
                                             : loops[l].name);
    } else if (!smaller.empty() && chance(70)) {
      const std::size_t l = any(smaller);
      used[l] = true;
      const i64 room = s.value - loops[l].size.value;
      const bool strided = 2 * (loops[l].size.value - 1) < s.value && chance(40);
      out.push_back(strided ? str("{}*2", loops[l].name)
                            : str("{} + {}", loops[l].name, below(room + 1)));
    } else {
      if (s.value == 0) return std::nullopt;
      out.push_back(str("{}", s.text == str("{}", s.value) ? below(s.value) : 0));
    }
  }
  return out;
}

/// Shifted along one dim; what falls out gives a constant.
Value Generator::load_masked(std::size_t buffer, std::vector<std::string> index,
                             const Shape& shape) {
  const std::size_t d = static_cast<std::size_t>(below(static_cast<i64>(shape.size())));
  const Value at = define("i64", str("value {} - {}", index[d], 1 + below(3)));
  const std::string shifted =
      body_.substr(body_.rfind("value ") + 6, body_.size() - body_.rfind("value ") - 7);
  const Value low = op("ge", {at, number("i64", 0)});
  const Value high = op("lt", {at, define("i64", "value " + shape[d].text)});
  const Value inside = op("bits_and", {low, high});
  index[d] = shifted;
  const Buffer& b = buffers_[buffer];
  return define(b.dtype, str("load {} %{}{} if v{} else {}", b.dtype, b.name, list(index),
                             inside.number, other(b.dtype)));
}

/// One dim of the index comes from another buffer of integers.
void Generator::gather(std::size_t buffer, std::vector<std::string>& index, const Loops& loops) {
  std::vector<std::size_t> integers;
  for (std::size_t b = 0; b < std::min(visible_, buffers_.size()); ++b)
    if (buffers_[b].dtype == "i64" && b != buffer) integers.push_back(b);
  const Shape shape = buffers_[buffer].shape;
  const std::size_t d = static_cast<std::size_t>(below(static_cast<i64>(shape.size())));
  if (integers.empty() || shape[d].value == 0) return;
  const std::size_t from = any(integers);
  const auto place = index_of(buffers_[from].shape, loops);
  if (!place) return;
  ++buffers_[from].reads;
  const Value raw = define("i64", str("load i64 %{}{}", buffers_[from].name, list(*place)));
  const Value in = op("remainder", {raw, define("i64", "value " + shape[d].text)});
  line(str("n{} = index v{} in 0..{} - 1 {}", indices_, in.number, shape[d].text,
           word({"assert", "wrap", "clamp"})));
  index[d] = str("n{}", indices_++);
}

std::optional<Value> Generator::load(std::size_t buffer, const Loops& loops) {
  auto index = index_of(buffers_[buffer].shape, loops);
  if (!index) return std::nullopt;
  ++buffers_[buffer].reads;
  const Shape shape = buffers_[buffer].shape;
  if (!shape.empty() && chance(8))
    gather(buffer, *index, loops);
  else if (!shape.empty() && chance(12))
    return load_masked(buffer, *index, shape);
  const Buffer& b = buffers_[buffer];
  return define(b.dtype, str("load {} %{}{}", b.dtype, b.name, list(*index)));
}

std::optional<Value> Generator::load_any(const Loops& loops) { return load(pick(), loops); }

Value Generator::compute_float(Value v) {
  const std::string name =
      word({"neg", "abs", "exp", "tanh", "erf", "sin", "floor", "sign", "sqrt", "neg", "abs"});
  return op(name, {v});
}

/// Some arithmetic over the values, in the dtype of one of them.
Value Generator::compute(std::vector<Value> values) {
  std::string dtype = any(values).dtype;
  if (dtype == "bf16" || chance(40)) dtype = "f32";
  const bool is_float = dtype[0] == 'f';
  Value v = as(dtype, values[0]);
  for (std::size_t i = 1; i < values.size(); ++i) {
    const Value w = as(dtype, values[i]);
    if (dtype == "bool")
      v = op(word({"bits_and", "bits_or", "bits_xor"}), {v, w});
    else if (chance(15))
      v = op("where", {op("lt", {v, w}), w, v});
    else
      v = op(word({"add", "sub", "mul", "max", "min", is_float ? "div" : "bits_xor"}), {v, w});
  }
  if (is_float && chance(30))
    for (i64 i = 0; i < 3; ++i) v = op(word({"exp", "tanh", "erf", "sin"}), {v});
  for (i64 i = below(3); i > 0; --i) {
    if (is_float)
      v = chance(60) ? compute_float(v)
                     : op(word({"add", "mul"}), {v, number(dtype, 1 + below(3))});
    else if (dtype == "bool")
      v = op("bits_not", {v});
    else
      v = op(word({"add", "mul", "max", "floordiv", "remainder"}),
             {v, number(dtype, 2 + below(3))});
  }
  return v;
}

Loops Generator::loops_over(const Shape& shape, const char* prefix) {
  Loops out;
  for (std::size_t d = 0; d < shape.size(); ++d) out.push_back({str("{}{}", prefix, d), shape[d]});
  return out;
}

void Generator::begin(const Loops& parallel, const char* kind, const Loops& inner) {
  values_ = indices_ = 0;
  visible_ = buffers_.size();
  const auto dims = [](const Loops& loops) {
    return join(loops, ", ", [](const Loop& l) { return str("{} < {}", l.name, l.size.text); });
  };
  body_ = str("  body {} {{\n", fresh("f"));
  if (!parallel.empty() || !inner.empty())
    body_ += str("    dims {}{}{}{}\n", dims(parallel),
                 inner.empty() ? "" : str("{}| {} ", parallel.empty() ? "" : " ", kind), "",
                 dims(inner));
}

void Generator::end() {
  text_ += body_ + "  }\n";
  visible_ = ~std::size_t{0};
  ++steps_;
}

}  // namespace coil::random_program
