#include "lower/formula.h"

#include <array>
#include <cctype>
#include <cstdlib>

namespace coil::lowering {
namespace {

/// The binary operators, loosest first; those of one row bind equally and to the left.
constexpr std::array<std::array<std::string_view, 6>, 6> kBinary{
    {{"|"}, {"^"}, {"&"}, {"==", "!=", "<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/"}}};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Formula> whole() {
    Formula formula = COIL_TRY(choice());
    skip_space();
    if (at_ != text_.size()) return unexpected();
    return formula;
  }

 private:
  Error unexpected() const {
    return error("formula '{}': unexpected '{}' at {}", text_, text_.substr(at_, 1), at_);
  }
  void skip_space() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(std::string_view token) {
    skip_space();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  static Formula call(std::string name, std::vector<Formula> operands) {
    return {Formula::Kind::Call, std::move(name), 0, false, std::move(operands)};
  }

  Result<Formula> choice() {
    Formula condition = COIL_TRY(binary(0));
    if (!accept("?")) return condition;
    Formula yes = COIL_TRY(choice());
    if (!accept(":")) return unexpected();
    Formula no = COIL_TRY(choice());
    return call("?:", {std::move(condition), std::move(yes), std::move(no)});
  }

  Result<Formula> binary(std::size_t level) {
    if (level == kBinary.size()) return unary();
    Formula left = COIL_TRY(binary(level + 1));
    for (;;) {
      std::string_view found;
      for (std::string_view op : kBinary[level])
        if (found.empty() && !op.empty() && accept(op)) found = op;
      if (found.empty()) return left;
      Formula right = COIL_TRY(binary(level + 1));
      left = call(std::string(found), {std::move(left), std::move(right)});
    }
  }

  Result<Formula> unary() {
    if (accept("-")) return call("neg", {COIL_TRY(unary())});
    if (accept("~")) return call("bits_not", {COIL_TRY(unary())});
    if (accept("!")) return call("!", {COIL_TRY(unary())});
    return primary();
  }

  Result<Formula> primary() {
    if (accept("(")) {
      Formula inner = COIL_TRY(choice());
      if (!accept(")")) return unexpected();
      return inner;
    }
    skip_space();
    if (at_ == text_.size()) return unexpected();
    const char c = text_[at_];
    if (std::isdigit(static_cast<unsigned char>(c))) return literal();
    if (!std::isalpha(static_cast<unsigned char>(c)) && c != '_') return unexpected();
    std::string name;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'))
      name += text_[at_++];
    if (!accept("(")) return Formula{Formula::Kind::Name, name, 0, false, {}};
    std::vector<Formula> operands;
    if (!accept(")")) {
      do operands.push_back(COIL_TRY(choice()));
      while (accept(","));
      if (!accept(")")) return unexpected();
    }
    return call(std::move(name), std::move(operands));
  }

  Result<Formula> literal() {
    const std::string rest(text_.substr(at_));
    char* end = nullptr;
    const double number = std::strtod(rest.c_str(), &end);
    const std::string_view digits(rest.c_str(), static_cast<std::size_t>(end - rest.c_str()));
    at_ += digits.size();
    return Formula{Formula::Kind::Number,
                   "",
                   number,
                   digits.find_first_of(".e") == std::string_view::npos,
                   {}};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<Formula> parse_formula(std::string_view text) { return Parser(text).whole(); }

void formula_names(const Formula& formula, std::vector<std::string>& out) {
  if (formula.kind == Formula::Kind::Name) out.push_back(formula.name);
  const bool first_is_series = formula.name == "chebyshev";
  for (std::size_t k = first_is_series ? 1 : 0; k < formula.operands.size(); ++k)
    formula_names(formula.operands[k], out);
}

}  // namespace coil::lowering
