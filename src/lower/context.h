#pragma once
// The state of one graph's lowering: what each level 0 value has become, and the program so far.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "lower/access.h"
#include "lower/lower.h"

namespace coil::lowering {

/// Ops without a row, gathered over a graph and its subgraphs.
struct Unsupported {
  std::map<std::string, std::vector<std::string>> places;  // op -> describe(node), in order
};

class Lowering {
 public:
  /// `facts` are the root graph's.
  Lowering(const Graph& graph, const sym::Facts& facts, Unsupported& unsupported);

  const Graph& graph;
  sym::Arena& syms;
  sym::Prover prover;
  LoopProgram program;
  Unsupported& unsupported;
  const sym::Facts& facts;
  bool is_inner = false;  // a sub-program: its results are whole buffers

  // ---- level 0 ----
  const Node& node() const { return *node_; }
  void enter(const Node& node) { node_ = &node; }
  const Type& type(ValueId v) const { return graph.type(v); }
  const std::string& name_of(ValueId v) const { return graph.values[v].name; }
  /// The first result's name: what the bodies of the present node are named after.
  const std::string& name() const {
    return node_->outs.empty() ? node_->op : name_of(node_->outs.front());
  }
  bool used(ValueId v) const { return uses_.get(v) > 0; }
  Error unsupported_case(std::string_view why) const;

  // ---- tensors ----
  /// Where the elements of a tensor value are.
  Access access(ValueId v) const;
  void set(ValueId v, Access access) { values_[v] = std::move(access); }
  bool has(ValueId v) const { return values_.get(v).buffer.valid(); }
  DType dtype_of(const Access& a) const { return program.buffers[a.buffer].dtype; }
  Expr extent(const Access& a, i64 dim) const;

  // ---- buffers ----
  /// The buffer of a result, laid out as eager lays it out; the value is set to the whole of it.
  BufferId result(ValueId v);
  BufferId result() { return result(node_->outs.front()); }
  /// A contiguous temporary "name.suffix".
  BufferId temp(std::string_view suffix, DType dtype, Exprs shape);
  BufferId add_buffer(Buffer buffer);
  Access whole(BufferId buffer) const;
  /// A buffer like the value's type: complex gets a trailing dim of 2.
  Buffer buffer_for(const Type& type, const std::string& name) const;

  // ---- copies ----
  /// A body that copies `from` into all of `to`, which has the same shape.
  void copy(const Access& from, BufferId to, const std::string& body);
  /// A body that stores `value` in all of `to`.
  void fill(BufferId to, i64 value, const std::string& body);
  /// The result buffer of `v`, which begins with the elements of the whole buffer `start`.
  BufferId result_from(ValueId v, BufferId start);
  /// A whole buffer with the elements of a tensor; its own, if it is one, laid out in whatever way.
  BufferId whole_buffer(const Access& from, std::string_view suffix);
  /// A contiguous buffer with the elements of `from`; `from`'s own buffer, if it is exactly that.
  BufferId materialise(const Access& from, std::string_view suffix);
  /// `from`, or a copy of it, such that its address is linear in each logical dim.
  Access linear(const Access& from, std::string_view suffix);

  std::string fresh_body_name(const std::string& base) { return fresh(body_names_, base); }
  /// A host float by name.
  u32 scalar(const std::string& name);
  /// The present node's first result and place.
  std::vector<ValueId> from() const { return {node_->outs.front()}; }
  std::vector<LocId> locs() const;
  void add_structured(Structured node);
  /// A size that the program computes itself: it holds what the 0-d i64 buffer holds.
  void define_size(Expr var, BufferId from);

 private:
  std::string fresh(std::set<std::string>& taken, const std::string& base);

  const Node* node_ = nullptr;
  Side<ValueId, Access> values_;
  Side<ValueId, u32> uses_;
  std::set<std::string> buffer_names_, body_names_;
};

/// Whether the elements of a tensor lie in its buffer with the strides that its type says.
bool lies_as_typed(Lowering& l, const Access& a, const Type& type);

/// Lowers all of `graph` into `l.program`: inputs, nodes, outputs.
Status lower_nodes(Lowering& l);
void lower_inputs(Lowering& l);
Status lower_outputs(Lowering& l);
/// Marks what depends on constants alone.
void mark_init(LoopProgram& program);

}  // namespace coil::lowering
