// Arguments of ATen nodes of a .pt2, matched with their schema.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "graph/args.h"
#include "graph/rules.h"
#include "import/pt2_graph.h"
#include "import/pt2_types.h"

namespace coil {
namespace {

using ops::ArgType;
using ops::Schema;
using ops::SchemaArg;
using Given = std::map<std::string, const Json*>;  // argument by name

bool is_number(const Json& argument) {
  const std::string_view arm = arm_of(argument).first;
  constexpr std::string_view kNumbers[] = {"as_int",     "as_float",     "as_bool",    "as_complex",
                                           "as_sym_int", "as_sym_float", "as_sym_bool"};
  return std::ranges::find(kNumbers, arm) != std::end(kNumbers);
}

bool is_tensor(const Json& argument) { return arm_of(argument).first == "as_tensor"; }

bool is_tensor_arg(const SchemaArg& arg) { return arg.type == ArgType::Tensor && !arg.list; }

Given given_args(const Json& node, const Schema& schema) {
  Given given;
  std::size_t position = 0;
  for (const Json& input : array_of(field(node, "inputs"))) {
    std::string name = text_field(input, "name");
    if (name.empty() && position < schema.args.size()) name = schema.args[position].name;
    ++position;
    given[name] = &field(input, "arg");
  }
  return given;
}

/// What may stand where an op takes a tensor.
enum class InTensorsPlace : u8 { Tensors, TensorsAndNumbers };

/// Whether numbers stand only where this overload takes numbers, and tensors only where it takes
/// tensors.
bool fits(const Schema& schema, const Given& given, InTensorsPlace may = InTensorsPlace::Tensors) {
  for (const auto& [name, argument] : given) {
    const int at = schema.arg_index(name);
    if (at < 0) return false;
    const SchemaArg& arg = schema.args[static_cast<std::size_t>(at)];
    if (is_number(*argument) && is_tensor_arg(arg) && may == InTensorsPlace::Tensors) return false;
    if (is_tensor(*argument) && !is_tensor_arg(arg)) return false;
  }
  return std::ranges::all_of(schema.args, [&](const SchemaArg& arg) {
    return given.contains(arg.name) || arg.fallback || arg.optional;
  });
}

/// x + 1 is add.Tensor with a number in the file; what it means is add.Scalar, whose promotion is
/// another. 2 - x is rsub.Scalar(x, 2), and 2 * x is mul.Scalar(x, 2).
std::optional<Schema> overload_for_numbers(const Schema& written, Given& given) {
  if (fits(written, given)) return written;
  const auto self = given.find("self"), other = given.find("other");
  const bool is_reversed = self != given.end() && other != given.end() &&
                           is_number(*self->second) && is_tensor(*other->second);
  std::string name = written.name;
  if (is_reversed) {
    const bool has_alpha = given.contains("alpha");
    if (name == "sub" || name == "subtract")
      name = "rsub";
    else if ((name != "add" && name != "mul" && name != "multiply") || has_alpha)
      return std::nullopt;
    std::swap(self->second, other->second);
  }
  for (const std::string& full_name : ops::overloads(name)) {
    std::optional<Schema> schema = ops::find_schema(full_name);
    if (schema && fits(*schema, given)) return schema;
  }
  return std::nullopt;
}

/// The dtype of a tensor that a number becomes.
DType dtype_of_number(const Arg& number) {
  if (std::holds_alternative<Complex>(number)) return DType::c128;
  if (std::holds_alternative<bool>(number)) return DType::b8;
  return std::holds_alternative<sym::Expr>(number) ? DType::i64 : DType::f64;
}

/// A factory op without a dtype makes torch's default dtype of the time of export, which only the
/// result's type tells.
void fill_factory_dtype(const Schema& schema, const Type& stated, std::vector<ImportArg>& args) {
  const int dtype = schema.arg_index("dtype");
  const bool is_factory = dtype >= 0 && schema.arg_index("layout") >= 0 &&
                          std::ranges::none_of(schema.args, [](const SchemaArg& a) {
                            return a.type == ArgType::Tensor && a.name != ops::kRandomKey;
                          });
  if (!is_factory || !stated.is_tensor()) return;
  const Arg* given = std::get_if<Arg>(&args[static_cast<std::size_t>(dtype)]);
  if (given != nullptr && std::holds_alternative<None>(*given))
    args[static_cast<std::size_t>(dtype)].emplace<Arg>(stated.dtype);
}

}  // namespace

TensorId Pt2GraphReader::without_dims(const Arg& number, const ImportCall& user) {
  ImportCall call;
  call.op = "full";
  for (const Arg& arg : {Arg(std::vector<sym::Expr>()), number, Arg(dtype_of_number(number)),
                         Arg(None{}), Arg(None{}), Arg(None{})})
    call.args.emplace_back(arg);
  call.names = {builder_.fresh_name("number")};
  call.loc = user.loc;
  return std::get<TensorId>(builder_.call(call).at(0));
}

std::vector<ImportArg> Pt2GraphReader::args_of(const Json& node, ImportCall& call) {
  const std::optional<Schema> written = ops::find_schema(call.op);
  COIL_CHECK(written.has_value(), "no schema of {}", call.op);
  Given given = given_args(node, *written);
  std::optional<Schema> schema = overload_for_numbers(*written, given);
  if (!schema && fits(*written, given, InTensorsPlace::TensorsAndNumbers)) schema = written;
  if (!schema)
    throw BuildError{
        builder_.error_at(call, "its arguments fit no overload of the op that coil knows")};
  call.op = schema->full_name();
  std::vector<ImportArg> args;
  for (const SchemaArg& arg : schema->args) {
    const auto at = given.find(arg.name);
    if (at != given.end()) {
      args.push_back(arg_of(*at->second, arg));
      if (is_number(*at->second) && is_tensor_arg(arg))
        args.back() = without_dims(std::get<Arg>(args.back()), call);
    } else if (arg.fallback) {
      args.emplace_back(value_or_throw(default_arg(builder_.syms(), arg)));
    } else {
      args.emplace_back(std::in_place_type<Arg>, None{});
    }
  }
  if (!call.expected.empty()) fill_factory_dtype(*schema, call.expected[0], args);
  return args;
}

std::optional<Arg> Pt2GraphReader::list_arg(std::string_view arm, const Json& content,
                                            const SchemaArg& schema) {
  if (arm == "as_ints" && schema.type == ArgType::Float) arm = "as_floats";
  if (arm == "as_ints" || arm == "as_sym_ints") {
    std::vector<sym::Expr> values;
    for (const Json& item : array_of(content)) {
      if (arm == "as_ints") {
        values.push_back(builder_.syms().constant(integer_of(item)));
        continue;
      }
      const auto [kind, inner] = arm_of(item);
      values.push_back(kind == "as_name" ? integer_named(text_of(inner))
                                         : builder_.syms().constant(integer_of(inner)));
    }
    return values;
  }
  if (arm == "as_floats") {
    std::vector<double> values;
    for (const Json& item : array_of(content)) values.push_back(real_of(item));
    return values;
  }
  if (arm == "as_bools") {
    std::vector<bool> values;
    for (const Json& item : array_of(content)) values.push_back(bool_of(item));
    return values;
  }
  return std::nullopt;
}

ImportArg Pt2GraphReader::arg_of(const Json& argument, const SchemaArg& schema) {
  const auto [arm, content] = arm_of(argument);
  if (arm == "as_none") return Arg(None{});
  if (arm == "as_tensor") return tensor_named(text_field(content, "name"));
  if (arm == "as_tensors" || arm == "as_optional_tensors") {
    std::vector<TensorId> list;
    for (const Json& item : array_of(content)) {
      const bool is_plain = arm == "as_tensors";
      const bool is_none = !is_plain && arm_of(item).first == "as_none";
      const Json& named = is_plain || is_none ? item : arm_of(item).second;
      list.push_back(is_none ? TensorId() : tensor_named(text_field(named, "name")));
    }
    if (list.empty() && schema.type != ArgType::Tensor) return Arg(std::vector<sym::Expr>());
    return list;
  }
  if (arm == "as_int") {
    if (schema.type == ArgType::Float) return Arg(static_cast<double>(integer_of(content)));
    return Arg(builder_.syms().constant(integer_of(content)));
  }
  if (arm == "as_float") return Arg(real_of(content));
  if (arm == "as_bool") return Arg(bool_of(content));
  if (arm == "as_string") return Arg(text_of(content));
  if (arm == "as_complex")
    return Arg(Complex{real_of(field(content, "real")), real_of(field(content, "imag"))});
  if (arm == "as_scalar_type") return Arg(dtype_of_file(integer_of(content)));
  if (arm == "as_memory_format") return memory_format_of_file(integer_of(content));
  if (arm == "as_device") return Arg(Device{text_field(content, "type")});
  if (arm == "as_layout") {
    constexpr i64 kStrided = 7;
    if (integer_of(content) != kStrided)
      fail("argument '{}' asks for a sparse layout", schema.name);
    return Arg(None{});
  }
  if (arm == "as_sym_int" || arm == "as_sym_float" || arm == "as_sym_bool") {
    const auto [kind, inner] = arm_of(content);
    if (kind == "as_name") return scalar_named(text_of(inner));
    if (kind == "as_int") return Arg(builder_.syms().constant(integer_of(inner)));
    if (kind == "as_bool") return Arg(bool_of(inner));
    return Arg(real_of(inner));
  }
  if (std::optional<Arg> list = list_arg(arm, content, schema)) return std::move(*list);
  fail("argument '{}' is of the kind '{}', which coil does not support", schema.name, arm);
}

}  // namespace coil
