#include "import/functionalize.h"

#include <algorithm>
#include <cctype>

#include "graph/args.h"
#include "graph/builder.h"
#include "graph/data.h"
#include "graph/rules.h"
#include "graph/text_names.h"
#include "import/alias_ops.h"
#include "import/write_ops.h"
#include "ops/lowered.h"

namespace coil {
namespace {

bool is_open_symbol(const sym::Arena& syms, sym::Expr e) {
  return syms.kind(e) == sym::Kind::Var && syms.var(e).role == sym::Role::Value;
}

/// The name as coil's texts can hold it. Torch's own names are words already.
std::string as_word(std::string name) {
  if (is_word(name)) return name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return "value_" + name;
}

sym::Range intersect(sym::Range a, sym::Range b) {
  return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
}

/// Whether the levels below know the op, by itself or in terms of others.
bool is_compiled(std::string_view op, const CompositeRules& composites) {
  return ops::is_lowered(op) || composites.handles(op) || is_own_op(op);
}

/// Whether the op needs random numbers: one that drops nothing, or runs in evaluation, needs none.
bool draws(const Node& node, const ops::Schema& schema) {
  const auto is = [&](std::string_view name, auto value) {
    const int i = schema.arg_index(name);
    if (i < 0) return false;
    const auto* found = std::get_if<decltype(value)>(&node.args.at(static_cast<std::size_t>(i)));
    return found != nullptr && *found == value;
  };
  const bool drops_nothing =
      is("dropout_p", 0.0) || (schema.arg_index("train") >= 0 && is("p", 0.0));
  return !is("train", false) && !is("training", false) && !drops_nothing;
}

}  // namespace

FunctionalBuilder::FunctionalBuilder(Graph& graph, std::unordered_set<std::string> reserved)
    : graph_(graph), reserved_(std::move(reserved)) {
  for (const Value& value : graph.values) used_.insert(value.name);
}

std::string FunctionalBuilder::claim_name(const std::string& name) {
  if (is_word(name) && used_.insert(name).second) return name;
  return fresh_name(name.empty() ? "value" : name);
}

std::string FunctionalBuilder::fresh_name(const std::string& stem) {
  const std::string name = as_word(stem);
  for (u32& suffix = suffixes_[name];;) {
    std::string candidate = str("{}_{}", name, ++suffix);
    if (!reserved_.contains(candidate) && used_.insert(candidate).second) return candidate;
  }
}

Error FunctionalBuilder::error_at(const ImportCall& call, const std::string& message) const {
  std::string where = call.names.empty() || call.names[0].empty() ? call.op : call.names[0];
  if (call.loc.valid() && !graph_.locs[call.loc].frame.empty())
    where += str(" ({})", graph_.locs[call.loc].frame);
  return error("node {}: {}: {}", where, call.op, message);
}

TensorId FunctionalBuilder::add_base(ValueId value, Origin origin, u32 index) {
  const BaseId base = bases_.add(Base{value, 0, origin, index, TensorId()});
  const Value& v = graph_.values[value];
  const TensorId root = tensors_.add(Tensor{base, {}, {}, v.type, value, 0, v.name, {}});
  bases_[base].root = root;
  return root;
}

TensorId FunctionalBuilder::view(TensorId of, ViewStep step, const ImportCall& call,
                                 std::size_t index) {
  Node node;
  node.op = step.op;
  node.args = {read(of)};
  node.args.insert(node.args.end(), step.args.begin(), step.args.end());
  ImportCall one = call;
  one.names = {index < call.names.size() ? call.names[index] : ""};
  one.expected.clear();
  if (index < call.expected.size()) one.expected = {call.expected[index]};
  const ValueId value = append(std::move(node), one).at(0);
  Tensor tensor{tensors_[of].base,         of,      std::move(step), graph_.type(value), value, 0,
                graph_.values[value].name, call.loc};
  tensor.version = bases_[tensor.base].version;
  return tensors_.add(std::move(tensor));
}

TensorId FunctionalBuilder::alias(TensorId of, const ImportCall& call, std::size_t index) {
  check_expected(tensors_[of].type, call, index);
  Tensor tensor = tensors_[of];
  tensor.parent = of;
  tensor.step = {};
  tensor.loc = call.loc;
  return tensors_.add(std::move(tensor));
}

void FunctionalBuilder::rebind(TensorId tensor, const std::function<TensorId(TensorId)>& make) {
  const TensorId before = tensors_.add(tensors_[tensor]);
  for (Tensor& t : tensors_)
    if (t.parent == tensor) t.parent = before;
  Base& base = bases_[tensors_[tensor].base];
  if (base.root == tensor) base.root = before;
  const TensorId now = make(before);
  tensors_[tensor] = tensors_[now];
}

std::vector<ViewStep> FunctionalBuilder::chain(TensorId tensor, TensorId from) const {
  std::vector<ViewStep> steps;
  for (TensorId t = tensor; t.valid() && t != from; t = tensors_[t].parent)
    if (!tensors_[t].step.op.empty()) steps.push_back(tensors_[t].step);
  std::ranges::reverse(steps);
  return steps;
}

ValueId FunctionalBuilder::read(TensorId tensor) {
  const Base& base = bases_[tensors_[tensor].base];
  std::vector<TensorId> stale;
  TensorId at = tensor;
  while (tensors_[at].version != base.version) {
    stale.push_back(at);
    if (!tensors_[at].parent.valid()) break;
    at = tensors_[at].parent;
  }
  for (std::size_t i = stale.size(); i-- > 0;) {
    Tensor& t = tensors_[stale[i]];
    ValueId value = t.parent.valid() ? tensors_[t.parent].value : base.value;
    if (!t.step.op.empty()) {
      Node node;
      node.op = t.step.op;
      node.args = {value};
      node.args.insert(node.args.end(), t.step.args.begin(), t.step.args.end());
      value = append_named(std::move(node), {t.type}, {fresh_name(t.name)}, t.loc).at(0);
    }
    t.value = value;
    t.version = base.version;
  }
  return tensors_[tensor].value;
}

void FunctionalBuilder::write(TensorId tensor, ValueId value, const ImportCall& call) {
  const Type target = tensors_[tensor].type;
  if (graph_.type(value).dtype != target.dtype)
    value = call_op("_to_copy", {value, target.dtype}, call);
  if (graph_.type(value).shape != target.shape)
    value = call_op("expand", {value, target.shape}, call);
  const BaseId base = tensors_[tensor].base;
  TensorId retyped = tensor;  // the last view of another dtype in the chain
  while (retyped.valid() && tensors_[retyped].step.op != "view.dtype")
    retyped = tensors_[retyped].parent;
  if (retyped.valid()) {
    write_bits(tensor, retyped, value, call);
  } else {
    bases_[base].value = updated(bases_[base].value, chain(tensor), value, call);
    ++bases_[base].version;
  }
  if (graph_.type(value).strides != target.strides) return;
  tensors_[tensor].value = value;
  tensors_[tensor].version = bases_[base].version;
}

/// `into` with the elements that `steps` select replaced.
ValueId FunctionalBuilder::updated(ValueId into, std::vector<ViewStep> steps, ValueId value,
                                   const ImportCall& call) {
  const Value& before = graph_.values[into];
  if (steps.empty() && graph_.type(value).strides == before.type.strides) return value;
  Node node;
  node.op = "update";
  node.args = {into, value};
  node.view = std::move(steps);
  const std::string name = fresh_name(before.name);
  return append_named(std::move(node), {before.type}, {name}, call.loc).at(0);
}

/// A view of another dtype is replaced as a tensor of that dtype, which is then seen as what it
/// was. Elements that stay keep all their bits: bools that are neither 0 nor 1, halves that are
/// NaN.
void FunctionalBuilder::write_bits(TensorId tensor, TensorId retyped, ValueId value,
                                   const ImportCall& call) {
  const TensorId parent = tensors_[retyped].parent;
  const DType from = tensors_[parent].type.dtype, seen = tensors_[retyped].type.dtype;
  const DType bits = is_bool(seen) ? DType::u8 : is_narrow_float(seen) ? DType::i16 : seen;
  if (bits != seen) value = call_op(is_bool(seen) ? "_to_copy" : "view.dtype", {value, bits}, call);
  ValueId whole = read(parent);
  if (bits != from) whole = call_op("view.dtype", {whole, bits}, call);
  whole = updated(whole, chain(tensor, retyped), value, call);
  if (bits != from) whole = call_op("view.dtype", {whole, from}, call);
  write(parent, whole, call);
}

Arg FunctionalBuilder::read_arg(const ImportArg& arg) {
  if (const TensorId* tensor = std::get_if<TensorId>(&arg)) return read(*tensor);
  if (const std::vector<TensorId>* list = std::get_if<std::vector<TensorId>>(&arg)) {
    std::vector<ValueId> values;
    for (TensorId t : *list) values.push_back(t.valid() ? read(t) : ValueId());
    return values;
  }
  return std::get<Arg>(arg);
}

bool FunctionalBuilder::equal(sym::Expr a, sym::Expr b) {
  const sym::Prover prover(syms(), graph_.facts);
  if (a == b || prover.is_equal(a, b)) return true;
  if (assumed_ == nullptr || assumed_->empty()) return false;
  return prover.is_equal(syms().substitute(a, *assumed_), syms().substitute(b, *assumed_));
}

void FunctionalBuilder::check_expected(const Type& found, const ImportCall& call,
                                       std::size_t index) {
  if (index >= call.expected.size() || call.expected[index].kind == TypeKind::None) return;
  const Type& expected = call.expected[index];
  bool same = found.kind == expected.kind;
  if (same && found.is_tensor()) {
    same = found.dtype == expected.dtype && found.ndim() == expected.ndim();
    for (std::size_t d = 0; same && d < found.ndim(); ++d)
      same =
          equal(found.shape[d], expected.shape[d]) && equal(found.strides[d], expected.strides[d]);
  }
  if (same) return;
  const std::string name = index < call.names.size() ? call.names[index] : call.op;
  const std::string place = call.loc.valid() ? graph_.locs[call.loc].frame : "";
  type_differences_.push_back(str("{} = {} ({}): coil finds {}, the file says {}", name, call.op,
                                  place, text(syms(), found), text(syms(), expected)));
}

void FunctionalBuilder::adopt_symbols(std::vector<Type>& types, std::size_t first_check,
                                      std::size_t first_fact, const ImportCall& call) {
  std::vector<std::pair<sym::Expr, sym::Expr>> renamed;
  const auto match = [&](sym::Expr found, sym::Expr stated) {
    if (found == stated || !found.valid() || !stated.valid()) return;
    if (!is_open_symbol(syms(), found) || !is_open_symbol(syms(), stated)) return;
    if (defined_symbols_.contains(found.index) || !defined_symbols_.insert(stated.index).second)
      return;
    syms().set_range(stated, intersect(syms().var(stated).range, syms().var(found).range));
    renamed.emplace_back(found, stated);
  };
  for (std::size_t i = 0; i < std::min(types.size(), call.expected.size()); ++i) {
    const Type& stated = call.expected[i];
    if (stated.kind != types[i].kind) continue;
    match(types[i].expr, stated.expr);
    for (std::size_t d = 0; d < std::min(types[i].ndim(), stated.ndim()); ++d)
      match(types[i].shape[d], stated.shape[d]);
  }
  if (renamed.empty()) return;
  const auto rename = [&](sym::Expr& e) {
    if (e.valid()) e = syms().substitute(e, renamed);
  };
  for (Type& type : types) {
    rename(type.expr);
    for (sym::Expr& e : type.shape) rename(e);
    for (sym::Expr& e : type.strides) rename(e);
  }
  for (std::size_t i = first_check; i < graph_.checks.size(); ++i)
    rename(graph_.checks[i].condition);
  sym::Facts facts;
  for (std::size_t i = 0; i < graph_.facts.conditions().size(); ++i) {
    sym::Expr fact = graph_.facts.conditions()[i];
    if (i >= first_fact) rename(fact);
    facts.add(fact);
  }
  graph_.facts = std::move(facts);
}

std::vector<Type> FunctionalBuilder::infer_types(const Node& node, const ImportCall& call) {
  const std::size_t first_check = graph_.checks.size();
  const std::size_t first_fact = graph_.facts.conditions().size();
  Result<std::vector<Type>> types = infer(graph_, node);
  if (!types) throw BuildError{error_at(call, types.error().message)};
  adopt_symbols(*types, first_check, first_fact, call);
  for (std::size_t i = 0; i < types->size(); ++i) check_expected((*types)[i], call, i);
  return std::move(*types);
}

std::vector<ValueId> FunctionalBuilder::append(Node node, const ImportCall& call) {
  if (has_rule(graph_, node.op)) {
    std::vector<Type> types = infer_types(node, call);
    return append(std::move(node), std::move(types), call);
  }
  // Without rules for composite ops the stated types are all there is.
  const bool all_stated =
      call.expected.size() >= call.names.size() &&
      std::ranges::none_of(call.expected, [](const Type& t) { return t.kind == TypeKind::None; });
  if (!all_stated) {
    note_unsupported(call);
    throw BuildError{unsupported_error(unsupported_)};
  }
  return append(std::move(node), call.expected, call);
}

std::vector<ValueId> FunctionalBuilder::append(Node node, std::vector<Type> types,
                                               const ImportCall& call) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const bool is_named = i < call.names.size() && !call.names[i].empty();
    names.push_back(is_named ? claim_name(call.names[i])
                             : fresh_name(call.names.empty() ? "value" : call.names[0]));
  }
  return append_named(std::move(node), std::move(types), std::move(names), call.loc);
}

