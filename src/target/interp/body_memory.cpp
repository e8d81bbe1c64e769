// Loads, stores and indices of a body.

#include <algorithm>
#include <cstring>

#include "ops/scalar.h"
#include "target/interp/body.h"

namespace coil::interp {

/// Fills address_; those of points that the mask switches off are not to be used.
Status BodyRunner::addresses(InstCode& code, const u8* mask) {
  const ElementCode& element = *code.element;
  if (!element.deferred.empty()) COIL_TRY(check_deferred(code, mask));
  if (!element.within) check_bounds(code, mask);
  if (element.address) {
    element.address->evaluate(lanes_, column_data_, address_.data());
    return Ok{};
  }
  const Memory& memory = *element.memory;
  std::fill_n(address_.data(), lanes_, memory.offset);
  for (const LayoutPart& part : memory.parts) {
    element.index[part.dim].evaluate(lanes_, column_data_, scratch_.data());
    for (i64 i = 0; i < lanes_; ++i) {
      if (mask != nullptr && mask[i] == 0) continue;
      i64 x = scratch_[i] / part.factor;
      if (part.modulus != 0) x %= part.modulus;
      address_[i] += x * part.stride;
    }
  }
  return Ok{};
}

void BodyRunner::check_bounds(const InstCode& code, const u8* mask) {
  const ElementCode& element = *code.element;
  for (std::size_t d = 0; d < element.index.size(); ++d) {
    const i64 extent = element.memory->shape[d];
    element.index[d].evaluate(lanes_, column_data_, scratch_.data());
    for (i64 i = 0; i < lanes_; ++i) {
      const bool active = mask == nullptr || mask[i] != 0;
      COIL_CHECK(!active || (scratch_[i] >= 0 && scratch_[i] < extent),
                 "{}: index {} of %{} is {}, outside 0..{}", where(), d,
                 program_.buffers[code.inst->buffer].name, scratch_[i], extent - 1);
    }
  }
}

Status BodyRunner::check_deferred(const InstCode& code, const u8* mask) const {
  for (std::size_t column : code.element->deferred)
    for (i64 i = 0; i < lanes_; ++i) {
      if (bad_[column][i] == 0 || (mask != nullptr && mask[i] == 0)) continue;
      for (const auto* list : {&before_, &after_})
        for (const InstCode& index : *list)
          if (index.inst->kind == InstKind::Index && index.column == column)
            return index_error(index, i);
    }
  return Ok{};
}

Status BodyRunner::run_index(InstCode& code) {
  const i64* given = reinterpret_cast<const i64*>(column_of(code.inst->operands[0]));
  std::vector<i64>& column = columns_[code.column];
  for (i64 i = 0; i < lanes_; ++i) {
    i64 x = given[i];
    if (code.inst->policy == IndexPolicy::Wrap && x < 0) x += code.extent;
    if (code.inst->policy == IndexPolicy::Clamp) x = std::max<i64>(std::min(x, code.extent - 1), 0);
    const bool divides = code.inst->policy == IndexPolicy::NotZero;
    const bool bad = divides ? x == 0 : x < 0 || x >= code.extent;
    if (divides) x = 0;
    column[i] = bad ? 0 : x;
    bad_[code.column][i] = bad;
    raw_[code.column][i] = given[i];
    if (bad && !code.deferred) return index_error(code, i);
  }
  return Ok{};
}

Error BodyRunner::index_error(const InstCode& code, i64 lane) const {
  std::string buffers;
  for (const Inst& inst : body_.insts)
    if (std::ranges::any_of(inst.index,
                            [&](sym::Expr e) { return program_.syms->uses(e, code.inst->expr); }))
      buffers = " of %" + program_.buffers[inst.buffer].name;
  std::string position;
  for (std::size_t d = 0; d < extents_.size(); ++d)
    position += str("{}{}={}", d == 0 ? "" : ", ", program_.syms->var(variables_[d]).name,
                    columns_[d][lane]);
  if (code.inst->policy == IndexPolicy::NotZero)
    return error("{}: an integer is divided by zero at [{}]", where(), position);
  const i64 least = code.inst->policy == IndexPolicy::Wrap ? -code.extent : 0;
  return error("{}: index {}{} at [{}] is outside {}..{}", where(), raw_[code.column][lane],
               buffers, position, least, code.extent - 1);
}

void BodyRunner::run_load(InstCode& code) {
  const Inst& inst = *code.inst;
  const Memory& memory = *code.element->memory;
  std::byte* out = column_of(inst.results[0]);
  const u8* mask = mask_of(inst);
  if (mask == nullptr) return load_elements(memory, lanes_, address_.data(), out);
  fill(inst.other, frame_.widen(), lanes_, out);
  const i64 size = size_of(memory.dtype);
  for (i64 i = 0; i < lanes_; ++i)
    if (mask[i] != 0)
      std::memcpy(out + i * size, memory.data + address_[i] * size, static_cast<std::size_t>(size));
}

void BodyRunner::run_store(InstCode& code) {
  const Inst& inst = *code.inst;
  const Memory& memory = *code.element->memory;
  const std::byte* in = column_of(inst.operands[0]);
  const u8* mask = mask_of(inst);
  if (inst.store_combine != StoreCombine::None) return combine_store(code, address_.data(), mask);
  if (mask == nullptr) return store_elements(memory, lanes_, address_.data(), in);
  const i64 size = size_of(memory.dtype);
  for (i64 i = 0; i < lanes_; ++i)
    if (mask[i] != 0)
      std::memcpy(memory.data + address_[i] * size, in + i * size, static_cast<std::size_t>(size));
}

namespace {

/// The op of a combining store; sums and products of bools are their logical forms.
ops::ScalarOp combine_op(StoreCombine combine, DType dtype) {
  switch (combine) {
    case StoreCombine::Sum: return is_bool(dtype) ? ops::ScalarOp::bits_or : ops::ScalarOp::add;
    case StoreCombine::Prod: return is_bool(dtype) ? ops::ScalarOp::bits_and : ops::ScalarOp::mul;
    case StoreCombine::Min: return ops::ScalarOp::min;
    case StoreCombine::Max: return ops::ScalarOp::max;
    case StoreCombine::None: break;
  }
  COIL_UNREACHABLE();
}

}  // namespace

/// One point after the other, in iteration order; narrow floats combine in f32 and round each time.
void BodyRunner::combine_store(InstCode& code, const i64* addresses, const u8* mask) {
  const Memory& memory = *code.element->memory;
  const DType compute = compute_dtype(memory.dtype);
  const ops::ScalarOp op = combine_op(code.inst->store_combine, memory.dtype);
  const std::byte* in = column_of(code.inst->operands[0]);
  for (i64 i = 0; i < lanes_; ++i) {
    if (mask != nullptr && mask[i] == 0) continue;
    ops::Scalar operands[2] = {ops::read_element(memory.dtype, memory.data, addresses[i]),
                               ops::read_element(memory.dtype, in, i)};
    for (ops::Scalar& operand : operands) operand.dtype = compute;
    ops::write_element(memory.dtype, memory.data, addresses[i],
                       ops::evaluate(op, compute, operands));
  }
}

}  // namespace coil::interp
