#pragma once
// Prints the instructions of one stage at one place of the code: full lanes, a tail, or scalars.

#include <string>

#include "base/text.h"
#include "target/cpp/print_index.h"

namespace coil::cpp {

/// State of the code being printed.
class InstPrinter {
 public:
  InstPrinter(const Kernel& kernel, IndexPrinter& index, TextWriter& out);

  /// `count` is the C++ name of the number of active lanes, or "" where all 16 are.
  void set_tail(std::string count) { count_ = std::move(count); }
  const std::string& tail() const { return count_; }

  /// What the names of values and accumulators end with: tiles side by side have each their own.
  void set_of_tile(std::string ending) { of_tile_ = std::move(ending); }

  void print(const KernelInst& inst);
  /// While on, turned accesses read and write their tiles at the C++ variable `point`.
  void set_in_tile(bool yes) { in_tile_ = yes; }
  /// Declares the tile of a turned access, of which `points` exist; a load's is filled.
  void open_tile(const KernelInst& inst, u32 tile);
  /// Writes the tile of a turned store to memory.
  void close_tile(const KernelInst& inst);
  /// Prints `value` as a variable of the present place: of 16 lanes or a scalar.
  void define(Val value, const std::string& text);
  /// left = left (+) right over named variables; the results are assigned to the names of `left`.
  void combine(const ops::Combine& combine, const std::vector<std::string>& left,
               const std::vector<std::string>& right, bool lanes);
  /// The type of a variable that holds `dtype` values here.
  std::string type(DType dtype, bool lanes) const;
  std::string constant(const ops::Scalar& value, bool lanes) const;
  /// The mask of lanes to work on, with an extra condition, or "".
  std::string active(Val mask) const;
  /// Prints the lifted element of a reduce or scan as new variables and returns their names.
  std::vector<std::string> lift(const Inst& inst, const std::string& prefix);
  /// Row-major positions: along the stage's loop, for argmax, and of the point of grid and loop,
  /// for messages.
  void set_positions(sym::Expr loop_position, sym::Expr point) {
    loop_position_ = loop_position;
    point_ = point;
  }
  /// Slots of accumulators and scans are declared by the stage printer under these names: a slot is
  /// a variable, or an element of an array while `slots_in_array` is on.
  std::string slot_name(u32 accumulator, u32 slot, std::size_t component) const;
  std::string slot_array(u32 accumulator, std::size_t component) const;
  /// What folded blocks add up to, once the bool `started` is set.
  std::string total_name(u32 accumulator, std::size_t component) const;
  void set_started(std::string name) { started_ = std::move(name); }
  void set_slots_in_array(bool yes) { slots_in_array_ = yes; }
  std::string scan_name(const Inst& inst, std::size_t component) const;
  /// The slot that elements go to where slots are variables; in arrays the variable `slot` counts.
  void set_slot(u32 slot) { slot_ = slot; }
  /// Whether the loop being printed is the one that the lanes go along.
  void set_lanes_in_loop(bool yes) { lanes_in_loop_ = yes; }

 private:
  bool lanes() const { return index_.lanes_on(); }
  void load(const KernelInst& k);
  void store(const KernelInst& k);
  void index(const KernelInst& k);
  void accumulate(const KernelInst& k);
  void accumulate_partials(const KernelInst& k, const std::vector<std::string>& right);
  void scan(const KernelInst& k);
  void bitcast(const KernelInst& k);
  /// The operand of a bitcast; of a narrow float its bits, as integers of 16.
  std::string raw_bits(const KernelInst& k);
  std::string value_name(Val v) const { return str("v{}{}", v.index, of_tile_); }
  std::string bits_name(Val v) const { return value_name(v) + "_bits"; }
  /// What defines a value before `user` in its stage, if nothing is stored in between.
  const KernelInst* earlier(const KernelInst& user, Val v) const;
  void define(const Inst& inst, const std::string& text) { define(inst.results[0], text); }
  /// The name of a value; a scalar from outside of the lanes' loop is spread over them.
  std::string use(Val v) const;
  std::string op_text(ops::ScalarOp op, DType result,
                      const std::vector<std::string>& operands) const;
  struct Address {
    std::string pointer;  // of the first lane, where the address is linear
    std::string vector;   // i64x16 of element offsets, where it is not
    std::string stride;   // elements between lanes, as text; "1", "0" or an expression
    std::string base;     // the buffer's pointer
  };
  Address address_of(const KernelInst& k);
  /// The lanes at an address that all which are on may read.
  std::string load_lanes(const Address& a) const;
  /// A scalar condition under which a mask is true in all lanes that are on, or "" where the
  /// kernel's text gives none that is simpler than the mask.
  std::string true_in_all_lanes(Val mask);
  /// The expression that a value is, seen through casts, or null.
  const Inst* definition(Val v) const;
  /// Whether a condition that is true at two lanes is true at those between: linear comparisons.
  bool holds_between(sym::Expr e);

  const Kernel& kernel_;
  sym::Arena& syms_;
  IndexPrinter& index_;
  TextWriter& out_;
  std::string count_;
  std::string of_tile_;
  std::string started_;
  bool in_tile_ = false;
  std::map<const KernelInst*, u32> tiles_;  // of turned accesses
  sym::Expr loop_position_, point_;
  u32 slot_ = 0;
  bool slots_in_array_ = false;
  bool lanes_in_loop_ = false;
  std::vector<bool> has_lanes_;  // by value
  u32 temporaries_ = 0;
  u32 sites_ = 0;
  std::map<sym::Expr, u32> site_of_;
};

}  // namespace coil::cpp
