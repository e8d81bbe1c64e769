#pragma once
// Level 4, the host program as data: `init` once, `run` at each call. Built by plan/, executed
// here.

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "runtime/expr_code.h"
#include "runtime/fault.h"
#include "runtime/tensor.h"
#include "runtime/threads.h"

namespace coil::runtime {

/// An index into Plan::exprs.
using ExprRef = u32;

enum class Where : u8 { Input, Constant, State, Arena, Derived, Output, Heap, Nowhere };

struct PlanBuffer {
  std::string name;
  DType dtype = DType::f32;
  Where where = Where::Arena;
  u32 source = 0;  // Input: of Plan::inputs; Constant, State: of Model constants; Arena: slot
  ExprRef bytes = 0;
  std::vector<ExprRef> shape;    // of the buffer itself: complex has a trailing 2
  std::vector<ExprRef> strides;  // elements
};

/// An argument: a tensor, or a number that defines or must equal something.
struct PlanInput {
  enum class Kind : u8 { Tensor, Int, Float, Fixed };
  std::string name;
  Kind kind = Kind::Tensor;
  DType dtype = DType::f32;    // as the user passes it (complex stays complex)
  std::vector<ExprRef> shape;  // of that dtype
  std::vector<ExprRef> strides;
  ExprRef value = 0;  // Int: what it must equal, after symbols are bound
  u32 scalar = 0;     // Float: slot of the scalars
  Value fixed;        // Fixed: what it must be
};

/// `symbol = size / factor` of an input's dim (dim -1: the Int itself).
struct Binding {
  u32 symbol = 0;
  u32 input = 0;
  i32 dim = 0;
  i64 factor = 1;
};

struct SymbolRange {
  u32 symbol = 0;
  i64 lo = 0, hi = 0;
};

/// What must hold, else the call fails: of a plan at entry, as a step where data has given the last
/// of the sizes that it names.
struct PlanCheck {
  ExprRef condition = 0;
  std::string text;
};

struct Launch {
  u32 kernel = 0;  // index into Model::kernels
  std::vector<u32> buffers;
  std::vector<u32> symbols;  // slots
  std::vector<u32> scalars;  // slots
  ExprRef units = 0;
  i64 grain = 1;
  bool serial = false;
  bool follows = false;                  // it goes on with the kernel of the launch before it
  std::vector<std::string> index_names;  // of the kernel's checked indices, for messages
};

/// One operand of a library or template call: a strided window on a buffer.
struct PlanOperand {
  u32 buffer = 0;
  ExprRef offset = 0;  // elements
  std::vector<ExprRef> shape;
  std::vector<ExprRef> strides;
};
/// What an epilogue kernel gets from its template at each block: in place of a symbol's slot, or a
/// buffer.
enum BlockValue : u32 {
  kBlockBatch = 0xFFFFFF00u,
  kBlockRow0,
  kBlockRows,
  kBlockCol0,
  kBlockCols,
  kBlockLd,
  kBlockEnd
};
inline constexpr u32 kBlockBuffer = ~u32{0};
inline constexpr u32 kNoBuffer =
    ~u32{0};  // of an operand that a packing does not look at: it has no memory
inline constexpr std::size_t kMostEpilogueArguments = 64;  // buffers, and symbols
/// Sees a finished block of a result; the type that templates state.
using BlockFunction = void (*)(void* context, i64 batch, i64 row0, i64 rows, i64 col0, i64 cols,
                               void* block, i64 ld);

/// What a call may use besides its operands.
struct CallTools {
  ThreadPool& pool;
  Scratch& scratch;
  BlockFunction epilogue = nullptr;  // then the last operand may have no memory
  void* epilogue_context = nullptr;
  void* packed = nullptr;  // the weight in the function's own layout: then the operand is not read
};
struct CallOperand {
  DType dtype = DType::f32;
  std::byte* data = nullptr;
  std::vector<i64> shape, strides;
};
using CallFunction = Status (*)(const void* bound, std::span<const CallOperand> operands,
                                const CallTools& tools);
struct Call {
  std::string name;                   // who computes what: "gemm.avx2", "pack.gemm.avx2"
  std::vector<i64> attributes;        // what the name and the operands do not say
  CallFunction function = nullptr;    // found by the name
  std::shared_ptr<const void> bound;  // the attributes as `function` takes them
  std::vector<PlanOperand> operands;  // inputs, then outputs
  std::optional<Launch> epilogue;     // a kernel that runs on each block of the last output
  std::optional<u32> packed;  // a Derived buffer: a packed weight that is read, at init written
};

/// to = from, whole buffers of one layout.
struct CopyStep {
  u32 from = 0, to = 0;
};
/// symbol = the i64 in a 0-d buffer; lies within lo..hi.
struct ReadSize {
  u32 symbol = 0;
  u32 buffer = 0;
  i64 lo = 0, hi = 0;
};

struct Plan;

struct ControlStep {
  enum class Kind : u8 { If, While, For };
  Kind kind = Kind::If;
  std::string name;
  i32 predicate = -1;  // If: a bool buffer, or -1 where `condition` decides
  ExprRef condition = 0;
  std::vector<u32> plans;                       // indices into Plan::subplans
  std::vector<u32> carried, operands, results;  // buffers
  u32 step = 0;                                 // For: symbol slot
  ExprRef extent = 0;
};

using PlanStep = std::variant<Launch, Call, CopyStep, ReadSize, PlanCheck, ControlStep>;

struct PlanOutput {
  enum class Kind : u8 { Tensor, AliasOfInput, MutatedInput, Constant, Int, Bool, None };
  Kind kind = Kind::Tensor;
  DType dtype = DType::f32;  // level 0's: complex stays complex
  u32 buffer = 0;
  u32 target = 0;                       // AliasOfInput, MutatedInput
  std::vector<ExprRef> shape, strides;  // elements of dtype
  ExprRef offset = 0;
  Value constant;
  ExprRef value = 0;  // Int
};

struct PlanState {
  u32 state = 0, updated = 0;  // buffers
};

struct Plan {
  std::string name;
  std::vector<ExprCode> exprs;
  std::vector<std::string>
      symbols;  // names, by slot; subplans share the slots of the outermost plan
  std::vector<std::string> scalars;
  std::vector<PlanBuffer> buffers;
  std::vector<ExprRef> slots;  // arena slots: bytes
  std::vector<PlanInput> inputs;
  std::vector<Binding> bindings;
  std::vector<SymbolRange> ranges;
  std::vector<PlanCheck> checks;
  std::vector<PlanStep> init, run;
  std::vector<PlanOutput> outputs;
  std::vector<PlanState> states;
  std::vector<Plan> subplans;
};

/// A weight or buffer: its bytes stay valid while `owner` lives. The buffer's strides walk it.
struct ModelConstant {
  std::string name;
  const std::byte* data = nullptr;
  i64 bytes = 0;
  std::shared_ptr<const void> owner;
};

std::string to_text(const Plan& plan);
std::string to_text(const ExprCode& code, const std::vector<std::string>& symbols);

}  // namespace coil::runtime
