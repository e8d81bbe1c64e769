#include "import/pt2_graph.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "graph/args.h"
#include "import/pt2_hops.h"
#include "import/pt2_loc.h"
#include "import/pt2_types.h"

namespace coil {
namespace {

constexpr std::string_view kOps = "torch.ops.";
constexpr std::string_view kHigherOrder = "torch.ops.higher_order.";

/// The name in an argument that has one: {"as_tensor": {"name": n}}, {"as_sym_int": {"as_name":
/// n}}.
const Json* name_in(const Json& argument) {
  const auto [arm, content] = arm_of(argument);
  if (arm == "as_tensor") return &field(content, "name");
  const bool is_symbolic = arm == "as_sym_int" || arm == "as_sym_float" || arm == "as_sym_bool";
  return is_symbolic ? find_field(content, "as_name") : nullptr;
}

/// The arguments of outputs, lists flattened: each is one with a name, or as_none.
void each_output(const Json& outputs, const std::function<void(const std::string&)>& use) {
  for (const Json& output : array_of(outputs)) {
    const auto [arm, content] = arm_of(output);
    if (arm == "as_tensors") {
      for (const Json& item : array_of(content)) use(text_field(item, "name"));
    } else if (arm == "as_sym_ints") {
      for (const Json& item : array_of(content)) use(text_field(item, "as_name"));
    } else {
      const Json* name = name_in(output);
      use(name != nullptr ? text_of(*name) : "");
    }
  }
}

/// "add.Tensor" of "torch.ops.aten.add.Tensor", "relu" of "torch.ops.aten.relu.default", "lib::op"
/// of "torch.ops.lib.op.default"; "/name" of what is no op of torch.
std::string op_of_target(std::string_view target) {
  if (!target.starts_with(kOps)) return str("/{}", target);
  constexpr std::string_view kDefault = ".default";
  if (target.ends_with(kDefault)) target.remove_suffix(kDefault.size());
  target.remove_prefix(kOps.size());
  const std::size_t dot = std::min(target.find('.'), target.size());
  const std::string_view space = target.substr(0, dot);
  const std::string_view name = target.substr(std::min(dot + 1, target.size()));
  return space == "aten" ? std::string(name) : str("{}::{}", space, name);
}

/// The error with the node's name and place, unless it has one.
Error in_node(const Json& node, const Error& problem) {
  if (problem.message.starts_with("node ")) return problem;
  const Json* name = find_field(node, "name");
  const std::string what = name != nullptr ? text_of(*name) : text_field(node, "target");
  const std::string frame = loc_of_metadata(node).frame;
  return in_context(frame.empty() ? "node " + what : str("node {} ({})", what, frame), problem);
}

bool is_recurrent(std::string_view op) {
  return op == "lstm.input" || op == "gru.input" || op == "rnn_tanh.input" ||
         op == "rnn_relu.input";
}

}  // namespace

Pt2GraphReader::Pt2GraphReader(ProgramReading& reading, FunctionalBuilder& builder,
                               const Json& graph)
    : reading_(reading), builder_(builder), graph_(graph), math_(builder.syms()) {}

std::unordered_set<std::string> Pt2GraphReader::names(const Json& graph) {
  std::unordered_set<std::string> names;
  for (const char* table :
       {"tensor_values", "sym_int_values", "sym_bool_values", "sym_float_values"})
    if (const Json* values = find_field(graph, table))
      for (const auto& [name, value] : object_of(*values).items()) names.insert(name);
  return names;
}

void Pt2GraphReader::read_nodes() {
  const Json& nodes = array_of(field(graph_, "nodes"));
  constexpr std::size_t kMaxNodes = std::size_t{1} << 22;
  if (nodes.size() > kMaxNodes) fail("the program has more than {} nodes", kMaxNodes);
  for (const Json& node : nodes) {
    try {
      read_node(node);
    } catch (const BuildError& problem) {
      throw BuildError{in_node(node, problem.error)};
    }
  }
}

LocId Pt2GraphReader::loc_of(const Json& node) {
  Loc loc = loc_of_metadata(node);
  const auto key = std::pair(loc.frame, loc.module);
  if (const auto known = locs_.find(key); known != locs_.end()) return known->second;
  return locs_[key] = builder_.graph().locs.add(std::move(loc));
}

Type Pt2GraphReader::stated_type(const std::string& name) {
  const Json* meta = find_field(field(graph_, "tensor_values"), name.c_str());
  if (meta == nullptr) fail("the program is damaged: it states no type of '{}'", name);
  return tensor_type_of(*meta, reading_.symbols);
}

Type Pt2GraphReader::type_of_result(const std::string& name) {
  Type type;
  type.kind = TypeKind::None;
  if (name.empty()) return type;
  if (find_field(field(graph_, "tensor_values"), name.c_str()) != nullptr) return stated_type(name);
  const Json* ints = find_field(graph_, "sym_int_values");
  const Json* stated = ints != nullptr ? find_field(*ints, name.c_str()) : nullptr;
  if (stated == nullptr) return type;
  const std::optional<HostNumber> number = host_number_of(*stated, reading_.symbols);
  const std::optional<sym::Expr> integer = number ? math_.as_integer(*number) : std::nullopt;
  if (!integer) return type;
  type.kind = TypeKind::Int;
  type.expr = *integer;
  return type;
}

ImportCall Pt2GraphReader::call_of(const Json& node, const std::string& op) {
  ImportCall call;
  call.op = op;
  call.loc = loc_of(node);
  each_output(field(node, "outputs"), [&](const std::string& name) {
    call.names.push_back(name);
    call.expected.push_back(type_of_result(name));
  });
  return call;
}

void Pt2GraphReader::bind(const ImportCall& call, const std::vector<ImportValue>& results) {
  for (std::size_t i = 0; i < call.names.size(); ++i) {
    if (call.names[i].empty()) continue;
    if (i >= results.size())
      throw BuildError{builder_.error_at(
          call, str("it has {} results, the program reads {}", results.size(), call.names.size()))};
    const ImportValue& value = results[i];
    if (const TensorId* tensor = std::get_if<TensorId>(&value))
      define(call.names[i], *tensor);
    else if (const sym::Expr* e = std::get_if<sym::Expr>(&value))
      define(call.names[i], math_.integer(*e));
    else if (const ValueId* id = std::get_if<ValueId>(&value))
      define(call.names[i], *id);
    else
      define(call.names[i], None{});
  }
}

void Pt2GraphReader::read_node(const Json& node) {
  const std::string target = text_field(node, "target");
  if (target.starts_with(kHigherOrder)) {
    Pt2HopReader(*this, node, target.substr(kHigherOrder.size())).read();
    return;
  }
  for (std::string_view prefix : {"_operator.", "math.", "torch.sym_", "torch._sym_"}) {
    if (!target.starts_with(prefix)) continue;
    read_scalar(node, target.substr(target.rfind('.') + 1));
    return;
  }
  // Casts of numbers that vary. Their arguments are the first of aten's op.
  if (target == "torch.ops.prims.convert_element_type.default") return read_op(node, "_to_copy");
  const std::string op = op_of_target(target);
  if (!read_size_query(node, op)) read_op(node, op);
}

void Pt2GraphReader::read_op(const Json& node, const std::string& op) {
  ImportCall call = call_of(node, op);
  if (!ops::find_schema(op)) {
    bind(call, builder_.unsupported(call));
    return;
  }
  call.args = args_of(node, call);
  if (is_recurrent(op) && reading_.has_wrong_recurrent_states)
    for (std::size_t i = 1; i < call.expected.size(); ++i) call.expected[i].kind = TypeKind::None;
  bind(call, builder_.call(call));
}

/// Ops that only ask for a size, which needs no node.
bool Pt2GraphReader::read_size_query(const Json& node, const std::string& op) {
  const bool wants_size = op == "sym_size.int", wants_stride = op == "sym_stride.int";
  if (!wants_size && !wants_stride && op != "sym_numel" && op != "sym_storage_offset") return false;
  const ImportCall call = call_of(node, op);
  const Json& inputs = array_of(field(node, "inputs"));
  if (inputs.empty() || call.names.size() != 1)
    throw BuildError{builder_.error_at(call, "it needs one tensor and gives one integer")};
  const Type type = builder_.type(tensor_named(name_at(field(inputs[0], "arg"))));
  sym::Expr value = builder_.syms().constant(0);
  if (op == "sym_numel") value = numel(builder_.syms(), type.shape);
  if (wants_size || wants_stride) {
    if (inputs.size() < 2) throw BuildError{builder_.error_at(call, "its dim is missing")};
    const auto [arm, content] = arm_of(field(inputs[1], "arg"));
    i64 dim = integer_of(content);
    const i64 ndim = static_cast<i64>(type.ndim());
    if (dim < 0) dim += ndim;
    if (dim < 0 || dim >= ndim) throw BuildError{builder_.error_at(call, "there is no such dim")};
    value = wants_size ? type.shape[static_cast<std::size_t>(dim)]
                       : type.strides[static_cast<std::size_t>(dim)];
  }
  bind(call, {value});
  return true;
}

NamedValue Pt2GraphReader::lookup(const std::string& name) {
  const auto found = values_.find(name);
  if (found == values_.end())
    fail("the program is damaged: '{}' is used before it has a value", name);
  return found->second;
}

const std::string& Pt2GraphReader::name_at(const Json& argument) {
  const Json* name = name_in(argument);
  if (name == nullptr || !name->is_string())
    fail("the program is damaged: a tensor's name is missing");
  return name->get_ref<const std::string&>();
}

TensorId Pt2GraphReader::tensor_named(const std::string& name) {
  const NamedValue value = lookup(name);
  if (const TensorId* tensor = std::get_if<TensorId>(&value)) return *tensor;
  fail("the program is damaged: '{}' is not a tensor", name);
}

sym::Expr Pt2GraphReader::integer_named(const std::string& name) {
  const NamedValue value = lookup(name);
  const HostNumber* number = std::get_if<HostNumber>(&value);
  const std::optional<sym::Expr> integer =
      number != nullptr && !number->is_float ? math_.as_integer(*number) : std::nullopt;
  if (integer) return *integer;
  if (const Inexpressible* other = std::get_if<Inexpressible>(&value))
    fail("the integer '{}' is computed from sizes by {}, which coil does not support", name,
         other->text);
  fail("the program is damaged: '{}' is not an integer", name);
}

Arg Pt2GraphReader::scalar_named(const std::string& name) {
  const NamedValue value = lookup(name);
  if (const ValueId* id = std::get_if<ValueId>(&value)) return *id;
  if (const HostNumber* number = std::get_if<HostNumber>(&value)) {
    if (!number->is_float) return integer_named(name);
    if (const std::optional<double> fixed = math_.as_constant(*number)) return *fixed;
  }
  fail("the float '{}' is computed from dynamic sizes, which coil does not support yet", name);
}

NamedValue Pt2GraphReader::value_of(const Json& argument) {
  const auto [arm, content] = arm_of(argument);
  if (arm == "as_none") return None{};
  if (const Json* name = name_in(argument)) return lookup(text_of(*name));
  const Json* number = &content;
  std::string_view kind = arm;
  if (arm.starts_with("as_sym_")) {
    const auto [inner_kind, inner] = arm_of(content);
    kind = inner_kind;
    number = &inner;
  }
  if (kind == "as_int") return math_.integer(integer_of(*number));
  if (kind == "as_bool") return math_.integer(bool_of(*number) ? 1 : 0);
  if (kind == "as_float") {
    if (const std::optional<HostNumber> exact = math_.real(real_of(*number))) return *exact;
  }
  return Inexpressible{std::string(arm)};
}

}  // namespace coil
