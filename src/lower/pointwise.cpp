#include "lower/pointwise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "graph/builder.h"
#include "graph/rules.h"
#include "lower/complex_math.h"
#include "lower/formula.h"
#include "lower/registry.h"
#include "ops/series.h"

namespace coil::lowering {
namespace {

using ops::ScalarOp;

struct Row {
  std::string_view op;
  const char* formula;
};
constexpr Row kRows[] = {
#define ROW(op, dtype, formula) {op, formula},
#define FORMULA(op, formula) {op, formula},
#define DTYPE(op, dtype)
#include "ops/pointwise.def"
#undef ROW
#undef FORMULA
#undef DTYPE
};

/// A number that is known while lowering, an argument that was left out, a word, or a value, real
/// or complex.
struct Term {
  enum class Kind { Absent, Text, Int, Float, Bool, Value, Complex };
  Kind kind = Kind::Absent;
  std::string text;
  i64 integer = 0;    // Int, Bool
  double number = 0;  // Float
  Val value;          // Value
  Parts parts;        // Complex

  static Term word(std::string w) { return {Kind::Text, std::move(w), 0, 0, {}, {}}; }
  static Term of(Val v) { return {Kind::Value, "", 0, 0, v, {}}; }
  static Term of(Parts z) { return {Kind::Complex, "", 0, 0, {}, z}; }
  static Term of(double x) { return {Kind::Float, "", 0, x, {}, {}}; }
  static Term of(i64 x) { return {Kind::Int, "", x, 0, {}, {}}; }
  static Term of(bool x) { return {Kind::Bool, "", x, 0, {}, {}}; }
  bool is_complex() const { return kind == Kind::Complex; }
  bool known() const { return kind == Kind::Int || kind == Kind::Float || kind == Kind::Bool; }
  double as_double() const { return kind == Kind::Float ? number : static_cast<double>(integer); }
};

std::optional<bool> compare(std::string_view op, double a, double b) {
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return a < b;
  if (op == "<=") return a <= b;
  if (op == ">") return a > b;
  if (op == ">=") return a >= b;
  return std::nullopt;
}

std::optional<Term> known_binary(std::string_view op, const Term& a, const Term& b) {
  const double x = a.as_double(), y = b.as_double();
  if (const auto truth = compare(op, x, y)) return Term::of(*truth);
  if (op == "pow") return Term::of(std::pow(x, y));
  if (op == "/") return Term::of(x / y);
  if (a.kind == Term::Kind::Float || b.kind == Term::Kind::Float) {
    if (op == "+") return Term::of(x + y);
    if (op == "-") return Term::of(x - y);
    if (op == "*") return Term::of(x * y);
    return std::nullopt;
  }
  i64 result = 0;
  if (op == "+" && !__builtin_add_overflow(a.integer, b.integer, &result)) return Term::of(result);
  if (op == "-" && !__builtin_sub_overflow(a.integer, b.integer, &result)) return Term::of(result);
  if (op == "*" && !__builtin_mul_overflow(a.integer, b.integer, &result)) return Term::of(result);
  return std::nullopt;
}

/// A function of scalar.def on numbers, in integers if all are such and it takes them.
std::optional<Term> known_function(std::string_view name, const std::vector<Term>& terms) {
  const std::optional<ScalarOp> op = ops::scalar_from_name(name);
  if (!op || ops::info(*op).result != ops::ResultRule::Same) return std::nullopt;
  const bool integers =
      std::ranges::none_of(terms, [](const Term& t) { return t.kind == Term::Kind::Float; });
  const DType dtype = integers && ops::accepts(*op, DType::i64) ? DType::i64 : DType::f64;
  if (!ops::accepts(*op, dtype)) return std::nullopt;
  std::vector<ops::Scalar> operands;
  for (const Term& t : terms)
    operands.push_back(dtype == DType::i64 ? ops::Scalar::of_int(dtype, t.integer)
                                           : ops::Scalar::of_float(dtype, t.as_double()));
  const ops::Scalar result = ops::evaluate(*op, dtype, operands);
  return dtype == DType::i64 ? Term::of(result.i) : Term::of(result.f);
}

struct Symbol {
  std::string_view text;
  ScalarOp op;
};
constexpr Symbol kSymbols[] = {
    {"+", ScalarOp::add},      {"-", ScalarOp::sub},      {"*", ScalarOp::mul},
    {"/", ScalarOp::div},      {"==", ScalarOp::eq},      {"!=", ScalarOp::ne},
    {"<", ScalarOp::lt},       {"<=", ScalarOp::le},      {">", ScalarOp::gt},
    {">=", ScalarOp::ge},      {"&", ScalarOp::bits_and}, {"|", ScalarOp::bits_or},
    {"^", ScalarOp::bits_xor},
};

/// Writes a formula's instructions into a body, over the arguments of one node.
class Evaluator {
 public:
  Evaluator(BodyBuilder& b, const Args& args, DType compute, DType common, DType result)
      : b_(b),
        args_(args),
        compute_(compute),
        common_(common),
        result_(result),
        math_(b, compute) {}

