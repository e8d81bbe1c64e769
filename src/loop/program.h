#pragma once
// Level 1: buffers, loop bodies of one stage, structured nodes and sub-programs, in order.

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "graph/graph.h"
#include "ops/combine.h"
#include "runtime/factor/kind.h"
#include "sym/prover.h"

namespace coil {

struct BufferTag;
struct BodyTag;
struct StructuredTag;
struct ControlTag;
using BufferId = Id<BufferTag>;
using BodyId = Id<BodyTag>;
using StructuredId = Id<StructuredTag>;
using ControlId = Id<ControlTag>;

// ---- buffers ----

enum class BufferKind : u8 { Input, Constant, State, Temp };

/// The element at index (x0, x1, ...) lies at `offset` + the sum over entries of
/// (x[dim] / factor % (next larger factor of that dim / factor)) * stride elements. A plain strided
/// layout has one entry with factor 1 for each dim.
struct LayoutEntry {
  u32 dim = 0;
  i64 factor = 1;
  sym::Expr stride;
  bool operator==(const LayoutEntry&) const = default;
};
struct Layout {
  std::vector<LayoutEntry> entries;
  sym::Expr offset;   // invalid: 0
  bool open = false;  // the scheduler may still change it
};

/// Complex tensors are real buffers with a trailing dim of 2.
struct Buffer {
  std::string name;  // the level 0 value's
  DType dtype = DType::f32;
  std::vector<sym::Expr> shape;
  Layout layout;
  BufferKind kind = BufferKind::Temp;
  u32 source = 0;   // Input: index into LoopProgram::inputs; Constant, State: into Graph::constants
  BufferId starts;  // begins with the content of this buffer, which has the same shape and dtype
};

// ---- bodies ----

struct ValTag;
using Val = Id<ValTag>;  // a value of one body, in SSA order

enum class DimKind : u8 { Parallel, Reduce, Scan };
struct Dim {
  sym::Expr var;  // role Loop (Parallel, Scan) or Reduce
  sym::Expr extent;
  DimKind kind = DimKind::Parallel;
};

enum class InstKind : u8 {
  Load,    // v = load dtype %buffer[index] (if mask else other)
  Store,   // store %buffer[index], v (if mask); with `store_combine`: combining
  Const,   // v = const dtype constant
  Value,   // v = value expr                     an index expression as an i64
  Scalar,  // v = scalar f64 %f                  a float known to the host, scalars[scalar]
  Index,   // n = index v in 0..extent-1 policy  makes `expr`, a variable of role Value, from an i64
  Op,      // v = op dtype operands
  Reduce,  // v, ... = reduce.name v over reduce dims tree LxA
  Scan,    // v, ... = scan.name v over the scan dim (inclusive, in order)
};

/// What happens to an index from data that is outside 0..extent-1.
enum class IndexPolicy : u8 {
  Assert,   // an error with position and value; negative ones too
  Wrap,     // negative ones count from the end (once), then as Assert
  Clamp,    // to the nearest valid one
  NotZero,  // a divisor: 0 is an error, and the variable is 0; the extent is 1
};

/// How a store brings a new value together with the one that is there. The buffer `starts` as
/// another.
enum class StoreCombine : u8 { None, Sum, Prod, Min, Max };

struct Inst {
  InstKind kind = InstKind::Op;
  ops::ScalarOp op = ops::ScalarOp::add;
  DType dtype = DType::f32;   // of the result; Store: of the buffer
  std::vector<Val> operands;  // Op; Store, Index: the one value; Reduce, Scan: the lifted elements
  std::vector<Val> results;   // one; Reduce, Scan: one for each partial value; Store, Index: none
  BufferId buffer;            // Load, Store
  std::vector<sym::Expr> index;  // Load, Store: one expression for each logical dim
  Val mask;           // Load, Store, Index: a bool, or invalid; a masked-off index is 0, unchecked
  ops::Scalar other;  // Load with mask: what a masked-off load gives
  ops::Scalar constant;  // Const
  sym::Expr expr;        // Value: the expression; Index: the variable it defines
  sym::Expr extent;      // Index: valid values are 0..extent-1
  IndexPolicy policy = IndexPolicy::Assert;
  StoreCombine store_combine = StoreCombine::None;
  u32 scalar = 0;   // Scalar: index into LoopProgram::scalars
  u32 combine = 0;  // Reduce, Scan: index into Body::combines
  ops::Tree tree;   // Reduce
};

/// One stage. Insts before the first Reduce run for each point of all dims; Reduce insts stand
/// together; insts after them run for each point of the parallel dims and use neither reduce
/// variables nor values from before. Without Reduce all insts run for each point. A reduced element
/// is lifted by the Reduce itself: its operands are the elements as loaded (argmax adds the
/// position along the reduce dims in row-major order).
struct Body {
  std::string name;
  std::vector<Dim> dims;  // parallel ones first
  std::vector<Inst> insts;
  std::vector<DType> val_dtypes;  // by Val
  std::vector<ops::Combine> combines;
  std::vector<ValueId> from;  // level 0 values it computes, for names and places
  std::vector<LocId> locs;
  bool init = false;  // depends on constants only: runs once, before the first call
};

// ---- structured nodes ----

/// A logical tensor seen through a buffer: `vars` (one per logical dim, role Loop) and the buffer's
/// index as expressions of them.
struct Access {
  BufferId buffer;
  std::vector<sym::Expr> vars;
  std::vector<sym::Expr> extents;
  std::vector<sym::Expr> index;
};

/// c[b, m, n] = sum over k of a[b, m, k] * b[b, k, n]; accumulated in compute_dtype of the
/// operands, rounded once; integers wrap.
struct Gemm {};

/// y[n, oc, ...] = sum over ic, kernel of x[n, ic, ...] * w (+ bias); operands x [n, ic,
/// spatial...], w [oc, ic/groups, kernel...] (transposed: [ic, oc/groups, kernel...]), optional
/// bias [oc].
struct Conv {
  std::vector<i64> stride, padding, dilation, output_padding;
  i64 groups = 1;
  bool transposed = false;
};

/// y = softmax(q k^T * scale + mask) v; q [b, h, m, d], k [b, hk, n, d], v [b, hk, n, e], optional
/// mask [b, h, m, n] (bool: keep; float: added); h is a multiple of hk.
struct Attention {
  double scale = 1;
  bool causal = false;  // key j is kept for query i where j <= i
  bool has_mask = false;
  bool nan_rows = false;  // a row with nothing kept is NaN, as softmax has it, and not 0
};

/// Along the last dim of x [rows, n]; results values [rows, k] and i64 indices [rows, k]; k = n for
/// a full sort. Stable; NaN counts as the largest.
struct Sort {
  bool descending = false;
  bool is_topk = false;
};

/// A factorisation of matrices, or a solver that rests on one; operands and results as the kind's
/// signature lists them (runtime/factor/kind.def), all with a batch dim in front.
struct Factor {
  FactorKind kind = FactorKind::cholesky;
  u8 flags = 0;  // FactorFlag
};

/// Which side of a transform is real.
enum class FftKind : u8 { C2c, R2c, C2r };
enum class FftScale : u8 { None, ByRootN, ByN };

/// y[.., k, ..] = scale * sum over j < n of x[.., j, ..] * exp(-2 pi i j k / n) along dim `dim`,
/// for each index of the other dims; the exponent's sign is + where not `forward`. A complex side
/// has a trailing dim of 2. n is the extent of x's dim, in C2r that of y's: there x stands for a
/// signal with x[n - k] = conj(x[k]), of which it holds the first n/2 + 1 elements (or more: they
/// are not read). In R2c y may hold the first few k alone. A transform of no elements is an error,
/// unless there are no results. Several dims are a chain of nodes.
struct Fft {
  FftKind kind = FftKind::C2c;
  i64 dim = 0;
  bool forward = true;
  FftScale scale = FftScale::None;
};
/// What the results of a transform of n elements are multiplied by.
double scale_of(const Fft& fft, i64 n);
/// Whether these extents of x's and y's dim fit, as Fft says, when a program runs.
Status check_fft_sizes(const Fft& fft, i64 x, i64 y);

using StructuredAttrs = std::variant<Gemm, Conv, Attention, Sort, Factor, Fft>;

struct Structured {
  std::string name;
  StructuredAttrs attrs;
  std::vector<Access> inputs;
  std::vector<Access> outputs;  // whole buffers: index is the vars themselves
  std::vector<ValueId> from;
  std::vector<LocId> locs;
  bool init = false;
};

// ---- control flow ----

struct LoopProgram;

/// `if %p {} {}`: programs then, else; inputs of both are `operands`; outputs go to `results`.
struct If {
  BufferId predicate;  // bool, 0-d; invalid where `condition` is set
  sym::Expr condition;
};
/// `while {} {}`: programs condition (one bool output), body; inputs carried + extra.
struct While {};
/// `for t < extent {}`: program body with the step variable `step`; inputs carried + extra, outputs
/// carried + one slice of each stacked result. `extra` is read whole, at any t.
struct For {
  sym::Expr step;
  sym::Expr extent;
};

struct Control {
  std::string name;
  std::variant<If, While, For> kind;
  std::vector<u32> programs;       // indices into LoopProgram::subprograms
  std::vector<BufferId> carried;   // initial values; results[i] is the final one of carried[i]
  std::vector<BufferId> operands;  // read only (If: all operands)
  std::vector<BufferId>
      results;  // If: outputs; While, For: carried, then (For) stacked [extent, ...]
  std::vector<ValueId> from;
  std::vector<LocId> locs;
};

// ---- the program ----

using Step = std::variant<BodyId, StructuredId, ControlId>;

/// An argument of a call: a buffer, or an int that defines a size variable.
struct ProgramInput {
  std::string name;
  BufferId buffer;  // invalid for an int or float
  sym::Expr size;   // int: the variable it defines, or a constant it must equal
  u32 scalar = 0;   // float: index into scalars
  bool is_float = false;
  bool is_complex = false;  // the argument is complex; its buffer has a trailing dim of 2
  bool is_fixed = false;    // neither: every call must pass `fixed`
  Arg fixed;
};

/// A result: a strided window on a buffer, as eager returns it.
struct ProgramOutput {
  OutputKind kind = OutputKind::Value;
  BufferId buffer;                 // Value, Alias*, MutatedInput
  DType dtype = DType::f32;        // level 0's: complex where the buffer has a trailing 2
  std::vector<sym::Expr> shape;    // level 0's
  std::vector<sym::Expr> strides;  // elements of dtype
  sym::Expr offset;                // elements of dtype from the buffer's first element
  u32 target = 0;                  // input or output index
  Arg constant;                    // Constant
  sym::Expr expr;                  // Int
};

struct ProgramSize {
  sym::Expr var;
  std::optional<i64> hint;
  BufferId from;  // a 0-d i64 buffer that holds it; invalid: bound by an input
};

struct ProgramState {
  BufferId state;    // kind State
  BufferId updated;  // its content after the call
};

struct LoopProgram {
  std::string name = "main";
  std::shared_ptr<sym::Arena> syms;
  sym::Facts facts;
  Table<BufferId, Buffer> buffers;
  Table<BodyId, Body> bodies;
  Table<StructuredId, Structured> structured;
  Table<ControlId, Control> controls;
  std::vector<Step> order;
  std::vector<ProgramSize> sizes;
  std::vector<std::string> scalars;  // names of host floats
  std::vector<ProgramInput> inputs;
  std::vector<ProgramOutput> outputs;
  std::vector<ProgramState> states;
  std::vector<Check> checks;
  std::vector<LoopProgram> subprograms;  // share `syms`
  // From level 0, so that a program can run by itself and messages can name places.
  std::vector<Constant> constants;
  std::vector<Storage> storages;
  Table<LocId, Loc> locs;
  Side<ValueId, std::string> value_names;
};

/// The address of an element, in elements: the layout applied to an index tuple.
sym::Expr address(sym::Arena& syms, const Layout& layout, std::span<const sym::Expr> index);
Layout strided_layout(std::span<const sym::Expr> strides, sym::Expr offset);

/// Text form: parse_program(to_text(p)) prints the same text again.
std::string to_text(const LoopProgram& program);
Result<LoopProgram> parse_program(std::string_view text, const std::string& file);
/// SSA order, dtypes, extents, the rules stated at Body, one definition of each buffer before its
/// use.
Status verify(const LoopProgram& program);

}  // namespace coil
