// Level 0 as text.

#include <algorithm>

#include "base/text.h"
#include "graph/args.h"
#include "graph/data.h"
#include "graph/text.h"
#include "graph/text_names.h"

namespace coil {
namespace {

class Printer {
 public:
  explicit Printer(TextWriter& out) : out_(out) {}

  void print(const Graph& graph, bool is_top) {
    graph_ = &graph;
    out_.line("graph {}({}) {{", graph.name,
              join(graph.inputs, ", ", [&](const Input& input) { return input_text(input); }));
    out_.indent();
    if (is_top) print_declarations();
    for (const Graph& sub : graph.subgraphs) {
      Printer(out_).print(sub, false);
    }
    for (const Node& node : graph.nodes) print_node(node);
    print_results();
    out_.dedent();
    out_.raw_line("}");
  }

 private:
  sym::Arena& syms() const { return *graph_->syms; }
  std::string expr_text(sym::Expr e) const { return syms().text(e); }
  std::string value_text(ValueId v) const {
    return v.valid() ? "%" + graph_->values[v].name : "None";
  }
  /// An expression that no node computes has no name in the text.
  std::string number_text(ValueId v) const {
    const Value& value = graph_->values[v];
    const bool is_input =
        std::ranges::find(graph_->inputs, v, &Input::value) != graph_->inputs.end();
    const bool is_plain = !value.def.valid() && !is_input && value.type.expr.valid();
    return is_plain ? expr_text(value.type.expr) : value_text(v);
  }
  std::string type_text(ValueId v) const { return text(syms(), graph_->type(v)); }

  std::string input_text(const Input& input) const {
    std::string out = value_text(input.value);
    if (input.name != graph_->values[input.value].name) out += " " + quoted(input.name);
    return out + ": " + type_text(input.value);
  }

  static std::string range_text(sym::Range range) {
    if (range == sym::Range{}) return "";
    std::string out = " in ";
    if (range.lo != sym::kMinInt) out += str("{}", range.lo);
    out += "..";
    if (range.hi != sym::kMaxInt) out += str("{}", range.hi);
    return out;
  }

  /// Variables of role Value in the types of `graph` and its subgraphs, in the order of values.
  void data_variables(const Graph& graph, std::vector<sym::Expr>& out) const {
    for (const Value& value : graph.values) {
      for (sym::Expr e : value.type.shape) syms().variables(e, out);
      for (sym::Expr e : value.type.strides) syms().variables(e, out);
      if (value.type.expr.valid()) syms().variables(value.type.expr, out);
    }
    for (const Graph& sub : graph.subgraphs) data_variables(sub, out);
  }

  void print_declarations() {
    for (const SizeVar& size : graph_->sizes) {
      const sym::Variable& var = syms().var(size.var);
      out_.raw_line("size " + var.name + range_text(var.range) +
                    (size.hint ? str(" hint {}", *size.hint) : ""));
    }
    std::vector<sym::Expr> variables;
    data_variables(*graph_, variables);
    for (sym::Expr e : variables)
      if (const sym::Variable& var = syms().var(e); var.role == sym::Role::Value)
        out_.raw_line("data " + var.name + range_text(var.range));
    for (sym::Expr fact : graph_->facts.conditions()) out_.line("fact {}", expr_text(fact));
    for (const Check& check : graph_->checks)
      out_.line("check {} {}", expr_text(check.condition), quoted(check.text));
    for (std::size_t i = 0; i < graph_->constants.size(); ++i) print_constant(i);
  }

  void print_constant(std::size_t i) {
    const Constant& constant = graph_->constants[i];
    std::string line = constant.is_state ? "state " : "const ";
    line += value_text(constant.value);
    if (!constant.fqn.empty()) line += " " + quoted(constant.fqn);
    line += ": " + type_text(constant.value);
    if (constant.offset != 0) line += str(" offset {}", constant.offset);
    out_.raw_line(line + " = " + storage_text(i));
  }

  std::string storage_text(std::size_t i) const {
    const Constant& constant = graph_->constants[i];
    for (std::size_t j = 0; j < i; ++j)
      if (graph_->constants[j].storage == constant.storage)
        return "of " + value_text(graph_->constants[j].value);
    const Storage& storage = graph_->storages.at(constant.storage);
    switch (storage.source) {
      case StorageSource::Absent: return "absent";
      case StorageSource::Seed: return str("seed {}", storage.seed);
      case StorageSource::File: return "file " + quoted(storage.file) + " " + quoted(storage.key);
      case StorageSource::Inline: break;
    }
    const DType dtype = graph_->type(constant.value).dtype;
    std::string out = "{";
    for (i64 at = 0; at + size_of(dtype) <= storage.bytes; at += size_of(dtype))
      out += (at == 0 ? "" : ", ") + element_text(dtype, storage.data + at);
    return out + "}";
  }

