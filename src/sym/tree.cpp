#include "sym/tree.h"

#include <algorithm>
#include <charconv>

namespace coil::sym {
namespace {

/// Recursive descent, loosest first: or, and, not, comparison, + -, * // %, unary -, primary.
class Parser {
 public:
  explicit Parser(TextReader& in) : in_(in) {}

  Result<Tree> disjunction() {
    if (++nesting_ > kMaxTreeDepth) return too_deep();
    Tree left = COIL_TRY(list(Kind::Or, "or", [this] { return conjunction(); }));
    --nesting_;
    return left;
  }

 private:
  Error too_deep() const {
    return in_.error_here(str("expression nested more than {} deep", kMaxTreeDepth));
  }

  Result<Tree> node(Kind kind, std::vector<Tree> children) {
    Tree tree;
    tree.kind = kind;
    for (const Tree& c : children) tree.depth = std::max(tree.depth, c.depth + 1);
    if (tree.depth > kMaxTreeDepth) return too_deep();
    tree.children = std::move(children);
    return tree;
  }

  template <class Next>
  Result<Tree> list(Kind kind, std::string_view separator, Next next) {
    std::vector<Tree> items;
    items.push_back(COIL_TRY(next()));
    while (in_.accept(separator)) items.push_back(COIL_TRY(next()));
    if (items.size() == 1) return std::move(items[0]);
    return node(kind, std::move(items));
  }

  Result<Tree> conjunction() {
    return list(Kind::And, "and", [this] { return negation(); });
  }

  Result<Tree> negation() {
    if (!in_.accept("not")) return comparison();
    if (++nesting_ > kMaxTreeDepth) return too_deep();
    Tree inner = COIL_TRY(negation());
    --nesting_;
    return node(Kind::Not, {std::move(inner)});
  }

  bool at_pair(std::string_view first, std::string_view second) const {
    return in_.at(first) && in_.peek(1).kind == TokenKind::Punct && in_.peek(1).text == second;
  }
  bool accept_pair(std::string_view first, std::string_view second) {
    if (!at_pair(first, second)) return false;
    in_.accept(first);
    return in_.accept(second);
  }

  Result<Tree> comparison() {
    Tree left = COIL_TRY(sum());
    struct Row {
      Kind kind;
      bool swapped;  // a > b is b < a
    };
    std::optional<Row> row;
    if (accept_pair("=", "=")) {
      row = {Kind::Eq, false};
    } else if (accept_pair("!", "=")) {
      row = {Kind::Ne, false};
    } else if (accept_pair("<", "=")) {
      row = {Kind::Le, false};
    } else if (accept_pair(">", "=")) {
      row = {Kind::Le, true};
    } else if (in_.accept("<")) {
      row = {Kind::Lt, false};
    } else if (in_.accept(">")) {
      row = {Kind::Lt, true};
    }
    if (!row) return left;
    Tree right = COIL_TRY(sum());
    if (row->swapped) std::swap(left, right);
    return node(row->kind, {std::move(left), std::move(right)});
  }

  Result<Tree> negated(Tree tree) {
    Tree minus_one;
    minus_one.value = -1;
    return node(Kind::Mul, {std::move(minus_one), std::move(tree)});
  }

  Result<Tree> sum() {
    std::vector<Tree> terms;
    terms.push_back(COIL_TRY(product()));
    while (in_.at("+") || in_.at("-")) {
      const bool minus = in_.accept("-");
      if (!minus) in_.accept("+");
      Tree term = COIL_TRY(product());
      if (minus) term = COIL_TRY(negated(std::move(term)));
      terms.push_back(std::move(term));
    }
    if (terms.size() == 1) return std::move(terms[0]);
    return node(Kind::Add, std::move(terms));
  }

  Result<Tree> product() {
    Tree left = COIL_TRY(unary());
    for (;;) {
      if (in_.accept("*")) {
        Tree right = COIL_TRY(unary());
        if (left.kind == Kind::Mul) {
          left.depth = std::max(left.depth, right.depth + 1);
          if (left.depth > kMaxTreeDepth) return too_deep();
          left.children.push_back(std::move(right));
        } else {
          left = COIL_TRY(node(Kind::Mul, {std::move(left), std::move(right)}));
        }
      } else if (accept_pair("/", "/")) {
        Tree right = COIL_TRY(unary());
        left = COIL_TRY(node(Kind::FloorDiv, {std::move(left), std::move(right)}));
      } else if (in_.accept("%")) {
        Tree right = COIL_TRY(unary());
        left = COIL_TRY(node(Kind::Mod, {std::move(left), std::move(right)}));
      } else if (std::optional<Tree> right = glued_divisor()) {
        left = COIL_TRY(node(Kind::Mod, {std::move(left), std::move(*right)}));
      } else {
        return left;
      }
    }
  }

  /// `i0 %4`, where the reader takes `%4` for a name.
  std::optional<Tree> glued_divisor() {
    const std::string_view text = in_.peek().text;
    Tree out;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out.value);
    if (in_.peek().kind != TokenKind::Name || end != text.data() + text.size() ||
        problem != std::errc{} || !in_.name().ok())
      return std::nullopt;
    return out;
  }

  Result<Tree> unary() {
    if (!in_.at("-") || in_.peek(1).kind == TokenKind::Integer) return primary();
    in_.accept("-");
    if (++nesting_ > kMaxTreeDepth) return too_deep();
    Tree inner = COIL_TRY(unary());
    --nesting_;
    return negated(std::move(inner));
  }

