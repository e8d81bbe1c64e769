#include "import/pt2_program.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "import/pt2_types.h"

namespace coil {
namespace {

const Json& graph_of(const Json& document) {
  return field(field(document, "graph_module"), "graph");
}

/// Whether "2.11.0+cpu" is older than 2.13, the first to state the states of recurrent ops right.
bool has_wrong_recurrent_states(const Json& document) {
  const Json* version = find_field(document, "torch_version");
  int major = 0, minor = 0;
  if (version == nullptr || std::sscanf(text_of(*version).c_str(), "%d.%d", &major, &minor) != 2)
    return false;
  return major == 2 && minor < 13;
}

std::string placeholder_of(const Json& spec) { return text_field(field(spec, "arg"), "name"); }

}  // namespace

Pt2ProgramReader::Pt2ProgramReader(const Pt2Place& place, const Json& document,
                                   const CompositeRules* composites,
                                   const std::set<std::string>& shared)
    : ProgramReader(std::make_unique<Parts>(graph_of(document), composites,
                                            has_wrong_recurrent_states(document)),
                    graph_of(document)),
      document_(document),
      graph_module_(field(document, "graph_module")),
      shared_(shared),
      weights_(place, symbols()) {
  if (const Json* version = find_field(document, "torch_version"))
    program_.torch_version = text_of(*version);
}

void Pt2ProgramReader::read() {
  if (const Json* ranges = find_field(document_, "range_constraints")) read_ranges(*ranges);
  read_inputs();
  read_guards();
  read_nodes();
  if (!builder().unsupported_ops().empty())
    throw BuildError{unsupported_error(builder().unsupported_ops())};
  apply_mutations();
  add_outputs();
}

void Pt2ProgramReader::read_inputs() {
  const Json& signature = field(graph_module_, "signature");
  std::vector<std::string> user_placeholders;
  const Json& specs = array_of(field(signature, "input_specs"));
  for (const Json& spec : specs) {
    const auto [kind, content] = arm_of(spec);
    if (kind == "user_input") {
      user_placeholders.push_back(name_at(field(content, "arg")));
    } else if (kind == "constant_input") {
      user_placeholders.push_back(text_field(content, "name"));
    } else if (kind == "parameter" || kind == "buffer" || kind == "tensor_constant") {
      const std::string fqn = text_field(content, (std::string(kind) + "_name").c_str());
      constants_[placeholder_of(content)] = fqn;
      placeholders_[fqn] = placeholder_of(content);
    } else {
      fail("the program has an input of the kind '{}', which coil does not support", kind);
    }
  }
  const std::vector<InputName> names = input_names(graph_module_, user_placeholders);
  std::size_t next = 0;
  for (const Json& spec : specs) {
    const auto [kind, content] = arm_of(spec);
    if (kind == "user_input") {
      const InputName& name = names[next++];
      const ValueId value = add_user_input(field(content, "arg"), name.name);
      for (const std::string& path : name.paths) guard_inputs_[path] = value;
    }
    if (kind == "constant_input") add_constant_input(content, names[next++]);
  }
}

void Pt2ProgramReader::add_constant_input(const Json& spec, const InputName& name) {
  const auto [kind, content] = arm_of(field(spec, "value"));
  FixedInput fixed;
  fixed.input = static_cast<u32>(graph().inputs.size());
  Type type;
  type.kind = TypeKind::None;
  if (kind == "as_int" || kind == "as_bool") {
    const i64 number = kind == "as_int" ? integer_of(content) : bool_of(content) ? 1 : 0;
    type.kind = kind == "as_int" ? TypeKind::Int : TypeKind::Bool;
    type.expr = graph().syms->constant(number);
    fixed.value = kind == "as_int" ? Arg(type.expr) : Arg(number != 0);
  } else if (kind == "as_float") {
    fixed.value = real_of(content);
  } else if (kind == "as_string") {
    fixed.value = text_of(content);
  }
  const ValueId value =
      graph().add_value(builder().claim_name(text_field(spec, "name")), std::move(type));
  const bool has_expression = graph().type(value).kind != TypeKind::None;
  graph().inputs.push_back({name.name, value, has_expression ? Arg(None{}) : fixed.value});
  for (const std::string& path : name.paths) guard_inputs_[path] = value;
  program_.fixed_inputs.push_back(std::move(fixed));
}

void Pt2ProgramReader::read_guards() {
  const GuardScope scope{symbols(), graph(), guard_inputs_};
  const HostMath math(*graph().syms);
  if (const Json* guards = find_field(document_, "guards_code")) {
    for (const Json& line : array_of(*guards)) {
      const std::string text = text_of(line);
      const std::optional<HostNumber> condition = parse_python(scope, text);
      if (condition)
        add_condition(graph(), condition->num, text);
      else
        program_.warnings.push_back(str("the guard \"{}\" is not checked", text));
    }
  }
  // Ranges of symbols are part of their variables; those of other expressions are conditions.
  const Json* ranges = find_field(document_, "range_constraints");
  if (ranges == nullptr) return;
  for (const auto& [key, range] : object_of(*ranges).items()) {
    if (std::ranges::all_of(key,
                            [](char c) { return std::isalnum(static_cast<unsigned char>(c)); }))
      continue;
    const std::optional<HostNumber> number = parse_python(scope, key);
    const std::optional<sym::Expr> size = number ? math.as_integer(*number) : std::nullopt;
    const Json* min = find_field(range, "min_val");
    const Json* max = find_field(range, "max_val");
    constexpr i64 kLargestAssumedMin = 2;
    if (!size) {
      program_.warnings.push_back(str("the range of \"{}\" is not checked", key));
      continue;
    }
    if (min != nullptr && integer_of(*min) > kLargestAssumedMin)
      add_condition(graph(), graph().syms->le(graph().syms->constant(integer_of(*min)), *size),
                    str("{} >= {}", key, integer_of(*min)));
    if (max != nullptr)
      add_condition(graph(), graph().syms->le(*size, graph().syms->constant(integer_of(*max))),
                    str("{} <= {}", key, integer_of(*max)));
  }
}

NamedValue Pt2ProgramReader::lookup(const std::string& name) {
  const auto constant = constants_.find(name);
  if (constant != constants_.end()) {
    const std::string fqn = constant->second;
    constants_.erase(constant);
    define(name, load(fqn, name));
  }
  return Pt2GraphReader::lookup(name);
}

TensorId Pt2ProgramReader::load(const std::string& fqn, const std::string& placeholder) {
  const WeightView& view = weights_.find(fqn);
  const std::string layout =
      str("{} {} {} {}", view.record, view.offset, text(*graph().syms, view.type),
          join(view.type.strides, ",", [&](sym::Expr e) { return graph().syms->text(e); }));
  for (const Loaded& other : loaded_)
    if (other.layout == layout) return other.tensor;  // tied
  const u32 storage = weights_.storage(graph(), view, fqn);
  TensorId tensor;
  if (shared_.contains(view.record)) {
    ImportCall call;
    call.op = "as_strided";
    call.names = {placeholder};
    const sym::Expr offset = graph().syms->constant(view.offset);
    tensor = builder().view(shared_base(view, fqn),
                            {"as_strided", {view.type.shape, view.type.strides, offset}}, call);
  } else {
    const ValueId value = graph().add_value(builder().claim_name(placeholder), view.type);
    const u32 index = static_cast<u32>(graph().constants.size());
    graph().constants.push_back({value, fqn, storage, view.offset, false});
    tensor = builder().add_base(value, Origin::Constant, index);
  }
  loaded_.push_back({view.record, layout, tensor});
  return tensor;
}

/// The whole record as one row of elements, of which several constants are views.
TensorId Pt2ProgramReader::shared_base(const WeightView& view, const std::string& fqn) {
  if (const auto known = shared_bases_.find(view.record); known != shared_bases_.end()) {
    const u32 index = builder().base(builder().base_of(known->second)).index;
    graph().constants[index].fqn += "," + fqn;
    return known->second;
  }
  const u32 storage = weights_.storage(graph(), view, fqn);
  Type type;
  type.dtype = view.type.dtype;
  type.shape = {graph().syms->constant(weights_.record_elements(view))};
  type.strides = {graph().syms->constant(1)};
  const std::string name = view.record.substr(view.record.rfind('/') + 1);
  const ValueId value = graph().add_value(builder().claim_name(name), std::move(type));
  const u32 index = static_cast<u32>(graph().constants.size());
  graph().constants.push_back({value, fqn, storage, 0, false});
  return shared_bases_[view.record] = builder().add_base(value, Origin::Constant, index);
}

std::set<std::string> Pt2ProgramReader::written_shared_records() const {
  std::set<std::string> records;
  for (const Loaded& one : loaded_) {
    const bool is_written = builder().base(builder().base_of(one.tensor)).version > 0;
    if (!is_written) continue;
    for (const Loaded& other : loaded_)
      if (&other != &one && other.record == one.record) records.insert(one.record);
  }
  return records;
}

/// Programs that are functional already return what they write.
void Pt2ProgramReader::apply_mutations() {
  for (const Json& spec : array_of(field(field(graph_module_, "signature"), "output_specs"))) {
    const auto [kind, content] = arm_of(spec);
    std::string target;
    if (kind == "buffer_mutation" || kind == "parameter_mutation") {
      const std::string fqn =
          text_field(content, kind == "buffer_mutation" ? "buffer_name" : "parameter_name");
      const auto placeholder = placeholders_.find(fqn);
      if (placeholder == placeholders_.end())
        fail("the program writes to '{}', which it has not", fqn);
      target = placeholder->second;
    } else if (kind == "user_input_mutation") {
      target = text_field(content, "user_input_name");
    } else if (kind == "user_output") {
      continue;
    } else {
      fail("the program has an output of the kind '{}', which coil does not support", kind);
    }
    const NamedValue to = lookup(target), from = lookup(placeholder_of(content));
    const TensorId* to_tensor = std::get_if<TensorId>(&to);
    const TensorId* from_tensor = std::get_if<TensorId>(&from);
    if (to_tensor == nullptr || from_tensor == nullptr)
      fail("the program writes to '{}', no tensor", target);
    ImportCall call;
    call.op = "copy_";
    call.names = {target};
    builder().write(*to_tensor, builder().read(*from_tensor), call);
  }
}

void Pt2ProgramReader::add_outputs() {
  add_mutations();
  for (const Json& spec : array_of(field(field(graph_module_, "signature"), "output_specs"))) {
    const auto [kind, content] = arm_of(spec);
    if (kind == "user_output") add_output(field(content, "arg"));
  }
}

Pt2Program Pt2ProgramReader::finish() {
  program_.type_differences = builder().type_differences();
  program_.warnings.insert(program_.warnings.end(), reading().warnings.begin(),
                           reading().warnings.end());
  program_.graph = take_graph();
  return std::move(program_);
}

}  // namespace coil