  void set_point(Exprs point) { point_ = std::move(point); }

  Term eval(const Formula& f) {
    switch (f.kind) {
      case Formula::Kind::Number:
        return f.is_integer ? Term::of(static_cast<i64>(f.number)) : Term::of(f.number);
      case Formula::Kind::Name: return name(f.name);
      case Formula::Kind::Call: return call(f);
    }
    COIL_UNREACHABLE();
  }

  /// A term as a value of `dtype`.
  Val as(const Term& t, DType dtype) {
    switch (t.kind) {
      case Term::Kind::Int:
      case Term::Kind::Bool: return constant(ops::Scalar::of_int(DType::i64, t.integer), dtype);
      case Term::Kind::Float: return constant(ops::Scalar::of_float(DType::f64, t.number), dtype);
      case Term::Kind::Value: return b_.cast(t.value, dtype);
      case Term::Kind::Complex:
        if (is_bool(dtype)) return test(ScalarOp::ne, ScalarOp::bits_or, t, Term::of(0.0));
        throw BuildError{b_.lowering().unsupported_case("complex operands")};
      case Term::Kind::Absent:
      case Term::Kind::Text: break;
    }
    COIL_CHECK(false, "'{}' is no number, in the formula of {}", t.text,
               args_.schema().full_name());
    COIL_UNREACHABLE();
  }

  /// A term as a complex number.
  Parts as_parts(const Term& t) {
    if (!t.is_complex()) return {number(t), math_.number(0)};
    return {b_.cast(t.parts.re, compute_), b_.cast(t.parts.im, compute_)};
  }

 private:
  Val constant(const ops::Scalar& value, DType dtype) {
    return b_.constant(value.dtype == DType::f64 ? ops::Scalar::of_float(dtype, value.f)
                                                 : ops::Scalar::of_int(dtype, value.i));
  }
  Val number(const Term& t) { return as(t, compute_); }

  /// An argument's own dtype is kept: its use decides what it is converted to.
  Term argument(const Arg& arg) {
    sym::Arena& syms = b_.syms();
    if (std::holds_alternative<None>(arg)) return {};
    if (const auto* s = std::get_if<std::string>(&arg)) return Term::word(*s);
    if (const auto* x = std::get_if<double>(&arg)) return known_scalar(*x);
    if (const auto* x = std::get_if<bool>(&arg)) return Term::of(*x);
    if (const auto* z = std::get_if<Complex>(&arg)) {
      if (z->im == 0) return Term::of(z->re);
      return Term::of(Parts{math_.number(z->re), math_.number(z->im)});
    }
    if (const auto* e = std::get_if<Expr>(&arg)) {
      if (const auto fixed = syms.as_const(*e)) return Term::of(*fixed);
      return Term::of(b_.value(*e));
    }
    const ValueId v = std::get<ValueId>(arg);
    if (!b_.lowering().has(v)) return Term::of(scalar_value(b_, arg, DType::f64));
    const Access& tensor = b_.lowering().access(v);
    if (coil::is_complex(b_.lowering().type(v).dtype)) return complex_tensor(tensor);
    return Term::of(b_.load(broadcast_to(syms, tensor, b_shape()), point_));
  }
  Term complex_tensor(const Access& tensor) {
    Exprs shape = b_shape();
    shape.push_back(b_.syms().constant(2));
    const Access both = broadcast_to(b_.syms(), tensor, shape);
    const auto part = [&](i64 which) {
      Exprs at = point_;
      at.push_back(b_.syms().constant(which));
      return b_.load(both, at);
    };
    const Val re = part(0);
    return Term::of(Parts{re, part(1)});
  }
  /// A comparison of narrow floats compares with the scalar as that dtype holds it.
  Term known_scalar(double x) const {
    if (is_bool(result_) && is_narrow_float(common_))
      return Term::of(ops::Scalar::of_float(common_, x).f);
    return Term::of(x);
  }
  Exprs b_shape() const {
    Exprs shape;
    for (Expr var : point_) shape.push_back(b_.syms().var(var).extent);
    return shape;
  }

