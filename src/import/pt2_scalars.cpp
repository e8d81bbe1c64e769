// Nodes of a .pt2 that compute on sizes: they become expressions, not nodes.

#include <nlohmann/json.hpp>

#include "import/pt2_graph.h"
#include "import/pt2_types.h"

namespace coil {
namespace {

using Number = std::optional<HostNumber>;

Number shift(const HostMath& math, const HostNumber& a, const HostNumber& b, bool is_left) {
  const std::optional<double> by = math.as_constant(b);
  constexpr double kMaxShift = 62;
  if (!by || *by < 0 || *by > kMaxShift) return std::nullopt;
  const HostNumber factor = math.integer(i64{1} << static_cast<int>(*by));
  return is_left ? math.mul(a, factor) : math.floordiv(a, factor);
}

Number binary(const HostMath& math, const std::string& op, const HostNumber& a,
              const HostNumber& b) {
  sym::Arena& syms = math.syms();
  if (op == "add") return math.add(a, b);
  if (op == "sub") return math.add(a, math.neg(b));
  if (op == "mul") return math.mul(a, b);
  if (op == "floordiv") return math.floordiv(a, b);
  if (op == "truediv") return math.truediv(a, b);
  if (op == "mod") return math.mod(a, b);
  if (op == "pow") return math.pow(a, b);
  if (op == "sym_max") return math.max(a, b);
  if (op == "sym_min") return math.min(a, b);
  if (op == "lshift") return shift(math, a, b, true);
  if (op == "rshift") return shift(math, a, b, false);
  if (op == "eq") return math.compare("==", a, b);
  if (op == "ne") return math.compare("!=", a, b);
  if (op == "lt") return math.compare("<", a, b);
  if (op == "le") return math.compare("<=", a, b);
  if (op == "gt") return math.compare(">", a, b);
  if (op == "ge") return math.compare(">=", a, b);
  const auto is_truth = [&](const HostNumber& n) {
    const sym::Range range = syms.range(n.num);
    return math.as_integer(n) && range.lo >= 0 && range.hi <= 1;
  };
  if (op == "and_" && is_truth(a) && is_truth(b))
    return math.integer(syms.logical_and(a.num, b.num));
  if (op == "or_" && is_truth(a) && is_truth(b)) return math.integer(syms.logical_or(a.num, b.num));
  return std::nullopt;
}

Number compute(const HostMath& math, const std::string& op, const std::vector<HostNumber>& args) {
  if (args.size() == 1) {
    if (op == "neg") return math.neg(args[0]);
    if (op == "pos") return args[0];
    if (op == "trunc" || op == "sym_int") return math.trunc(args[0]);
    if (op == "floor") return math.floor(args[0]);
    if (op == "ceil") return math.ceil(args[0]);
    if (op == "sym_float") return math.to_float(args[0]);
    if (op == "sym_not") return math.integer(math.syms().logical_not(args[0].num));
    return std::nullopt;
  }
  if (args.size() == 2) return binary(math, op, args[0], args[1]);
  if (args.size() == 3 && op == "sym_ite" && args[1].den == args[2].den)
    return HostNumber{math.syms().select(args[0].num, args[1].num, args[2].num), args[1].den,
                      args[1].is_float || args[2].is_float};
  return std::nullopt;
}

}  // namespace

void Pt2GraphReader::read_scalar(const Json& node, const std::string& function) {
  const Json& outputs = array_of(field(node, "outputs"));
  if (outputs.size() != 1)
    fail("the program is damaged: {} has {} results", function, outputs.size());
  const std::string name = name_at(outputs[0]);
  std::vector<HostNumber> args;
  bool is_exact = true;
  for (const Json& input : array_of(field(node, "inputs"))) {
    const NamedValue value = value_of(field(input, "arg"));
    const HostNumber* number = std::get_if<HostNumber>(&value);
    is_exact &= number != nullptr;
    if (number != nullptr) args.push_back(*number);
  }
  Number result = is_exact ? compute(math_, function, args) : std::nullopt;
  // What coil cannot compute from the arguments the file may state in a form that it can.
  for (const char* table : {"sym_int_values", "sym_bool_values", "sym_float_values"}) {
    const Json* values = find_field(graph_, table);
    const Json* stated = values != nullptr && !result ? find_field(*values, name.c_str()) : nullptr;
    if (stated != nullptr) result = host_number_of(*stated, reading_.symbols);
  }
  if (result && math_.is_short(*result))
    define(name, *result);
  else
    define(name, Inexpressible{function});
}

}  // namespace coil
