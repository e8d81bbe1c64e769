#pragma once
// Prints the instructions of one stage: values, masks, memory, reductions.

#include <set>
#include <string>

#include "base/text.h"
#include "target/triton/print_index.h"

namespace coil::triton {

enum class Place {
  Scalar,       // one point at a time: outside of the tile
  GridTile,     // a tile of grid points, also inside of loops
  RowTile,      // in a loop whose row is one tile
  RowChunk,     // in a loop over chunks of its row
  ColumnChunk,  // in a loop over chunks of rows, of a tile of columns
};

/// Where the code being printed stands: which axes the tile lies along, and names in the code.
struct Lanes {
  Place place = Place::Scalar;
  std::vector<sym::Expr> axes;
  std::vector<std::string> masks;  // by axis: the lanes that are inside of it; "": all
  std::string zeros;               // a tile of zeros, of the tile's shape
  std::string point_zeros;         // ColumnChunk: the same for what is outside of the loop
  i64 rows = 0, columns = 0;       // along the loop, and across; in a Row: columns 0
  bool has_elements = false;       // RowTile: whether the row is known to have one
  std::string extent;              // of the loop
};

class InstPrinter {
 public:
  /// Combine functions are printed to `functions` under names that begin with `name`.
  InstPrinter(const Kernel& kernel, IndexPrinter& index, std::string name, TextWriter& functions,
              TextWriter& out, u32 sites_before);

  void stand(Lanes lanes) { at_ = std::move(lanes); }
  /// Row-major positions: along the stage's loop, for argmax, and of the point of grid and loop.
  void set_positions(sym::Expr loop_position, sym::Expr point) {
    loop_position_ = loop_position;
    point_ = point;
  }
  Status print(const KernelInst& inst);
  /// What a loop carries, before it begins.
  void declare_carried(const Stage& stage);

  /// Checked indices, those of launches before this one included.
  u32 sites() const { return sites_; }

 private:
  struct Access {
    std::string offset;
    std::string mask;  // "" where there is none
  };
  bool in_tile() const { return at_.place != Place::Scalar; }
  bool in_chunk() const { return at_.place == Place::RowChunk || at_.place == Place::ColumnChunk; }
  bool along_loop() const { return at_.place == Place::RowTile || in_chunk(); }
  bool varies(sym::Expr e) const;
  bool varies(Val v) const { return in_tile() && lanes_[v.index]; }
  bool uses(sym::Expr e, sym::Expr var) const { return syms_.uses(e, var); }
  std::string all_inside() const;
  std::string tile_of(const std::string& value, const std::string& other) const;
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
  Result<std::string> function_of(const ops::Combine& c, const std::string& function);
  std::string fold_function(const std::string& combine, std::size_t values);
  std::string full(const ops::Scalar& value, const std::string& zeros) const;
  Status two_passes(const KernelInst& k, const std::string& element);
  std::vector<std::string> masked(const ops::Combine& c, const std::vector<std::string>& elements,
                                  const std::string& prefix);
  Result<std::vector<std::string>> reduced(u32 combine, const std::vector<std::string>& tiles);

  const Kernel& kernel_;
  sym::Arena& syms_;
  IndexPrinter& index_;
  std::string name_;
  TextWriter& functions_;
  TextWriter& out_;
  Lanes at_;
  sym::Expr loop_position_, point_;
  std::vector<bool> lanes_;                   // by value: it is a tile
  std::map<sym::Expr, std::string> checked_;  // by variable of an index: the mask of those in range
  std::set<sym::Expr> index_lanes_;           // indices that are tiles
  std::map<u32, std::string> kept_;  // by buffer: the kept row's value, where the row is one tile
  std::set<u32> loaded_;             // buffers that the kernel loads from
  std::map<u32, std::string> combines_;  // by combine: its function
  std::set<std::string> folds_;          // functions that are printed
  // By accumulator: where its slots are, once its loop has been printed.
  struct Slots {
    Lanes lanes;
    bool folded = false;
  };
  std::map<u32, Slots> slots_;
  u32 sites_ = 0;
  u32 temporaries_ = 0;
};

}  // namespace coil::triton
