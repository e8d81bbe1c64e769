#include "import/pt2_hops.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "graph/rules.h"
#include "graph/unify.h"

namespace coil {
namespace {

std::vector<Type> types_of(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<Type> types;
  for (ValueId v : values) types.push_back(graph.type(v));
  return types;
}

}  // namespace

Pt2HopReader::Pt2HopReader(Pt2GraphReader& outer, const Json& node, std::string name)
    : outer_(outer), builder_(outer.builder_), node_(node), name_(std::move(name)) {
  call_ = outer.call_of(node, "higher_order::" + name_);
}

void Pt2HopReader::read() {
  if (name_ == "cond") return read_cond();
  if (name_ == "while_loop") return read_while_loop();
  if (name_ == "scan") return read_scan(true);
  if (name_ == "map_impl") return read_scan(false);
  if (name_ == "print") return;  // has no result
  for (std::string_view wrapper :
       {"wrap_with_set_grad_enabled", "wrap_with_autocast", "hints_wrapper", "strict_mode",
        "run_const_graph", "invoke_subgraph"})
    if (name_ == wrapper) return read_wrapper();
  outer_.bind(call_, builder_.unsupported(call_));
}

const Json& Pt2HopReader::arg(std::size_t i) const {
  const Json& inputs = array_of(field(node_, "inputs"));
  if (i >= inputs.size()) throw BuildError{builder_.error_at(call_, "an operand is missing")};
  return field(inputs[i], "arg");
}

const Json& Pt2HopReader::graph_arg(std::size_t i) const {
  const auto [arm, content] = arm_of(arg(i));
  if (arm != "as_graph") throw BuildError{builder_.error_at(call_, "a subgraph is missing")};
  return field(content, "graph");
}

std::vector<std::string> Pt2HopReader::names_of(const Json& argument) const {
  const auto [arm, content] = arm_of(argument);
  std::vector<std::string> names;
  if (arm == "as_tensors") {
    // Sizes among tensors are written like tensors.
    for (const Json& item : array_of(content)) names.push_back(text_field(item, "name"));
  } else if (arm == "as_sym_ints") {
    for (const Json& item : array_of(content)) names.push_back(text_field(item, "as_name"));
  } else if (arm == "as_ints") {
    if (!array_of(content).empty())
      throw BuildError{builder_.error_at(call_, "fixed integers as operands are not supported")};
  } else {
    names.push_back(outer_.name_at(argument));
  }
  return names;
}

std::vector<ValueId> Pt2HopReader::operands(const std::vector<std::string>& names) {
  std::vector<ValueId> values;
  for (const std::string& name : names) {
    const NamedValue value = outer_.lookup(name);
    if (const TensorId* tensor = std::get_if<TensorId>(&value)) {
      values.push_back(builder_.read(*tensor));
      continue;
    }
    Type type;
    type.kind = TypeKind::Int;
    type.expr = outer_.integer_named(name);
    values.push_back(builder_.graph().add_value(builder_.fresh_name(name), type));
  }
  return values;
}

void Pt2HopReader::add_output(Graph& graph, FunctionalBuilder& builder, const NamedValue& value) {
  Output output;
  if (const TensorId* tensor = std::get_if<TensorId>(&value)) {
    output.value = builder.read(*tensor);
  } else if (const HostNumber* number = std::get_if<HostNumber>(&value);
             number != nullptr && !number->is_float) {
    Type type;
    type.kind = TypeKind::Int;
    type.expr = number->num;
    output.kind = OutputKind::Int;
    output.value = graph.add_value(builder.fresh_name("size"), type);
  } else {
    throw BuildError{
        builder_.error_at(call_, "a subgraph returns a value that is no tensor or integer")};
  }
  graph.outputs.push_back(std::move(output));
}

Pt2HopReader::Sub Pt2HopReader::read_sub(const Json& graph, const std::vector<Type>& inputs,
                                         const std::string& name) {
  Sub sub;
  Graph& outer = builder_.graph();
  sub.graph.name = name;
  sub.graph.syms = outer.syms;
  sub.graph.facts = outer.facts;
  sub.graph.composites = outer.composites;
  FunctionalBuilder builder(sub.graph, Pt2GraphReader::names(graph));
  builder.assume(outer_.reading_.symbols.assumed());
  builder.make_inner();
  Pt2GraphReader reader(outer_.reading_, builder, graph);
  const Json& placeholders = array_of(field(graph, "inputs"));
  if (placeholders.size() != inputs.size())
    throw BuildError{builder_.error_at(call_, str("{} takes {} operands, but is given {}", name,
                                                  placeholders.size(), inputs.size()))};
  std::vector<TensorId> tensors(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string& own = reader.name_at(placeholders[i]);
    const ValueId value = sub.graph.add_value(builder.claim_name(own), inputs[i]);
    sub.graph.inputs.push_back({own, value, None{}});
    if (inputs[i].is_tensor()) {
      tensors[i] = builder.add_base(value, Origin::Input, static_cast<u32>(i));
      reader.define(own, tensors[i]);
    } else {
      reader.define(own, HostMath(builder.syms()).integer(inputs[i].expr));
    }
  }
  reader.read_nodes();
  for (const Json& output : array_of(field(graph, "outputs")))
    add_output(sub.graph, builder, reader.value_of(output));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!tensors[i].valid() || builder.base(builder.base_of(tensors[i])).version == 0) continue;
    sub.written.push_back(i);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    sub.written_values.push_back(tensors[i].valid() ? builder.read(tensors[i]) : ValueId());
  // Checks on sizes belong to the whole program; what a branch needs of data is its own.
  for (Check& check : sub.graph.checks) outer.checks.push_back(std::move(check));
  sub.graph.checks.clear();
  for (const auto& [op, use] : builder.unsupported_ops()) {
    FunctionalBuilder::Unsupported& all = builder_.unsupported_ops()[op];
    if (all.count == 0) all.place = use.place;
    all.count += use.count;
  }
  std::vector<std::string>& differences = builder_.type_differences();
  differences.insert(differences.end(), builder.type_differences().begin(),
                     builder.type_differences().end());
  return sub;
}

