#pragma once
// Runs one body: its points in chunks, each instruction over a whole chunk.

#include <vector>

#include "target/interp/frame.h"
#include "target/interp/index_code.h"

namespace coil::interp {

/// The element that a load or store names, for every point of a chunk.
struct ElementCode {
  MemoryRef memory;
  std::vector<IndexCode> index;
  std::optional<Linear> address;      // where all of it is linear
  bool within = false;                // provably in bounds at every point
  std::vector<std::size_t> deferred;  // index columns that are checked here, not where made
};

/// An instruction with what a run of the body needs of it.
struct InstCode {
  const Inst* inst = nullptr;
  std::optional<ElementCode> element;
  std::optional<IndexCode> value;  // Value
  std::size_t column = 0;          // Index: the column it makes
  i64 extent = 0;                  // Index
  bool deferred = false;           // Index: only masked elements use it, so they check it
  std::optional<CombineCode> combine;
  std::vector<Bytes> state;  // Scan: what went before
};

/// Points are ordered row-major over parallel dims, then the inner (reduce or scan) dims. A chunk
/// is `points_` neighbours in the parallel space by `steps_` in the inner one, inner-major.
class BodyRunner {
 public:
  BodyRunner(Frame& frame, const Body& body);
  Status run();

 private:
  Status prepare();
  Status prepare_inst(InstCode& code);
  Status prepare_element(InstCode& code);
  void find_deferred();
  void choose_chunk();
  bool stores_keep_order() const;
  Status run_points(i64 first);
  Status run_steps(i64 first_point, std::vector<Reduction>& reductions);
  void set_columns(i64 first_point, i64 first_step, i64 steps);
  void set_column(std::size_t dim, i64 first, i64 count, i64 repeat_each, i64 repeat_all);
  Status run_inst(InstCode& code);
  void run_load(InstCode& code);
  void run_store(InstCode& code);
  void combine_store(InstCode& code, const i64* addresses, const u8* mask);
  Status run_index(InstCode& code);
  void run_op(InstCode& code);
  void run_scan(InstCode& code);
  void run_reduce(InstCode& code, Reduction& reduction);
  Status addresses(InstCode& code, const u8* mask);
  Status check_deferred(const InstCode& code, const u8* mask) const;
  void check_bounds(const InstCode& code, const u8* mask);
  Error index_error(const InstCode& code, i64 lane) const;

  std::byte* column_of(Val v) { return values_[v.index].data(); }
  const u8* mask_of(const Inst& inst) {
    return inst.mask.valid() ? reinterpret_cast<const u8*>(column_of(inst.mask)) : nullptr;
  }
  std::string where() const;

  Frame& frame_;
  const Body& body_;
  const LoopProgram& program_;
  std::vector<InstCode> before_, reduces_, after_;

  std::vector<i64> extents_;  // of the dims
  std::size_t parallel_dims_ = 0;
  i64 all_points_ = 1, all_steps_ = 1;                       // of the parallel and the inner space
  i64 max_points_ = 1, max_steps_ = 1;                       // of a chunk
  i64 points_ = 0, steps_ = 0, first_step_ = 0, lanes_ = 0;  // of the present chunk

  std::vector<sym::Expr> variables_;  // dims, then indices
  std::vector<Bounds> bounds_;
  std::vector<std::vector<i64>> columns_;
  std::vector<const i64*> column_data_;
  std::vector<std::vector<u8>> bad_;   // by column: index out of bounds
  std::vector<std::vector<i64>> raw_;  // by column: index as given
  std::vector<i64> address_, scratch_;
  std::vector<Bytes> values_;  // by Val
};

}  // namespace coil::interp
