#include "import/guards.h"

#include <algorithm>
#include <charconv>

namespace coil {
namespace {

constexpr int kMaxDepth = 100;
using Number = std::optional<HostNumber>;

/// Recursive descent by Python's precedence. Every function gives nothing where the text does not
/// fit or a number has no exact form; the reader is not used after that.
class PythonReader {
 public:
  PythonReader(const GuardScope& scope, std::string_view text)
      : scope_(scope), math_(scope.symbols.syms()), rest_(text) {}

  Number run() {
    const Number value = disjunction();
    skip_spaces();
    return rest_.empty() ? value : std::nullopt;
  }

 private:
  static bool is_name_char(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  }
  void skip_spaces() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_[0])))
      rest_.remove_prefix(1);
  }
  bool accept(std::string_view text) {
    skip_spaces();
    if (!rest_.starts_with(text)) return false;
    const bool is_word = is_name_char(text.back());
    if (is_word && rest_.size() > text.size() && is_name_char(rest_[text.size()])) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  bool at(std::string_view text) {
    skip_spaces();
    return rest_.starts_with(text);
  }

  Number disjunction() {
    Number left = conjunction();
    while (left && accept("or")) {
      const Number right = conjunction();
      if (!right) return std::nullopt;
      left = math_.integer(math_.syms().logical_or(left->num, right->num));
    }
    return left;
  }
  Number conjunction() {
    Number left = negation();
    while (left && accept("and")) {
      const Number right = negation();
      if (!right) return std::nullopt;
      left = math_.integer(math_.syms().logical_and(left->num, right->num));
    }
    return left;
  }
  Number negation() {
    if (!accept("not")) return comparison();
    if (++depth_ > kMaxDepth) return std::nullopt;
    const Number value = negation();
    return value ? Number(math_.integer(math_.syms().logical_not(value->num))) : std::nullopt;
  }
  /// a < b <= c means both.
  Number comparison() {
    Number left = sum();
    Number all;
    while (left) {
      std::string_view found;
      for (std::string_view op : {"==", "!=", "<=", ">=", "<", ">"})
        if (found.empty() && accept(op)) found = op;
      if (found.empty()) break;
      const Number right = sum();
      if (!right) return std::nullopt;
      const HostNumber one = math_.compare(found, *left, *right);
      all = all ? math_.integer(math_.syms().logical_and(all->num, one.num)) : one;
      left = right;
    }
    return left && all ? all : left;
  }
  Number sum() {
    Number left = product();
    while (left && (at("+") || at("-"))) {
      const bool is_minus = accept("-");
      if (!is_minus) accept("+");
      const Number right = product();
      if (!right) return std::nullopt;
      left = math_.add(*left, is_minus ? math_.neg(*right) : *right);
    }
    return left;
  }
  Number product() {
    Number left = unary();
    while (left) {
      Number (HostMath::*op)(const HostNumber&, const HostNumber&) const = nullptr;
      if (at("**")) break;
      if (accept("//"))
        op = &HostMath::floordiv;
      else if (accept("*"))
        op = &HostMath::mul;
      else if (accept("/"))
        op = &HostMath::truediv;
      else if (accept("%"))
        op = &HostMath::mod;
      if (op == nullptr) break;
      const Number right = unary();
      if (!right) return std::nullopt;
      left = (math_.*op)(*left, *right);
    }
    return left;
  }
  Number unary() {
    if (++depth_ > kMaxDepth) return std::nullopt;
    Number value;
    if (accept("-")) {
      value = unary();
      if (value) value = math_.neg(*value);
    } else {
      value = power();
    }
    --depth_;
    return value;
  }
  Number power() {
    const Number base = atom();
    if (!base || !accept("**")) return base;
    const Number exponent = unary();
    return exponent ? math_.pow(*base, *exponent) : std::nullopt;
  }

  Number atom() {
    skip_spaces();
    if (accept("(")) {
      const Number inside = disjunction();
      return accept(")") ? inside : std::nullopt;
    }
    if (rest_.starts_with("L[")) return input();
    if (!rest_.empty() && (std::isdigit(static_cast<unsigned char>(rest_[0])) || rest_[0] == '.'))
      return literal();
    return named();
  }

  Number literal() {
    const std::size_t length = std::min(rest_.find_first_not_of("0123456789.e"), rest_.size());
    const std::string_view text = rest_.substr(0, length);
    rest_.remove_prefix(length);
    if (text.find_first_of(".e") == text.npos) {
      i64 value = 0;
      const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
      return problem == std::errc() && end == text.data() + length ? Number(math_.integer(value))
                                                                   : std::nullopt;
    }
    double value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    return problem == std::errc() && end == text.data() + length ? math_.real(value) : std::nullopt;
  }

  /// The text of `L[...]...[...]`, then a size or, for an int argument, nothing more.
  Number input() {
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] == '[') {
      const std::size_t close = rest_.find(']', end);
      if (close == rest_.npos) return std::nullopt;
      end = close + 1;
    }
    const auto found = scope_.inputs.find(std::string(rest_.substr(0, end)));
    rest_.remove_prefix(end);
    if (found == scope_.inputs.end()) return std::nullopt;
    const Type& type = scope_.graph.type(found->second);
    const bool wants_size = accept(".size()"), wants_stride = !wants_size && accept(".stride()");
    if (!wants_size && !wants_stride)
      return type.expr.valid() ? Number(math_.integer(type.expr)) : std::nullopt;
    if (!accept("[")) return std::nullopt;
    const Number index = sum();
    const std::optional<double> at = index ? math_.as_constant(*index) : std::nullopt;
    const std::vector<sym::Expr>& dims = wants_size ? type.shape : type.strides;
    if (!accept("]") || !at || *at < 0 || *at >= static_cast<double>(dims.size()))
      return std::nullopt;
    return math_.integer(dims[static_cast<std::size_t>(*at)]);
  }

  Number named() {
    std::size_t length = 0;
    while (length < rest_.size() && (is_name_char(rest_[length]) || rest_[length] == '.')) ++length;
    const std::string name(rest_.substr(0, length));
    rest_.remove_prefix(length);
    if (name.empty()) return std::nullopt;
    if (!accept("(")) {
      if (name == "True") return math_.integer(1);
      if (name == "False") return math_.integer(0);
      const std::optional<sym::Expr> symbol = scope_.symbols.find(name);
      return symbol ? Number(math_.integer(*symbol)) : std::nullopt;
    }
    std::vector<HostNumber> values;
    while (!accept(")")) {
      const Number value = disjunction();
      if (!value || (!accept(",") && !at(")"))) return std::nullopt;
      values.push_back(*value);
    }
    return call(name.substr(name.rfind('.') + 1), values);
  }

  Number call(const std::string& name, const std::vector<HostNumber>& values) {
    if (values.size() == 1) {
      if (name == "trunc" || name == "TruncToInt" || name == "int" || name == "sym_int")
        return math_.trunc(values[0]);
      if (name == "floor" || name == "FloorToInt") return math_.floor(values[0]);
      if (name == "ceil" || name == "CeilToInt" || name == "ceiling") return math_.ceil(values[0]);
      if (name == "sym_float" || name == "float" || name == "ToFloat")
        return math_.to_float(values[0]);
      if (name == "sym_not" || name == "Not")
        return math_.integer(math_.syms().logical_not(values[0].num));
      return std::nullopt;
    }
    const bool is_max = name == "max" || name == "Max" || name == "sym_max";
    const bool is_min = name == "min" || name == "Min" || name == "sym_min";
    if ((is_max || is_min) && !values.empty()) {
      Number out = values[0];
      for (std::size_t i = 1; i < values.size() && out; ++i)
        out = is_max ? math_.max(*out, values[i]) : math_.min(*out, values[i]);
      return out;
    }
    if (values.size() != 2) return std::nullopt;
    if (name == "Mod" || name == "PythonMod") return math_.mod(values[0], values[1]);
    if (name == "FloorDiv" || name == "CleanDiv") return math_.floordiv(values[0], values[1]);
    if (name == "IntTrueDiv" || name == "FloatTrueDiv") return math_.truediv(values[0], values[1]);
    if (name == "PowByNatural") return math_.pow(values[0], values[1]);
    return std::nullopt;
  }

  const GuardScope& scope_;
  HostMath math_;
  std::string_view rest_;
  int depth_ = 0;
};