  Result<Tree> primary() {
    if (++leaves_ > kMaxTreeNodes)
      return in_.error_here(str("expression with more than {} terms", kMaxTreeNodes));
    if (in_.accept("(")) {
      Tree inner = COIL_TRY(disjunction());
      COIL_TRY(in_.expect(")"));
      return inner;
    }
    Tree leaf;
    if (in_.at("-") || in_.peek().kind == TokenKind::Integer) {
      leaf.value = COIL_TRY(in_.integer());
      return leaf;
    }
    if (in_.peek().kind != TokenKind::Word)
      return in_.error_here(str("expected an integer expression, found {}", in_.found()));
    leaf.kind = Kind::Var;
    leaf.name = COIL_TRY(in_.word());
    if (!in_.at("(")) return leaf;
    if (leaf.name == "min") return call(Kind::Min, 2, 1 << 20);
    if (leaf.name == "max") return call(Kind::Max, 2, 1 << 20);
    if (leaf.name == "select") return call(Kind::Select, 3, 3);
    return leaf;
  }

  Result<Tree> call(Kind kind, std::size_t least, std::size_t most) {
    COIL_TRY(in_.expect("("));
    std::vector<Tree> arguments;
    do {
      arguments.push_back(COIL_TRY(disjunction()));
    } while (in_.accept(","));
    COIL_TRY(in_.expect(")"));
    if (arguments.size() < least || arguments.size() > most)
      return in_.error_here(str("expected {} arguments, found {}", least, arguments.size()));
    return node(kind, std::move(arguments));
  }

  TextReader& in_;
  int nesting_ = 0;
  int leaves_ = 0;
};

bool fits(Wide value) { return value >= INT64_MIN && value <= INT64_MAX; }

Wide floor_div(Wide a, Wide b) {
  const Wide q = a / b;
  return q * b != a && ((a < 0) != (b < 0)) ? q - 1 : q;
}

std::optional<Wide> apply_ring(Kind kind, std::span<const std::optional<Wide>> operands) {
  Wide out = kind == Kind::Add ? 0 : 1;
  for (const std::optional<Wide>& v : operands) {
    if (!v) return std::nullopt;
    const bool overflow = kind == Kind::Add ? __builtin_add_overflow(out, *v, &out)
                                            : __builtin_mul_overflow(out, *v, &out);
    if (overflow) return std::nullopt;
  }
  return out;
}

/// And (deciding value 0) and Or (deciding value 1).
std::optional<Wide> apply_logical(std::span<const std::optional<Wide>> operands, bool deciding) {
  bool unknown = false;
  for (const std::optional<Wide>& v : operands) {
    if (v && (*v != 0) == deciding) return Wide{deciding};
    unknown |= !v;
  }
  return unknown ? std::nullopt : std::optional<Wide>(!deciding);
}

}  // namespace

Result<Tree> parse_tree(TextReader& in) { return Parser(in).disjunction(); }

std::optional<i64> narrow(std::optional<Wide> value) {
  if (!value || !fits(*value)) return std::nullopt;
  return static_cast<i64>(*value);
}

std::optional<Wide> evaluate(Kind kind, std::span<const std::optional<Wide>> operands) {
  if (kind == Kind::Add || kind == Kind::Mul) return apply_ring(kind, operands);
  if (kind == Kind::And || kind == Kind::Or) return apply_logical(operands, kind == Kind::Or);
  if (kind == Kind::Select) {
    if (!operands[0]) return std::nullopt;
    return narrow(operands[*operands[0] != 0 ? 1 : 2]);
  }
  for (const std::optional<Wide>& v : operands)
    if (!v || !fits(*v)) return std::nullopt;
  const Wide a = *operands[0];
  const Wide b = operands.size() > 1 ? *operands[1] : 0;
  switch (kind) {
    case Kind::FloorDiv: return b == 0 ? std::nullopt : std::optional<Wide>(floor_div(a, b));
    case Kind::Mod: return b == 0 ? std::nullopt : std::optional<Wide>(a - floor_div(a, b) * b);
    case Kind::Min: return **std::ranges::min_element(operands);
    case Kind::Max: return **std::ranges::max_element(operands);
    case Kind::Eq: return a == b;
    case Kind::Ne: return a != b;
    case Kind::Lt: return a < b;
    case Kind::Le: return a <= b;
    case Kind::Not: return a == 0;
    case Kind::Const:
    case Kind::Var:
    case Kind::Add:
    case Kind::Mul:
    case Kind::And:
    case Kind::Or:
    case Kind::Select: break;
  }
  COIL_UNREACHABLE();
}

namespace {

std::optional<Wide> eval_wide(
    const Tree& tree, const std::function<std::optional<i64>(const std::string&)>& value) {
  if (tree.kind == Kind::Const) return tree.value;
  if (tree.kind == Kind::Var) {
    const std::optional<i64> v = value(tree.name);
    return v ? std::optional<Wide>(*v) : std::nullopt;
  }
  std::vector<std::optional<Wide>> operands;
  for (const Tree& c : tree.children) operands.push_back(eval_wide(c, value));
  return evaluate(tree.kind, operands);
}

}  // namespace

std::optional<i64> eval_tree(const Tree& tree,
                             const std::function<std::optional<i64>(const std::string&)>& value) {
  return narrow(eval_wide(tree, value));
}

}  // namespace coil::sym
