// The verifier of level 1: bodies.

#include <algorithm>

#include "loop/text_marks.h"
#include "loop/text_parse.h"
#include "loop/verifier.h"

namespace coil::loop_verify {

namespace {

std::string_view kind_name(InstKind kind) {
  switch (kind) {
    case InstKind::Load: return "load";
    case InstKind::Store: return "store";
    case InstKind::Const: return "const";
    case InstKind::Value: return "value";
    case InstKind::Scalar: return "scalar";
    case InstKind::Index: return "index";
    case InstKind::Op: return "op";
    case InstKind::Reduce: return "reduce";
    case InstKind::Scan: return "scan";
  }
  COIL_UNREACHABLE();
}

bool is_shift(ops::ScalarOp op) { return op == ops::ScalarOp::shl || op == ops::ScalarOp::shr; }

}  // namespace

Status check_op(ops::ScalarOp op, std::span<const DType> operands, DType result) {
  const ops::ScalarInfo& row = ops::info(op);
  if (static_cast<int>(operands.size()) != row.arity)
    return error("{} takes {} operands, not {}", row.name, row.arity, operands.size());
  std::span<const DType> same = operands;
  if (op == ops::ScalarOp::where) {
    if (operands[0] != DType::b8) return error("the condition of where is {}", name(operands[0]));
    same = operands.subspan(1);
  }
  for (std::size_t i = 0; i < same.size(); ++i) {
    const bool is_count = is_shift(op) && i == 1;
    if (!ops::accepts(op, same[i])) return error("{} does not take {}", row.name, name(same[i]));
    if (same[i] != same[0] && !is_count)
      return error("operands of {} are {} and {}", row.name, name(same[0]), name(same[i]));
  }
  if (op == ops::ScalarOp::cast && is_complex(result)) return error("a cast gives no complex");
  if (op == ops::ScalarOp::bitcast &&
      (!ops::accepts(op, result) || size_of(result) != size_of(same[0])))
    return error("bitcast of {} to {}", name(same[0]), name(result));
  const DType expected = loop_text::result_dtype(op, operands, result);
  if (expected != result)
    return error("{} gives {}, not {}", row.name, name(expected), name(result));
  return Ok{};
}

Status check_combine(const ops::Combine& combine) {
  const std::size_t count = combine.values.size();
  if (count == 0) return error("a combine without values");
  if (!combine.name.empty()) {
    const auto named = ops::named_combine(combine.name, combine.values[0]);
    if (!named || !(*named == combine))
      return error("'{}' is not the combine of that name", combine.name);
  }
  if (combine.identity.size() != count || combine.results.size() != count)
    return error("a combine of {} values has {} starts and {} results", count,
                 combine.identity.size(), combine.results.size());
  std::vector<DType> dtypes = combine.values;
  dtypes.insert(dtypes.end(), combine.values.begin(), combine.values.end());
  for (std::size_t i = 0; i < combine.insts.size(); ++i) {
    const ops::RegionInst& inst = combine.insts[i];
    std::vector<DType> operands;
    for (u32 o : inst.operands) {
      if (o >= dtypes.size()) return error("c{} of a combine uses a later value", i);
      operands.push_back(dtypes[o]);
    }
    if (inst.constant) {
      if (inst.constant->dtype != inst.dtype) return error("c{} is a constant of two dtypes", i);
    } else if (const Status s = check_op(inst.op, operands, inst.dtype); !s.ok()) {
      return in_context(str("c{} of a combine", i), s.error());
    }
    dtypes.push_back(inst.dtype);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const DType want = combine.values[i];
    if (is_complex(want) || is_narrow_float(want))
      return error("a combine does not compute in {}", name(want));
    if (combine.identity[i].dtype != want)
      return error("start {} of a combine is not {}", i, name(want));
    if (combine.results[i] >= dtypes.size() || dtypes[combine.results[i]] != want)
      return error("result {} of a combine is not {}", i, name(want));
  }
  return Ok{};
}

BodyVerifier::BodyVerifier(const ProgramVerifier& program, const Body& body)
    : program_(program), body_(body), syms_(program.syms_), vars_(program.sizes_) {}

std::string BodyVerifier::describe(const Inst& inst) const {
  const std::string results = join(inst.results, ", ", [](Val v) { return str("v{}", v.index); });
  const std::string_view word =
      inst.kind == InstKind::Op ? ops::info(inst.op).name : kind_name(inst.kind);
  std::string text =
      str("body {}: {}{}{}", body_.name, results, results.empty() ? "" : " = ", word);
  if (inst.buffer.valid() && inst.buffer.index < program_.program_.buffers.size())
    text += " " + program_.name_of(inst.buffer);
  return text;
}

Status BodyVerifier::verify() {
  const std::string where = "body " + body_.name;
  if (!is_word(body_.name)) return error("a body's name is '{}', not a word", body_.name);
  for (sym::Expr size : program_.sizes_) names_.insert(syms_.var(size).name);
  if (const Status s = verify_dims(); !s.ok()) return in_context(where, s.error());
  for (const Inst& inst : body_.insts) {
    const Status s = verify_inst(inst);
    if (!s.ok()) return in_context(describe(inst), s.error());
  }
  if (next_ != body_.val_dtypes.size())
    return error("{}: {} values are defined, {} are listed", where, next_, body_.val_dtypes.size());
  const bool has_reduce =
      std::ranges::any_of(body_.dims, [](const Dim& dim) { return dim.kind == DimKind::Reduce; });
  if (has_reduce && !reducing_) return error("{}: reduce dims, and nothing reduces", where);
  return Ok{};
}

Status BodyVerifier::verify_dims() {
  DimKind kind = DimKind::Parallel;
  for (const Dim& dim : body_.dims) {
    COIL_TRY(program_.check_expr(dim.extent, program_.sizes_));
    if (!dim.var.valid() || dim.var.index >= syms_.size() || syms_.kind(dim.var) != sym::Kind::Var)
      return error("a dim is no variable");
    const sym::Variable& var = syms_.var(dim.var);
    const sym::Role role = dim.kind == DimKind::Reduce ? sym::Role::Reduce : sym::Role::Loop;
    if (var.role != role) return error("dim {} has the role of another kind", var.name);
    if (!is_word(var.name) || !names_.insert(var.name).second)
      return error("dim '{}' needs a name of its own", var.name);
    const bool ordered = kind == DimKind::Parallel || (kind == dim.kind && kind == DimKind::Reduce);
    if (!ordered)
      return error("dim {}: parallel dims come first, then reduce dims or one scan dim", var.name);
    kind = dim.kind;
    vars_.insert(dim.var);
    if (body_.init) COIL_TRY(program_.check_expr(dim.extent, {}));
  }
  return Ok{};
}

/// Before the reductions, in them, or after them.
Status BodyVerifier::verify_phase(const Inst& inst) {
  if (inst.kind == InstKind::Reduce) {
    if (finished_) return error("reductions stand together");
    reducing_ = true;
    return Ok{};
  }
  if (!reducing_ || finished_) return Ok{};
  finished_ = true;
  // Values of the reductions stay, all before them go.
  std::size_t results = 0;
  for (const Inst& other : body_.insts)
    if (other.kind == InstKind::Reduce) results += other.results.size();
  first_ = next_ - results;
  for (const Dim& dim : body_.dims)
    if (dim.kind == DimKind::Reduce) vars_.erase(dim.var);
  for (sym::Expr v : index_vars_) vars_.erase(v);
  index_vars_.clear();
  return Ok{};
}

Status BodyVerifier::verify_inst(const Inst& inst) {
  COIL_TRY(verify_phase(inst));
  for (Val v : inst.operands) COIL_TRY(use(v));
  const std::size_t results = inst.kind == InstKind::Store || inst.kind == InstKind::Index ? 0 : 1;
  if (inst.kind == InstKind::Reduce || inst.kind == InstKind::Scan) {
    COIL_TRY(verify_combining(inst));
    return define_results(inst);
  }
  if (inst.results.size() != results)
    return error("{} results, expected {}", inst.results.size(), results);
  switch (inst.kind) {
    case InstKind::Load: COIL_TRY(verify_element(inst)); break;
    case InstKind::Store: COIL_TRY(verify_store(inst)); break;
    case InstKind::Const:
      if (inst.constant.dtype != inst.dtype || is_complex(inst.dtype))
        return error("a constant of {} for {}", name(inst.constant.dtype), name(inst.dtype));
      break;
    case InstKind::Value:
      if (inst.dtype != DType::i64) return error("an index expression is an i64");
      COIL_TRY(program_.check_expr(inst.expr, vars_));
      break;
    case InstKind::Scalar:
      if (inst.scalar >= program_.program_.scalars.size()) return error("no such scalar");
      if (!is_float(inst.dtype) || is_narrow_float(inst.dtype))
        return error("a scalar is f32 or f64, not {}", name(inst.dtype));
      break;
    case InstKind::Index: COIL_TRY(verify_index(inst)); break;
    case InstKind::Op: {
      std::vector<DType> dtypes;
      for (Val v : inst.operands) dtypes.push_back(dtype(v));
      COIL_TRY(check_op(inst.op, dtypes, inst.dtype));
      break;
    }
    case InstKind::Reduce:
    case InstKind::Scan: COIL_UNREACHABLE();
  }
  return define_results(inst);
}

Status BodyVerifier::define_results(const Inst& inst) {
  for (std::size_t i = 0; i < inst.results.size(); ++i) {
    if (inst.results[i].index != next_ || next_ >= body_.val_dtypes.size())
      return error("v{} is not the next value", inst.results[i].index);
    const bool combining = inst.kind == InstKind::Reduce || inst.kind == InstKind::Scan;
    const DType want = combining ? body_.combines[inst.combine].values[i] : inst.dtype;
    if (body_.val_dtypes[next_] != want)
      return error("v{} is listed as {}, not {}", next_, name(body_.val_dtypes[next_]), name(want));
    ++next_;
  }
  return Ok{};
}

Status BodyVerifier::use(Val v) const {
  if (!v.valid() || v.index >= next_) return error("uses a value that is not defined yet");
  if (v.index < first_) return error("uses v{} from before the reduction", v.index);
  if (reducing_ && !finished_) {
    for (const Inst& inst : body_.insts)
      if (inst.kind == InstKind::Reduce && std::ranges::find(inst.results, v) != inst.results.end())
        return error("reduces v{}, which is a reduction's result", v.index);
  }
  return Ok{};
}

Status BodyVerifier::verify_element(const Inst& inst) const {
  COIL_TRY(program_.check_buffer(inst.buffer));
  const Buffer& buffer = program_.program_.buffers[inst.buffer];
  if (inst.dtype != buffer.dtype)
    return error("dtype {} of a buffer of {}", name(inst.dtype), name(buffer.dtype));
  if (inst.index.size() != buffer.shape.size())
    return error("{} indices for {} dims", inst.index.size(), buffer.shape.size());
  COIL_TRY(program_.check_exprs(inst.index, vars_));
  if (inst.mask.valid()) {
    COIL_TRY(use(inst.mask));
    if (dtype(inst.mask) != DType::b8) return error("the mask is {}", name(dtype(inst.mask)));
    if (inst.kind == InstKind::Load && inst.other.dtype != inst.dtype)
      return error("the masked-off value is {}", name(inst.other.dtype));
  }
  if (inst.kind == InstKind::Store) return Ok{};
  for (const Inst& other : body_.insts)
    if (other.kind == InstKind::Store && other.buffer == inst.buffer)
      return error("loads what the same body stores");
  return program_.check_read(inst.buffer);
}

Status BodyVerifier::verify_store(const Inst& inst) const {
  COIL_TRY(verify_element(inst));
  const Buffer& buffer = program_.program_.buffers[inst.buffer];
  if (inst.operands.size() != 1) return error("stores {} values", inst.operands.size());
  if (dtype(inst.operands[0]) != buffer.dtype)
    return error("stores {} in a buffer of {}", name(dtype(inst.operands[0])), name(buffer.dtype));
  if (inst.store_combine == StoreCombine::None) return verify_coverage(inst);
  if (!buffer.starts.valid()) return error("combines with a buffer that starts as nothing");
  return Ok{};
}

/// Points that differ in a parallel dim alone write different elements, unless a mask or an index
/// from data says which of them write.
Status BodyVerifier::verify_coverage(const Inst& inst) const {
  if (inst.mask.valid()) return Ok{};
  Vars used;
  for (sym::Expr e : inst.index) {
    std::vector<sym::Expr> variables;
    syms_.variables(e, variables);
    used.insert(variables.begin(), variables.end());
  }
  for (sym::Expr v : used)
    if (index_vars_.contains(v)) return Ok{};
  const auto is_empty = [&](const Dim& dim) { return syms_.is_const(dim.extent, 0); };
  if (std::ranges::any_of(body_.dims, is_empty)) return Ok{};
  for (const Dim& dim : body_.dims) {
    const bool whole = dim.kind == DimKind::Parallel || (dim.kind == DimKind::Reduce && !reducing_);
    if (whole && !syms_.is_const(dim.extent, 1) && !used.contains(dim.var))
      return error("every point along {} stores the same element", syms_.var(dim.var).name);
  }
  return Ok{};
}

Status BodyVerifier::verify_index(const Inst& inst) {
  if (inst.operands.size() != 1 || dtype(inst.operands[0]) != DType::i64)
    return error("an index is made from one i64");
  COIL_TRY(program_.check_expr(inst.extent, program_.sizes_));
  if (!inst.expr.valid() || inst.expr.index >= syms_.size() ||
      syms_.kind(inst.expr) != sym::Kind::Var)
    return error("an index defines no variable");
  const sym::Variable& var = syms_.var(inst.expr);
  if (var.role != sym::Role::Value) return error("index {} has another role", var.name);
  if (!is_word(var.name) || !names_.insert(var.name).second)
    return error("index '{}' needs a name of its own", var.name);
  vars_.insert(inst.expr);
  index_vars_.insert(inst.expr);
  return Ok{};
}

Status BodyVerifier::verify_combining(const Inst& inst) const {
  const bool is_reduce = inst.kind == InstKind::Reduce;
  const DimKind kind = is_reduce ? DimKind::Reduce : DimKind::Scan;
  if (std::ranges::none_of(body_.dims, [&](const Dim& dim) { return dim.kind == kind; }))
    return error("no dim to go over");
  if (inst.combine >= body_.combines.size()) return error("no such combine");
  const ops::Combine& combine = body_.combines[inst.combine];
  COIL_TRY(check_combine(combine));
  const std::size_t elements = combine.name.empty() ? combine.values.size() : 1;
  if (inst.operands.size() != elements || inst.results.size() != combine.values.size())
    return error("{} operands and {} results, expected {} and {}", inst.operands.size(),
                 inst.results.size(), elements, combine.values.size());
  for (std::size_t i = 0; i < elements; ++i)
    if (dtype(inst.operands[i]) != combine.values[i])
      return error("takes {} as {}", name(dtype(inst.operands[i])), name(combine.values[i]));
  const u32 lanes = inst.tree.lanes;
  if (is_reduce && (lanes == 0 || (lanes & (lanes - 1)) != 0 || inst.tree.accs == 0))
    return error("a tree of {}x{}: lanes are a power of two", lanes, inst.tree.accs);
  if (is_reduce && inst.tree.block % (lanes * inst.tree.accs) != 0)
    return error("a block of {} is no whole number of rounds of {}x{}", inst.tree.block, lanes,
                 inst.tree.accs);
  return Ok{};
}

}  // namespace coil::loop_verify