std::vector<ValueId> FunctionalBuilder::append_named(Node node, std::vector<Type> types,
                                                     std::vector<std::string> names, LocId loc) {
  node.loc = loc;
  node.outs.clear();
  const NodeId id = graph_.nodes.add(std::move(node));
  std::vector<ValueId> outs;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const ValueId out = graph_.add_value(std::move(names[i]), std::move(types[i]));
    graph_.values[out].def = id;
    graph_.values[out].out_index = static_cast<u32>(i);
    outs.push_back(out);
  }
  graph_.nodes[id].outs = outs;
  return outs;
}

ValueId FunctionalBuilder::call_op(const std::string& op, std::vector<Arg> args,
                                   const ImportCall& call) {
  const std::optional<ops::Schema> schema = ops::find_schema(op);
  COIL_CHECK(schema.has_value(), "no schema of {}", op);
  Node node;
  node.op = op;
  node.args = value_or_throw(complete_args(graph_, *schema, std::move(args)));
  ImportCall part;
  part.op = op;
  part.loc = call.loc;
  std::vector<Type> types = infer_types(node, part);
  COIL_CHECK(types.size() == 1, "{} has {} results", op, types.size());
  const std::string name = fresh_name(call.names.empty() ? "value" : call.names[0]);
  return append_named(std::move(node), std::move(types), {name}, call.loc).at(0);
}

