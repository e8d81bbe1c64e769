// Pointwise ops: one rule, whose rows (ops/pointwise.def) differ in how the result's dtype comes
// about.

#include "graph/rule.h"

namespace coil {
namespace {

enum class Promotes : u8 {
  Default,
  ToFloat,
  ToBool,
  First,
  Self,
  BoolToInt,
  Magnitude,
  Angle,
  Second,
  Bounds,
  DivMode,
  Double,
  ToComplex
};

DType float_if_integer(DType d) { return is_float(d) || is_complex(d) ? d : DType::f32; }

DType category(const Arg& number) {
  if (std::holds_alternative<bool>(number)) return DType::b8;
  if (std::holds_alternative<Complex>(number)) return DType::c128;
  return std::holds_alternative<sym::Expr>(number) ? DType::i64 : DType::f64;
}

/// Whether a Scalar argument takes part in promotion: a second operand does, a parameter does not.
bool is_operand(std::string_view name, Promotes how) {
  if (how == Promotes::Bounds) return name == "min" || name == "max";
  for (std::string_view operand : {"self", "other", "exponent", "x", "n"})
    if (name == operand) return true;
  return false;
}

Promotion operands_of(const Call& call, Promotes how) {
  Promotion operands;
  for (std::size_t i = how == Promotes::Second ? 1 : 0; i < call.node.args.size(); ++i) {
    const Arg& arg = call.node.args[i];
    const ops::SchemaArg& schema = call.schema.args[i];
    if (std::holds_alternative<None>(arg)) continue;
    if (schema.type == ops::ArgType::Tensor) {
      operands.tensors.push_back(call.graph.type(std::get<ValueId>(arg)));
    } else if (schema.type == ops::ArgType::Scalar && is_operand(schema.name, how)) {
      operands.scalars.push_back(category(arg));
    }
  }
  return operands;
}

DType result_dtype(const Call& call, Promotes how, const Types& tensors) {
  const DType first = tensors[0].dtype;
  switch (how) {
    case Promotes::Default:
    case Promotes::Second:
    case Promotes::Bounds: return promote(operands_of(call, how));
    case Promotes::ToFloat: return float_if_integer(promote(operands_of(call, how)));
    case Promotes::ToBool: return DType::b8;
    case Promotes::First: return first;
    case Promotes::Self: return call.tensor("self").dtype;
    case Promotes::BoolToInt: return is_bool(first) ? DType::i64 : first;
    case Promotes::Magnitude: return is_complex(first) ? real_of(first) : first;
    case Promotes::Angle: return is_complex(first) ? real_of(first) : float_if_integer(first);
    case Promotes::DivMode: {
      const DType promoted = promote(operands_of(call, how));
      return call.has("rounding_mode") ? promoted : float_if_integer(promoted);
    }
    case Promotes::Double:
      return is_complex(promote(operands_of(call, how))) ? DType::c128 : DType::f64;
    case Promotes::ToComplex: return complex_of(first);
  }
  COIL_UNREACHABLE();
}

/// The dtype to which eager converts the operands that take part in promotion, before it looks at
/// their layouts; none where the op wants them to agree.
std::optional<DType> common_dtype(const Call& call, Promotes how, const Types& tensors) {
  switch (how) {
    case Promotes::ToBool:
    case Promotes::Self: return promote(operands_of(call, how));
    case Promotes::First:
    case Promotes::BoolToInt:
    case Promotes::Magnitude:
    case Promotes::Angle:
    case Promotes::ToComplex: return std::nullopt;
    case Promotes::Default:
    case Promotes::ToFloat:
    case Promotes::Second:
    case Promotes::Bounds:
    case Promotes::DivMode:
    case Promotes::Double: return result_dtype(call, how, tensors);
  }
  COIL_UNREACHABLE();
}

/// Whether a number is an operand, which eager makes a tensor without dims of.
bool has_number(const Call& call, Promotes how) {
  for (std::size_t i = 0; i < call.node.args.size(); ++i) {
    const ops::SchemaArg& schema = call.schema.args[i];
    if (schema.type == ops::ArgType::Scalar && how != Promotes::Bounds &&
        schema.name != "exponent" && is_operand(schema.name, how))
      return true;
  }
  return false;
}

/// Eager gives a few ops their operands in another order, of which the first decides where strides
/// leave a choice. A converted operand has lost its gaps and repeated elements, and with them
/// its strides. Beside a number no operand has the result's shape alone, which would keep its
/// layout.
Sizes result_strides(const Call& call, Promotes how, Types tensors, const Sizes& shape) {
  if (const std::optional<DType> common = common_dtype(call, how, tensors))
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const bool is_condition = how == Promotes::Second && i == 0;
      if (tensors[i].dtype != (is_condition ? DType::b8 : *common))
        tensors[i].strides = strides_for(call.graph, tensors[i], MemoryFormat::Preserve);
    }
  for (std::string_view op : {"leaky_relu_backward", "threshold_backward", "rsub.Tensor"})
    if (call.op() == op && tensors.size() == 2) std::swap(tensors[0], tensors[1]);
  if (has_number(call, how)) tensors.push_back(call.contiguous(tensors[0].dtype, {}));
  return pointwise_strides(call.graph, tensors, shape);
}

template <Promotes how>
Result<Types> pointwise(const Call& call) {
  Types tensors;
  for (std::size_t i = 0; i < call.node.args.size(); ++i)
    if (call.schema.args[i].type == ops::ArgType::Tensor)
      if (const ValueId* v = std::get_if<ValueId>(&call.node.args[i]))
        tensors.push_back(call.graph.type(*v));
  if (tensors.empty()) return call.fail("an operand must be a tensor");
  Result<Sizes> shape = broadcast(call.graph, tensors);
  if (!shape.ok()) return in_context(call.op(), shape.error());
  const DType first = tensors[0].dtype;
  if (how == Promotes::First && !is_complex(first))
    for (const Type& t : tensors)
      if (is_complex(t.dtype)) return call.fail("takes no {} with {}", name(t.dtype), name(first));
  if (how == Promotes::ToComplex && first != DType::f16 && first != DType::f32 &&
      first != DType::f64)
    return call.fail("there is no complex number with parts of {}", name(first));
  Sizes strides = result_strides(call, how, tensors, *shape);
  return Types{
      call.strided(result_dtype(call, how, tensors), std::move(*shape), std::move(strides))};
}

/// The conjugate of a real tensor is that tensor itself, whatever its strides.
Result<Types> conjugate(const Call& call) {
  if (!is_complex(call.self().dtype)) return Types{call.self()};
  return pointwise<Promotes::First>(call);
}

/// A mantissa of self's dtype and an exponent.
Result<Types> frexp(const Call& call) {
  if (!is_float(call.self().dtype)) return call.fail("does not take {}", name(call.self().dtype));
  Types mantissa = COIL_TRY(pointwise<Promotes::First>(call));
  Type exponent = mantissa[0];
  exponent.dtype = DType::i32;
  return Types{mantissa[0], exponent};
}

constexpr RuleRow kRules[] = {
#define ROW(op, dtype, formula) {op, pointwise<Promotes::dtype>},
#define FORMULA(op, formula)
#define DTYPE(op, dtype) {op, pointwise<Promotes::dtype>},
#include "ops/pointwise.def"
#undef ROW
#undef FORMULA
#undef DTYPE
    {"conj_physical", conjugate},
    {"frexp.Tensor", frexp},
};

}  // namespace

std::span<const RuleRow> pointwise_rules() { return kRules; }

}  // namespace coil
