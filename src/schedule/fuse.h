#pragma once
// The decision whether a body runs inside a group's kernel.

#include "schedule/accesses.h"
#include "schedule/epilogue.h"

namespace coil {

/// Where a group stores a buffer: the body, and the index in the group's axes.
struct StoreSite {
  BufferId buffer;
  std::vector<sym::Expr> index;
  bool masked = false;
  std::size_t instance = 0;  // kByNode: the structured node that the group is around
};
inline constexpr std::size_t kByNode = ~std::size_t{0};

/// A group being built, with all accesses of its instances in its axes.
struct Draft {
  Group group;
  std::vector<StoreSite> stores;
  std::vector<Reading> reads;
  std::optional<ops::Tree> tree;  // of its reductions, which go over the row together: the widest
  bool scans = false;
  bool stores_meet = false;    // in the order of its axes, which stay as they are
  std::optional<Block> block;  // of a group around a node
};

/// A group of one body.
Draft start_group(const LoopProgram& program, const Side<BufferId, BodyId>& recomputed,
                  BodyId body);

/// A group around a node whose template has a hole, or why it has none.
std::variant<Draft, std::string> start_group(const LoopProgram& program, StructuredId node);

/// Puts `body` at the end of the draft if it may run there; else leaves it, and the decision says
/// why.
Decision join(const LoopProgram& program, const Side<BufferId, BodyId>& recomputed, Draft& draft,
              BodyId body);
/// Whether `later` may run once, at the end of `earlier`'s kernel: small, on one thread.
Decision may_close(const LoopProgram& program, const Group& earlier, const Group& later);

}  // namespace coil
