#pragma once
// The verifier of level 1, in pieces: the program, its bodies, its structured and control nodes.

#include <set>
#include <string>

#include "loop/program.h"

namespace coil::loop_verify {

using Vars = std::set<sym::Expr>;

/// Checks one program. `outer` are the sizes and step variables of the programs around it.
class ProgramVerifier {
 public:
  ProgramVerifier(const LoopProgram& program, Vars outer, int depth);
  Status verify();

 private:
  Status verify_tables() const;
  Status verify_sizes();
  Status verify_inputs() const;
  Status verify_buffer(BufferId id) const;
  Status verify_constant(const Buffer& buffer) const;
  Status collect_writes();
  Status verify_step(const Step& step);
  Status verify_body(const Body& body);
  Status verify_structured(const Structured& node);
  Status verify_access(const Access& access, bool is_output) const;
  Status verify_gemm(const Structured& node) const;
  Status verify_conv(const Structured& node, const Conv& conv) const;
  Status verify_attention(const Structured& node, const Attention& attention) const;
  Status verify_fft(const Structured& node, const Fft& fft) const;
  Status verify_sort(const Structured& node, const Sort& sort) const;
  Status verify_factor(const Structured& node, const Factor& factor) const;
  Status verify_control(const Control& control);
  Status verify_subprogram(const Control& control, u32 index, std::size_t inputs,
                           std::size_t outputs);
  Status verify_outputs() const;
  Status verify_output(const ProgramOutput& output) const;

  /// `id` names a buffer that holds its content by now.
  Status check_read(BufferId id) const;
  Status check_init(BufferId id) const;
  Status check_buffer(BufferId id) const;
  /// The expression is valid and uses these variables only.
  Status check_expr(sym::Expr e, const Vars& vars) const;
  Status check_exprs(std::span<const sym::Expr> items, const Vars& vars) const;
  std::string name_of(BufferId id) const { return "%" + program_.buffers[id].name; }

  const LoopProgram& program_;
  sym::Arena& syms_;
  Vars sizes_;  // sizes and step variables in scope
  Vars given_;  // those of them that are known before the program runs
  int depth_;
  Side<BufferId, bool> written_;  // by some step
  Side<BufferId, bool> defined_;  // by a step that has been seen
  Side<BufferId, bool> init_;     // by a step that runs before the first call

  friend class BodyVerifier;
};

/// Checks the instructions of one body, in order.
class BodyVerifier {
 public:
  BodyVerifier(const ProgramVerifier& program, const Body& body);
  Status verify();

 private:
  Status verify_dims();
  Status verify_phase(const Inst& inst);
  Status verify_inst(const Inst& inst);
  Status verify_element(const Inst& inst) const;
  Status verify_store(const Inst& inst) const;
  Status verify_coverage(const Inst& inst) const;
  Status verify_index(const Inst& inst);
  Status verify_combining(const Inst& inst) const;
  Status define_results(const Inst& inst);
  Status use(Val v) const;
  DType dtype(Val v) const { return body_.val_dtypes[v.index]; }
  std::string describe(const Inst& inst) const;

  const ProgramVerifier& program_;
  const Body& body_;
  sym::Arena& syms_;
  Vars vars_;        // what index expressions may use now
  Vars index_vars_;  // those of Index instructions
  std::set<std::string> names_;
  std::size_t next_ = 0;   // values defined so far
  std::size_t first_ = 0;  // values below are from before a reduction, out of reach now
  bool reducing_ = false;  // a Reduce has been seen
  bool finished_ = false;  // and an instruction after it
};

/// An op on operands of these dtypes gives this dtype.
Status check_op(ops::ScalarOp op, std::span<const DType> operands, DType result);
Status check_combine(const ops::Combine& combine);

}  // namespace coil::loop_verify
