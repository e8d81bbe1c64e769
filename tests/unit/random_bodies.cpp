// The kinds of bodies and nodes.

#include "random_generator.h"

namespace coil::random_program {

/// In the dtype it has or another one, under an index that may be turned or of another rank.
void Generator::store_result(Value v, const Loops& loops) {
  if (chance(15)) v = as(word({"f32", "f64", "i32", "i64", "bf16", "bool"}), v);
  Loops at = loops;
  Shape shape;
  if (at.size() > 1 && chance(12)) std::swap(at[0], at[1]);
  for (const Loop& l : at) shape.push_back(l.size);
  std::vector<std::string> index;
  for (const Loop& l : at) index.push_back(l.name);
  if (at.size() > 1 && points(shape) > 0 && chance(10)) {
    index = {str("{}*{} + {}", at[0].name, shape[1].text, at[1].name)};
    for (std::size_t d = 2; d < at.size(); ++d) index.push_back(at[d].name);
    shape[0] = product({shape[0], shape[1]});
    shape.erase(shape.begin() + 1);
  }
  const std::string b = declare(v.dtype, shape, "");
  line(str("store %{}{}, v{}", b, list(index), v.number));
}

void Generator::pointwise(std::size_t source) {
  Shape shape = buffers_[source].shape;
  if (shape.size() > 1 && chance(15)) std::ranges::shuffle(shape, random_);
  if (shape.size() > 1 && chance(12)) shape = {product(shape)};
  if (chance(12) && shape.size() < 3)
    shape.insert(shape.begin() + below(static_cast<i64>(shape.size()) + 1), any(extents_));
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!is_static({shape[d]}) || !chance(8) || shape.size() > 2) continue;
    for (i64 f : {4, 3, 2, 5, 11})
      if (shape[d].value > f && shape[d].value % f == 0) {
        shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(d), constant(shape[d].value / f));
        shape[d + 1] = constant(f);
        break;
      }
  }
  if (points(shape) > kMostPoints) return;
  const Loops loops = loops_over(shape, "i");
  begin(loops, "", {});
  std::vector<Value> values;
  if (const auto v = load(source, loops)) values.push_back(*v);
  for (i64 n = below(3); n > 0; --n)
    if (const auto v = load_any(loops)) values.push_back(*v);
  if (values.empty()) values.push_back(number("f32", 1));
  if (!loops.empty() && chance(8)) values.push_back(define("i64", "value " + loops[0].name));
  const Value first = compute(values);
  store_result(first, loops);
  if (chance(12)) store_result(compute({first, values[0]}), loops);
  end();
}

std::string Generator::tree() {
  const std::string tree =
      word({"1x1", "1x1", "1x4", "1x2", "1x3", "16x1", "16x4", "16x4", "16x2", "16x4", "16x3"});
  const char* block = tree[1] == 'x' ? " block 12" : tree == "16x3" ? " block 192" : " block 64";
  return chance(60) ? tree : tree + block;
}

Value Generator::after_reduction(std::vector<Value> results, const Loops& rows) {
  Value v = results[0];
  if (results.size() == 3)
    v = op("div", {results[1], op("max", {results[2], number(results[2].dtype, 1)})});
  if (chance(30))
    if (const auto w = load_any(rows)) v = compute({v, *w});
  return v;
}