/// The bounds of `var` that `condition` states, where it is one comparison that is linear in it.
std::optional<sym::Range> bounds_of(sym::Arena& syms, sym::Expr condition, sym::Expr var) {
  const sym::Kind kind = syms.kind(condition);
  if (kind != sym::Kind::Le && kind != sym::Kind::Lt && kind != sym::Kind::Eq) return std::nullopt;
  const sym::Expr left = syms.operands(condition)[0], right = syms.operands(condition)[1];
  const sym::Expr room = syms.sub(right, left);  // >= 0, > 0 or == 0
  const std::optional<sym::Expr> slope = syms.stride(room, var);
  const std::optional<i64> step = slope ? syms.as_const(*slope) : std::nullopt;
  const std::optional<i64> at_zero =
      syms.as_const(syms.substitute(room, {{var, syms.constant(0)}}));
  constexpr i64 kMax = i64{1} << 62;
  if (!step || !at_zero || *at_zero >= kMax || *at_zero <= -kMax) return std::nullopt;
  if (*step != 1 && *step != -1) return std::nullopt;
  const i64 slack = kind == sym::Kind::Lt ? 1 : 0;
  sym::Range range;
  if (kind == sym::Kind::Eq) {
    range.lo = range.hi = *step == 1 ? -*at_zero : *at_zero;
  } else if (*step == 1) {
    range.lo = slack - *at_zero;
  } else {
    range.hi = *at_zero - slack;
  }
  return range;
}

}  // namespace

std::optional<HostNumber> parse_python(const GuardScope& scope, std::string_view text) {
  return PythonReader(scope, text).run();
}

void add_condition(Graph& graph, sym::Expr condition, const std::string& text) {
  sym::Arena& syms = *graph.syms;
  if (syms.kind(condition) == sym::Kind::And) {
    const std::vector<sym::Expr> parts(syms.operands(condition).begin(),
                                       syms.operands(condition).end());
    for (sym::Expr part : parts) add_condition(graph, part, text);
    return;
  }
  if (syms.as_const(condition) == 1) return;
  std::vector<sym::Expr> variables;
  syms.variables(condition, variables);
  if (variables.size() == 1 && syms.var(variables[0]).role == sym::Role::Size) {
    const sym::Expr var = variables[0];
    if (const std::optional<sym::Range> bounds = bounds_of(syms, condition, var)) {
      const sym::Range old = syms.var(var).range;
      const sym::Range both{std::max(old.lo, bounds->lo), std::min(old.hi, bounds->hi)};
      if (both.lo <= both.hi) {
        syms.set_range(var, both);
        return;
      }
    }
  }
  graph.facts.add(condition);
  graph.checks.push_back({condition, text});
}

}  // namespace coil
