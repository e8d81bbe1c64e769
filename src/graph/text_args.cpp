#include "graph/text_args.h"

#include <algorithm>

#include "graph/args.h"
#include "graph/rules.h"
#include "graph/text_names.h"

namespace coil {
namespace {

using ops::ArgType;
using ops::SchemaArg;

constexpr int kMaxListDepth = 4;

Result<RawArg> read_arg_at(TextReader& in, const ArgScope& scope, int depth);

Result<RawArg> read_list(TextReader& in, const ArgScope& scope, int depth) {
  RawArg arg;
  arg.kind = RawKind::List;
  arg.line = in.line();
  if (depth > kMaxListDepth) return in.error_here("lists are nested too deeply");
  COIL_TRY(in.expect("["));
  if (in.accept("]")) return arg;
  do {
    arg.items.push_back(COIL_TRY(read_arg_at(in, scope, depth + 1)));
  } while (in.accept(","));
  COIL_TRY(in.expect("]"));
  return arg;
}

bool ends_arg(const Token& t) {
  return t.kind == TokenKind::End ||
         (t.kind == TokenKind::Punct &&
          (t.text == "," || t.text == ")" || t.text == "]" || t.text == "}"));
}

/// At `1.5`, `-1.5`, `inf`, `-nan`.
bool at_float(const TextReader& in) {
  const bool negative = in.at("-");
  const Token& t = in.peek(negative ? 1 : 0);
  return t.kind == TokenKind::Float ||
         (t.kind == TokenKind::Word && (t.text == "inf" || t.text == "nan"));
}

Result<RawArg> read_complex(TextReader& in, RawArg arg) {
  COIL_TRY(in.expect("complex"));
  COIL_TRY(in.expect("("));
  arg.kind = RawKind::Complex;
  arg.complex.re = COIL_TRY(in.number());
  COIL_TRY(in.expect(","));
  arg.complex.im = COIL_TRY(in.number());
  COIL_TRY(in.expect(")"));
  return arg;
}

Result<RawArg> read_arg_at(TextReader& in, const ArgScope& scope, int depth) {
  RawArg arg;
  arg.line = in.line();
  const Token& t = in.peek();
  if (in.at("[")) return read_list(in, scope, depth);
  if (in.at("complex")) return read_complex(in, std::move(arg));
  if (t.kind == TokenKind::Name) {
    arg.kind = RawKind::Value;
    arg.text = COIL_TRY(in.name());
    const std::optional<ValueId> value = scope.value(arg.text);
    if (!value) return in.error_at(arg.line, str("%{} is not defined here", arg.text));
    arg.value = *value;
    return arg;
  }
  if (t.kind == TokenKind::String) {
    arg.kind = RawKind::String;
    arg.text = COIL_TRY(in.string());
    return arg;
  }
  if (at_float(in)) {
    arg.kind = RawKind::Float;
    arg.number = COIL_TRY(in.number());
    return arg;
  }
  if (t.kind == TokenKind::Word && ends_arg(in.peek(1))) {
    arg.kind = RawKind::Word;
    arg.text = COIL_TRY(in.word());
    return arg;
  }
  arg.kind = RawKind::Expr;
  arg.expr = COIL_TRY(scope.graph->syms->parse(in, scope.variable));
  return arg;
}

/// The expression that a raw argument stands for, if it does.
std::optional<sym::Expr> expr_of(const ArgScope& scope, const RawArg& raw) {
  if (raw.kind == RawKind::Expr) return raw.expr;
  if (raw.kind == RawKind::Word) return scope.variable(raw.text);
  if (raw.kind != RawKind::Value) return std::nullopt;
  const Type& type = scope.graph->type(raw.value);
  if (type.kind != TypeKind::Int && type.kind != TypeKind::Bool) return std::nullopt;
  return type.expr;
}

std::optional<bool> bool_of(const RawArg& raw) {
  if (raw.kind != RawKind::Word || (raw.text != "true" && raw.text != "false")) return std::nullopt;
  return raw.text == "true";
}

std::optional<double> float_of(const ArgScope& scope, const RawArg& raw) {
  if (raw.kind == RawKind::Float) return raw.number;
  const std::optional<sym::Expr> e = expr_of(scope, raw);
  if (!e) return std::nullopt;
  const std::optional<i64> value = scope.graph->syms->as_const(*e);
  return value ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
}

std::optional<Arg> scalar_of(const ArgScope& scope, const RawArg& raw) {
  if (raw.kind == RawKind::Float) return raw.number;
  if (raw.kind == RawKind::Complex) return raw.complex;
  if (const std::optional<bool> value = bool_of(raw)) return *value;
  if (const std::optional<sym::Expr> e = expr_of(scope, raw)) return *e;
  if (raw.kind == RawKind::Value) return raw.value;
  return std::nullopt;
}

std::optional<Arg> word_of(const SchemaArg& schema, const RawArg& raw) {
  if (schema.type == ArgType::DType) {
    if (raw.kind == RawKind::Word)
      if (const std::optional<DType> dtype = dtype_from_name(raw.text)) return *dtype;
  } else if (schema.type == ArgType::MemoryFormat && raw.kind == RawKind::Word) {
    const auto* at = std::ranges::find(kFormatNames, raw.text);
    if (at != std::end(kFormatNames))
      return static_cast<MemoryFormat>(at - std::begin(kFormatNames));
  } else if (schema.type == ArgType::String && raw.kind == RawKind::String) {
    return raw.text;
  } else if (schema.type == ArgType::Device && raw.kind == RawKind::String) {
    return Device{raw.text};
  }
  return std::nullopt;
}

/// Items turned by `item`, or nothing if one of them cannot be.
template <class T, class F>
std::optional<Arg> list_of(const std::vector<RawArg>& items, F item) {
  std::vector<T> out;
  for (const RawArg& raw : items) {
    const std::optional<T> value = item(raw);
    if (!value) return std::nullopt;
    out.push_back(*value);
  }
  return Arg(std::move(out));
}

std::optional<ValueId> tensor_of(const RawArg& raw) {
  if (raw.kind == RawKind::Value) return raw.value;
  if (raw.kind == RawKind::Word && raw.text == "None") return ValueId();
  return std::nullopt;
}

std::optional<Arg> converted_list(const ArgScope& scope, const SchemaArg& schema,
                                  const RawArg& raw) {
  if (schema.type == ArgType::Tensor) return list_of<ValueId>(raw.items, tensor_of);
  if (is_integer(schema.type))
    return list_of<sym::Expr>(raw.items, [&](const RawArg& r) { return expr_of(scope, r); });
  if (schema.type == ArgType::Bool) return list_of<bool>(raw.items, bool_of);
  return list_of<double>(raw.items, [&](const RawArg& r) { return float_of(scope, r); });
}

/// The argument as the schema wants it, or nothing if it cannot be one.
std::optional<Arg> converted(const ArgScope& scope, const SchemaArg& schema, const RawArg& raw) {
  if (raw.kind == RawKind::Word && raw.text == "None") return Arg(None{});
  if (schema.list && raw.kind == RawKind::List) return converted_list(scope, schema, raw);
  if (schema.list && schema.list_size == 0) return std::nullopt;
  switch (schema.type) {
    case ArgType::Tensor:
      if (raw.kind == RawKind::Value) return Arg(raw.value);
      return std::nullopt;
    case ArgType::Scalar: return scalar_of(scope, raw);
    case ArgType::Int:
    case ArgType::SymInt:
      if (const std::optional<sym::Expr> e = expr_of(scope, raw)) return Arg(*e);
      return std::nullopt;
    case ArgType::Float:
      if (const std::optional<double> value = float_of(scope, raw)) return Arg(*value);
      if (raw.kind == RawKind::Value) return Arg(raw.value);
      return std::nullopt;
    case ArgType::Bool:
      if (const std::optional<bool> value = bool_of(raw)) return Arg(*value);
      if (const std::optional<sym::Expr> e = expr_of(scope, raw)) return Arg(*e);
      return std::nullopt;
    case ArgType::String:
    case ArgType::DType:
    case ArgType::Device:
    case ArgType::MemoryFormat: return word_of(schema, raw);
    case ArgType::Layout:
    case ArgType::Generator:
    case ArgType::Other: return std::nullopt;
  }
  COIL_UNREACHABLE();
}

/// The raw argument for each argument of the schema; null where it is left out.
Result<std::vector<const RawArg*>> placed(const ops::Schema& schema, const RawArgs& raw,
                                          std::size_t first) {
  std::vector<const RawArg*> out(schema.args.size(), nullptr);
  for (std::size_t i = 0; i < raw.positional.size(); ++i) {
    if (first + i >= out.size())
      return error("{} takes {} arguments", schema.full_name(), schema.args.size());
    out[first + i] = &raw.positional[i];
  }
  for (const auto& [name, arg] : raw.keywords) {
    const int at = schema.arg_index(name);
    if (at < 0) return error("{} has no argument {}", schema.full_name(), name);
    if (static_cast<std::size_t>(at) < first || out[static_cast<std::size_t>(at)] != nullptr)
      return error("{}: argument {} is given twice", schema.full_name(), name);
    out[static_cast<std::size_t>(at)] = &arg;
  }
  return out;
}

}  // namespace

Result<RawArg> read_arg(TextReader& in, const ArgScope& scope) { return read_arg_at(in, scope, 0); }

Result<RawArgs> read_args(TextReader& in, const ArgScope& scope) {
  RawArgs out;
  out.line = in.line();
  COIL_TRY(in.expect("("));
  if (in.accept(")")) return out;
  do {
    const Token& next = in.peek(1);
    const bool is_keyword = in.peek().kind == TokenKind::Word && next.text == "=" &&
                            next.kind == TokenKind::Punct && in.peek(2).text != "=";
    if (is_keyword) {
      std::string name = COIL_TRY(in.word());
      COIL_TRY(in.expect("="));
      out.keywords.emplace_back(std::move(name), COIL_TRY(read_arg_at(in, scope, 0)));
    } else if (!out.keywords.empty()) {
      return in.error_here("an argument without name stands behind one with a name");
    } else {
      out.positional.push_back(COIL_TRY(read_arg_at(in, scope, 0)));
    }
  } while (in.accept(","));
  COIL_TRY(in.expect(")"));
  return out;
}

Result<std::vector<Arg>> fit_args(const ArgScope& scope, const ops::Schema& schema,
                                  const RawArgs& raw, ValueId self) {
  const std::size_t first = self.valid() ? 1 : 0;
  const std::vector<const RawArg*> given = COIL_TRY(placed(schema, raw, first));
  std::vector<Arg> args;
  if (self.valid()) args.push_back(self);
  for (std::size_t i = first; i < given.size(); ++i) {
    const SchemaArg& want = schema.args[i];
    if (given[i] == nullptr) {
      if (!want.fallback) return error("{}: argument {} is missing", schema.full_name(), want.name);
      args.push_back(COIL_TRY(default_arg(*scope.graph->syms, want)));
      continue;
    }
    std::optional<Arg> arg = converted(scope, want, *given[i]);
    if (!arg) return error("{}: argument {} is of the wrong kind", schema.full_name(), want.name);
    args.push_back(std::move(*arg));
  }
  return complete_args(*scope.graph, schema, std::move(args));
}

Result<std::pair<std::string, std::vector<Arg>>> resolve(const ArgScope& scope,
                                                         const std::string& op, const RawArgs& raw,
                                                         ValueId self) {
  using Resolved = std::pair<std::string, std::vector<Arg>>;
  std::optional<Error> first_failure;
  if (const std::optional<ops::Schema> exact = ops::find_schema(op)) {
    Result<std::vector<Arg>> args = fit_args(scope, *exact, raw, self);
    if (args.ok()) return Resolved(op, std::move(*args));
    first_failure = args.error();
  }
  std::vector<Resolved> fitting;
  if (op.find('.') == op.npos) {
    for (const std::string& full_name : ops::overloads(op)) {
      const std::optional<ops::Schema> schema = ops::find_schema(full_name);
      if (!schema || full_name == op) continue;
      Result<std::vector<Arg>> args = fit_args(scope, *schema, raw, self);
      if (args.ok()) fitting.emplace_back(full_name, std::move(*args));
      if (!args.ok() && !first_failure) first_failure = args.error();
    }
  }
  const auto without_rule = [&](const Resolved& r) { return !has_rule(*scope.graph, r.first); };
  if (fitting.size() > 1) std::erase_if(fitting, without_rule);
  if (fitting.size() == 1) return std::move(fitting[0]);
  if (fitting.size() > 1)
    return error("{} is ambiguous: write {}", op,
                 join(fitting, " or ", [](const Resolved& r) { return r.first; }));
  return first_failure ? *first_failure : error("unknown op {}", op);
}

Result<Arg> plain_arg(const ArgScope& scope, const RawArg& raw) {
  switch (raw.kind) {
    case RawKind::Value: return Arg(raw.value);
    case RawKind::Expr: return Arg(raw.expr);
    case RawKind::Float: return Arg(raw.number);
    case RawKind::String: return Arg(raw.text);
    case RawKind::Complex: return Arg(raw.complex);
    case RawKind::List:
      if (std::optional<Arg> values = list_of<ValueId>(raw.items, tensor_of)) return *values;
      return error("a list here holds values only");
    case RawKind::Word: break;
  }
  if (raw.text == "None") return Arg(None{});
  if (const std::optional<bool> value = bool_of(raw)) return Arg(*value);
  if (const std::optional<sym::Expr> variable = scope.variable(raw.text)) return Arg(*variable);
  return error("'{}' has no meaning here", raw.text);
}

}  // namespace coil
