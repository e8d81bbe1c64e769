// The verifier of level 1: structured nodes and control flow.

#include <algorithm>

#include "loop/text_marks.h"
#include "loop/verifier.h"

namespace coil::loop_verify {

Status ProgramVerifier::verify_structured(const Structured& node) {
  if (!is_word(node.name)) return error("a node's name is '{}', not a word", node.name);
  const auto check = [&]() -> Status {
    for (const Access& access : node.inputs) {
      COIL_TRY(verify_access(access, false));
      COIL_TRY(check_read(access.buffer));
      if (node.init) COIL_TRY(check_init(access.buffer));
    }
    for (const Access& access : node.outputs) {
      COIL_TRY(verify_access(access, true));
      for (const Access& input : node.inputs)
        if (input.buffer == access.buffer) return error("reads what it writes");
      if (node.init) init_[access.buffer] = true;
    }
    if (std::holds_alternative<Gemm>(node.attrs)) return verify_gemm(node);
    if (const auto* conv = std::get_if<Conv>(&node.attrs)) return verify_conv(node, *conv);
    if (const auto* a = std::get_if<Attention>(&node.attrs)) return verify_attention(node, *a);
    if (const auto* f = std::get_if<Factor>(&node.attrs)) return verify_factor(node, *f);
    if (const auto* fft = std::get_if<Fft>(&node.attrs)) return verify_fft(node, *fft);
    return verify_sort(node, std::get<Sort>(node.attrs));
  };
  const Status status = check();
  if (!status.ok()) return in_context("node " + node.name, status.error());
  return Ok{};
}

Status ProgramVerifier::verify_access(const Access& access, bool is_output) const {
  COIL_TRY(check_buffer(access.buffer));
  const auto check = [&]() -> Status {
    if (access.vars.size() != access.extents.size())
      return error("{} dims, {} extents", access.vars.size(), access.extents.size());
    if (access.index.size() != program_.buffers[access.buffer].shape.size())
      return error("{} indices for {} dims", access.index.size(),
                   program_.buffers[access.buffer].shape.size());
    Vars vars = sizes_;
    std::set<std::string> names;
    for (sym::Expr v : sizes_) names.insert(syms_.var(v).name);
    for (sym::Expr v : access.vars) {
      if (!v.valid() || v.index >= syms_.size() || syms_.kind(v) != sym::Kind::Var)
        return error("a dim is no variable");
      const std::string& name = syms_.var(v).name;
      if (!is_word(name) || !names.insert(name).second)
        return error("dim '{}' needs a name of its own", name);
      vars.insert(v);
    }
    COIL_TRY(check_exprs(access.extents, sizes_));
    COIL_TRY(check_exprs(access.index, vars));
    if (is_output && access.index != access.vars) return error("a result is a whole buffer");
    return Ok{};
  };
  const Status status = check();
  if (!status.ok()) return in_context(name_of(access.buffer), status.error());
  return Ok{};
}

namespace {

Status check_counts(const Structured& node, std::size_t least, std::size_t most,
                    std::size_t outputs) {
  if (node.inputs.size() < least || node.inputs.size() > most)
    return error("{} operands, expected {} to {}", node.inputs.size(), least, most);
  if (node.outputs.size() != outputs)
    return error("{} results, expected {}", node.outputs.size(), outputs);
  return Ok{};
}

Status check_rank(const Access& access, std::string_view what, std::size_t rank) {
  if (access.vars.size() != rank)
    return error("{} has {} dims, expected {}", what, access.vars.size(), rank);
  return Ok{};
}

}  // namespace

Status ProgramVerifier::verify_gemm(const Structured& node) const {
  COIL_TRY(check_counts(node, 2, 2, 1));
  const std::size_t rank = node.outputs[0].vars.size();
  if (rank < 2) return error("the result has {} dims, expected 2 or more", rank);
  COIL_TRY(check_rank(node.inputs[0], "a", rank));
  COIL_TRY(check_rank(node.inputs[1], "b", rank));
  const DType dtype = program_.buffers[node.inputs[0].buffer].dtype;
  if (dtype != program_.buffers[node.inputs[1].buffer].dtype || is_bool(dtype))
    return error("the operands are {} and {}", name(dtype),
                 name(program_.buffers[node.inputs[1].buffer].dtype));
  const DType result = program_.buffers[node.outputs[0].buffer].dtype;
  if (is_float(dtype) != is_float(result))
    return error("{} operands give {}", name(dtype), name(result));
  return Ok{};
}

Status ProgramVerifier::verify_conv(const Structured& node, const Conv& conv) const {
  COIL_TRY(check_counts(node, 2, 3, 1));
  const std::size_t rank = node.outputs[0].vars.size();
  if (rank < 3) return error("the result has {} dims, expected 3 or more", rank);
  COIL_TRY(check_rank(node.inputs[0], "x", rank));
  COIL_TRY(check_rank(node.inputs[1], "w", rank));
  if (node.inputs.size() == 3) COIL_TRY(check_rank(node.inputs[2], "bias", 1));
  for (const auto* list : {&conv.stride, &conv.padding, &conv.dilation, &conv.output_padding})
    if (list->size() != rank - 2) return error("{} values for {} dims", list->size(), rank - 2);
  const auto below = [](const std::vector<i64>& list, i64 least) {
    return std::ranges::any_of(list, [&](i64 v) { return v < least || v > INT32_MAX; });
  };
  if (below(conv.stride, 1) || below(conv.dilation, 1) || below(conv.padding, 0) ||
      below(conv.output_padding, 0) || conv.groups < 1)
    return error("a stride, dilation, padding or number of groups is out of range");
  for (const Access& input : node.inputs)
    if (program_.buffers[input.buffer].dtype != program_.buffers[node.inputs[0].buffer].dtype)
      return error("operands of several dtypes");
  return Ok{};
}

Status ProgramVerifier::verify_attention(const Structured& node, const Attention& attention) const {
  const std::size_t count = attention.has_mask ? 4 : 3;
  COIL_TRY(check_counts(node, count, count, 1));
  for (const Access& input : node.inputs) COIL_TRY(check_rank(input, "an operand", 4));
  COIL_TRY(check_rank(node.outputs[0], "the result", 4));
  for (std::size_t i = 0; i < count; ++i) {
    const DType dtype = program_.buffers[node.inputs[i].buffer].dtype;
    if (!is_float(dtype) && !(i == 3 && is_bool(dtype)))
      return error("operand {} is {}", i, name(dtype));
  }
  if (!is_float(program_.buffers[node.outputs[0].buffer].dtype))
    return error("the result is no float");
  return Ok{};
}

Status ProgramVerifier::verify_sort(const Structured& node, const Sort&) const {
  COIL_TRY(check_counts(node, 1, 1, 2));
  COIL_TRY(check_rank(node.inputs[0], "x", 2));
  COIL_TRY(check_rank(node.outputs[0], "the values", 2));
  COIL_TRY(check_rank(node.outputs[1], "the indices", 2));
  if (program_.buffers[node.outputs[0].buffer].dtype !=
      program_.buffers[node.inputs[0].buffer].dtype)
    return error("the values have another dtype than x");
  if (program_.buffers[node.outputs[1].buffer].dtype != DType::i64)
    return error("the indices are not i64");
  return Ok{};
}

/// By the kind's signature: how many dims, and of which dtypes. Sizes are compared when it runs.
Status ProgramVerifier::verify_factor(const Structured& node, const Factor& factor) const {
  const FactorSignature s = signature_of(factor.kind);
  const std::size_t count = node.inputs.size() + node.outputs.size();
  if (node.inputs.size() != s.inputs || (count != s.least && count != s.most))
    return error("{} operands and {} results of {}", node.inputs.size(), node.outputs.size(),
                 name(factor.kind));
  if ((factor.flags & ~flags_of(factor.kind)) != 0)
    return error("{} has no such flag", name(factor.kind));
  const auto at = [&](std::size_t i) -> const Access& {
    return i < s.inputs ? node.inputs[i] : node.outputs[i - s.inputs];
  };
  const bool is_complex = at(0).vars.size() > s.operands[0].dims.size();
  const DType element = program_.buffers[at(0).buffer].dtype;
  if (s.operands[0].type == 'x' && element != DType::f32 && element != DType::f64)
    return error("{} of {}", name(factor.kind), name(element));
  for (std::size_t i = 0; i < count; ++i) {
    const FactorOperand& o = s.operands[i];
    const bool pairs = o.type == 'c' || (o.type == 'x' && is_complex);
    COIL_TRY(check_rank(at(i), str("operand {}", i), o.dims.size() + (pairs ? 1 : 0)));
    const DType wanted = o.type == 'i' ? DType::i32 : o.type == 'l' ? DType::i64 : element;
    const DType found = program_.buffers[at(i).buffer].dtype;
    if (found != wanted)
      return error("operand {} is {}, expected {}", i, name(found), name(wanted));
  }
  return Ok{};
}

Status ProgramVerifier::verify_fft(const Structured& node, const Fft& fft) const {
  COIL_TRY(check_counts(node, 1, 1, 1));
  const Access &x = node.inputs[0], &y = node.outputs[0];
  const DType dtype = program_.buffers[x.buffer].dtype;
  if ((dtype != DType::f32 && dtype != DType::f64) || program_.buffers[y.buffer].dtype != dtype)
    return error("transforms {} into {}", name(dtype), name(program_.buffers[y.buffer].dtype));
  const std::size_t x_parts = fft.kind != FftKind::R2c, y_parts = fft.kind != FftKind::C2r;
  if (x.vars.size() < x_parts + 1) return error("x has {} dims", x.vars.size());
  const std::size_t rank = x.vars.size() - x_parts;
  COIL_TRY(check_rank(y, "y", rank + y_parts));
  if (fft.dim < 0 || static_cast<std::size_t>(fft.dim) >= rank)
    return error("dim {} of {}", fft.dim, rank);
  for (const auto& [side, parts] : {std::pair(&x, x_parts), std::pair(&y, y_parts)})
    if (parts == 1 && !syms_.is_const(side->extents.back(), 2))
      return error("the last dim of a complex side is not 2");
  return Ok{};
}

Status ProgramVerifier::verify_subprogram(const Control& control, u32 index, std::size_t inputs,
                                          std::size_t outputs) {
  if (index >= program_.subprograms.size()) return error("no such program");
  const LoopProgram& sub = program_.subprograms[index];
  if (sub.syms != program_.syms) return error("program {} has other expressions", sub.name);
  if (sub.inputs.size() != inputs || sub.outputs.size() != outputs)
    return error("program {} has {} inputs and {} outputs, expected {} and {}", sub.name,
                 sub.inputs.size(), sub.outputs.size(), inputs, outputs);
  for (const ProgramInput& input : sub.inputs)
    if (!input.buffer.valid()) return error("program {} takes a number", sub.name);
  for (const ProgramOutput& output : sub.outputs)
    if (output.kind != OutputKind::Value) return error("program {} returns no tensor", sub.name);
  Vars scope = sizes_;
  if (const auto* loop = std::get_if<For>(&control.kind)) scope.insert(loop->step);
  const Status status = ProgramVerifier(sub, scope, depth_ + 1).verify();
  if (!status.ok()) return in_context("program " + sub.name, status.error());
  return Ok{};
}

Status ProgramVerifier::verify_control(const Control& control) {
  if (!is_word(control.name)) return error("a node's name is '{}', not a word", control.name);
  const auto check = [&]() -> Status {
    for (BufferId b : control.carried) COIL_TRY(check_read(b));
    for (BufferId b : control.operands) COIL_TRY(check_read(b));
    const std::size_t inputs = control.carried.size() + control.operands.size();
    const std::size_t results = control.results.size();
    if (const auto* branch = std::get_if<If>(&control.kind)) {
      if (control.programs.size() != 2 || !control.carried.empty())
        return error("a branch has two programs and carries nothing");
      if (branch->condition.valid()) {
        COIL_TRY(check_expr(branch->condition, sizes_));
      } else {
        COIL_TRY(check_read(branch->predicate));
        const Buffer& predicate = program_.buffers[branch->predicate];
        if (predicate.dtype != DType::b8 || !predicate.shape.empty())
          return error("the condition is no single bool");
      }
      for (u32 p : control.programs) COIL_TRY(verify_subprogram(control, p, inputs, results));
      return Ok{};
    }
    if (std::holds_alternative<While>(control.kind)) {
      if (control.programs.size() != 2) return error("a while has two programs");
      if (results != control.carried.size())
        return error("{} carried, {} results", control.carried.size(), results);
      COIL_TRY(verify_subprogram(control, control.programs[0], inputs, 1));
      if (program_.subprograms[control.programs[0]].outputs[0].dtype != DType::b8)
        return error("the condition is no bool");
      return verify_subprogram(control, control.programs[1], inputs, results);
    }
    const For& loop = std::get<For>(control.kind);
    COIL_TRY(check_expr(loop.extent, sizes_));
    if (!loop.step.valid() || loop.step.index >= syms_.size() ||
        syms_.kind(loop.step) != sym::Kind::Var || syms_.var(loop.step).role != sym::Role::Step)
      return error("the step is no step variable");
    if (control.programs.size() != 1) return error("a for has one program");
    if (results < control.carried.size())
      return error("{} carried, {} results", control.carried.size(), results);
    return verify_subprogram(control, control.programs[0], inputs, results);
  };
  const Status status = check();
  if (!status.ok()) return in_context("node " + control.name, status.error());
  return Ok{};
}

}  // namespace coil::loop_verify