ImportValue FunctionalBuilder::result(ValueId value) {
  const Type& type = graph_.type(value);
  switch (type.kind) {
    case TypeKind::Tensor: return add_base(value, Origin::Computed, 0);
    case TypeKind::Int:
    case TypeKind::Bool: return type.expr.valid() ? ImportValue(type.expr) : ImportValue(value);
    case TypeKind::Float: return value;
    case TypeKind::None: return None{};
  }
  COIL_UNREACHABLE();
}

std::vector<ImportValue> FunctionalBuilder::plain_call(const ImportCall& call) {
  const std::optional<ops::Schema> schema = ops::find_schema(call.op);
  // Without composite ops nothing can be compiled, and all ops of ATen are taken.
  if (!schema || (graph_.composites != nullptr && !is_compiled(call.op, *graph_.composites)))
    return unsupported(call);
  Node node;
  node.op = call.op;
  for (const ImportArg& arg : call.args) node.args.push_back(read_arg(arg));
  Result<std::vector<Arg>> args = complete_args(graph_, *schema, std::move(node.args));
  if (!args) throw BuildError{error_at(call, args.error().message)};
  node.args = std::move(*args);
  if (ops::is_random(node.op)) give_random_key(node, *schema, call);
  std::vector<ImportValue> results;
  for (ValueId out : append(std::move(node), call)) results.push_back(result(out));
  return results;
}