  Term name(const std::string& name) {
    if (args_.schema().arg_index(name) >= 0) return argument(args_[name]);
    constexpr double inf = std::numeric_limits<double>::infinity();
    if (name == "is_complex") return Term::of(coil::is_complex(common_));
    if (name == "integral") return Term::of(!is_float(compute_));
    if (name == "logical") return Term::of(is_bool(compute_));
    if (name == "true" || name == "false") return Term::of(name == "true");
    if (name == "pi") return Term::of(M_PI);
    if (name == "e") return Term::of(M_E);
    if (name == "inf") return Term::of(inf);
    if (name == "nan") return Term::of(std::numeric_limits<double>::quiet_NaN());
    if (name == "highest") return Term::of(highest());
    if (name == "lowest") return Term::of(-highest());
    return Term::word(std::string(name));
  }
  double highest() const {
    if (result_ == DType::f64) return std::numeric_limits<double>::max();
    if (result_ == DType::f16) return 65504;
    if (result_ == DType::bf16) return bf16_to_f32(0x7f7f);
    if (is_int(result_))
      return std::exp2(static_cast<double>(8 * size_of(result_) - !is_unsigned(result_))) - 1;
    return std::numeric_limits<float>::max();
  }

  /// Whether the result is of integers and x lies outside of their range.
  bool ends_before(double x) const {
    if (!is_int(result_)) return false;
    return x > highest() || x < (is_unsigned(result_) ? 0 : -highest() - 1);
  }

  Term call(const Formula& f) {
    if (f.name == "?:") return choice(f);
    if (f.name == "given" || f.name == "is_none") {
      const Term first = eval(f.operands.at(0));
      const bool absent = first.kind == Term::Kind::Absent;
      if (f.name == "is_none") return Term::of(absent);
      return absent ? eval(f.operands.at(1)) : first;
    }
    if (f.name == "bound") {
      Term bound = eval(f.operands.at(0));
      return bound.known() && ends_before(bound.as_double()) ? Term{} : bound;
    }
    if (f.name == "chebyshev")
      return Term::of(chebyshev(f.operands.at(0).name, number(eval(f.operands.at(1)))));
    std::vector<Term> terms;
    for (const Formula& operand : f.operands) terms.push_back(eval(operand));
    if (terms.size() == 1) return unary(f.name, terms[0]);
    if (terms.size() == 2) return binary(f.name, terms[0], terms[1]);
    COIL_CHECK(false, "no function {} of {} operands", f.name, terms.size());
    COIL_UNREACHABLE();
  }

  /// Clenshaw, "A note on the summation of Chebyshev series" (1955). In f32 the coefficients that
  /// its rounding hides are left out.
  Val chebyshev(std::string_view series, Val t) {
    std::span<const double> c = ops::find_series(series);
    double largest = 0;
    for (double x : c) largest = std::max(largest, std::abs(x));
    const double least = compute_ == DType::f32 ? largest * 0x1p-27 : 0;
    while (c.size() > 2 && std::abs(c.back()) < least) c = c.first(c.size() - 1);
    const auto coefficient = [&](std::size_t k) { return b_.constant(compute_, c[k]); };
    const Val twice = b_.add(t, t);
    Val after, sum = coefficient(c.size() - 1);
    for (std::size_t k = c.size() - 1; k-- > 0;) {
      const Val rest = after.valid() ? b_.sub(coefficient(k), after) : coefficient(k);
      after = sum;
      sum = b_.op(ScalarOp::fma, {k == 0 ? t : twice, sum, rest});
    }
    return sum;
  }

