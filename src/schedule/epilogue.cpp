#include "schedule/epilogue.h"

namespace coil {
std::size_t column_dims(const Structured& node) {
  return std::holds_alternative<Conv>(node.attrs) ? node.outputs[0].vars.size() - 2 : 1;
}

std::string no_hole(const LoopProgram& program, const Structured& node) {
  if (!std::holds_alternative<Conv>(node.attrs) && !std::holds_alternative<Gemm>(node.attrs))
    return str("the template of {} has no hole", node.name);
  if (!is_float(program.buffers[node.inputs[0].buffer].dtype) ||
      !is_float(program.buffers[node.outputs[0].buffer].dtype))
    return str("{} is no product of floats", node.name);
  return "";
}

Block block_of(const LoopProgram& program, const Structured& node) {
  const Access& out = node.outputs[0];
  const DType in = program.buffers[node.inputs[0].buffer].dtype,
              made = program.buffers[out.buffer].dtype;
  sym::Arena& syms = *program.syms;
  const auto variable = [&](const char* name, sym::Role role, sym::Expr extent) {
    return syms.variable({name, role, {0, sym::kMaxInt}, extent});
  };
  Block b;
  b.dtype = in == DType::f64 || made == DType::f64 ? DType::f64 : DType::f32;
  b.batch = variable("batch", sym::Role::Size, {});
  b.row0 = variable("row0", sym::Role::Size, {});
  b.rows = variable("rows", sym::Role::Size, {});
  b.col0 = variable("col0", sym::Role::Size, {});
  b.cols = variable("cols", sym::Role::Size, {});
  b.ld = variable("ld", sym::Role::Size, {});
  b.row = {variable("i", sym::Role::Loop, b.rows), b.rows};
  b.col = {variable("j", sym::Role::Loop, b.cols), b.cols};
  const std::size_t columns = column_dims(node), rank = out.vars.size();
  sym::Expr left = syms.add(b.col0, b.col.var);
  for (std::size_t d = rank; d-- > rank - columns;) {
    b.dims.push_back({out.vars[d], d == rank - columns ? left : syms.mod(left, out.extents[d])});
    left = syms.floordiv(left, out.extents[d]);
  }
  b.dims.push_back({out.vars[rank - columns - 1], syms.add(b.row0, b.row.var)});
  if (rank > columns + 1) b.dims.push_back({out.vars[0], b.batch});
  return b;
}

}  // namespace coil