u32 Pt2HopReader::attach(Graph sub) {
  std::vector<Graph>& all = builder_.graph().subgraphs;
  all.push_back(std::move(sub));
  return static_cast<u32>(all.size() - 1);
}

void Pt2HopReader::require_no_writes(const Sub& sub) const {
  if (!sub.written.empty())
    throw BuildError{builder_.error_at(
        call_, str("its body writes to '{}' in place, which coil does not support; use an op that "
                   "returns the result instead",
                   sub.graph.inputs[sub.written[0]].name))};
}

/// Derived types; stated ones name the sizes that the branches do not share.
void Pt2HopReader::finish(Node node, const ImportCall& call) {
  Result<std::vector<Type>> derived = infer(builder_.graph(), node);
  if (!derived) throw BuildError{builder_.error_at(call, derived.error().message)};
  std::vector<Type> types = std::move(*derived);
  Unifier unifier(builder_.graph());
  for (const Value& value : builder_.graph().values) unifier.define(value.type);
  for (std::size_t i = 0; i < std::min(types.size(), call.expected.size()); ++i) {
    if (unifier.match(types[i], call.expected[i])) types[i] = call.expected[i];
    builder_.check_expected(types[i], call, i);
  }
  std::vector<ImportValue> results;
  for (ValueId out : builder_.append(std::move(node), std::move(types), call))
    results.push_back(builder_.result(out));
  outer_.bind(call, results);
}

void Pt2HopReader::read_cond() {
  const NamedValue predicate = outer_.value_of(arg(0));
  const std::vector<std::string> names = names_of(arg(3));
  const std::vector<ValueId> values = operands(names);
  const std::vector<Type> types = types_of(builder_.graph(), values);
  Sub yes = read_sub(graph_arg(1), types, "then");
  Sub no = read_sub(graph_arg(2), types, "else");
  // What either branch writes to, both return.
  std::vector<std::size_t> written = yes.written;
  written.insert(written.end(), no.written.begin(), no.written.end());
  std::ranges::sort(written);
  written.erase(std::unique(written.begin(), written.end()), written.end());
  for (std::size_t i : written) {
    yes.graph.outputs.push_back({OutputKind::Value, yes.written_values[i], 0, None{}});
    no.graph.outputs.push_back({OutputKind::Value, no.written_values[i], 0, None{}});
  }
  const std::size_t count = yes.graph.outputs.size();
  if (count != no.graph.outputs.size() || count != call_.names.size() + written.size())
    throw BuildError{builder_.error_at(call_, "its branches return different numbers of values")};

  Node node;
  node.op = "cond";
  if (const TensorId* tensor = std::get_if<TensorId>(&predicate))
    node.args.push_back(builder_.read(*tensor));
  else if (const HostNumber* number = std::get_if<HostNumber>(&predicate))
    node.args.push_back(number->num);
  else
    throw BuildError{
        builder_.error_at(call_, "its predicate is no tensor and no condition on sizes")};
  node.args.push_back(values);
  node.subgraphs = {attach(std::move(yes.graph)), attach(std::move(no.graph))};
  ImportCall call = call_;
  for (std::size_t i : written) call.names.push_back(builder_.fresh_name(names[i]));
  for (std::size_t i = call_.names.size(); i < call.names.size(); ++i)
    outer_.define(call.names[i], None{});
  finish(std::move(node), call);
  for (std::size_t k = 0; k < written.size(); ++k) {
    const TensorId target = outer_.tensor_named(names[written[k]]);
    const TensorId result = outer_.tensor_named(call.names[call_.names.size() + k]);
    builder_.write(target, builder_.read(result), call_);
  }
}

