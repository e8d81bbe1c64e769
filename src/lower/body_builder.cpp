#include "lower/body_builder.h"

#include <algorithm>

#include "base/check.h"
#include "graph/builder.h"
#include "lower/tree.h"

namespace coil::lowering {

using ops::ScalarOp;

BodyBuilder::BodyBuilder(Lowering& l, const std::string& name) : l_(l) {
  body_.name = l.fresh_body_name(name);
  body_.from = l.from();
  body_.locs = l.locs();
}

Expr BodyBuilder::dim(Expr extent) {
  const Expr var = fresh_var(syms(), str("i{}", parallel_++), sym::Role::Loop, extent);
  const auto first_reduced = std::find_if(body_.dims.begin(), body_.dims.end(),
                                          [](const Dim& d) { return d.kind == DimKind::Reduce; });
  body_.dims.insert(first_reduced, {var, extent, DimKind::Parallel});
  return var;
}

Exprs BodyBuilder::dims(std::span<const Expr> extents) {
  Exprs vars;
  for (Expr extent : extents) vars.push_back(dim(extent));
  return vars;
}

Expr BodyBuilder::reduce_dim(Expr extent) {
  const Expr var = fresh_var(syms(), str("r{}", reduced_++), sym::Role::Reduce, extent);
  body_.dims.push_back({var, extent, DimKind::Reduce});
  return var;
}

Expr BodyBuilder::scan_dim(Expr extent) {
  const Expr var = fresh_var(syms(), str("i{}", parallel_++), sym::Role::Loop, extent);
  body_.dims.push_back({var, extent, DimKind::Scan});
  return var;
}

Val BodyBuilder::new_value(DType dtype) {
  body_.val_dtypes.push_back(dtype);
  return Val(body_.val_dtypes.size() - 1);
}

Val BodyBuilder::append(Inst inst) {
  for (std::size_t k = stage_begin_; k < body_.insts.size(); ++k) {
    const Inst& old = body_.insts[k];
    if (old.kind == inst.kind && old.op == inst.op && old.dtype == inst.dtype &&
        old.operands == inst.operands && old.buffer == inst.buffer && old.index == inst.index &&
        old.mask == inst.mask && old.other == inst.other && old.constant == inst.constant &&
        old.expr == inst.expr && old.scalar == inst.scalar)
      return old.results.front();
  }
  const Val v = new_value(inst.dtype);
  inst.results = {v};
  body_.insts.push_back(std::move(inst));
  return v;
}

const Inst* BodyBuilder::definition(Val v) const {
  for (const Inst& inst : body_.insts)
    if (std::find(inst.results.begin(), inst.results.end(), v) != inst.results.end()) return &inst;
  return nullptr;
}

Val BodyBuilder::load(const Access& from, std::span<const Expr> at) {
  return load(from.buffer, index_at(syms(), from, at));
}

Val BodyBuilder::load(BufferId from, std::span<const Expr> at) {
  Inst inst;
  inst.kind = InstKind::Load;
  inst.dtype = l_.program.buffers[from].dtype;
  inst.buffer = from;
  inst.index.assign(at.begin(), at.end());
  return append(std::move(inst));
}

Val BodyBuilder::load_if(Val mask, const ops::Scalar& other, const Access& from,
                         std::span<const Expr> at) {
  const Inst* known = definition(mask);
  if (known && known->kind == InstKind::Const && known->constant.i) return load(from, at);
  Inst inst;
  inst.kind = InstKind::Load;
  inst.dtype = l_.dtype_of(from);
  inst.buffer = from.buffer;
  inst.index = index_at(syms(), from, at);
  inst.mask = mask;
  inst.other = other;
  return append(std::move(inst));
}

Val BodyBuilder::constant(const ops::Scalar& value) {
  Inst inst;
  inst.kind = InstKind::Const;
  inst.dtype = value.dtype;
  inst.constant = value;
  return append(std::move(inst));
}

Val BodyBuilder::value(Expr e, DType dtype) {
  if (is_bool(dtype)) {
    const sym::Answer answer = l_.prover.holds(e);
    if (answer != sym::Answer::Unknown)
      return constant(ops::Scalar::of_bool(answer == sym::Answer::Yes));
  }
  if (const auto fixed = syms().as_const(e)) {
    if (is_narrow_float(dtype)) return cast(integer(DType::f32, *fixed), dtype);
    return integer(dtype, *fixed);
  }
  Inst inst;
  inst.kind = InstKind::Value;
  inst.dtype = DType::i64;
  inst.expr = e;
  return cast(append(std::move(inst)), dtype);
}

Val BodyBuilder::scalar(u32 number, DType dtype) {
  Inst inst;
  inst.kind = InstKind::Scalar;
  inst.dtype = DType::f64;
  inst.scalar = number;
  return cast(append(std::move(inst)), dtype);
}

Val BodyBuilder::op(ScalarOp op, std::vector<Val> operands) {
  const ops::ScalarInfo& row = ops::info(op);
  COIL_CHECK(operands.size() == static_cast<std::size_t>(row.arity), "{} takes {} operands",
             row.name, row.arity);
  const DType operand = dtype(operands[op == ScalarOp::where ? 1 : 0]);
  // Which dtypes an op takes is not asked at level 0.
  if (!ops::accepts(op, operand))
    throw BuildError{error("{} does not take {}", row.name, name(operand))};
  COIL_CHECK(row.arity < 2 || dtype(operands.back()) == operand || op == ScalarOp::shl ||
                 op == ScalarOp::shr,
             "{} of {} and {}, in {}", row.name, name(operand), name(dtype(operands.back())),
             body_.name);
  Inst inst;
  inst.kind = InstKind::Op;
  inst.op = op;
  inst.dtype = row.result == ops::ResultRule::Bool ? DType::b8 : operand;
  inst.operands = std::move(operands);
  return append(std::move(inst));
}

Val BodyBuilder::cast(Val v, DType to) {
  if (dtype(v) == to) return v;
  const Inst* source = definition(v);
  if (source && source->kind == InstKind::Const && !is_narrow_float(to)) {
    const ops::Scalar operand[] = {source->constant};
    return constant(ops::evaluate(ScalarOp::cast, to, operand));
  }
  Inst inst;
  inst.op = ScalarOp::cast;
  inst.dtype = to;
  inst.operands = {v};
  return append(std::move(inst));
}

Val BodyBuilder::bitcast(Val v, DType to) {
  if (dtype(v) == to) return v;
  Inst inst;
  inst.op = ScalarOp::bitcast;
  inst.dtype = to;
  inst.operands = {v};
  return append(std::move(inst));
}

Expr BodyBuilder::index(Val v, Expr extent, IndexPolicy policy) {
  v = cast(v, DType::i64);
  for (std::size_t k = stage_begin_; k < body_.insts.size(); ++k) {
    const Inst& old = body_.insts[k];
    if (old.kind == InstKind::Index && old.operands == std::vector{v} && old.extent == extent &&
        old.policy == policy)
      return old.expr;
  }
  Inst inst;
  inst.kind = InstKind::Index;
  inst.dtype = DType::i64;
  inst.operands = {v};
  inst.extent = extent;
  inst.policy = policy;
  inst.expr = fresh_var(syms(), str("n{}", indices_++), sym::Role::Value, extent);
  body_.insts.push_back(inst);
  return inst.expr;
}

ops::Combine BodyBuilder::combine_of(std::string_view combine, Val element) const {
  auto built = ops::named_combine(combine, dtype(element));
  if (!built) throw BuildError{error("there is no {} of {}", combine, name(dtype(element)))};
  return std::move(*built);
}

std::vector<Val> BodyBuilder::fold(InstKind kind, ops::Combine combine, std::vector<Val> elements,
                                   ops::Tree tree) {
  Inst inst;
  inst.kind = kind;
  inst.dtype = dtype(elements.front());
  inst.operands = std::move(elements);
  inst.tree = tree;
  inst.combine = static_cast<u32>(body_.combines.size());
  for (DType partial : combine.values) inst.results.push_back(new_value(partial));
  body_.combines.push_back(std::move(combine));
  body_.insts.push_back(inst);
  return inst.results;
}

std::vector<Val> BodyBuilder::reduce(const ops::Combine& combine, std::vector<Val> elements,
                                     ops::Tree tree) {
  std::vector<Val> results = fold(InstKind::Reduce, combine, std::move(elements), tree);
  stage_begin_ = body_.insts.size();
  return results;
}

std::vector<Val> BodyBuilder::scan(const ops::Combine& combine, std::vector<Val> elements) {
  return fold(InstKind::Scan, combine, std::move(elements), {});
}

std::vector<Val> BodyBuilder::reduce(std::string_view combine, Val element, ops::Tree tree) {
  return reduce(combine_of(combine, element), {element}, tree);
}

std::vector<Val> BodyBuilder::scan(std::string_view combine, Val element) {
  return scan(combine_of(combine, element), {element});
}

void BodyBuilder::append_store(Val mask, StoreCombine how, BufferId to, std::span<const Expr> at,
                               Val v) {
  const DType target = l_.program.buffers[to].dtype;
  Inst inst;
  inst.kind = InstKind::Store;
  inst.dtype = target;
  inst.operands = {cast(v, target)};
  inst.buffer = to;
  inst.index.assign(at.begin(), at.end());
  inst.mask = mask;
  inst.store_combine = how;
  body_.insts.push_back(std::move(inst));
}

void BodyBuilder::store(BufferId to, std::span<const Expr> at, Val v) {
  append_store({}, StoreCombine::None, to, at, v);
}

void BodyBuilder::store_if(Val mask, BufferId to, std::span<const Expr> at, Val v) {
  append_store(mask, StoreCombine::None, to, at, v);
}

void BodyBuilder::store_combining(StoreCombine how, BufferId to, std::span<const Expr> at, Val v) {
  append_store({}, how, to, at, v);
}

BodyId BodyBuilder::finish() {
  const BodyId id = l_.program.bodies.add(std::move(body_));
  l_.program.order.push_back(id);
  return id;
}

Rows make_rows(BodyBuilder& b, const Access& in, const std::vector<bool>& reduced, DType partial,
               RowOrder order) {
  sym::Arena& syms = b.syms();
  Rows rows;
  rows.at.resize(in.extents.size());
  rows.count = syms.constant(1);
  std::vector<std::size_t> inner;
  for (std::size_t k = 0; k < reduced.size(); ++k) {
    if (reduced[k]) {
      inner.push_back(k);
      rows.count = syms.mul(rows.count, in.extents[k]);
    } else {
      rows.at[k] = b.dim(in.extents[k]);
      rows.kept.push_back(rows.at[k]);
    }
  }
  const Layout& layout = b.lowering().program.buffers[in.buffer].layout;
  const Expr place = address(syms, layout, in.index);
  // A stride that is not constant is taken for a large one: it steps over a whole dynamic row. A
  // dim of one element has no neighbours, whatever its stride.
  const auto stride = [&](std::size_t k) {
    if (syms.is_const(in.extents[k], 1)) return sym::kMaxInt;
    const auto s = syms.stride(place, in.vars[k]);
    const auto fixed = s ? syms.as_const(*s) : std::nullopt;
    return fixed ? std::abs(*fixed) : sym::kMaxInt;
  };
  if (order == RowOrder::Memory)
    std::stable_sort(inner.begin(), inner.end(),
                     [&](std::size_t x, std::size_t y) { return stride(x) > stride(y); });
  if (inner.empty()) {
    b.reduce_dim(syms.constant(1));
    rows.tree = choose_tree({partial, 1, false});
    return rows;
  }
  // Neighbours that are one line in memory are one dim: rows are long, and their tree has few
  // tails.
  const auto one_line = [&](std::size_t outer, std::size_t below) {
    const auto x = syms.stride(place, in.vars[outer]), y = syms.stride(place, in.vars[below]);
    return x && y && *x == syms.mul(*y, in.extents[below]);
  };
  Expr extent;
  for (std::size_t from = 0, to = 0; from < inner.size(); from = to) {
    extent = in.extents[inner[from]];
    for (to = from + 1; to < inner.size() && one_line(inner[to - 1], inner[to]); ++to)
      extent = syms.mul(extent, in.extents[inner[to]]);
    Expr rest = b.reduce_dim(extent);
    for (std::size_t i = to; i-- > from;) {
      rows.at[inner[i]] = i == from ? rest : syms.mod(rest, in.extents[inner[i]]);
      rest = syms.floordiv(rest, in.extents[inner[i]]);
    }
  }
  rows.tree = choose_tree({partial, syms.as_const(extent), stride(inner.back()) == 1});
  return rows;
}

}  // namespace coil::lowering