  std::string arg_text(const Arg& arg) const {
    const auto exprs = [&](sym::Expr e) { return expr_text(e); };
    struct Visitor {
      const Printer& p;
      decltype(exprs)& expr;
      std::string operator()(None) const { return "None"; }
      std::string operator()(ValueId v) const { return p.value_text(v); }
      std::string operator()(const std::vector<ValueId>& list) const {
        return "[" + join(list, ", ", [&](ValueId v) { return p.value_text(v); }) + "]";
      }
      std::string operator()(sym::Expr e) const { return expr(e); }
      std::string operator()(const std::vector<sym::Expr>& list) const {
        return "[" + join(list, ", ", expr) + "]";
      }
      std::string operator()(double v) const { return float_text(v); }
      std::string operator()(const std::vector<double>& list) const {
        return "[" + join(list, ", ", float_text) + "]";
      }
      std::string operator()(bool v) const { return v ? "true" : "false"; }
      std::string operator()(const std::vector<bool>& list) const {
        return "[" + join(list, ", ", [](bool v) { return v ? "true" : "false"; }) + "]";
      }
      std::string operator()(const std::string& v) const { return quoted(v); }
      std::string operator()(DType v) const { return std::string(name(v)); }
      std::string operator()(MemoryFormat v) const { return std::string(format_name(v)); }
      std::string operator()(const Device& v) const { return quoted(v.name); }
      std::string operator()(const Complex& v) const {
        return str("complex({}, {})", float_text(v.re), float_text(v.im));
      }
    };
    return std::visit(Visitor{*this, exprs}, arg);
  }

  /// Arguments from `first` on, without defaults at the end and without those of keywords.
  std::string args_text(const std::string& op, std::span<const Arg> args, std::size_t first) const {
    const std::optional<ops::Schema> schema = ops::find_schema(op);
    if (!schema || schema->args.size() != args.size() + first)
      return join(args, ", ", [&](const Arg& arg) { return arg_text(arg); });
    const auto left_out = [&](std::size_t i) {
      return is_default(syms(), schema->args[first + i], args[i]);
    };
    std::size_t positional = 0;
    for (std::size_t i = 0; i < args.size(); ++i)
      if (!schema->args[first + i].keyword_only && !left_out(i)) positional = i + 1;
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (i < positional) {
        parts.push_back(arg_text(args[i]));
      } else if (!left_out(i)) {
        parts.push_back(schema->args[first + i].name + "=" + arg_text(args[i]));
      }
    }
    return join(parts, ", ", [](const std::string& s) { return s; });
  }

  std::string loc_text(LocId id) const {
    if (!id.valid()) return "";
    const Loc& loc = graph_->locs[id];
    if (loc.frame.empty() && loc.module.empty()) return "";
    std::string out = " @ " + (is_place(loc.frame) ? loc.frame : quoted(loc.frame));
    if (!loc.module.empty())
      out += " in " + (is_word(loc.module) ? loc.module : quoted(loc.module));
    return out;
  }

  void print_node(const Node& node) {
    std::string line = join(node.outs, ", ", [&](ValueId v) { return value_text(v); });
    if (!node.outs.empty()) line += " = ";
    line += node.op;
    if (!node.subgraphs.empty())
      line += "[" +
              join(node.subgraphs, ", ", [&](u32 i) { return graph_->subgraphs.at(i).name; }) + "]";
    line += "(" + args_text(node.op, node.args, 0) + ")";
    if (!node.view.empty())
      line += " at " + join(node.view, ", ", [&](const ViewStep& step) {
                return step.op + "(" + args_text(step.op, step.args, 1) + ")";
              });
    if (!node.outs.empty())
      line += " : " + join(node.outs, ", ", [&](ValueId v) { return type_text(v); });
    out_.raw_line(line + loc_text(node.loc));
  }

  std::string output_text(const Output& output) const {
    switch (output.kind) {
      case OutputKind::Value:
      case OutputKind::Int: return number_text(output.value);
      case OutputKind::AliasOfInput:
        return str("alias {} of input {}", value_text(output.value),
                   value_text(graph_->inputs.at(output.target).value));
      case OutputKind::AliasOfOutput:
        return str("alias {} of output {}", value_text(output.value), output.target);
      case OutputKind::Constant: return arg_text(output.constant);
      case OutputKind::None: return "None";
      case OutputKind::MutatedInput: break;
    }
    COIL_UNREACHABLE();
  }

  void print_results() {
    std::vector<std::string> returned;
    for (const Output& output : graph_->outputs) {
      if (output.kind == OutputKind::MutatedInput) {
        out_.line("mutates {} = {}", value_text(graph_->inputs.at(output.target).value),
                  value_text(output.value));
      } else {
        returned.push_back(output_text(output));
      }
    }
    for (const StateUpdate& update : graph_->state_updates)
      out_.line("updates {} = {}", value_text(graph_->constants.at(update.constant).value),
                value_text(update.value));
    const std::string list = join(returned, ", ", [](const std::string& s) { return s; });
    out_.raw_line(list.empty() ? "return" : "return " + list);
  }

  TextWriter& out_;
  const Graph* graph_ = nullptr;
};

}  // namespace

std::string_view format_name(MemoryFormat format) {
  return kFormatNames[static_cast<std::size_t>(format)];
}

bool is_name(std::string_view text) {
  const auto inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (text.empty() || text[0] == '.') return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (!inner(text[i]) && !(text[i] == '.' && i + 1 < text.size() && inner(text[i + 1])))
      return false;
  return true;
}

bool is_word(std::string_view text) { return is_name(text) && !(text[0] >= '0' && text[0] <= '9'); }

bool is_place(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == text.npos || colon + 1 == text.size() || text.size() - colon > 10) return false;
  if (text[colon + 1] == '0') return false;
  return is_word(text.substr(0, colon)) &&
         std::ranges::all_of(text.substr(colon + 1), [](char c) { return c >= '0' && c <= '9'; });
}

std::string to_text(const Graph& graph) {
  TextWriter out;
  Printer(out).print(graph, true);
  return out.text();
}

}  // namespace coil
