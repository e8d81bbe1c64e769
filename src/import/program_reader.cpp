#include "import/program_reader.h"

#include <nlohmann/json.hpp>

#include "import/pt2_types.h"

namespace coil {

ProgramReader::Parts::Parts(const Json& graph_json, const CompositeRules* composites,
                            bool wrong_recurrent_states)
    : symbols(*graph.syms),
      reading{symbols, composites, wrong_recurrent_states, {}},
      builder(graph, Pt2GraphReader::names(graph_json)) {
  graph.composites = composites;
  builder.assume(symbols.assumed());
}

ProgramReader::ProgramReader(std::unique_ptr<Parts> parts, const Json& graph_json)
    : Pt2GraphReader(parts->reading, parts->builder, graph_json),
      parts_(std::move(parts)),
      graph_json_(graph_json) {}

void ProgramReader::read_ranges(const Json& ranges) {
  for (const auto& [key, range] : object_of(ranges).items()) {
    const Json* min = find_field(range, "min_val");
    const Json* max = find_field(range, "max_val");
    symbols().set_range(key, min != nullptr ? std::optional(integer_of(*min)) : std::nullopt,
                        max != nullptr ? std::optional(integer_of(*max)) : std::nullopt);
  }
}

ValueId ProgramReader::add_user_input(const Json& argument, const std::string& name) {
  const std::string& placeholder = name_at(argument);
  const bool is_tensor = arm_of(argument).first == "as_tensor";
  Type type;
  if (is_tensor) {
    type = stated_type(placeholder);
  } else {
    if (arm_of(argument).first != "as_sym_int")
      fail("input '{}' is a dynamic number other than an int, which coil does not support", name);
    type.kind = TypeKind::Int;
    type.expr =
        sym_int_of(field(field(graph_json_, "sym_int_values"), placeholder.c_str()), symbols());
  }
  const u32 index = static_cast<u32>(graph().inputs.size());
  const ValueId value = graph().add_value(builder().claim_name(placeholder), type);
  graph().inputs.push_back({name, value, None{}});
  if (is_tensor)
    define(placeholder, builder().add_base(value, Origin::Input, index));
  else
    define(placeholder, HostMath(*graph().syms).integer(type.expr));
  return value;
}

void ProgramReader::add_mutations() {
  builder().advance_random_key();
  for (const FunctionalBuilder::Base& base : builder().bases()) {
    if (base.version == 0 || base.origin == Origin::Computed) continue;
    if (base.origin == Origin::Input) {
      graph().outputs.push_back({OutputKind::MutatedInput, base.value, base.index, None{}});
    } else {
      graph().constants[base.index].is_state = true;
      graph().state_updates.push_back({base.index, base.value});
    }
  }
}

Output ProgramReader::tensor_output(TensorId tensor) {
  Output output;
  output.value = builder().read(tensor);
  const BaseId id = builder().base_of(tensor);
  const FunctionalBuilder::Base& base = builder().base(id);
  const u32 index = static_cast<u32>(graph().outputs.size());
  const auto earlier = output_of_base_.find(id.index);
  if (base.origin == Origin::Input) {
    output.kind = OutputKind::AliasOfInput;
    output.target = base.index;
  } else if (earlier != output_of_base_.end()) {
    output.kind = OutputKind::AliasOfOutput;
    output.target = earlier->second;
  } else {
    output_of_base_[id.index] = index;
  }
  return output;
}

void ProgramReader::add_output(const Json& argument) {
  const auto [arm, content] = arm_of(argument);
  Output output;
  if (arm == "as_none") {
    output.kind = OutputKind::None;
  } else if (arm == "as_int" || arm == "as_float" || arm == "as_bool" || arm == "as_string") {
    output.kind = OutputKind::Constant;
    if (arm == "as_int") output.constant = graph().syms->constant(integer_of(content));
    if (arm == "as_float") output.constant = real_of(content);
    if (arm == "as_bool") output.constant = bool_of(content);
    if (arm == "as_string") output.constant = text_of(content);
  } else {
    const NamedValue value = value_of(argument);
    if (const TensorId* tensor = std::get_if<TensorId>(&value)) {
      output = tensor_output(*tensor);
    } else if (const ValueId* id = std::get_if<ValueId>(&value)) {
      output.kind = OutputKind::Int;
      output.value = *id;
    } else if (const HostNumber* number = std::get_if<HostNumber>(&value);
               number != nullptr && !number->is_float) {
      Type type;
      type.kind = arm == "as_sym_bool" ? TypeKind::Bool : TypeKind::Int;
      type.expr = number->num;
      output.kind = OutputKind::Int;
      output.value = graph().add_value(builder().fresh_name("size"), std::move(type));
    } else if (std::holds_alternative<None>(value)) {
      output.kind = OutputKind::None;
    } else {
      fail("an output of the program is a number computed from sizes that coil cannot express");
    }
  }
  graph().outputs.push_back(std::move(output));
}

Graph ProgramReader::take_graph() {
  graph().sizes = symbols().sizes();
  return std::move(graph());
}

}  // namespace coil
