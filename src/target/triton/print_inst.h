#pragma once
// Prints the instructions of one stage: values, masks, memory, reductions.

#include <set>
#include <string>

#include "base/text.h"
#include "target/triton/print_index.h"

namespace coil::triton {

/// Where the code being printed stands.
enum class Place {
  Scalar,    // one point at a time: outside of the tile
  GridTile,  // a tile of grid points, also inside of loops
  RowTile,   // in a loop whose row is one tile
  RowChunk   // in a loop over chunks of its row
};

class InstPrinter {
 public:
  /// Combine functions are printed to `functions` under names that begin with `name`.
  InstPrinter(const Kernel& kernel, IndexPrinter& index, std::string name, TextWriter& functions,
              TextWriter& out);

  void set_place(Place place) { place_ = place; }
  /// Row-major positions: along the stage's loop, for argmax, and of the point of grid and loop.
  void set_positions(sym::Expr loop_position, sym::Expr point) {
    loop_position_ = loop_position;
    point_ = point;
  }
  Status print(const KernelInst& inst);
  /// What a loop carries, before it begins.
  void declare_carried(const Stage& stage);

  u32 sites() const { return sites_; }
  static std::string mask_name(std::size_t tile_dim) { return "inside" + std::to_string(tile_dim); }

 private:
  struct Access {
    std::string offset;
    std::string mask;  // "" where there is none
  };
  bool in_tile() const { return place_ != Place::Scalar; }
  bool in_row() const { return place_ == Place::RowTile || place_ == Place::RowChunk; }
  bool varies(sym::Expr e) const;
  bool varies(Val v) const { return in_tile() && lanes_[v.index]; }
  bool uses(sym::Expr e, sym::Expr var) const { return syms_.uses(e, var); }
  bool row_has_elements() const;
  std::string all_inside() const;
  Result<Access> access(const KernelInst& k);
  Result<Access> kept_access(const KernelInst& k, Access plain) const;
  bool is_register(const KernelInst& k) const;

  void define(Val v, const std::string& text, bool lanes);
  Status define_op(const Inst& inst);
  Status load(const KernelInst& k);
  Status store(const KernelInst& k);
  Status store_combined(const KernelInst& k, const std::string& pointer, const std::string& mask);
  void index(const KernelInst& k);
  Status accumulate(const KernelInst& k);
  Status finish(const KernelInst& k);
  Status scan(const KernelInst& k);
  Result<std::vector<std::string>> lift(const Inst& inst);
  Result<std::string> combine_function(u32 combine);
  std::string full(const ops::Scalar& value) const;
  std::vector<std::string> masked(const ops::Combine& c, const std::vector<std::string>& elements,
                                  const std::string& prefix);
  Result<std::vector<std::string>> reduced(u32 combine, const std::vector<std::string>& tiles);

  const Kernel& kernel_;
  sym::Arena& syms_;
  IndexPrinter& index_;
  std::string name_;
  TextWriter& functions_;
  TextWriter& out_;
  Place place_ = Place::Scalar;
  sym::Expr loop_position_, point_;
  std::vector<bool> lanes_;                   // by value: it is a tile
  std::map<sym::Expr, std::string> checked_;  // by variable of an index: the mask of those in range
  std::set<sym::Expr> index_lanes_;           // indices that are tiles
  std::map<u32, std::string> kept_;  // by buffer: the kept row's value, where the row is one tile
  std::set<u32> loaded_;             // buffers that the kernel loads from
  std::map<u32, std::string> combines_;  // by combine: its function
  u32 sites_ = 0;
  u32 temporaries_ = 0;
};

}  // namespace coil::triton