void Pt2HopReader::read_while_loop() {
  const std::vector<ValueId> carried = operands(names_of(arg(2)));
  const std::vector<ValueId> extra = operands(names_of(arg(3)));
  std::vector<Type> types = types_of(builder_.graph(), carried);
  const std::vector<Type> extra_types = types_of(builder_.graph(), extra);
  types.insert(types.end(), extra_types.begin(), extra_types.end());
  Sub condition = read_sub(graph_arg(0), types, "condition");
  Sub body = read_sub(graph_arg(1), types, "body");
  require_no_writes(condition);
  require_no_writes(body);
  if (condition.graph.outputs.size() != 1 || body.graph.outputs.size() != carried.size())
    throw BuildError{builder_.error_at(call_, "its subgraphs return a wrong number of values")};
  Node node;
  node.op = "while_loop";
  node.args = {carried, extra};
  node.subgraphs = {attach(std::move(condition.graph)), attach(std::move(body.graph))};
  finish(std::move(node), call_);
}

/// map_impl is a scan without a carry.
void Pt2HopReader::read_scan(bool has_carry) {
  const std::vector<ValueId> init = has_carry ? operands(names_of(arg(1))) : std::vector<ValueId>();
  const std::vector<ValueId> xs = operands(names_of(arg(has_carry ? 2 : 1)));
  const std::vector<ValueId> extra = operands(names_of(arg(has_carry ? 3 : 2)));
  const Graph& graph = builder_.graph();
  if (xs.empty()) throw BuildError{builder_.error_at(call_, "there is nothing to go over")};
  std::vector<Type> types = types_of(graph, init);
  for (Type slice : types_of(graph, xs)) {
    if (!slice.is_tensor() || slice.ndim() == 0)
      throw BuildError{builder_.error_at(call_, "it goes over a value that has no dims")};
    slice.shape.erase(slice.shape.begin());
    slice.strides.erase(slice.strides.begin());
    types.push_back(std::move(slice));
  }
  const std::vector<Type> extra_types = types_of(graph, extra);
  types.insert(types.end(), extra_types.begin(), extra_types.end());
  Sub combine = read_sub(graph_arg(0), types, "combine");
  require_no_writes(combine);
  Node node;
  node.op = "scan";
  node.args = {init, xs, extra};
  node.subgraphs = {attach(std::move(combine.graph))};
  finish(std::move(node), call_);
}

/// Wrappers change nothing that coil does not do itself: the graph's nodes take their place.
void Pt2HopReader::read_wrapper() {
  const Json& inputs = array_of(field(node_, "inputs"));
  std::size_t at = 0;
  while (at < inputs.size() && arm_of(arg(at)).first != "as_graph") ++at;
  if (name_ == "wrap_with_autocast") {
    constexpr std::size_t kEnabled = 2;
    const auto [arm, content] = arm_of(arg(kEnabled));
    if (arm != "as_bool" || bool_of(content))
      throw BuildError{builder_.error_at(
          call_,
          "autocast is not supported; export the model with its dtypes set (model.half(), "
          "model.bfloat16()) or after run_decompositions()")};
  }
  std::vector<const Json*> operands;
  for (std::size_t i = at + 1; i < inputs.size(); ++i) {
    const std::string_view arm = arm_of(arg(i)).first;
    const bool is_operand = arm == "as_tensor" || arm == "as_tensors" || arm == "as_sym_int" ||
                            arm == "as_sym_ints" || arm == "as_sym_bool" || arm == "as_sym_float";
    if (is_operand) operands.push_back(&arg(i));
  }
  read_inlined(graph_arg(at), operands);
}

void Pt2HopReader::read_inlined(const Json& graph, const std::vector<const Json*>& operands) {
  Pt2GraphReader reader(outer_.reading_, builder_, graph);
  std::vector<std::string> names;
  for (const Json* operand : operands)
    for (std::string& name : names_of(*operand)) names.push_back(std::move(name));
  const Json& placeholders = array_of(field(graph, "inputs"));
  if (placeholders.size() != names.size())
    throw BuildError{builder_.error_at(call_, str("its graph takes {} operands, but is given {}",
                                                  placeholders.size(), names.size()))};
  for (std::size_t i = 0; i < names.size(); ++i)
    reader.define(reader.name_at(placeholders[i]), outer_.lookup(names[i]));
  reader.read_nodes();
  const Json& outputs = array_of(field(graph, "outputs"));
  if (outputs.size() != call_.names.size())
    throw BuildError{builder_.error_at(call_, "its graph returns a wrong number of values")};
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (!call_.names[i].empty()) outer_.define(call_.names[i], reader.value_of(outputs[i]));
}

}  // namespace coil
