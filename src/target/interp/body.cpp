#include "target/interp/body.h"

#include <algorithm>
#include <cstring>

#include "ops/scalar.h"

namespace coil::interp {

BodyRunner::BodyRunner(Frame& frame, const Body& body)
    : frame_(frame), body_(body), program_(frame.program()) {}

std::string BodyRunner::where() const {
  return "body " + body_.name + place_text(program_, body_.locs);
}

Status BodyRunner::prepare() {
  for (const Dim& dim : body_.dims) {
    const i64 extent = frame_.env().at(dim.extent);
    if (extent < 0) return error("{}: a dim has the negative size {}", where(), extent);
    const bool parallel = dim.kind == DimKind::Parallel;
    parallel_dims_ += parallel;
    i64& total = parallel ? all_points_ : all_steps_;
    if (__builtin_mul_overflow(total, extent, &total))
      return error("{}: its dims are too large", where());
    extents_.push_back(extent);
    variables_.push_back(dim.var);
    bounds_.push_back({0, extent - 1});
  }
  bool reduced = false;
  for (const Inst& inst : body_.insts) {
    reduced |= inst.kind == InstKind::Reduce;
    auto& list = inst.kind == InstKind::Reduce ? reduces_ : reduced ? after_ : before_;
    list.emplace_back().inst = &inst;
    if (inst.kind != InstKind::Index) continue;
    list.back().column = variables_.size();
    list.back().extent = frame_.env().at(inst.extent);
    variables_.push_back(inst.expr);
    bounds_.push_back({0, std::max<i64>(list.back().extent - 1, 0)});
  }
  find_deferred();
  choose_chunk();
  const std::size_t lanes = static_cast<std::size_t>(max_points_ * max_steps_);
  columns_.assign(variables_.size(), std::vector<i64>(lanes));
  bad_.assign(variables_.size(), {});
  raw_.assign(variables_.size(), {});
  for (const std::vector<i64>& column : columns_) column_data_.push_back(column.data());
  address_.resize(lanes);
  scratch_.resize(lanes);
  for (DType dtype : body_.val_dtypes)
    values_.emplace_back(lanes * static_cast<std::size_t>(size_of(frame_.held(dtype))));
  for (auto* list : {&before_, &reduces_, &after_})
    for (InstCode& code : *list) COIL_TRY(prepare_inst(code));
  return Ok{};
}

/// An index that only masked elements use is checked where an active element uses it.
void BodyRunner::find_deferred() {
  for (auto* list : {&before_, &after_})
    for (InstCode& index : *list) {
      if (index.inst->kind != InstKind::Index) continue;
      bool masked_use = false;
      bool other_use = false;
      for (const Inst& inst : body_.insts) {
        const bool uses = std::ranges::any_of(
            inst.index, [&](sym::Expr e) { return program_.syms->uses(e, index.inst->expr); });
        (inst.mask.valid() ? masked_use : other_use) |= uses;
        other_use |=
            inst.kind == InstKind::Value && program_.syms->uses(inst.expr, index.inst->expr);
      }
      index.deferred = masked_use && !other_use;
    }
}

/// Reductions look best with a few hundred elements side by side, whatever their tree; stores whose
/// order decides need one parallel point at a time.
void BodyRunner::choose_chunk() {
  i64 slots = 1;
  for (const Inst& inst : body_.insts)
    if (inst.kind == InstKind::Reduce)
      slots = std::max(slots, i64{inst.tree.lanes} * inst.tree.accs);
  const bool has_inner = parallel_dims_ < extents_.size();
  const i64 most = has_inner && stores_keep_order() ? 1 : std::max<i64>(kChunk / slots, 1);
  max_points_ = std::clamp<i64>(all_points_, 1, most);
  max_steps_ = std::clamp<i64>(all_steps_, 1, std::max<i64>(kChunk / max_points_, 1));
}

/// Whether two parallel points may store to one element from within the inner dims.
bool BodyRunner::stores_keep_order() const {
  for (const InstCode& code : before_) {
    if (code.inst->kind != InstKind::Store) continue;
    if (code.inst->store_combine != StoreCombine::None) return true;
    for (std::size_t d = 0; d < parallel_dims_; ++d)
      if (std::ranges::find(code.inst->index, variables_[d]) == code.inst->index.end()) return true;
  }
  return false;
}

Status BodyRunner::prepare_inst(InstCode& code) {
  const Inst& inst = *code.inst;
  const i64 lanes = max_points_ * max_steps_;
  switch (inst.kind) {
    case InstKind::Load:
    case InstKind::Store: return prepare_element(code);
    case InstKind::Const:
      fill(inst.constant, frame_.widen(), lanes, column_of(inst.results[0]));
      return Ok{};
    case InstKind::Scalar: {
      const ops::Scalar value =
          ops::Scalar::of_float(frame_.held(inst.dtype), frame_.env().scalars.at(inst.scalar));
      fill(value, frame_.widen(), lanes, column_of(inst.results[0]));
      return Ok{};
    }
    case InstKind::Value: code.value.emplace(inst.expr, variables_, frame_.env()); return Ok{};
    case InstKind::Index:
      bad_[code.column].assign(static_cast<std::size_t>(lanes), 0);
      raw_[code.column].assign(static_cast<std::size_t>(lanes), 0);
      return Ok{};
    case InstKind::Op: return Ok{};
    case InstKind::Reduce:
    case InstKind::Scan: code.combine.emplace(body_.combines[inst.combine], frame_.widen());
  }
  return Ok{};
}

Status BodyRunner::prepare_element(InstCode& code) {
  const Inst& inst = *code.inst;
  ElementCode element;
  element.memory =
      COIL_TRY(inst.kind == InstKind::Load ? frame_.read(inst.buffer) : frame_.define(inst.buffer));
  const Memory& memory = *element.memory;
  bool linear = memory.is_strided();
  element.within = true;
  for (std::size_t d = 0; d < inst.index.size(); ++d) {
    element.index.emplace_back(inst.index[d], variables_, frame_.env());
    linear = linear && element.index.back().linear() != nullptr;
    element.within = element.within && element.index.back().is_within(memory.shape[d], bounds_);
  }
  for (const auto* list : {&before_, &after_})
    for (const InstCode& index : *list)
      if (index.deferred && std::ranges::any_of(inst.index, [&](sym::Expr e) {
            return program_.syms->uses(e, index.inst->expr);
          }))
        element.deferred.push_back(index.column);
  if (linear) {
    Linear address{memory.offset, std::vector<i64>(variables_.size())};
    for (const LayoutPart& part : memory.parts) {
      const Linear& index = *element.index[part.dim].linear();
      address.base += index.base * part.stride;
      for (std::size_t c = 0; c < variables_.size(); ++c)
        address.scale[c] += index.scale[c] * part.stride;
    }
    element.address = std::move(address);
  }
  code.element = std::move(element);
  return Ok{};
}

Status BodyRunner::run() {
  COIL_TRY(prepare());
  for (i64 first = 0; first < all_points_; first += max_points_) {
    points_ = std::min(max_points_, all_points_ - first);
    COIL_TRY(run_points(first));
  }
  return Ok{};
}

Status BodyRunner::run_points(i64 first) {
  for (InstCode& code : before_) {
    if (code.inst->kind != InstKind::Scan) continue;
    code.state.resize(code.combine->count());
    for (std::size_t k = 0; k < code.state.size(); ++k) {
      code.state[k].resize(static_cast<std::size_t>(points_ * code.combine->element_size(k)));
      code.combine->fill_identity(k, points_, code.state[k].data());
    }
  }
  const i64 innermost = extents_.empty() ? 1 : extents_.back();
  std::vector<Reduction> reductions;
  for (InstCode& code : reduces_)
    reductions.emplace_back(*code.combine, code.inst->tree, points_, innermost);
  COIL_TRY(run_steps(first, reductions));
  if (reductions.empty()) return Ok{};
  for (std::size_t r = 0; r < reductions.size(); ++r) {
    std::vector<Bytes> results(reduces_[r].combine->count());
    for (std::size_t k = 0; k < results.size(); ++k)
      results[k].resize(static_cast<std::size_t>(points_ * reduces_[r].combine->element_size(k)));
    reductions[r].finish(results);
    for (std::size_t k = 0; k < results.size(); ++k)
      std::ranges::copy(results[k], column_of(reduces_[r].inst->results[k]));
  }
  set_columns(first, 0, 1);
  for (InstCode& code : after_) COIL_TRY(run_inst(code));
  return Ok{};
}

Status BodyRunner::run_steps(i64 first_point, std::vector<Reduction>& reductions) {
  for (i64 step = 0; step < all_steps_; step += max_steps_) {
    set_columns(first_point, step, std::min(max_steps_, all_steps_ - step));
    for (InstCode& code : before_) COIL_TRY(run_inst(code));
    for (std::size_t r = 0; r < reductions.size(); ++r) run_reduce(reduces_[r], reductions[r]);
  }
  return Ok{};
}

/// The values of the dims at the points of the present chunk.
void BodyRunner::set_columns(i64 first_point, i64 first_step, i64 steps) {
  steps_ = steps;
  first_step_ = first_step;
  lanes_ = points_ * steps_;
  i64 repeat = 1;
  for (std::size_t d = parallel_dims_; d-- > 0;) {
    set_column(d, first_point, points_, repeat, steps_);
    repeat *= std::max<i64>(extents_[d], 1);
  }
  repeat = 1;
  for (std::size_t d = extents_.size(); d-- > parallel_dims_;) {
    i64* column = columns_[d].data();
    for (i64 s = 0; s < steps_; ++s)
      std::fill_n(column + s * points_, points_,
                  (first_step + s) / repeat % std::max<i64>(extents_[d], 1));
    repeat *= std::max<i64>(extents_[d], 1);
  }
}

/// A parallel dim whose value changes every `repeat_each` points; the row stands `repeat_all`
/// times.
void BodyRunner::set_column(std::size_t dim, i64 first, i64 count, i64 repeat_each,
                            i64 repeat_all) {
  i64* column = columns_[dim].data();
  const i64 extent = std::max<i64>(extents_[dim], 1);
  i64 value = first / repeat_each % extent;
  i64 phase = first % repeat_each;
  for (i64 i = 0; i < count; ++i) {
    column[i] = value;
    if (++phase < repeat_each) continue;
    phase = 0;
    if (++value == extent) value = 0;
  }
  for (i64 s = 1; s < repeat_all; ++s) std::copy_n(column, count, column + s * count);
}

Status BodyRunner::run_inst(InstCode& code) {
  const Inst& inst = *code.inst;
  switch (inst.kind) {
    case InstKind::Load:
      COIL_TRY(addresses(code, mask_of(inst)));
      run_load(code);
      break;
    case InstKind::Store:
      COIL_TRY(addresses(code, mask_of(inst)));
      run_store(code);
      break;
    case InstKind::Value:
      code.value->evaluate(lanes_, column_data_,
                           reinterpret_cast<i64*>(column_of(inst.results[0])));
      break;
    case InstKind::Index: return run_index(code);
    case InstKind::Op: run_op(code); break;
    case InstKind::Scan: run_scan(code); break;
    case InstKind::Const:
    case InstKind::Scalar:
    case InstKind::Reduce: break;
  }
  return Ok{};
}

void BodyRunner::run_op(InstCode& code) {
  const Inst& inst = *code.inst;
  const std::byte* operands[3] = {};
  DType dtypes[3] = {};
  for (std::size_t k = 0; k < inst.operands.size(); ++k) {
    operands[k] = column_of(inst.operands[k]);
    dtypes[k] = body_.val_dtypes[inst.operands[k].index];
  }
  const std::size_t count = inst.operands.size();
  evaluate_op({inst.op, std::span(dtypes).first(count), inst.dtype, frame_.widen()}, lanes_,
              std::span(operands).first(count), column_of(inst.results[0]));
}

void BodyRunner::run_scan(InstCode& code) {
  const Inst& inst = *code.inst;
  std::vector<const std::byte*> operands;
  for (Val v : inst.operands) operands.push_back(column_of(v));
  for (i64 i = 0; i < lanes_; ++i) scratch_[i] = first_step_ + i / points_;
  std::vector<const std::byte*> lifted = code.combine->lift(lanes_, operands, scratch_.data());
  std::vector<std::byte*> state;
  for (Bytes& bytes : code.state) state.push_back(bytes.data());
  for (i64 s = 0; s < steps_; ++s) {
    code.combine->apply(points_, state, lifted);
    for (std::size_t k = 0; k < state.size(); ++k) {
      const i64 bytes = points_ * code.combine->element_size(k);
      std::memcpy(column_of(inst.results[k]) + s * bytes, state[k],
                  static_cast<std::size_t>(bytes));
      lifted[k] += bytes;
    }
  }
}

void BodyRunner::run_reduce(InstCode& code, Reduction& reduction) {
  std::vector<const std::byte*> operands;
  for (Val v : code.inst->operands) operands.push_back(column_of(v));
  for (i64 i = 0; i < lanes_; ++i) scratch_[i] = first_step_ + i / points_;
  reduction.accumulate(first_step_, steps_, code.combine->lift(lanes_, operands, scratch_.data()));
}

Status run_body(Frame& frame, const Body& body) { return BodyRunner(frame, body).run(); }

}  // namespace coil::interp