/// Over the last dims, the first one, or one in between.
void Generator::reduction(std::size_t source) {
  const Shape shape = buffers_[source].shape;
  if (shape.empty()) return pointwise(source);
  Loops all = loops_over(shape, "i"), rows, row;
  const std::size_t last = all.size() - 1;
  const std::size_t from =
      chance(70) ? last : static_cast<std::size_t>(below(static_cast<i64>(all.size())));
  const std::size_t count = from < last && chance(50) ? last - from + 1 : 1;
  for (std::size_t d = 0; d < all.size(); ++d)
    (d >= from && d < from + count ? row : rows).push_back(all[d]);
  begin(rows, "reduce", row);
  std::vector<Value> values;
  if (const auto v = load(source, all)) values.push_back(*v);
  if (chance(30))
    if (const auto v = load_any(all)) values.push_back(*v);
  if (values.empty()) values.push_back(number("f32", 1));
  Value v = compute(values);
  const std::string over = join(row, ", ", [](const Loop& l) { return l.name; });
  const std::string how = tree();
  std::vector<std::vector<Value>> results;
  for (i64 n = chance(20) ? 2 : 1; n > 0; --n) {
    std::vector<std::string> names = {"max", "min"};
    if (v.dtype == "bool")
      names = {"any", "all"};
    else
      names.insert(names.end(), {"sum", "sum", "sum", "argmax", "argmin"});
    if (v.dtype[0] == 'f') names.insert(names.end(), {"welford", "welford", "logaddexp"});
    const std::string name = any(names);
    const std::size_t n_results = name == "welford"                                ? 3
                                  : name.starts_with("arg") || name == "logaddexp" ? 2
                                                                                   : 1;
    std::string left;
    std::vector<Value> made;
    for (std::size_t i = 0; i < n_results; ++i) {
      left += str("{}v{}", i ? ", " : "", values_ + static_cast<int>(i));
      made.push_back(
          {values_ + static_cast<int>(i), name.starts_with("arg") && i == 1 ? "i64" : v.dtype});
    }
    values_ += static_cast<int>(n_results);
    std::string mine = how;
    if (chance(15) && n == 1 && !results.empty()) mine[how.find('x') + 1] = '2';
    line(str("{} = reduce.{} v{} over {} tree {}", left, name, v.number, over, mine));
    results.push_back(made);
  }
  for (const std::vector<Value>& r : results) {
    store_result(after_reduction(r, rows), rows);
    if (r.size() == 2 && chance(50)) store_result(r[1], rows);
  }
  end();
}

/// Windows over the last dim, as pooling goes; what lies outside is masked off.
void Generator::window(std::size_t source) {
  const Shape shape = buffers_[source].shape;
  if (shape.empty() || !is_static({shape.back()}) || shape.back().value < 4)
    return reduction(source);
  const bool strided = chance(50), padded = chance(50);
  Loops rows = loops_over(shape, "i");
  std::vector<std::string> index;
  for (const Loop& l : rows) index.push_back(l.name);
  const i64 extent = shape.back().value, room = padded ? extent : extent - 2;
  rows.back().size = constant(strided ? (room + 1) / 2 : room);
  index.back() = str("{}{} + r0{}", rows.back().name, strided ? "*2" : "", padded ? " - 1" : "");
  begin(rows, "reduce", {{"r0", constant(3)}});
  ++buffers_[source].reads;
  const Buffer& b = buffers_[source];
  std::string mask;
  if (padded) {
    const Value at = define("i64", "value " + index.back());
    const Value low = op("ge", {at, number("i64", 0)});
    const Value high = op("lt", {at, number("i64", extent)});
    const Value inside = op("bits_and", {low, high});
    mask = str(" if v{} else {}", inside.number, other(b.dtype));
  }
  Value v = define(b.dtype, str("load {} %{}{}{}", b.dtype, b.name, list(index), mask));
  if (v.dtype == "bf16" || v.dtype == "bool") v = as("f32", v);
  const std::string how = word({"1x1", "1x4", "16x1"});
  const Value r =
      define(v.dtype, str("reduce.{} v{} over r0 tree {}", word({"max", "sum"}), v.number, how));
  store_result(after_reduction({r}, rows), rows);
  end();
}

