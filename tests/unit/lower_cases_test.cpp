// Numbers: single ops, decomposed, lowered and run by the interpreter, against what eager
// PyTorch gave (data/make_lower_cases.py). Shapes, dtypes and strides must be eager's; integers
// must be equal.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "graph/builder.h"
#include "lower/lower.h"
#include "ops/scalar.h"
#include "passes/passes.h"
#include "target/interp/interp.h"

namespace coil {
namespace {

using runtime::Tensor;

DType part_dtype(DType d) { return is_complex(d) ? real_of(d) : d; }

/// The words of the case file.
class Words {
 public:
  explicit Words(const std::string& file) : in_(file) {}
  bool next(std::string& word) { return static_cast<bool>(in_ >> word); }
  std::string word() {
    std::string w;
    in_ >> w;
    return w;
  }
  i64 integer() { return std::stoll(word()); }
  double number() { return std::strtod(word().c_str(), nullptr); }
  std::vector<i64> integers(i64 n) {
    std::vector<i64> out;
    while (n-- > 0) out.push_back(integer());
    return out;
  }
  Tensor tensor() {
    const DType dtype = dtype_from_name(word()).value();
    const i64 rank = integer();
    const std::vector<i64> shape = integers(rank), strides = integers(rank);
    Tensor t = *Tensor::allocate(dtype, shape, strides);
    const DType part = part_dtype(dtype);
    const i64 count = integer();
    for (i64 k = 0; k < count; ++k) {
      const ops::Scalar v = is_float(part) ? ops::Scalar::of_float(part, number())
                                           : ops::Scalar::of_int(part, integer());
      ops::write_element(part, t.data, k, v);
    }
    return t;
  }

