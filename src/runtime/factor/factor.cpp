#include "runtime/factor/factor.h"

#include <array>

#include "runtime/factor/matrix.h"

namespace coil::runtime {
namespace {

using factor::Complex;

bool is_pairs(const FactorOperand& o, const CallOperand& given) {
  return given.shape.size() == o.dims.size() + 1;
}

/// Whether the matrices are complex: the first operand tells.
bool is_complex_call(const FactorArgs& args) {
  const FactorSignature s = signature_of(args.kind);
  return s.operands[0].type == 'x' && is_pairs(s.operands[0], args.operands[0]);
}

DType dtype_of(const FactorOperand& o, DType element) {
  if (o.type == 'i') return DType::i32;
  return o.type == 'l' ? DType::i64 : element;
}

/// Sizes by letter, as the operands so far have them; -1: not seen yet.
class Sizes {
 public:
  Sizes() { sizes_.fill(-1); }

  Status take(std::string_view dims, std::span<const i64> shape) {
    for (std::size_t d = 0; d < dims.size(); ++d) {
      i64& known = at(dims[d]);
      if (dims[d] == 'k' && known < 0) known = std::min(at('m'), at('n'));
      if (known < 0) known = shape[d];
      if (known != shape[d]) return error("dim {} has size {}, expected {}", d, shape[d], known);
    }
    return Ok{};
  }

 private:
  i64& at(char letter) { return sizes_[static_cast<std::size_t>(letter - 'a')]; }
  std::array<i64, 26> sizes_;
};

template <class T>
Status run_kind(FactorKind kind, const factor::Task& task) {
  switch (kind) {
#define FACTOR(kind, signature) \
  case FactorKind::kind:        \
    return factor::run_##kind<T>(task);
#include "runtime/factor/kind.def"
#undef FACTOR
  }
  COIL_UNREACHABLE();
}

Status run_with(const FactorArgs& args, i64 batch, factor::Workspace& work) {
  const factor::Task task{args, batch, work};
  return is_complex_call(args) ? run_kind<Complex>(args.kind, task)
                               : run_kind<double>(args.kind, task);
}

}  // namespace

Status check_factor(const FactorArgs& args) {
  const FactorSignature s = signature_of(args.kind);
  if (args.operands.size() != s.least && args.operands.size() != s.most)
    return error("{} has {} operands and results, expected {} or {}", name(args.kind),
                 args.operands.size(), s.least, s.most);
  const bool is_complex = is_complex_call(args);
  const DType element = args.operands[0].dtype;
  Sizes sizes;
  for (std::size_t i = 0; i < args.operands.size(); ++i) {
    const CallOperand& given = args.operands[i];
    const FactorOperand& wanted = s.operands[i];
    const bool pairs = wanted.type == 'c' || (wanted.type == 'x' && is_complex);
    if (given.shape.size() != wanted.dims.size() + (pairs ? 1 : 0) ||
        given.dtype != dtype_of(wanted, element))
      return error("operand {} of {} is {} of {} dims", i, name(args.kind), name(given.dtype),
                   given.shape.size());
    if (Status fits = sizes.take(wanted.dims, given.shape); !fits.ok())
      return in_context(str("operand {} of {}", i, name(args.kind)), fits.error());
  }
  return Ok{};
}

i64 factor_scratch_bytes(const FactorArgs& args) {
  factor::Workspace counting(nullptr);
  const Status counted = run_with(args, 0, counting);
  COIL_CHECK(counted.ok(), "scratch of {}", name(args.kind));
  return std::max<i64>(counting.bytes(), 64);  // never no memory, which would mean counting
}

Status run_factor(const FactorArgs& args, i64 batch, std::byte* scratch) {
  factor::Workspace work(scratch);
  return run_with(args, batch, work);
}

}  // namespace coil::runtime