/// max, exp of the difference, sum, quotient: the parts in bodies of their own.
void Generator::softmax(std::size_t source) {
  const Shape shape = buffers_[source].shape;
  if (shape.empty() || buffers_[source].dtype[0] == 'i' || buffers_[source].dtype == "bool")
    return reduction(source);
  const Loops all = loops_over(shape, "i");
  const Loops rows(all.begin(), all.end() - 1), row = {all.back()};
  const Shape outer(shape.begin(), shape.end() - 1);
  const std::string how = chance(70) ? word({"16x4", "16x1"}) : "1x4";
  const auto names = [](const Loops& loops) {
    std::vector<std::string> out;
    for (const Loop& l : loops) out.push_back(l.name);
    return out;
  };
  const auto reduce = [&](const char* name, std::size_t from) {
    begin(rows, "reduce", row);
    ++buffers_[from].reads;
    const Value v =
        as("f32", define(buffers_[from].dtype, str("load {} %{}{}", buffers_[from].dtype,
                                                   buffers_[from].name, list(names(all)))));
    const Value r =
        define("f32", str("reduce.{} v{} over {} tree {}", name, v.number, row[0].name, how));
    const std::string b = declare("f32", outer, "");
    line(str("store %{}{}, v{}", b, list(names(rows)), r.number));
    end();
    return buffers_.size() - 1;
  };
  const auto apply = [&](std::size_t from, const char* name, std::size_t with, bool dear) {
    begin(all, "", {});
    ++buffers_[from].reads;
    ++buffers_[with].reads;
    Value v = as("f32", define(buffers_[from].dtype, str("load {} %{}{}", buffers_[from].dtype,
                                                         buffers_[from].name, list(names(all)))));
    v = op(name, {v, define("f32", str("load f32 %{}{}", buffers_[with].name, list(names(rows))))});
    if (dear) v = op("exp", {v});
    const std::string b = declare("f32", shape, "");
    line(str("store %{}{}, v{}", b, list(names(all)), v.number));
    end();
    return buffers_.size() - 1;
  };
  const std::size_t most = reduce("max", source);
  const std::size_t e = apply(source, "sub", most, true);
  const std::size_t sum = reduce("sum", e);
  apply(e, "div", sum, false);
}

/// Statistics of rows, then the rows less their mean; often with another reduction behind.
void Generator::norm(std::size_t source) {
  const Shape shape = buffers_[source].shape;
  if (shape.empty() || buffers_[source].dtype[0] == 'i' || buffers_[source].dtype == "bool")
    return reduction(source);
  reduction(source);
  pointwise(source);
  if (buffers_.back().shape.size() == shape.size()) reduction(buffers_.size() - 1);
}

void Generator::scan(std::size_t source) {
  const Shape shape = buffers_[source].shape;
  if (shape.empty()) return pointwise(source);
  Loops all = loops_over(shape, "i");
  const Loops rows(all.begin(), all.end() - 1), row = {all.back()};
  begin(rows, "scan", row);
  std::vector<Value> values;
  if (const auto v = load(source, all))
    values.push_back(*v);
  else
    values.push_back(number("f32", 1));
  Value v = compute(values);
  if (v.dtype == "bool") v = as("i64", v);
  const Value s = define(
      v.dtype, str("scan.{} v{} over {}", word({"sum", "max", "min"}), v.number, row[0].name));
  store_result(s, all);
  end();
}

