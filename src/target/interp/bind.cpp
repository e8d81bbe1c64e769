#include "target/interp/bind.h"

#include <algorithm>

namespace coil::interp {
namespace {

/// `expr` has this value, says input `where`.
struct Equation {
  sym::Expr expr;
  i64 value = 0;
  std::string where;
};

std::string input_name(const LoopProgram& program, std::size_t i) {
  const std::string& name = program.inputs[i].name;
  return name.empty() ? str("input {}", i) : str("input {} ({})", i, name);
}

std::string_view kind_of(const runtime::Value& value) {
  constexpr std::string_view kNames[] = {"a tensor", "an int",   "a float",
                                         "a bool",   "a string", "none"};
  return kNames[value.index()];
}

Status add_tensor(const LoopProgram& program, std::size_t i, const runtime::Tensor& given,
                  std::vector<Equation>& equations) {
  const runtime::Tensor tensor = as_real(given);
  const Buffer& buffer = program.buffers[program.inputs[i].buffer];
  const std::string where = input_name(program, i);
  if (is_complex(given.dtype) != program.inputs[i].is_complex)
    return error("{} is {}, expected {}", where, name(given.dtype),
                 name(program.inputs[i].is_complex ? complex_of(buffer.dtype) : buffer.dtype));
  if (tensor.dtype != buffer.dtype)
    return error("{} is {}, expected {}", where, name(given.dtype), name(buffer.dtype));
  if (tensor.shape.size() != buffer.shape.size())
    return error("{} has {} dims, expected {}", where, given.shape.size(),
                 buffer.shape.size() - (tensor.shape.size() - given.shape.size()));
  for (std::size_t d = 0; d < tensor.shape.size(); ++d)
    equations.push_back({buffer.shape[d], tensor.shape[d], str("dim {} of {}", d, where)});
  return Ok{};
}

/// Whether the argument is the one that the program was made for.
bool equals_fixed(const runtime::Value& value, const Arg& fixed, const Env& env) {
  if (const auto* e = std::get_if<sym::Expr>(&fixed)) {
    const auto* v = std::get_if<i64>(&value);
    return v != nullptr && env.eval(*e) == *v;
  }
  if (const auto* d = std::get_if<double>(&fixed)) {
    const auto* v = std::get_if<double>(&value);
    return v != nullptr && (*v == *d || (*v != *v && *d != *d));
  }
  if (const auto* b = std::get_if<bool>(&fixed)) {
    const auto* v = std::get_if<bool>(&value);
    return v != nullptr && *v == *b;
  }
  if (const auto* s = std::get_if<std::string>(&fixed)) {
    const auto* v = std::get_if<std::string>(&value);
    return v != nullptr && *v == *s;
  }
  return std::holds_alternative<None>(fixed) && std::holds_alternative<std::monostate>(value);
}

Status add_input(const LoopProgram& program, std::size_t i, const runtime::Value& value, Env& env,
                 std::vector<Equation>& equations) {
  const ProgramInput& input = program.inputs[i];
  const auto wrong = [&](std::string_view expected) {
    return error("{} is {}, expected {}", input_name(program, i), kind_of(value), expected);
  };
  if (input.buffer.valid()) {
    const auto* tensor = std::get_if<runtime::Tensor>(&value);
    if (tensor == nullptr) return wrong("a tensor");
    return add_tensor(program, i, *tensor, equations);
  }
  if (input.is_fixed) {
    if (!equals_fixed(value, input.fixed, env))
      return error("{} differs from the value that the program was made for",
                   input_name(program, i));
    return Ok{};
  }
  if (input.is_float) {
    const auto* number = std::get_if<double>(&value);
    const auto* integer = std::get_if<i64>(&value);
    if (number == nullptr && integer == nullptr) return wrong("a float");
    env.scalars[input.scalar] = number != nullptr ? *number : static_cast<double>(*integer);
    return Ok{};
  }
  i64 number = 0;
  if (const auto* integer = std::get_if<i64>(&value)) {
    number = *integer;
  } else if (const auto* flag = std::get_if<bool>(&value)) {
    number = *flag;
  } else {
    return wrong("an int");
  }
  equations.push_back({input.size, number, input_name(program, i)});
  return Ok{};
}

/// Solves an equation that is linear in its one unknown; true if that gave a value.
Result<bool> solve(const Equation& equation, const LoopProgram& program, Env& env) {
  std::vector<sym::Expr> variables;
  program.syms->variables(equation.expr, variables);
  std::erase_if(variables, [&](sym::Expr v) { return env.values.contains(v); });
  if (variables.size() != 1) return false;
  const auto at = [&](i64 value) {
    env.values[variables[0]] = value;
    const std::optional<i64> result = env.eval(equation.expr);
    env.values.erase(variables[0]);
    return result;
  };
  // Two points give the line; a third, the solution itself, shows that it was one.
  const std::optional<i64> first = at(1);
  const std::optional<i64> second = at(2);
  i64 slope = 0;
  i64 rest = 0;
  if (!first || !second || __builtin_sub_overflow(*second, *first, &slope) || slope == 0 ||
      __builtin_sub_overflow(equation.value, *first, &rest))
    return false;
  const i64 solution = slope == -1 && rest == INT64_MIN ? 0 : rest / slope + 1;
  if (at(solution) != equation.value) return false;
  for (const ProgramSize& size : program.sizes) {
    if (size.var != variables[0]) continue;
    const sym::Variable& var = program.syms->var(size.var);
    if (solution < var.range.lo || solution > var.range.hi)
      return in_context(equation.where,
                        Frame(program, false, env).check_range(size, solution).error());
  }
  env.values[variables[0]] = solution;
  return true;
}

Status solve_all(const LoopProgram& program, std::vector<Equation> equations, Env& env) {
  // Dims that are a variable alone come first: what else they say is then a check.
  std::ranges::stable_partition(
      equations, [&](const Equation& e) { return program.syms->kind(e.expr) == sym::Kind::Var; });
  for (bool progress = true; progress;) {
    progress = false;
    for (const Equation& equation : equations) progress |= COIL_TRY(solve(equation, program, env));
  }
  for (const Equation& equation : equations) {
    const std::optional<i64> expected = env.eval(equation.expr);
    if (expected == equation.value) continue;
    const std::string text = program.syms->text(equation.expr);
    if (!expected)
      return error("{} is {}, which '{}' cannot be", equation.where, equation.value, text);
    const std::string number = str("{}", *expected);
    return error("{} is {}, expected {}{}", equation.where, equation.value,
                 text == number ? "" : text + " = ", number);
  }
  return Ok{};
}

}  // namespace

runtime::Tensor as_real(const runtime::Tensor& tensor) {
  if (!is_complex(tensor.dtype)) return tensor;
  runtime::Tensor real = tensor;
  real.dtype = real_of(tensor.dtype);
  for (i64& stride : real.strides) stride *= 2;
  real.shape.push_back(2);
  real.strides.push_back(1);
  return real;
}

Status bind_inputs(const LoopProgram& program, std::span<const runtime::Value> inputs, Env& env) {
  if (inputs.size() != program.inputs.size())
    return error("{} inputs given, {} expected", inputs.size(), program.inputs.size());
  env.scalars.assign(program.scalars.size(), 0.0);
  std::vector<Equation> equations;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    COIL_TRY(add_input(program, i, inputs[i], env, equations));
  COIL_TRY(solve_all(program, std::move(equations), env));
  for (const ProgramSize& size : program.sizes) {
    if (size.from.valid() || env.values.contains(size.var)) continue;
    return error("no input gives size {} its value", program.syms->var(size.var).name);
  }
  return Ok{};
}

Status check_conditions(const LoopProgram& program, const Env& env, CheckScope scope) {
  for (const Check& check : program.checks) {
    const std::optional<i64> value = env.eval(check.condition);
    if (value && *value == 0) return error("{}", check.text);
    if (!value && scope == CheckScope::All)
      return error("{}: '{}' has no value", check.text, program.syms->text(check.condition));
  }
  return Ok{};
}

}  // namespace coil::interp