/// An op with a key got it from whoever made the program.
void FunctionalBuilder::give_random_key(Node& node, const ops::Schema& schema,
                                        const ImportCall& call) {
  const auto arg = [&](std::string_view name) -> Arg& {
    return node.args.at(static_cast<std::size_t>(schema.arg_index(name)));
  };
  if (!std::holds_alternative<None>(arg(ops::kRandomKey)) || !draws(node, schema)) return;
  if (!random_key_.valid()) {
    if (!keeps_state_)
      throw BuildError{error_at(call, "random numbers inside of control flow are not supported")};
    Type type;
    type.dtype = DType::i64;
    type.shape = {syms().constant(2)};
    type.strides = {syms().constant(1)};
    random_key_ = graph_.add_value(claim_name(std::string(kRandomState)), type);
    const i64 start[] = {0, 0};
    Constant key{random_key_, std::string(kRandomState), static_cast<u32>(graph_.storages.size())};
    key.is_state = true;
    graph_.storages.push_back(inline_storage(std::as_bytes(std::span(start))));
    graph_.constants.push_back(std::move(key));
  }
  arg(ops::kRandomKey) = random_key_;
  arg(ops::kRandomOp) = syms().constant(random_ops_++);
}

void FunctionalBuilder::advance_random_key() {
  if (!random_key_.valid()) return;
  ImportCall call;
  call.names = {std::string(kRandomState)};
  const auto part = [&](i64 from) {
    return call_op(
        "slice.Tensor",
        {random_key_, syms().constant(0), syms().constant(from), syms().constant(from + 1)}, call);
  };
  const sym::Expr used = syms().constant(ops::kStreamsPerOp * random_ops_);
  const ValueId moved = call_op("add.Scalar", {part(1), used}, call);
  const ValueId next = call_op("cat", {std::vector<ValueId>{part(0), moved}}, call);
  for (u32 i = 0; i < graph_.constants.size(); ++i)
    if (graph_.constants[i].value == random_key_) graph_.state_updates.push_back({i, next});
}