/// A buffer that starts as another one; a part of it is written.
void Generator::partial(std::size_t source) {
  const Buffer base = buffers_[source];
  if (base.shape.empty() || points(base.shape) == 0 || !is_static(base.shape))
    return pointwise(source);
  Loops loops;
  std::vector<std::string> index;
  for (std::size_t d = 0; d < base.shape.size(); ++d) {
    const i64 extent = base.shape[d].value;
    const std::string i = str("i{}", d);
    if (chance(50)) {
      loops.push_back({i, base.shape[d]});
      index.push_back(i);
    } else if (chance(50)) {
      loops.push_back({i, constant((extent + 1) / 2)});
      index.push_back(i + "*2");
    } else {
      const i64 part = 1 + below(extent);
      loops.push_back({i, constant(part)});
      index.push_back(str("{} + {}", i, below(extent - part + 1)));
    }
  }
  begin(loops, "", {});
  std::vector<Value> values;
  for (i64 n = 1 + below(2); n > 0; --n)
    if (const auto v = chance(40) ? load(source, loops) : load_any(loops)) values.push_back(*v);
  if (values.empty()) values.push_back(number("f32", 2));
  const Value v = as(base.dtype, compute(values));
  std::string mask;
  if (chance(25))
    mask = str(
        " if v{}",
        op("lt", {define("i64", "value " + loops[0].name), number("i64", 1 + below(8))}).number);
  ++buffers_[source].reads;
  const std::string b = declare(base.dtype, base.shape, "starts %" + base.name);
  line(str("store %{}{}, v{}{}", b, list(index), v.number, mask));
  end();
}

/// The base is read again through another body at another place while a part of it is written anew.
void Generator::shifted_write(std::size_t source) {
  const Shape shape = buffers_[source].shape;
  if (shape.empty() || points(shape) == 0 || !buffers_[source].is_temp) return partial(source);
  const Loops loops = loops_over(shape, "i");
  std::vector<std::string> at, turned;
  for (const Loop& l : loops) {
    at.push_back(l.name);
    turned.push_back(chance(60) ? str("{} - 1 - {}", l.size.text, l.name) : l.name);
  }
  const std::string base = buffers_[source].name, dtype = buffers_[source].dtype;
  ++buffers_[source].reads;
  begin(loops, "", {});
  const Value v = define(dtype, str("load {} %{}{}", dtype, base, list(turned)));
  const std::string between = declare(dtype, shape, "");
  line(str("store %{}{}, v{}", between, list(at), v.number));
  end();
  begin(loops, "", {});
  ++buffers_.back().reads;
  const Value w = define(dtype, str("load {} %{}{}", dtype, between, list(at)));
  const Value stored = as(dtype, compute({w}));
  const std::string b = declare(dtype, shape, "starts %" + base);
  line(str("store %{}{}, v{}", b, list(at), stored.number));
  end();
}

/// Stores that meet: sums into places that come from data, often beside another reader of the same.
void Generator::scatter(std::size_t source) {
  std::vector<std::size_t> bases;
  for (std::size_t b = 0; b < buffers_.size(); ++b)
    if (buffers_[b].shape.size() == 1 && buffers_[b].shape[0].value > 0 &&
        buffers_[b].dtype != "bool")
      bases.push_back(b);
  if (bases.empty()) return partial(source);
  const std::size_t from = any(bases);
  const Buffer base = buffers_[from];
  Loops all = loops_over(buffers_[source].shape, "i"), rows = all, row;
  const bool scans = !all.empty() && chance(15);
  if (scans) {
    row = {all.back()};
    rows.pop_back();
  }
  begin(rows, "scan", row);
  std::optional<Value> v = load(source, all), at = load_any(all);
  if (!at) at = define("i64", "value 1");
  if (!v) v = number(base.dtype, 1);
  if (scans && v->dtype != "bool" && v->dtype != "bf16")
    v = define(v->dtype, str("scan.sum v{} over {}", v->number, row[0].name));
  const Value in = op("remainder", {as("i64", *at), define("i64", "value " + base.shape[0].text)});
  line(str("n{} = index v{} in 0..{} - 1 assert", indices_, in.number, base.shape[0].text));
  ++buffers_[from].reads;
  const Value stored = as(base.dtype, compute({*v}));
  const std::string b = declare(base.dtype, base.shape, "starts %" + base.name);
  const std::string how = word({".sum", ".sum", ".max", ".min", ""});
  line(str("store{} %{}[n{}], v{}", how, b, indices_++, stored.number));
  end();
  if (chance(40))
    reduction(source);
  else if (chance(40))
    pointwise(source);
}

