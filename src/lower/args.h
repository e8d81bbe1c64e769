#pragma once
// The arguments of a node by their names in the schema.

#include <string_view>

#include "lower/access.h"
#include "ops/schema.h"

namespace coil::lowering {

class Args {
 public:
  /// `args` begin at the schema's argument number `first` (1 for a view step, which has no self).
  Args(sym::Arena& syms, std::string_view op, std::span<const Arg> args, std::size_t first = 0);

  /// None where the op has no such argument or it was left out.
  const Arg& operator[](std::string_view name) const;
  bool has(std::string_view name) const { return !std::holds_alternative<None>((*this)[name]); }
  ValueId tensor(std::string_view name) const;
  /// Invalid ids for None.
  std::vector<ValueId> tensors(std::string_view name) const;
  Expr size(std::string_view name) const;
  Exprs sizes(std::string_view name) const;
  /// Constants; throws BuildError where they depend on sizes.
  i64 integer(std::string_view name) const;
  std::vector<i64> integers(std::string_view name) const;
  /// A dim, counted from the front.
  std::size_t dim(std::string_view name, std::size_t rank) const;
  bool flag(std::string_view name) const;
  double number(std::string_view name) const;
  std::vector<double> numbers(std::string_view name) const;
  std::string text(std::string_view name) const;

  const ops::Schema& schema() const { return schema_; }

 private:
  i64 fixed(std::string_view name, Expr value) const;

  sym::Arena& syms_;
  ops::Schema schema_;
  std::span<const Arg> args_;
  std::size_t first_;
};

/// `dims` counted from the front, as a set over `rank` dims; all dims for an empty list.
std::vector<bool> dim_set(std::span<const i64> dims, std::size_t rank);

}  // namespace coil::lowering
