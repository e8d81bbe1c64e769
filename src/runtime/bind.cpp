#include "runtime/bind.h"

namespace coil::runtime {
namespace {

std::string kind_of(const Value& v) {
  if (const auto* t = std::get_if<Tensor>(&v)) return describe(*t);
  if (const auto* i = std::get_if<i64>(&v)) return str("the int {}", *i);
  if (const auto* f = std::get_if<double>(&v)) return str("the float {}", *f);
  if (const auto* b = std::get_if<bool>(&v)) return *b ? "True" : "False";
  if (const auto* s = std::get_if<std::string>(&v)) return str("the string '{}'", *s);
  return "None";
}

bool equal(const Value& a, const Value& b) {
  if (a.index() != b.index()) return false;
  if (const auto* i = std::get_if<i64>(&a)) return *i == std::get<i64>(b);
  if (const auto* f = std::get_if<double>(&a)) return *f == std::get<double>(b);
  if (const auto* x = std::get_if<bool>(&a)) return *x == std::get<bool>(b);
  if (const auto* s = std::get_if<std::string>(&a)) return *s == std::get<std::string>(b);
  return !std::holds_alternative<Tensor>(a);
}

Status check_kind(const PlanInput& input, const Value& given) {
  switch (input.kind) {
    case PlanInput::Kind::Int:
      if (!std::holds_alternative<i64>(given))
        return error("input '{}' is an int, found {}", input.name, kind_of(given));
      return Ok{};
    case PlanInput::Kind::Float:
      if (!std::holds_alternative<double>(given))
        return error("input '{}' is a float, found {}", input.name, kind_of(given));
      return Ok{};
    case PlanInput::Kind::Fixed:
      if (std::holds_alternative<Tensor>(given) || !equal(given, input.fixed))
        return error("input '{}' is {}, expected {}: the program was exported for this value alone",
                     input.name, kind_of(given), kind_of(input.fixed));
      return Ok{};
    case PlanInput::Kind::Tensor: break;
  }
  const auto* t = std::get_if<Tensor>(&given);
  if (!t) return error("input '{}' is a tensor, found {}", input.name, kind_of(given));
  if (t->dtype != input.dtype)
    return error("input '{}' has dtype {}, expected {}", input.name, name(t->dtype),
                 name(input.dtype));
  if (t->shape.size() != input.shape.size())
    return error("input '{}' has {} dims, expected {}", input.name, t->shape.size(),
                 input.shape.size());
  if (t->data == nullptr && t->numel() > 0)
    return error("input '{}' has {} elements, but has no memory", input.name, t->numel());
  return Ok{};
}

Status bind_symbols(const Plan& plan, std::span<const Value> inputs, CallContext& call) {
  for (const Binding& b : plan.bindings) {
    const i64 size = b.dim < 0
                         ? std::get<i64>(inputs[b.input])
                         : std::get<Tensor>(inputs[b.input]).shape[static_cast<std::size_t>(b.dim)];
    if (size % b.factor != 0)
      return error("input '{}' has size {} in dim {}, expected a multiple of {}",
                   plan.inputs[b.input].name, size, b.dim, b.factor);
    call.symbols[b.symbol] = size / b.factor;
  }
  for (std::size_t i = 0; i < plan.inputs.size(); ++i)
    if (plan.inputs[i].kind == PlanInput::Kind::Float)
      call.scalars[plan.inputs[i].scalar] = std::get<double>(inputs[i]);
  return Ok{};
}

Status check_sizes(const Plan& plan, std::span<const Value> inputs, const Frame& frame) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const PlanInput& input = plan.inputs[i];
    if (input.kind == PlanInput::Kind::Int) {
      const i64 expected = COIL_TRY(frame.eval(input.value));
      if (std::get<i64>(inputs[i]) != expected)
        return error("input '{}' is {}, expected {}: the program was exported for this value alone",
                     input.name, std::get<i64>(inputs[i]), expected);
    }
    if (input.kind != PlanInput::Kind::Tensor) continue;
    const Tensor& t = std::get<Tensor>(inputs[i]);
    for (std::size_t d = 0; d < t.shape.size(); ++d) {
      const i64 expected = COIL_TRY(frame.eval(input.shape[d]));
      if (t.shape[d] == expected) continue;
      const std::string rule = to_text(plan.exprs[input.shape[d]], plan.symbols);
      const std::string why = rule == std::to_string(expected) ? std::string() : str(" ({})", rule);
      return error("input '{}' has size {} in dim {}, expected {}{}", input.name, t.shape[d], d,
                   expected, why);
    }
  }
  return Ok{};
}

std::string range_text(const SymbolRange& r) {
  if (r.hi == INT64_MAX) return str("at least {}", r.lo);
  return str("{}..{}", r.lo, r.hi);
}

}  // namespace

Result<bool> lies_as_planned(const PlanInput& input, const Tensor& given, const Frame& frame) {
  bool same = true;
  for (std::size_t d = 0; d < given.shape.size(); ++d) {
    if (given.shape[d] == 0) return true;
    if (given.shape[d] == 1) continue;
    same &= given.strides[d] == COIL_TRY(frame.eval(input.strides[d]));
  }
  return same;
}

Status bind_inputs(const Plan& plan, std::span<const Value> inputs, CallContext& call) {
  if (inputs.size() != plan.inputs.size())
    return error("{} inputs given, expected {}: {}", inputs.size(), plan.inputs.size(),
                 join(plan.inputs, ", ", [](const PlanInput& i) { return i.name; }));
  for (std::size_t i = 0; i < inputs.size(); ++i) COIL_TRY(check_kind(plan.inputs[i], inputs[i]));
  COIL_TRY(bind_symbols(plan, inputs, call));
  const Frame frame(plan, call);
  COIL_TRY(check_sizes(plan, inputs, frame));
  for (const SymbolRange& r : plan.ranges) {
    const i64 value = call.symbols[r.symbol];
    if (value >= r.lo && value <= r.hi) continue;
    std::string where = plan.symbols[r.symbol];
    for (const Binding& b : plan.bindings)
      if (b.symbol == r.symbol)
        where = b.dim < 0
                    ? str("input '{}'", plan.inputs[b.input].name)
                    : str("the size of input '{}' in dim {}", plan.inputs[b.input].name, b.dim);
    return error("{} is {}, expected {}", where, value, range_text(r));
  }
  for (const PlanCheck& check : plan.checks) COIL_TRY(frame.require(check));
  return Ok{};
}

}  // namespace coil::runtime
