#include "lower/context.h"

#include "base/check.h"
#include "graph/builder.h"
#include "lower/body_builder.h"

namespace coil::lowering {
namespace {

struct CountUses {
  Side<ValueId, u32>& uses;
  void operator()(const ValueId& v) const {
    if (v.valid()) ++uses[v];
  }
  void operator()(const std::vector<ValueId>& all) const {
    for (ValueId v : all) (*this)(v);
  }
  template <class Other>
  void operator()(const Other&) const {}
};

}  // namespace

Lowering::Lowering(const Graph& g, const sym::Facts& f, Unsupported& u)
    : graph(g), syms(*g.syms), prover(*g.syms, f), unsupported(u), facts(f) {
  program.name = g.name;
  program.syms = g.syms;
  program.facts = f;
  program.locs = g.locs;
  for (ValueId v : g.values.ids()) program.value_names[v] = g.values[v].name;
  const CountUses count{uses_};
  for (const Node& node : g.nodes) {
    for (const Arg& arg : node.args) std::visit(count, arg);
    for (const ViewStep& step : node.view)
      for (const Arg& arg : step.args) std::visit(count, arg);
  }
  for (const Output& output : g.outputs) count(output.value);
  for (const StateUpdate& update : g.state_updates) count(update.value);
}

Error Lowering::unsupported_case(std::string_view why) const {
  std::string place = name();
  if (node_->loc.valid() && !graph.locs[node_->loc].frame.empty())
    place += str(" ({})", graph.locs[node_->loc].frame);
  return error("node {}: {} is not supported: {}", place, node_->op, why);
}

Access Lowering::access(ValueId v) const {
  if (!v.valid()) throw BuildError{error("a tensor is missing")};
  const Access& found = values_.get(v);
  COIL_CHECK(found.buffer.valid(), "value {} was not lowered", name_of(v));
  return found;
}

Expr Lowering::extent(const Access& a, i64 dim) const {
  return a.extents.at(
      static_cast<std::size_t>(dim < 0 ? dim + static_cast<i64>(a.extents.size()) : dim));
}

std::string Lowering::fresh(std::set<std::string>& taken, const std::string& base) {
  std::string name = base;
  for (int k = 1; !taken.insert(name).second; ++k) name = str("{}_{}", base, k);
  return name;
}

BufferId Lowering::add_buffer(Buffer buffer) {
  buffer.name = fresh(buffer_names_, buffer.name);
  return program.buffers.add(std::move(buffer));
}

Buffer Lowering::buffer_for(const Type& type, const std::string& name) const {
  COIL_CHECK(type.is_tensor(), "value {} is not a tensor", name);
  Buffer buffer;
  buffer.name = name;
  buffer.dtype = type.dtype;
  buffer.shape = type.shape;
  Exprs strides = type.strides;
  if (is_complex(type.dtype)) {
    const Expr two = syms.constant(2);
    buffer.dtype = real_of(type.dtype);
    buffer.shape.push_back(two);
    for (Expr& stride : strides) stride = syms.mul(stride, two);
    strides.push_back(syms.constant(1));
  }
  buffer.layout = strided_layout(strides, Expr());
  return buffer;
}

BufferId Lowering::result(ValueId v) {
  Buffer buffer = buffer_for(type(v), name_of(v));
  buffer.layout.open = true;
  const BufferId id = add_buffer(std::move(buffer));
  set(v, whole(id));
  return id;
}

BufferId Lowering::temp(std::string_view suffix, DType dtype, Exprs shape) {
  Buffer buffer;
  buffer.name = str("{}.{}", name(), suffix);
  buffer.dtype = dtype;
  buffer.layout = strided_layout(contiguous_strides(syms, shape), Expr());
  buffer.layout.open = true;
  buffer.shape = std::move(shape);
  return add_buffer(std::move(buffer));
}

Access Lowering::whole(BufferId buffer) const {
  return identity(syms, buffer, program.buffers[buffer].shape);
}

void Lowering::copy(const Access& from, BufferId to, const std::string& body) {
  BodyBuilder b(*this, body);
  const Exprs at = b.dims(program.buffers[to].shape);
  b.store(to, at, b.load(from, at));
  b.finish();
}

void Lowering::fill(BufferId to, i64 value, const std::string& body) {
  BodyBuilder b(*this, body);
  const Exprs at = b.dims(program.buffers[to].shape);
  b.store(to, at, b.integer(compute_dtype(program.buffers[to].dtype), value));
  b.finish();
}

BufferId Lowering::result_from(ValueId v, BufferId start) {
  // The result begins as the bytes of `start`, so both have one layout.
  Buffer alike = buffer_for(type(v), str("{}.start", name()));
  const Layout& have = program.buffers[start].layout;
  if (have.entries != alike.layout.entries || have.offset != alike.layout.offset) {
    const BufferId copied = add_buffer(std::move(alike));
    copy(whole(start), copied, program.buffers[copied].name);
    start = copied;
  }
  const BufferId out = result(v);
  program.buffers[out].starts = start;
  return out;
}

BufferId Lowering::whole_buffer(const Access& from, std::string_view suffix) {
  if (is_identity(from, program.buffers[from.buffer])) return from.buffer;
  const BufferId copied = temp(suffix, dtype_of(from), from.extents);
  copy(from, copied, str("{}.{}", name(), suffix));
  return copied;
}

BufferId Lowering::materialise(const Access& from, std::string_view suffix) {
  const Buffer& buffer = program.buffers[from.buffer];
  const Layout plain = strided_layout(contiguous_strides(syms, buffer.shape), Expr());
  if (is_identity(from, buffer) && buffer.layout.entries == plain.entries) return from.buffer;
  const BufferId copied = temp(suffix, buffer.dtype, from.extents);
  copy(from, copied, str("{}.{}", name(), suffix));
  return copied;
}

Access Lowering::linear(const Access& from, std::string_view suffix) {
  const Expr place = address(syms, program.buffers[from.buffer].layout, from.index);
  bool is_linear = true;
  for (Expr var : from.vars) is_linear = is_linear && syms.stride(place, var).has_value();
  if (is_linear) return from;
  const BufferId copied = temp(suffix, dtype_of(from), from.extents);
  copy(from, copied, str("{}.{}", name(), suffix));
  return whole(copied);
}

u32 Lowering::scalar(const std::string& name) {
  for (u32 k = 0; k < program.scalars.size(); ++k)
    if (program.scalars[k] == name) return k;
  program.scalars.push_back(name);
  return static_cast<u32>(program.scalars.size() - 1);
}

std::vector<LocId> Lowering::locs() const {
  return node_ && node_->loc.valid() ? std::vector<LocId>{node_->loc} : std::vector<LocId>{};
}

void Lowering::add_structured(Structured node) {
  // Dims are named by their place, whatever views the operands went through.
  for (auto* list : {&node.inputs, &node.outputs})
    for (Access& a : *list) {
      const Exprs vars = fresh_vars(syms, a.extents);
      a = view_of(syms, a, vars, a.extents, vars);
    }
  node.from = from();
  node.locs = locs();
  node.name = fresh_body_name(node.name);
  program.order.push_back(program.structured.add(std::move(node)));
}

void Lowering::define_size(Expr var, BufferId from) {
  program.sizes.push_back({var, std::nullopt, from});
}

}  // namespace coil::lowering