  Term choice(const Formula& f) {
    const Term condition = eval(f.operands.at(0));
    if (condition.known()) return eval(f.operands.at(condition.as_double() != 0 ? 1 : 2));
    const Val mask = as(condition, DType::b8);
    const Term first = eval(f.operands.at(1));
    if (!first.is_complex()) {
      const Val yes = number(first);
      const Term second = eval(f.operands.at(2));
      if (!second.is_complex()) return Term::of(b_.where(mask, yes, number(second)));
      return complex_choice(mask, first, second);
    }
    return complex_choice(mask, first, eval(f.operands.at(2)));
  }
  Term complex_choice(Val mask, const Term& first, const Term& second) {
    const Parts yes = as_parts(first), no = as_parts(second);
    return Term::of(Parts{b_.where(mask, yes.re, no.re), b_.where(mask, yes.im, no.im)});
  }

  /// Of two complex numbers: `which` of their parts, joined.
  Val test(ScalarOp which, ScalarOp join, const Term& x, const Term& y) {
    const Parts a = as_parts(x), b = as_parts(y);
    const Val re = b_.op(which, {a.re, b.re});
    return b_.op(join, {re, b_.op(which, {a.im, b.im})});
  }
  Term complex_unary(const std::string& op, const Term& x) {
    const Parts z = as_parts(x);
    if (op == "real") return Term::of(z.re);
    if (op == "imag") return Term::of(z.im);
    if (op == "abs") return Term::of(math_.abs(z));
    if (op == "isnan" || op == "isinf") {
      const ScalarOp which = scalar_op(op);
      return Term::of(b_.op(ScalarOp::bits_or, {b_.op(which, {z.re}), b_.op(which, {z.im})}));
    }
    if (const auto result = math_.unary(op, z)) return Term::of(*result);
    throw BuildError{b_.lowering().unsupported_case("complex operands")};
  }
  Term complex_binary(const std::string& op, const Term& x, const Term& y) {
    if (op == "==") return Term::of(test(ScalarOp::eq, ScalarOp::bits_and, x, y));
    if (op == "!=") return Term::of(test(ScalarOp::ne, ScalarOp::bits_or, x, y));
    const Parts left = as_parts(x);
    if (const auto result = math_.binary(op, left, as_parts(y))) return Term::of(*result);
    throw BuildError{b_.lowering().unsupported_case("complex operands")};
  }

  Term unary(const std::string& op, const Term& x) {
    if (x.kind == Term::Kind::Absent) return {};
    if (x.known()) {
      if (op == "neg" && x.kind == Term::Kind::Float) return Term::of(-x.number);
      if (op == "neg") return Term::of(-x.integer);
      if (op == "abs") return Term::of(std::abs(x.as_double()));
      if (const auto folded = known_function(op, {x})) return *folded;
    }
    if (op == "bool") return Term::of(as(x, DType::b8));
    if (x.is_complex() && op != "!") return complex_unary(op, x);
    if (op == "real" || op == "conj") return x;
    if (op == "imag") return Term::of(0.0);
    if (op == "!") return Term::of(b_.op(ScalarOp::bits_not, {as(x, DType::b8)}));
    if ((op == "abs" || op == "sign") && is_bool(compute_)) return x;
    return Term::of(b_.op(scalar_op(op), {own(x)}));
  }
  /// Bools keep their dtype, so that logic on them stays logic; all else is computed in compute_.
  Val own(const Term& x) {
    if (x.kind == Term::Kind::Value && is_bool(b_.dtype(x.value)) && is_bool(result_))
      return x.value;
    return number(x);
  }

