#pragma once
// Writes one body: dims, loads through views, typed ops, reductions, stores.

#include <initializer_list>
#include <string>
#include <vector>

#include "lower/context.h"

namespace coil::lowering {

class BodyBuilder {
 public:
  /// The body is named `name` and comes from the present node of `l`.
  BodyBuilder(Lowering& l, const std::string& name);

  // ---- dims ----
  Expr dim(Expr extent);
  Exprs dims(std::span<const Expr> extents);
  Expr reduce_dim(Expr extent);
  Expr scan_dim(Expr extent);

  // ---- values; equal ones are made once ----
  Val load(const Access& from, std::span<const Expr> at);
  Val load(BufferId from, std::span<const Expr> at);
  /// Where `mask` is false the value is `other`, and nothing is read.
  Val load_if(Val mask, const ops::Scalar& other, const Access& from, std::span<const Expr> at);
  Val constant(DType dtype, double value) { return constant(ops::Scalar::of_float(dtype, value)); }
  Val integer(DType dtype, i64 value) { return constant(ops::Scalar::of_int(dtype, value)); }
  Val constant(const ops::Scalar& value);
  /// An index expression, converted to `dtype`.
  Val value(Expr e, DType dtype = DType::i64);
  /// A boolean expression, as a bool.
  Val test(Expr condition) { return value(condition, DType::b8); }
  Val scalar(u32 number, DType dtype);
  Val op(ops::ScalarOp op, std::vector<Val> operands);
  Val cast(Val v, DType dtype);
  Val bitcast(Val v, DType dtype);
  /// An integer value as an index into a dim of `extent` elements.
  Expr index(Val v, Expr extent, IndexPolicy policy);

  Val add(Val a, Val b) { return op(ops::ScalarOp::add, {a, b}); }
  Val sub(Val a, Val b) { return op(ops::ScalarOp::sub, {a, b}); }
  Val mul(Val a, Val b) { return op(ops::ScalarOp::mul, {a, b}); }
  Val div(Val a, Val b) { return op(ops::ScalarOp::div, {a, b}); }
  Val min(Val a, Val b) { return op(ops::ScalarOp::min, {a, b}); }
  Val max(Val a, Val b) { return op(ops::ScalarOp::max, {a, b}); }
  Val neg(Val a) { return op(ops::ScalarOp::neg, {a}); }
  Val where(Val c, Val a, Val b) { return op(ops::ScalarOp::where, {c, a, b}); }

  /// `elements` are as loaded; gives one value for each partial value of the named combine.
  std::vector<Val> reduce(std::string_view combine, Val element, ops::Tree tree);
  std::vector<Val> scan(std::string_view combine, Val element);
  /// The same of a combine without a name: an element for each partial value.
  std::vector<Val> reduce(const ops::Combine& combine, std::vector<Val> elements, ops::Tree tree);
  std::vector<Val> scan(const ops::Combine& combine, std::vector<Val> elements);

  // ---- effects ----
  /// Stores `v`, converted to the buffer's dtype.
  void store(BufferId to, std::span<const Expr> at, Val v);
  void store_if(Val mask, BufferId to, std::span<const Expr> at, Val v);
  void store_combining(StoreCombine how, BufferId to, std::span<const Expr> at, Val v);

  DType dtype(Val v) const { return body_.val_dtypes.at(v.index); }
  Lowering& lowering() { return l_; }
  sym::Arena& syms() { return l_.syms; }
  /// Appends the body to the program.
  BodyId finish();

 private:
  Val append(Inst inst);
  Val new_value(DType dtype);
  ops::Combine combine_of(std::string_view name, Val element) const;
  std::vector<Val> fold(InstKind kind, ops::Combine combine, std::vector<Val> elements,
                        ops::Tree tree);
  void append_store(Val mask, StoreCombine how, BufferId to, std::span<const Expr> at, Val v);
  const Inst* definition(Val v) const;

  Lowering& l_;
  Body body_;
  std::size_t stage_begin_ = 0;  // values from before it are out of reach
  int parallel_ = 0, reduced_ = 0, indices_ = 0;
};

/// The loops of a reduction: `at` indexes the operand, `kept` are the parallel ones of `at`.
struct Rows {
  Exprs at;
  Exprs kept;
  ops::Tree tree;
  Expr count;  // elements a row
};
enum class RowOrder : u8 { Logical, Memory };
/// Makes a parallel dim for each kept dim of `in` and a reduce dim for each of `reduced`; in memory
/// order the one with the smallest stride is innermost.
Rows make_rows(BodyBuilder& b, const Access& in, const std::vector<bool>& reduced, DType partial,
               RowOrder order);

}  // namespace coil::lowering
