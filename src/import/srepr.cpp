#include <charconv>

#include "import/symbols.h"

namespace coil {
namespace {

constexpr int kMaxDepth = 200;
using Number = std::optional<HostNumber>;

/// Reads and evaluates in one pass. A value is nothing where it is no exact fraction; `failed` is
/// set where the text is no srepr at all.
class SreprReader {
 public:
  SreprReader(SymbolTable& symbols, std::string_view text)
      : symbols_(symbols), math_(symbols.syms()), rest_(text), whole_(text) {}

  Result<Number> run() {
    const Number value = expression(0);
    skip_spaces();
    if (!rest_.empty()) fail("text after its end");
    if (!failure_.empty()) return error("expression \"{}\": {}", shortened(), failure_);
    return value;
  }

 private:
  std::string shortened() const {
    constexpr std::size_t kShown = 120;
    return std::string(whole_.substr(0, kShown)) + (whole_.size() > kShown ? "..." : "");
  }
  Number fail(const std::string& why) {
    if (failure_.empty()) failure_ = why;
    return std::nullopt;
  }
  bool has_failed() const { return !failure_.empty(); }
  void skip_spaces() {
    while (!rest_.empty() && rest_[0] == ' ') rest_.remove_prefix(1);
  }
  bool at(char c) {
    skip_spaces();
    return !rest_.empty() && rest_[0] == c;
  }
  bool accept(char c) {
    if (!at(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string word() {
    skip_spaces();
    std::size_t end = 0;
    while (end < rest_.size() &&
           (std::isalnum(static_cast<unsigned char>(rest_[end])) || rest_[end] == '_'))
      ++end;
    const std::string out(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return out;
  }
  std::string quoted() {
    if (!accept('\'')) {
      fail("a quoted text is missing");
      return "";
    }
    const std::size_t end = rest_.find('\'');
    if (end == std::string_view::npos) {
      fail("a quote is not closed");
      return "";
    }
    const std::string out(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return out;
  }
  Number plain_integer() {
    skip_spaces();
    i64 value = 0;
    const auto [end, problem] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (problem != std::errc()) return fail("an integer is missing or too large");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return math_.integer(value);
  }

  Number expression(int depth) {
    if (depth > kMaxDepth) return fail("it is nested too deeply");
    skip_spaces();
    if (at('-') || (!rest_.empty() && std::isdigit(static_cast<unsigned char>(rest_[0]))))
      return plain_integer();
    const std::string head = word();
    if (head.empty()) return fail("a name is missing");
    if (!accept('(')) {
      if (head == "true" || head == "True") return math_.integer(1);
      if (head == "false" || head == "False") return math_.integer(0);
      return std::nullopt;  // oo, int_oo, nan
    }
    if (head == "Symbol") return symbol();
    if (head == "Integer") {
      const Number value = plain_integer();
      if (!accept(')')) return fail("a parenthesis is missing");
      return value;
    }
    if (head == "Float") return real();
    if (head == "Piecewise") return piecewise(depth);
    return apply(head, arguments(depth));
  }

  std::vector<Number> arguments(int depth) {
    std::vector<Number> values;
    while (!has_failed() && !accept(')')) {
      values.push_back(expression(depth + 1));
      if (!accept(',') && !at(')')) fail("a comma or parenthesis is missing");
    }
    return values;
  }

  Number symbol() {
    const std::string name = quoted();
    bool is_positive = false;
    while (!has_failed() && accept(',')) {
      const std::string key = word();
      if (!accept('=')) return fail("'=' is missing");
      const std::string value = word();
      if ((key == "positive" || key == "nonnegative") && value == "True") is_positive = true;
    }
    if (!accept(')')) return fail("a parenthesis is missing");
    if (name.starts_with('z')) return std::nullopt;
    Result<sym::Expr> var =
        symbols_.get(name, is_positive ? SymbolTable::Sign::Size : SymbolTable::Sign::Any);
    if (!var) return fail(var.error().message);
    return math_.integer(*var);
  }

  Number real() {
    const std::string text = quoted();
    while (!has_failed() && accept(',')) {
      word();
      accept('=');
      word();
    }
    if (!accept(')')) return fail("a parenthesis is missing");
    double value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size())
      return fail("a float is broken");
    return math_.real(value);
  }

  /// ExprCondPair(value, condition), ..., of which the first with a true condition counts.
  Number piecewise(int depth) {
    std::vector<std::pair<Number, Number>> cases;
    while (!has_failed() && !accept(')')) {
      if (word() != "ExprCondPair" || !accept('(')) return fail("ExprCondPair is missing");
      const std::vector<Number> pair = arguments(depth + 1);
      if (pair.size() != 2) return fail("ExprCondPair needs two arguments");
      cases.emplace_back(pair[0], pair[1]);
      if (!accept(',') && !at(')')) fail("a comma or parenthesis is missing");
    }
    if (cases.empty() || !cases.back().first) return std::nullopt;
    HostNumber value = *cases.back().first;
    for (std::size_t i = cases.size() - 1; i-- > 0;) {
      const auto& [yes, condition] = cases[i];
      if (!yes || !condition || yes->den != value.den) return std::nullopt;
      value.num = symbols_.syms().select(condition->num, yes->num, value.num);
    }
    return value;
  }

  Number fold(const std::vector<Number>& values,
              Number (HostMath::*op)(const HostNumber&, const HostNumber&) const) {
    Number out = values[0];
    for (std::size_t i = 1; i < values.size() && out; ++i) out = (math_.*op)(*out, *values[i]);
    return out;
  }

  Number logical(const std::string& head, const std::vector<Number>& values) {
    sym::Arena& syms = symbols_.syms();
    if (head == "Not") return math_.integer(syms.logical_not(values[0]->num));
    sym::Expr out = values[0]->num;
    for (std::size_t i = 1; i < values.size(); ++i)
      out = head == "And" ? syms.logical_and(out, values[i]->num)
                          : syms.logical_or(out, values[i]->num);
    return math_.integer(out);
  }

  Number apply(const std::string& head, const std::vector<Number>& values) {
    if (has_failed()) return std::nullopt;
    if (values.empty()) return std::nullopt;
    for (const Number& value : values)
      if (!value) return std::nullopt;
    const HostNumber& a = *values[0];
    if (head == "Add") return fold(values, &HostMath::add);
    if (head == "Mul") return fold(values, &HostMath::mul);
    if (head == "Min") return fold(values, &HostMath::min);
    if (head == "Max") return fold(values, &HostMath::max);
    if (head == "And" || head == "Or" || head == "Not") return logical(head, values);
    if (head == "TruncToInt") return math_.trunc(a);
    if (head == "FloorToInt") return math_.floor(a);
    if (head == "CeilToInt") return math_.ceil(a);
    if (head == "ToFloat") return math_.to_float(a);
    if (head == "Identity") return a;
    if (head == "Abs") return math_.max(a, math_.neg(a));
    if (values.size() == 2) return apply_two(head, a, *values[1]);
    if (values.size() == 3 && head == "ModularIndexing") {
      const Number quotient = math_.floordiv(a, *values[1]);
      return quotient ? math_.mod(*quotient, *values[2]) : std::nullopt;
    }
    if (values.size() == 3 && head == "Where" && values[1]->den == values[2]->den)
      return HostNumber{symbols_.syms().select(a.num, values[1]->num, values[2]->num),
                        values[1]->den, values[1]->is_float};
    return std::nullopt;
  }

  Number apply_two(const std::string& head, const HostNumber& a, const HostNumber& b) {
    struct Relation {
      std::string_view head, op;
    };
    static constexpr Relation kRelations[] = {
        {"Equality", "=="},      {"Unequality", "!="},  {"LessThan", "<="},
        {"StrictLessThan", "<"}, {"GreaterThan", ">="}, {"StrictGreaterThan", ">"},
    };
    for (const Relation& relation : kRelations)
      if (relation.head == head) return math_.compare(relation.op, a, b);
    if (head == "FloorDiv" || head == "CleanDiv") return math_.floordiv(a, b);
    if (head == "Mod" || head == "PythonMod") return math_.mod(a, b);
    if (head == "IntTrueDiv" || head == "FloatTrueDiv" || head == "Rational")
      return math_.truediv(a, b);
    if (head == "Pow" || head == "PowByNatural") return math_.pow(a, b);
    return std::nullopt;
  }

  SymbolTable& symbols_;
  HostMath math_;
  std::string_view rest_;
  std::string_view whole_;
  std::string failure_;
};

}  // namespace

Result<std::optional<HostNumber>> parse_srepr(SymbolTable& symbols, std::string_view text) {
  return SreprReader(symbols, text).run();
}

}  // namespace coil