  Term binary(const std::string& op, const Term& x, const Term& y) {
    const bool x_absent = x.kind == Term::Kind::Absent, y_absent = y.kind == Term::Kind::Absent;
    if (x.kind == Term::Kind::Text || y.kind == Term::Kind::Text)
      return Term::of((x.text == y.text) == (op == "=="));
    if (op == "min" || op == "max") {
      if (x_absent || y_absent) return x_absent ? y : x;
    } else if (x_absent || y_absent) {
      return {};
    }
    if (x.known() && y.known())
      if (const auto folded = known_binary(op, x, y)) return *folded;
    if (x.known() && y.known())
      if (const auto folded = known_function(op, {x, y})) return *folded;
    // alpha, value, scale: mostly 1
    if (op == "*" && x.known() && x.as_double() == 1) return y;
    if (op == "*" && y.known() && y.as_double() == 1) return x;
    if (op == "complex") {
      const Val re = number(x);
      return Term::of(Parts{re, number(y)});
    }
    if (x.is_complex() || y.is_complex()) return complex_binary(op, x, y);
    const bool logic = op == "&" || op == "|" || op == "^";
    if (logic && is_bool_value(x) && is_bool_value(y))
      return Term::of(b_.op(scalar_op(op), {x.value, y.value}));
    if (is_bool(compute_) && (op == "+" || op == "*"))
      return Term::of(
          b_.op(op == "+" ? ScalarOp::bits_or : ScalarOp::bits_and, {number(x), number(y)}));
    if (op == "nextafter" && result_ == DType::bf16)
      return Term::of(next_bf16(number(x), number(y)));
    if (op == "nextafter" && result_ == DType::f16) return Term::of(next_f16(number(x), number(y)));
    const Val left = number(x);
    if (!is_float(compute_) && divides(op)) check_divisor(y);
    return Term::of(b_.op(scalar_op(op), {left, number(y)}));
  }
  /// The neighbours of an f16 are 0x2000 away in the bits of the f32, and 2^-24 up to 2^-14.
  Val next_f16(Val x, Val y) {
    const auto f32 = [&](double v) { return b_.constant(ops::Scalar::of_float(DType::f32, v)); };
    const auto both = [&](ScalarOp op, Val a, Val b) { return b_.op(op, {a, b}); };
    const Val zero = f32(0), step = b_.integer(DType::i32, 0x2000), up = both(ScalarOp::lt, x, y);
    const Val size = b_.min(b_.op(ScalarOp::abs, {x}), f32(65536));  // beside the largest number
    const Val away = both(ScalarOp::eq, up, both(ScalarOp::gt, x, zero));
    const Val bits = b_.bitcast(size, DType::i32);
    const Val moved =
        b_.bitcast(b_.where(away, both(ScalarOp::add, bits, step), both(ScalarOp::sub, bits, step)),
                   DType::f32);
    const Val near = b_.add(x, b_.where(up, f32(0x1p-24), f32(-0x1p-24)));
    const Val large = both(ScalarOp::gt, size, f32(0x1p-14));
    const Val sign = b_.where(both(ScalarOp::eq, x, zero), y, x);
    const Val other = both(ScalarOp::copysign, b_.where(large, moved, near), sign);
    const Val next = b_.where(both(ScalarOp::eq, x, y), y, other);
    return b_.where(both(ScalarOp::eq, x, x), b_.where(both(ScalarOp::eq, y, y), next, y), x);
  }

  /// A bf16 is the upper half of an f32: its neighbours are 0x10000 away in the bits of that.
  Val next_bf16(Val x, Val y) {
    const auto f32 = [&](double v) { return b_.constant(ops::Scalar::of_float(DType::f32, v)); };
    const auto both = [&](ScalarOp op, Val a, Val b) { return b_.op(op, {a, b}); };
    const Val zero = f32(0), step = b_.integer(DType::i32, 0x10000);
    const Val away = both(ScalarOp::eq, both(ScalarOp::lt, x, y), both(ScalarOp::gt, x, zero));
    const Val bits = b_.bitcast(x, DType::i32);
    const Val moved =
        b_.bitcast(b_.where(away, both(ScalarOp::add, bits, step), both(ScalarOp::sub, bits, step)),
                   DType::f32);
    const Val least = both(ScalarOp::copysign, b_.bitcast(step, DType::f32), y);
    const Val other = b_.where(both(ScalarOp::eq, x, zero), least, moved);
    const Val next = b_.where(both(ScalarOp::eq, x, y), y, other);
    return b_.where(both(ScalarOp::eq, x, x), b_.where(both(ScalarOp::eq, y, y), next, y), x);
  }
  static bool divides(const std::string& op) {
    return op == "floordiv" || op == "truncdiv" || op == "fmod" || op == "remainder";
  }
  /// Integers divided by zero are an error, as in eager.
  void check_divisor(const Term& divisor) {
    if (divisor.known() && divisor.as_double() != 0) return;
    b_.index(b_.cast(number(divisor), DType::i64), b_.syms().constant(1), IndexPolicy::NotZero);
  }
  bool is_bool_value(const Term& t) const {
    return t.kind == Term::Kind::Value && is_bool(b_.dtype(t.value));
  }