/// Two buffers one after the other, as two masked loads.
void Generator::cat(std::size_t source) {
  const Buffer a = buffers_[source];
  if (a.shape.empty() || !is_static(a.shape)) return pointwise(source);
  std::vector<std::size_t> fitting;
  for (std::size_t b = 0; b < buffers_.size(); ++b) {
    if (buffers_[b].dtype != a.dtype || buffers_[b].shape.size() != a.shape.size() ||
        !is_static(buffers_[b].shape))
      continue;
    bool same = true;
    for (std::size_t d = 1; d < a.shape.size(); ++d)
      same &= a.shape[d].value == buffers_[b].shape[d].value;
    if (same) fitting.push_back(b);
  }
  const std::size_t second = any(fitting);
  const Buffer b = buffers_[second];
  ++buffers_[source].reads;
  ++buffers_[second].reads;
  Shape shape = a.shape;
  shape[0] = constant(a.shape[0].value + b.shape[0].value);
  if (points(shape) > kMostPoints) return;
  const Loops loops = loops_over(shape, "i");
  begin(loops, "", {});
  std::vector<std::string> index;
  for (const Loop& l : loops) index.push_back(l.name);
  const Value first =
      op("lt", {define("i64", "value i0"), define("i64", "value " + a.shape[0].text)});
  const Value rest = op("bits_not", {first});
  const Value x = define(a.dtype, str("load {} %{}{} if v{} else {}", a.dtype, a.name, list(index),
                                      first.number, other(a.dtype)));
  index[0] = str("i0 - {}", a.shape[0].value);
  const Value y = define(a.dtype, str("load {} %{}{} if v{} else {}", a.dtype, b.name, list(index),
                                      rest.number, other(a.dtype)));
  const std::string wide = a.dtype == "bf16" ? "f32" : a.dtype;
  store_result(op("where", {first, as(wide, x), as(wide, y)}), loops);
  end();
}

/// One buffer, stored in two parts by one body.
void Generator::halves(std::size_t source) {
  const Buffer a = buffers_[source];
  if (a.shape.empty() || !is_static(a.shape) || 2 * points(a.shape) > kMostPoints)
    return pointwise(source);
  const Loops loops = loops_over(a.shape, "i");
  begin(loops, "", {});
  const auto v = load(source, loops);
  const Value x = compute({v ? *v : number("f32", 3)});
  const Value y = as(x.dtype, compute({x}));
  Shape shape = a.shape;
  shape[0] = constant(2 * shape[0].value);
  const std::string b = declare(x.dtype, shape, "");
  std::vector<std::string> index;
  for (const Loop& l : loops) index.push_back(l.name);
  const bool interleaved = chance(50);
  index[0] = interleaved ? "i0*2" : "i0";
  line(str("store %{}{}, v{}", b, list(index), x.number));
  index[0] = interleaved ? "i0*2 + 1" : str("i0 + {}", a.shape[0].value);
  line(str("store %{}{}, v{}", b, list(index), y.number));
  end();
}

