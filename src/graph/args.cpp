#include "graph/args.h"

#include <charconv>

namespace coil {
namespace {

using ops::ArgType;
using ops::SchemaArg;

/// Numbers of "[-2, -1]"; nothing if there is something else in it.
std::optional<std::vector<double>> list_items(std::string_view text) {
  std::vector<double> items;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    double item = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), item);
    if (problem != std::errc{}) return std::nullopt;
    items.push_back(item);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    while (!text.empty() && (text[0] == ',' || text[0] == ' ')) text.remove_prefix(1);
  }
  return items;
}

std::string unquoted(std::string_view text) {
  std::string out;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] == '\\' && i + 2 < text.size()) ++i;
    out += text[i];
  }
  return out;
}

Arg list_arg(sym::Arena& syms, ArgType type, const std::vector<double>& items) {
  if (type == ArgType::Tensor) return std::vector<ValueId>();
  if (type == ArgType::Float || type == ArgType::Scalar) return items;
  if (type == ArgType::Bool) return std::vector<bool>(items.begin(), items.end());
  std::vector<sym::Expr> exprs;
  for (double item : items) exprs.push_back(syms.constant(static_cast<i64>(item)));
  return exprs;
}

/// A default that is a number, of an argument (or list item) of this type.
std::optional<Arg> number_arg(sym::Arena& syms, ArgType type, std::string_view text) {
  const bool whole = text.find_first_of(".e") == text.npos;
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (type == ArgType::Float || !whole) return value;
  return syms.constant(static_cast<i64>(value));
}

bool is_scalar(const Graph& graph, const Arg& arg) {
  if (const ValueId* v = std::get_if<ValueId>(&arg))
    return v->valid() && graph.type(*v).kind == TypeKind::Float;
  return std::holds_alternative<sym::Expr>(arg) || std::holds_alternative<double>(arg) ||
         std::holds_alternative<bool>(arg) || std::holds_alternative<Complex>(arg);
}

bool is_tensor(const Graph& graph, ValueId v) {
  return v.valid() && v.index < graph.values.size() && graph.type(v).is_tensor();
}

bool fits_list(const Graph& graph, const SchemaArg& schema, const Arg& value) {
  if (schema.type == ArgType::Tensor) {
    const std::vector<ValueId>* list = std::get_if<std::vector<ValueId>>(&value);
    if (list == nullptr) return false;
    for (ValueId v : *list)
      if (!(v.valid() ? is_tensor(graph, v) : schema.optional_items)) return false;
    return true;
  }
  if (is_integer(schema.type)) return std::holds_alternative<std::vector<sym::Expr>>(value);
  if (schema.type == ArgType::Bool) return std::holds_alternative<std::vector<bool>>(value);
  return std::holds_alternative<std::vector<double>>(value) ||
         (schema.type == ArgType::Scalar && std::holds_alternative<std::vector<sym::Expr>>(value));
}

bool fits(const Graph& graph, const SchemaArg& schema, const Arg& value) {
  if (schema.list) return fits_list(graph, schema, value);
  switch (schema.type) {
    case ArgType::Tensor: {
      const ValueId* v = std::get_if<ValueId>(&value);
      return v != nullptr && is_tensor(graph, *v);
    }
    case ArgType::Scalar: return is_scalar(graph, value);
    case ArgType::Int:
    case ArgType::SymInt: return std::holds_alternative<sym::Expr>(value);
    case ArgType::Float: return is_scalar(graph, value) && !std::holds_alternative<bool>(value);
    case ArgType::Bool:
      return std::holds_alternative<bool>(value) || std::holds_alternative<sym::Expr>(value);
    case ArgType::String: return std::holds_alternative<std::string>(value);
    case ArgType::DType: return std::holds_alternative<DType>(value);
    case ArgType::Device: return std::holds_alternative<Device>(value);
    case ArgType::MemoryFormat: return std::holds_alternative<MemoryFormat>(value);
    case ArgType::Layout:
    case ArgType::Generator:
    case ArgType::Other: return std::holds_alternative<None>(value);
  }
  COIL_UNREACHABLE();
}

std::string wanted_text(const SchemaArg& schema) {
  static constexpr std::string_view kNames[] = {
      "tensor", "number", "integer", "integer",       "float", "bool", "string",
      "dtype",  "none",   "device",  "memory format", "none",  "none"};
  std::string out(kNames[static_cast<std::size_t>(schema.type)]);
  if (schema.list) out = "list of " + out + "s";
  return schema.optional ? out + " or None" : out;
}