 private:
  std::ifstream in_;
};

struct Case {
  std::string name, op;
  double tolerance = 0;
  std::vector<Tensor> expected;
  std::vector<runtime::Value> inputs;
  std::vector<Arg> args;
  Graph graph;
};

void add_input(Case& c, const Tensor& t) {
  Type type;
  type.dtype = t.dtype;
  for (i64 s : t.shape) type.shape.push_back(c.graph.syms->constant(s));
  for (i64 s : t.strides) type.strides.push_back(c.graph.syms->constant(s));
  const std::string name = str("x{}", c.inputs.size());
  Input input;
  input.name = name;
  input.value = c.graph.add_value(name, type);
  c.graph.inputs.push_back(std::move(input));
  c.inputs.push_back(t);
}

Arg read_arg(Words& in, const Case& c) {
  sym::Arena& syms = *c.graph.syms;
  const std::string kind = in.word();
  if (kind == "T") return c.graph.inputs.at(static_cast<std::size_t>(in.integer())).value;
  if (kind == "I") return syms.constant(in.integer());
  if (kind == "F") return in.number();
  if (kind == "B") return in.integer() != 0;
  if (kind == "S") return in.word();
  if (kind == "D") return dtype_from_name(in.word()).value();
  if (kind == "N") return None{};
  const i64 count = in.integer();
  if (kind == "FL") {
    std::vector<double> list;
    for (i64 k = 0; k < count; ++k) list.push_back(in.number());
    return list;
  }
  const std::vector<i64> numbers = in.integers(count);
  if (kind == "BL") return std::vector<bool>(numbers.begin(), numbers.end());
  if (kind == "TL") {
    std::vector<ValueId> list;
    for (i64 k : numbers)
      list.push_back(k < 0 ? ValueId() : c.graph.inputs.at(static_cast<std::size_t>(k)).value);
    return list;
  }
  std::vector<sym::Expr> list;
  for (i64 k : numbers) list.push_back(syms.constant(k));
  return list;
}

Case read_case(Words& in) {
  Case c;
  c.name = in.word();
  for (std::string key = in.word(); key != "END" && !key.empty(); key = in.word()) {
    if (key == "T") add_input(c, in.tensor());
    if (key == "OP") c.op = in.word();
    if (key == "TOL") c.tolerance = in.number();
    if (key == "ARG") c.args.push_back(read_arg(in, c));
    if (key == "OUT") c.expected.push_back(in.tensor());
  }
  return c;
}

/// Part `part` of the element at row-major position `flat`.
double element(const Tensor& t, i64 flat, int part) {
  i64 place = 0;
  for (std::size_t k = t.shape.size(); k-- > 0; flat /= t.shape[k])
    place += flat % t.shape[k] * t.strides[k];
  const i64 at = is_complex(t.dtype) ? 2 * place + part : place;
  return ops::read_element(part_dtype(t.dtype), t.data, at).as_double();
}

double default_tolerance(DType d) {
  if (d == DType::f64) return 1e-12;
  if (d == DType::f32) return 4e-6;
  if (d == DType::f16) return 1e-3;
  return d == DType::bf16 ? 8e-3 : 0;
}

void expect_equal(const Tensor& got, const Tensor& want, double tolerance) {
  ASSERT_EQ(got.dtype, want.dtype);
  ASSERT_EQ(got.shape, want.shape);
  const i64 n = want.numel();
  for (std::size_t k = 0; k < want.shape.size() && n > 0; ++k)
    EXPECT_TRUE(want.shape[k] < 2 || got.strides[k] == want.strides[k]) << "stride of dim " << k;
  if (tolerance == 0) tolerance = default_tolerance(part_dtype(want.dtype));
  const int parts = is_complex(want.dtype) ? 2 : 1;
  double largest = 0;
  for (i64 i = 0; i < n; ++i)
    for (int p = 0; p < parts; ++p)
      if (const double x = std::abs(element(want, i, p)); std::isfinite(x))
        largest = std::max(largest, x);
  for (i64 i = 0; i < n; ++i)
    for (int p = 0; p < parts; ++p) {
      const double a = element(got, i, p), b = element(want, i, p);
      const bool equal = a == b || (std::isnan(a) && std::isnan(b)) ||
                         std::abs(a - b) <= tolerance * (std::abs(b) + 0.1 * largest);
      ASSERT_TRUE(equal) << "element " << i << ": " << a << ", expected " << b;
    }
}

void run_case(Case& c) {
  SCOPED_TRACE(c.name);
  c.graph.composites = &composite_rules();
  GraphBuilder builder(c.graph, {}, "y");
  std::vector<ValueId> results;
  try {
    results = builder.call_all(c.op, c.args);
  } catch (const BuildError& e) {
    FAIL() << e.error.message;
  }
  for (std::size_t k = 0; k < c.expected.size(); ++k) {
    Output output;
    output.value = results.at(k);
    c.graph.outputs.push_back(output);
  }
  const Result<Graph> core = decompose(c.graph);
  ASSERT_TRUE(core.ok()) << core.error().message;
  const Result<LoopProgram> program = lower(*core, Options());
  ASSERT_TRUE(program.ok()) << program.error().message;
  const Status valid = verify(*program);
  ASSERT_TRUE(valid.ok()) << valid.error().message;
  const std::string text = to_text(*program);
  const Result<LoopProgram> again = parse_program(text, c.name);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(to_text(*again), text);
  const auto out = interp::run(*program, c.inputs, {});
  ASSERT_TRUE(out.ok()) << out.error().message;
  for (std::size_t k = 0; k < c.expected.size(); ++k)
    expect_equal(std::get<Tensor>(out->at(k)), c.expected[k], c.tolerance);
}

TEST(LowerCases, AgreeWithEager) {
  Words in(std::string(COIL_SOURCE_DIR) + "/tests/unit/data/lower_cases.txt");
  std::string word;
  int count = 0;
  while (in.next(word)) {
    ASSERT_EQ(word, "CASE");
    Case c = read_case(in);
    run_case(c);
    ++count;
  }
  EXPECT_GT(count, 1000);
}

}  // namespace
}  // namespace coil
