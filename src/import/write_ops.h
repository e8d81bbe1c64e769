#pragma once
// Ops that write to an argument, as functional ops and writes: `op_` computes `op` and stores the
// result into its first argument; a few have forms of their own. Checks that have no result are
// dropped here too.

#include "import/functionalize.h"

namespace coil {

class WriteOps {
 public:
  WriteOps(FunctionalBuilder& builder, const ImportCall& call) : builder_(builder), call_(call) {}

  /// The results; nothing where the op writes nothing.
  std::optional<std::vector<ImportValue>> run();
  /// Whether the op has a row here.
  static bool handles(std::string_view op) { return find(op) != nullptr; }

 private:
  using Results = std::vector<ImportValue>;
  struct Row {
    std::string_view op;  // a full name
    Results (WriteOps::*resolve)();
  };
  static const Row* find(std::string_view op);

  Results nothing() { return {}; }
  Results assert_scalar();
  Results linalg_check_errors();
  /// An op that is asked to fail where its last result, `info`, is not 0.
  Results checked(std::size_t flag);
  void check_info(TensorId info, const std::string& api);
  Results assert_tensor();
  Results constrain_range();
  Results lift_fresh_copy();
  Results copy();
  Results fill_scalar();
  Results fill_tensor();
  Results zero();
  Results set_dims();
  Results batch_norm();
  Results instance_norm();
  /// Any other op whose name ends with an underscore.
  Results in_place(const std::string& functional);
  Results self() const { return {tensor(0)}; }

  TensorId tensor(std::size_t i) const;
  const Arg& arg(std::size_t i) const;
  ValueId filled(const Type& like, Arg value);
  Error error(const std::string& message) const { return builder_.error_at(call_, message); }

  FunctionalBuilder& builder_;
  const ImportCall& call_;
};

}  // namespace coil
