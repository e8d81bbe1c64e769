#include "sym/tree.h"

#include <algorithm>
#include <charconv>

#include "sym/code.h"

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

}  // namespace

Result<Tree> parse_tree(TextReader& in) { return Parser(in).disjunction(); }

ExprValue evaluate(Kind kind, std::span<const ExprValue> operands) {
  const runtime::ExprOp op = op_of(kind);
  if (kind == Kind::Not || kind == Kind::Select) return runtime::evaluate(op, operands);
  ExprValue out = operands[0];
  for (const ExprValue& o : operands.subspan(1)) {
    const ExprValue pair[] = {out, o};
    out = runtime::evaluate(op, pair);
  }
  return out;
}

namespace {

ExprValue eval_wide(const Tree& tree,
                    const std::function<std::optional<i64>(const std::string&)>& value) {
  if (tree.kind == Kind::Const) return tree.value;
  if (tree.kind == Kind::Var) {
    const std::optional<i64> v = value(tree.name);
    return v ? ExprValue(*v) : std::nullopt;
  }
  std::vector<ExprValue> operands;
  for (const Tree& c : tree.children) operands.push_back(eval_wide(c, value));
  return evaluate(tree.kind, operands);
}

}  // namespace

std::optional<i64> eval_tree(const Tree& tree,
                             const std::function<std::optional<i64>(const std::string&)>& value) {
  return runtime::narrow(eval_wide(tree, value));
}

}  // namespace coil::sym
