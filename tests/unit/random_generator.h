#pragma once
// The writer of random programs; for the random_*.cpp files only.

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/text.h"
#include "random_program.h"

namespace coil::random_program {

struct Size {
  std::string text;
  i64 value = 0;
};
using Shape = std::vector<Size>;

struct Buffer {
  std::string name, dtype;
  Shape shape;
  std::string strides;  // of its declaration, unless it is an output
  int reads = 0;
  bool is_temp = false;
};

struct Loop {
  std::string name;
  Size size;
};
using Loops = std::vector<Loop>;

struct Value {
  int number = 0;
  std::string dtype;
};

inline Size constant(i64 n) { return {str("{}", n), n}; }

inline i64 points(const Shape& shape) {
  i64 n = 1;
  for (const Size& s : shape) n *= s.value;
  return n;
}

inline bool is_static(const Shape& shape) {
  return std::ranges::all_of(shape, [](const Size& s) { return s.text == str("{}", s.value); });
}

/// Known only inside a call: the shape of no input.
inline bool is_from_data(const Size& s) { return s.text.find("u0") != std::string::npos; }

/// The product of the sizes from `first` on.
inline Size product(const Shape& shape, std::size_t first = 0) {
  const Shape part(shape.begin() + static_cast<std::ptrdiff_t>(first), shape.end());
  if (is_static(part)) return constant(points(part));
  return {"(" + join(part, "*", [](const Size& s) { return s.text; }) + ")", points(part)};
}

inline std::string list(const std::vector<std::string>& items) {
  return "[" + join(items, ", ", [](const std::string& s) { return s; }) + "]";
}

inline constexpr i64 kMostPoints = 2500;

class Generator {
 public:
  explicit Generator(u64 seed) : random_(seed) {}

  Text make();

 private:
  // ---- chance ----
  i64 below(i64 n) { return static_cast<i64>(random_() % static_cast<u64>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& any(const std::vector<T>& items) {
    return items[static_cast<std::size_t>(below(static_cast<i64>(items.size())))];
  }
  std::string word(const std::vector<std::string>& words) { return any(words); }

  // ---- buffers ----
  std::string declare(const std::string& dtype, const Shape& shape, const std::string& rest);
  std::size_t pick();
  std::string fresh(const char* prefix) { return str("{}{}", prefix, names_++); }
  Shape some_shape();
  void add_inputs();

  // ---- inside a body ----
  void line(const std::string& text) { body_ += "    " + text + "\n"; }
  Value define(const std::string& dtype, const std::string& text);
  Value op(const std::string& name, std::vector<Value> operands);
  Value as(const std::string& dtype, Value v);
  Value number(const std::string& dtype, i64 n);
  std::string other(const std::string& dtype);
  std::optional<std::vector<std::string>> index_of(const Shape& shape, const Loops& loops);
  std::vector<std::string> unflatten(const Shape& shape, const Loops& loops);
  std::optional<Value> load(std::size_t buffer, const Loops& loops);
  std::optional<Value> load_any(const Loops& loops);
  Value load_masked(std::size_t buffer, std::vector<std::string> index, const Shape& shape);
  void gather(std::size_t buffer, std::vector<std::string>& index, const Loops& loops);
  Value compute(std::vector<Value> values);
  Value compute_float(Value v);
  void begin(const Loops& parallel, const char* kind, const Loops& inner);
  void end();

  // ---- bodies and nodes ----
  void pointwise(std::size_t source);
  void store_result(Value v, const Loops& loops);
  void reduction(std::size_t source);
  void window(std::size_t source);
  Value after_reduction(std::vector<Value> results, const Loops& rows);
  void softmax(std::size_t source);
  void norm(std::size_t source);
  void scan(std::size_t source);
  void partial(std::size_t source);
  void shifted_write(std::size_t source);
  void scatter(std::size_t source);
  void cat(std::size_t source);
  void halves(std::size_t source);
  void gemm(std::size_t source);
  void conv();
  void init_chain();
  void step();
  std::string tree();
  Loops loops_over(const Shape& shape, const char* prefix);

  std::mt19937_64 random_;
  std::vector<Buffer> buffers_;
  std::string text_;  // declarations and bodies so far; `output` marks are put in at the end
  std::string body_;
  std::vector<Size> extents_;
  std::map<std::string, i64> sizes_;
  std::size_t visible_ = ~std::size_t{0};  // buffers that the present body may read
  int names_ = 0, values_ = 0, indices_ = 0, steps_ = 0;
};

}  // namespace coil::random_program