void Generator::gemm(std::size_t source) {
  const Buffer a = buffers_[source];
  if (a.shape.size() < 2 || a.shape.size() > 3 ||
      (a.dtype != "f32" && a.dtype != "f64" && a.dtype != "bf16"))
    return pointwise(source);
  const bool batched = a.shape.size() == 3;
  const Size m = a.shape[a.shape.size() - 2], k = a.shape.back(), n = any(extents_);
  if (is_from_data(n)) return pointwise(source);
  std::string weight;
  Shape shape_b = batched ? Shape{a.shape[0], k, n} : Shape{k, n};
  for (const Buffer& b : buffers_)
    if (b.dtype == a.dtype && b.shape.size() == shape_b.size() && b.shape.back().text == n.text &&
        chance(50) && b.shape[b.shape.size() - 2].text == k.text &&
        b.shape[0].text == shape_b[0].text)
      weight = b.name;
  if (points(shape_b) * m.value > 30000 || points(shape_b) > kMostPoints) return pointwise(source);
  const bool turned = weight.empty() && !batched && chance(30);
  if (weight.empty() && std::ranges::any_of(shape_b, is_from_data)) return pointwise(source);
  if (weight.empty()) weight = declare(a.dtype, turned ? Shape{n, k} : shape_b, "input");
  Shape shape = batched ? Shape{a.shape[0], m, n} : Shape{m, n};
  if (points(shape) > kMostPoints) return pointwise(source);
  ++buffers_[source].reads;
  for (Buffer& b : buffers_) b.reads += b.name == weight;
  const std::string out = declare(a.dtype, shape, "");
  const std::string batch = batched ? str("p < {}, ", a.shape[0].text) : "",
                    p = batched ? "p, " : "";
  text_ +=
      str("  gemm {} {{\n    in %{} over {}m < {}, k < {} at [{}m, k]\n    in %{} over {}k < {}, n "
          "< {} at [{}]\n"
          "    out %{} over {}m < {}, n < {} at [{}m, n]\n  }}\n",
          fresh("g"), a.name, batch, m.text, k.text, p, weight, batch, k.text, n.text,
          turned ? "n, k" : p + "k, n", out, batch, m.text, n.text, p);
  ++steps_;
  const std::size_t result = buffers_.size() - 1;
  if (chance(85)) pointwise(result);
  if (chance(30)) pointwise(chance(50) ? result : buffers_.size() - 1);
}

void Generator::conv() {
  const i64 n = 1 + below(2), c = 1 + below(3), o = 1 + below(5), h = 1 + below(6),
            w = 1 + below(9);
  const std::string dtype = chance(75) ? "f32" : "bf16";
  const std::string x =
      declare(dtype, {constant(n), constant(c), constant(h), constant(w)}, "input");
  const std::string k =
      declare(dtype, {constant(o), constant(c), constant(3), constant(3)}, "input");
  const std::string y = declare(dtype, {constant(n), constant(o), constant(h), constant(w)}, "");
  for (Buffer& b : buffers_) b.reads += b.name == x || b.name == k;
  text_ +=
      str("  conv {} stride [1, 1] padding [1, 1] dilation [1, 1] {{\n"
          "    in %{} over n < {}, c < {}, h < {}, w < {} at [n, c, h, w]\n"
          "    in %{} over o < {}, c < {}, h < 3, w < 3 at [o, c, h, w]\n"
          "    out %{} over n < {}, c < {}, h < {}, w < {} at [n, c, h, w]\n  }}\n",
          fresh("c"), x, n, c, h, w, k, o, c, y, n, o, h, w);
  ++steps_;
  extents_.push_back(constant(o));
  const std::size_t result = buffers_.size() - 1;
  declare("f32", {constant(o)}, "input");
  pointwise(result);
  if (chance(40)) pointwise(chance(50) ? result : buffers_.size() - 1);
}

/// What is made of constants alone, once.
void Generator::init_chain() {
  const Shape shape = some_shape();
  if (!is_static(shape)) return;
  declare("f32", shape, str("const = seed {}", 1 + below(9)));
  std::size_t source = buffers_.size() - 1;
  for (i64 n = 1 + below(2); n > 0; --n) {
    const Loops loops = loops_over(shape, "i");
    begin(loops, "", {});
    body_.replace(body_.find(" {"), 2, " init {");
    ++buffers_[source].reads;
    std::vector<std::string> index;
    for (const Loop& l : loops) index.push_back(l.name);
    const Value v =
        compute({define("f32", str("load f32 %{}{}", buffers_[source].name, list(index)))});
    const std::string b = declare("f32", shape, "");
    line(str("store %{}{}, v{}", b, list(index), as("f32", v).number));
    source = buffers_.size() - 1;
    end();
  }
}

}  // namespace coil::random_program
