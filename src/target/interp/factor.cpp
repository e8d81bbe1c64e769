// Factorisations: the loops of runtime/factor on dense operands in double.

#include "runtime/factor/factor.h"

#include "target/interp/dense.h"

namespace coil::interp {
namespace {

/// An operand in memory of its own.
struct Held {
  std::vector<std::byte> bytes;
  runtime::CallOperand operand;
};

Result<Held> dense_operand(Frame& frame, const Access& access, DType dtype) {
  Held held;
  held.operand.dtype = dtype;
  held.operand.shape = access_shape(frame, access);
  held.operand.strides = runtime::contiguous_strides(held.operand.shape);
  const i64 count = COIL_TRY(checked_numel(held.operand.shape));
  held.bytes.resize(static_cast<std::size_t>(count * size_of(dtype)));
  return held;
}

}  // namespace

Status run_factor(Frame& frame, const Structured& node, const Factor& factor) {
  const FactorSignature signature = signature_of(factor.kind);
  const std::size_t inputs = node.inputs.size(), count = inputs + node.outputs.size();
  std::vector<Held> held;
  for (std::size_t i = 0; i < count; ++i) {
    const Access& access = i < inputs ? node.inputs[i] : node.outputs[i - inputs];
    const char type = signature.operands[i].type;
    const DType dtype = type == 'i' ? DType::i32 : type == 'l' ? DType::i64 : DType::f64;
    held.push_back(COIL_TRY(dense_operand(frame, access, dtype)));
    if (i < inputs) COIL_TRY(gather(frame, access, dtype, held.back().bytes.data()));
  }
  std::vector<runtime::CallOperand> operands;
  for (Held& h : held) {
    h.operand.data = h.bytes.data();
    operands.push_back(h.operand);
  }
  const runtime::FactorArgs args{factor.kind, factor.flags, operands};
  COIL_TRY(runtime::check_factor(args));
  std::vector<std::byte> scratch(static_cast<std::size_t>(runtime::factor_scratch_bytes(args)));
  for (i64 batch = 0; batch < operands[0].shape[0]; ++batch)
    COIL_TRY(runtime::run_factor(args, batch, scratch.data()));
  for (std::size_t i = inputs; i < count; ++i)
    COIL_TRY(scatter(frame, node.outputs[i - inputs], operands[i].dtype, held[i].bytes.data()));
  return Ok{};
}

}  // namespace coil::interp
