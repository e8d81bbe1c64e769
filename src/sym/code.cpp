#include "sym/code.h"

namespace coil::sym {

using runtime::ExprCode;
using runtime::ExprOp;

ExprOp op_of(Kind kind) {
  switch (kind) {
    case Kind::Const: return ExprOp::Push;
    case Kind::Var: return ExprOp::Load;
    case Kind::Add: return ExprOp::Add;
    case Kind::Mul: return ExprOp::Mul;
    case Kind::FloorDiv: return ExprOp::FloorDiv;
    case Kind::Mod: return ExprOp::Mod;
    case Kind::Min: return ExprOp::Min;
    case Kind::Max: return ExprOp::Max;
    case Kind::Eq: return ExprOp::Eq;
    case Kind::Ne: return ExprOp::Ne;
    case Kind::Lt: return ExprOp::Lt;
    case Kind::Le: return ExprOp::Le;
    case Kind::And: return ExprOp::And;
    case Kind::Or: return ExprOp::Or;
    case Kind::Not: return ExprOp::Not;
    case Kind::Select: return ExprOp::Select;
  }
  COIL_UNREACHABLE();
}

namespace {

class Compiler {
 public:
  Compiler(const Arena& arena, const std::function<std::optional<u32>(Expr)>& slot)
      : arena_(arena), slot_(slot) {}

  /// `depth`: values on the stack below this one, which bounds the recursion too.
  Status emit(Expr e, std::size_t depth) {
    constexpr std::size_t kMaxLength = 1 << 16;
    if (depth >= runtime::kMaxExprStack / 2 || code.size() > kMaxLength || nesting_ > kMaxNesting)
      return Error{"a size expression is too large to be evaluated at run time"};
    const Kind kind = arena_.kind(e);
    if (kind == Kind::Const || kind == Kind::Var) return leaf(e, kind);
    ++nesting_;
    const std::span<const Expr> in = arena_.operands(e);
    const bool folds = kind != Kind::Select && in.size() > 1;
    for (std::size_t i = 0; i < in.size(); ++i) {
      COIL_TRY(emit(in[i], depth + (folds ? (i > 0 ? 1 : 0) : i)));
      if (folds && i > 0) code.push_back(static_cast<i64>(op_of(kind)));
    }
    if (!folds) code.push_back(static_cast<i64>(op_of(kind)));
    --nesting_;
    return Ok{};
  }

  ExprCode code;

 private:
  static constexpr int kMaxNesting = 2000;

  Status leaf(Expr e, Kind kind) {
    code.push_back(static_cast<i64>(op_of(kind)));
    if (kind == Kind::Const) {
      code.push_back(*arena_.as_const(e));
      return Ok{};
    }
    const std::optional<u32> slot = slot_(e);
    if (!slot) return error("no value is known at run time for '{}'", arena_.var(e).name);
    code.push_back(*slot);
    return Ok{};
  }

  const Arena& arena_;
  const std::function<std::optional<u32>(Expr)>& slot_;
  int nesting_ = 0;
};

}  // namespace

Result<ExprCode> compile(const Arena& arena, Expr e,
                         const std::function<std::optional<u32>(Expr)>& slot) {
  Compiler compiler(arena, slot);
  COIL_TRY(compiler.emit(e, 0));
  return std::move(compiler.code);
}

}  // namespace coil::sym
