#include "target/interp/combine_code.h"

#include <algorithm>
#include <cstring>

namespace coil::interp {

DType held_dtype(DType dtype, bool widen) { return widen && is_float(dtype) ? DType::f64 : dtype; }

void fill(const ops::Scalar& value, bool widen, i64 n, std::byte* out) {
  const DType dtype = held_dtype(value.dtype, widen);
  const std::size_t size = static_cast<std::size_t>(size_of(dtype));
  std::byte element[8];
  ops::write_element(dtype, element, 0, value);
  for (i64 i = 0; i < n; ++i) std::memcpy(out + static_cast<std::size_t>(i) * size, element, size);
}

namespace {

/// Bits are those of the stated dtypes even where their values are held as f64.
void evaluate_bitcast(const OpCall& call, i64 n, const std::byte* operand, std::byte* result) {
  const DType from = call.operands[0];
  Bytes bits(static_cast<std::size_t>(n * size_of(from)));
  convert(held_dtype(from, call.widen), from, n, operand, bits.data());
  Bytes out(bits.size());
  const void* in = bits.data();
  ops::evaluate(ops::ScalarOp::bitcast, from, call.result, n, {&in, 1}, out.data());
  convert(call.result, held_dtype(call.result, call.widen), n, out.data(), result);
}

/// Shift counts of another dtype, as ones of the shifted dtype that are outside where they were.
Bytes shift_counts(const OpCall& call, i64 n, const std::byte* counts) {
  constexpr i64 kOutside = 127;
  const DType dtype = call.operands[0];
  Bytes out(static_cast<std::size_t>(n * size_of(dtype)));
  for (i64 i = 0; i < n; ++i) {
    const i64 count = ops::read_element(call.operands[1], counts, i).as_int();
    const bool inside = count >= 0 && count < 8 * size_of(dtype);
    ops::write_element(dtype, out.data(), i, ops::Scalar::of_int(dtype, inside ? count : kOutside));
  }
  return out;
}

}  // namespace

void evaluate_op(const OpCall& call, i64 n, std::span<const std::byte* const> operands,
                 std::byte* result) {
  if (call.op == ops::ScalarOp::bitcast) return evaluate_bitcast(call, n, operands[0], result);
  const std::size_t typed = call.op == ops::ScalarOp::where ? 1 : 0;
  const DType from = held_dtype(call.operands[typed], call.widen);
  const DType to = held_dtype(call.result, call.widen);
  if (call.op == ops::ScalarOp::cast) return convert(from, to, n, operands[0], result);
  const void* pointers[3] = {};
  for (std::size_t k = 0; k < operands.size(); ++k) pointers[k] = operands[k];
  Bytes counts;
  const bool is_shift = call.op == ops::ScalarOp::shl || call.op == ops::ScalarOp::shr;
  if (is_shift && call.operands[1] != call.operands[0]) {
    counts = shift_counts(call, n, operands[1]);
    pointers[1] = counts.data();
  }
  ops::evaluate(call.op, from, to, n, std::span(pointers).first(operands.size()), result);
}

void CombineCode::apply(i64 n, std::span<std::byte* const> left,
                        std::span<const std::byte* const> right) {
  std::vector<const std::byte*> values(left.begin(), left.end());
  values.insert(values.end(), right.begin(), right.end());
  std::vector<DType> dtypes = combine_.values;
  dtypes.insert(dtypes.end(), combine_.values.begin(), combine_.values.end());
  temporaries_.resize(combine_.insts.size());
  std::vector<const std::byte*> operands;
  std::vector<DType> operand_dtypes;
  for (std::size_t i = 0; i < combine_.insts.size(); ++i) {
    const ops::RegionInst& inst = combine_.insts[i];
    const std::size_t bytes = static_cast<std::size_t>(n * size_of(held_dtype(inst.dtype, widen_)));
    if (temporaries_[i].size() < bytes) temporaries_[i].resize(bytes);
    std::byte* out = temporaries_[i].data();
    if (inst.constant) {
      fill(*inst.constant, widen_, n, out);
    } else {
      operands.clear();
      operand_dtypes.clear();
      for (u32 o : inst.operands) {
        operands.push_back(values[o]);
        operand_dtypes.push_back(dtypes[o]);
      }
      evaluate_op({inst.op, operand_dtypes, inst.dtype, widen_}, n, operands, out);
    }
    values.push_back(out);
    dtypes.push_back(inst.dtype);
  }
  // A result may be one of the left values as it was, so all are read before any is replaced.
  std::vector<Bytes> kept(count());
  for (std::size_t k = 0; k < count(); ++k) {
    const u32 from = combine_.results[k];
    const std::size_t bytes = static_cast<std::size_t>(n * element_size(k));
    if (from < count() && from != k) kept[k].assign(values[from], values[from] + bytes);
  }
  for (std::size_t k = 0; k < count(); ++k) {
    const std::byte* from = kept[k].empty() ? values[combine_.results[k]] : kept[k].data();
    if (n > 0) std::memmove(left[k], from, static_cast<std::size_t>(n * element_size(k)));
  }
}

std::vector<const std::byte*> CombineCode::lift(i64 n, std::span<const std::byte* const> operands,
                                                const i64* positions) {
  if (combine_.name.empty()) return {operands.begin(), operands.end()};
  const std::vector<ops::RegionInst> insts = ops::lift(combine_);
  lifted_.resize(count());
  std::vector<const std::byte*> values;
  const DType sources[2] = {combine_.values[0], DType::i64};
  for (std::size_t k = 0; k < count(); ++k) {
    lifted_[k].resize(static_cast<std::size_t>(n * element_size(k)));
    if (insts[k].constant) {
      fill(*insts[k].constant, widen_, n, lifted_[k].data());
    } else {
      const bool is_position = insts[k].operands[0] == 1;
      const std::byte* source =
          is_position ? reinterpret_cast<const std::byte*>(positions) : operands[0];
      convert(held_dtype(sources[is_position], widen_), held_dtype(insts[k].dtype, widen_), n,
              source, lifted_[k].data());
    }
    values.push_back(lifted_[k].data());
  }
  return values;
}

Reduction::Reduction(CombineCode& combine, const ops::Tree& tree, i64 points, i64 extent)
    : combine_(combine),
      tree_(tree),
      points_(points),
      extent_(extent),
      slots_(combine.count()),
      total_(combine.count()) {
  const i64 slots = i64{tree_.lanes} * tree_.accs;
  for (std::size_t k = 0; k < combine_.count(); ++k) {
    slots_[k].resize(static_cast<std::size_t>(slots * points_ * combine_.element_size(k)));
    total_[k].resize(static_cast<std::size_t>(points_ * combine_.element_size(k)));
  }
  reset();
}

void Reduction::reset() {
  const i64 slots = i64{tree_.lanes} * tree_.accs;
  for (std::size_t k = 0; k < combine_.count(); ++k)
    combine_.fill_identity(k, slots * points_, slots_[k].data());
}

void Reduction::accumulate(i64 first, i64 n, std::span<const std::byte* const> lifted) {
  const i64 slots = i64{tree_.lanes} * tree_.accs;
  const i64 block = tree_.block;
  std::vector<std::byte*> left(combine_.count());
  std::vector<const std::byte*> right(combine_.count());
  for (i64 done = 0; done < n;) {
    const i64 inner = (first + done) % extent_;
    const i64 s = inner % slots;
    i64 run = std::min({n - done, extent_ - inner, slots - s});
    if (block > 0) run = std::min(run, block - inner % block);
    for (std::size_t k = 0; k < combine_.count(); ++k) {
      left[k] = slot(k, s);
      right[k] = lifted[k] + done * points_ * combine_.element_size(k);
    }
    combine_.apply(run * points_, left, right);
    done += run;
    const i64 end = inner + run;
    if (block > 0 && (end % block == 0 || end == extent_)) fold();
  }
}

/// Folds the slots into slot 0 and that into the total; the slots start anew.
void Reduction::fold() {
  const i64 lanes = tree_.lanes;
  std::vector<std::byte*> left(combine_.count());
  std::vector<const std::byte*> right(combine_.count());
  const auto combine_slots = [&](i64 to, i64 from, i64 n) {
    for (std::size_t k = 0; k < combine_.count(); ++k) {
      left[k] = slot(k, to);
      right[k] = slot(k, from);
    }
    combine_.apply(n * points_, left, right);
  };
  for (i64 a = 1; a < tree_.accs; ++a) combine_slots(0, a * lanes, lanes);
  for (i64 half = lanes / 2; half > 0; half /= 2) combine_slots(0, half, half);
  for (std::size_t k = 0; k < combine_.count(); ++k) {
    left[k] = total_[k].data();
    right[k] = slot(k, 0);
    if (!has_total_) std::memcpy(left[k], right[k], total_[k].size());
  }
  if (has_total_) combine_.apply(points_, left, right);
  has_total_ = true;
  reset();
}

void Reduction::finish(std::span<Bytes> results) {
  if (tree_.block == 0 || !has_total_) fold();
  for (std::size_t k = 0; k < combine_.count(); ++k)
    std::memcpy(results[k].data(), total_[k].data(), total_[k].size());
}

}  // namespace coil::interp