void FunctionalBuilder::note_unsupported(const ImportCall& call) {
  Unsupported& entry = unsupported_[call.op];
  if (entry.count++ == 0 && call.loc.valid()) entry.place = graph_.locs[call.loc].frame;
}

std::vector<ImportValue> FunctionalBuilder::unsupported(const ImportCall& call) {
  note_unsupported(call);
  std::vector<ImportValue> results;
  for (std::size_t i = 0; i < call.names.size(); ++i) {
    const bool is_stated = i < call.expected.size() && call.expected[i].kind != TypeKind::None;
    if (is_stated)
      results.push_back(result(graph_.add_value(claim_name(call.names[i]), call.expected[i])));
    else
      results.push_back(None{});
  }
  return results;
}

std::vector<ImportValue> FunctionalBuilder::call(const ImportCall& call) {
  if (auto results = AliasOps(*this, call).run()) return std::move(*results);
  if (auto results = WriteOps(*this, call).run()) return std::move(*results);
  return plain_call(call);
}

bool can_import(std::string_view op, const CompositeRules& composites) {
  if (!ops::find_schema(std::string(op))) return false;
  return AliasOps::handles(op) || WriteOps::handles(op) || is_compiled(op, composites);
}

Error unsupported_error(const std::map<std::string, FunctionalBuilder::Unsupported>& ops) {
  const std::string list = join(ops, ", ", [](const auto& row) {
    const auto& [op, use] = row;
    std::string where = use.place.empty() ? "" : ", first at " + use.place;
    const bool is_aten = op.find("::") == std::string::npos && op.find('/') == std::string::npos;
    return str("{}{} ({}x{})", is_aten ? "aten." : "", op, use.count, where);
  });
  return error("{} {} not supported: {}", ops.size(), ops.size() == 1 ? "op is" : "ops are", list);
}

}  // namespace coil