  static ScalarOp scalar_op(const std::string& op) {
    for (const Symbol& symbol : kSymbols)
      if (symbol.text == op) return symbol.op;
    const auto found = ops::scalar_from_name(op);
    COIL_CHECK(found.has_value(), "no function {} in formulas", op);
    return *found;
  }

  BodyBuilder& b_;
  const Args& args_;
  DType compute_, common_, result_;
  ComplexMath math_;
  Exprs point_;
};

/// The dtype that PyTorch's promotion gives the operands of the present node.
DType common_dtype(const Lowering& l, const Args& args) {
  Promotion operands;
  for (const ops::SchemaArg& formal : args.schema().args) {
    const Arg& arg = args[formal.name];
    if (const auto* v = std::get_if<ValueId>(&arg); v && v->valid()) {
      if (l.type(*v).is_tensor())
        operands.tensors.push_back(l.type(*v));
      else
        operands.scalars.push_back(DType::f64);
    } else if (formal.type == ops::ArgType::Scalar && !formal.list) {
      if (std::holds_alternative<Expr>(arg)) operands.scalars.push_back(DType::i64);
      if (std::holds_alternative<double>(arg)) operands.scalars.push_back(DType::f64);
      if (std::holds_alternative<bool>(arg)) operands.scalars.push_back(DType::b8);
      if (std::holds_alternative<Complex>(arg)) operands.scalars.push_back(DType::c128);
    }
  }
  return promote(operands);
}

}  // namespace

const char* pointwise_formula(std::string_view op) {
  for (const Row& row : kRows)
    if (row.op == op) return row.formula;
  return nullptr;
}

std::vector<std::string_view> pointwise_ops() {
  std::vector<std::string_view> all;
  for (const Row& row : kRows) all.push_back(row.op);
  return all;
}

bool is_formula_word(std::string_view name) {
  for (std::string_view word : {"integral", "logical", "true", "false", "pi", "e", "inf", "nan",
                                "highest", "lowest", "floor", "trunc", "tanh", "is_complex"})
    if (name == word) return true;
  return false;
}

Val scalar_value(BodyBuilder& b, const Arg& arg, DType dtype) {
  if (const auto* x = std::get_if<double>(&arg))
    return b.constant(ops::Scalar::of_float(dtype, *x));
  if (const auto* x = std::get_if<bool>(&arg)) return b.integer(dtype, *x);
  if (const auto* e = std::get_if<Expr>(&arg)) return b.value(*e, dtype);
  const ValueId v = std::get<ValueId>(arg);
  if (b.lowering().has(v)) return b.cast(b.load(b.lowering().access(v), {}), dtype);
  return b.scalar(b.lowering().scalar(b.lowering().name_of(v)), dtype);
}

/// The dtype that values are computed in: of a complex number, that of a part.
DType computing_dtype(DType dtype) {
  return compute_dtype(is_complex(dtype) ? real_of(dtype) : dtype);
}

Status lower_pointwise(Lowering& l, const Node& node, const Args& args) {
  const Formula formula = COIL_TRY(parse_formula(pointwise_formula(node.op)));
  const Type type = l.type(node.outs.front());
  const DType result = type.dtype, operands = common_dtype(l, args);
  const DType common =
      is_bool(result) || (is_complex(operands) && !is_complex(result)) ? operands : result;
  const BufferId out = l.result();
  BodyBuilder b(l, l.name());
  Exprs at = b.dims(type.shape);
  Evaluator evaluator(b, args, computing_dtype(common), common, result);
  evaluator.set_point(at);
  Term value = evaluator.eval(formula);
  if (is_complex(result)) {
    const Parts z = evaluator.as_parts(value);
    at.push_back(l.syms.constant(0));
    b.store(out, at, z.re);
    at.back() = l.syms.constant(1);
    b.store(out, at, z.im);
  } else {
    if (value.is_complex() && !is_bool(result)) value = Term::of(value.parts.re);
    // A conversion to a real dtype drops the imaginary part. A plain copy moves the bits; anything
    // else is a number of the computing dtype.
    const bool moves = value.kind == Term::Kind::Value && b.dtype(value.value) == result;
    b.store(out, at,
            moves ? value.value
                  : evaluator.as(value, is_bool(result) ? result : compute_dtype(result)));
  }
  b.finish();
  return Ok{};
}

}  // namespace coil::lowering
