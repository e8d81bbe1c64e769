#pragma once
// Index expressions in generated C++, over scalars or over 16 lanes.

#include <map>
#include <string>

#include "kernel/kernel.h"

namespace coil::cpp {

/// A C++ expression of type i64, or of i64x16 where it differs between lanes.
struct IndexText {
  std::string text;
  bool lanes = false;
};

/// Names of variables as they stand at one place of the code. Lanes run along `lane_axis`, whose
/// variable names the first lane, while `lanes_on` is set.
class IndexPrinter {
 public:
  explicit IndexPrinter(const sym::Arena& syms) : syms_(syms) {}

  void name(sym::Expr var, std::string text, bool lanes = false) {
    names_[var] = {std::move(text), lanes};
  }
  void set_lanes(sym::Expr axis, bool on) {
    lane_axis_ = axis;
    lanes_on_ = on;
  }
  bool lanes_on() const { return lanes_on_; }
  sym::Expr lane_axis() const { return lane_axis_; }

  IndexText print(sym::Expr e) const;
  /// The expression at the first lane, where it is free of per-lane variables.
  std::string scalar(sym::Expr e) const;
  /// The same at another lane, whose number is C++ text.
  std::string scalar_at(sym::Expr e, const std::string& lane);
  /// The expression as i64x16.
  std::string vector(sym::Expr e) const;
  /// Whether it names a variable that was loaded per lane.
  bool has_lane_variable(sym::Expr e) const;

 private:
  IndexText operation(const char* scalar_op, const char* function, const IndexText& a,
                      const IndexText& b) const;
  IndexText comparison(const char* scalar_op, const char* function, const IndexText& a,
                       const IndexText& b) const;
  IndexText print(sym::Expr e, bool lane_axis_varies) const;

  const sym::Arena& syms_;
  std::map<sym::Expr, IndexText> names_;
  sym::Expr lane_axis_;
  bool lanes_on_ = false;
};

}  // namespace coil::cpp