/// Torch's conventions for writing arguments, undone: see complete_args.
Arg normalised(const Graph& graph, const SchemaArg& schema, Arg value) {
  if (const ValueId* v = std::get_if<ValueId>(&value); v != nullptr && v->valid()) {
    const Type& type = graph.type(*v);
    if (type.kind == TypeKind::Int || type.kind == TypeKind::Bool) value = type.expr;
  }
  if (schema.list && schema.list_size > 0 && std::holds_alternative<sym::Expr>(value))
    value = std::vector<sym::Expr>(static_cast<std::size_t>(schema.list_size),
                                   std::get<sym::Expr>(value));
  if (schema.list && std::holds_alternative<std::vector<ValueId>>(value) &&
      is_integer(schema.type)) {
    std::vector<sym::Expr> exprs;
    for (ValueId v : std::get<std::vector<ValueId>>(value)) {
      if (!v.valid() || graph.type(v).kind != TypeKind::Int) return value;
      exprs.push_back(graph.type(v).expr);
    }
    return exprs;
  }
  if (schema.type == ArgType::Float && std::holds_alternative<sym::Expr>(value)) {
    if (std::optional<i64> number = graph.syms->as_const(std::get<sym::Expr>(value)))
      value = static_cast<double>(*number);
  }
  return value;
}

}  // namespace

Result<Arg> default_arg(sym::Arena& syms, const SchemaArg& arg) {
  COIL_CHECK(arg.fallback.has_value(), "{} has no default", arg.name);
  const std::string_view text = *arg.fallback;
  if (text == "None") return Arg(None{});
  if (text == "True") return Arg(true);
  if (text == "False") return Arg(false);
  if (text == "Mean") return Arg(syms.constant(1));
  if (text == "long") return Arg(DType::i64);
  if (text == "contiguous_format") return Arg(MemoryFormat::Contiguous);
  if (text.starts_with('[')) {
    if (std::optional<std::vector<double>> items = list_items(text))
      return list_arg(syms, arg.type, *items);
  } else if (text.starts_with('"') || text.starts_with('\'')) {
    return Arg(unquoted(text));
  } else if (std::optional<Arg> number = number_arg(syms, arg.type, text)) {
    if (!arg.list) return *number;
    if (const sym::Expr* item = std::get_if<sym::Expr>(&*number))
      return Arg(
          std::vector<sym::Expr>(static_cast<std::size_t>(std::max(arg.list_size, 1)), *item));
  }
  return error("coil cannot read the default '{}' of argument {}", text, arg.name);
}

bool is_default(sym::Arena& syms, const SchemaArg& arg, const Arg& value) {
  if (!arg.fallback) return false;
  Result<Arg> fallback = default_arg(syms, arg);
  return fallback.ok() && *fallback == value;
}

Status check_arg(const Graph& graph, const SchemaArg& schema, const Arg& value) {
  if (std::holds_alternative<None>(value)) {
    const bool always_none = schema.type == ArgType::Layout || schema.type == ArgType::Generator ||
                             schema.type == ArgType::Other;
    if (schema.optional || always_none) return Ok{};
  } else if (fits(graph, schema, value)) {
    return Ok{};
  }
  return error("argument {} must be a {}, not {}", schema.name, wanted_text(schema),
               kind_text(value));
}

Result<std::vector<Arg>> complete_args(const Graph& graph, const ops::Schema& schema,
                                       std::vector<Arg> args) {
  if (args.size() > schema.args.size())
    return error("{} takes {} arguments, not {}", schema.full_name(), schema.args.size(),
                 args.size());
  for (std::size_t i = 0; i < args.size(); ++i) {
    args[i] = normalised(graph, schema.args[i], std::move(args[i]));
    Status fit = check_arg(graph, schema.args[i], args[i]);
    if (!fit.ok()) return in_context(schema.full_name(), fit.error());
  }
  for (std::size_t i = args.size(); i < schema.args.size(); ++i) {
    if (!schema.args[i].fallback)
      return error("{}: argument {} is missing", schema.full_name(), schema.args[i].name);
    args.push_back(COIL_TRY(default_arg(*graph.syms, schema.args[i])));
  }
  return args;
}

std::string kind_text(const Arg& arg) {
  static constexpr std::string_view kKinds[] = {
      "None",    "a value",          "a list of values", "an integer",      "a list of integers",
      "a float", "a list of floats", "a bool",           "a list of bools", "a string",
      "a dtype", "a memory format",  "a device",         "a complex number"};
  static_assert(std::size(kKinds) == std::variant_size_v<Arg>);
  return std::string(kKinds[arg.index()]);
}

}  // namespace coil
