// The table of all decompositions, and the list of the ops that are left alone.

#include <algorithm>
#include <iterator>
#include <map>

#include "passes/composite.h"

namespace coil {
namespace {

using Registry = std::map<std::string_view, Decomposition, std::less<>>;

const Registry& registry() {
  static const Registry kRows = [] {
    Registry rows;
    for (std::span<const DecompositionRow> family :
         {matrix_decompositions(), einsum_decompositions(), conv_decompositions(),
          norm_decompositions(), view_decompositions(), split_decompositions(),
          create_decompositions(), loss_decompositions(), pointwise_decompositions(),
          reduce_decompositions(), index_decompositions(), pool_decompositions(),
          attention_decompositions()}) {
      for (const DecompositionRow& row : family) {
        const bool added = rows.emplace(row.op, row.rewrite).second;
        COIL_CHECK(added, "two decompositions of {}", row.op);
        COIL_CHECK(ops::find_schema(row.op).has_value(), "a decomposition of {}, which is no op",
                   row.op);
      }
    }
    return rows;
  }();
  return kRows;
}

constexpr std::string_view kCoreOps[] = {
#define CORE(op) op,
#include "passes/core_ops.def"
#undef CORE
};
static_assert(std::ranges::is_sorted(kCoreOps));

}  // namespace

Decomposition find_decomposition(std::string_view op) {
  const auto row = registry().find(op);
  return row == registry().end() ? nullptr : row->second;
}

std::vector<std::string_view> decomposed_ops() {
  std::vector<std::string_view> ops;
  for (const auto& [op, rewrite] : registry()) ops.push_back(op);
  return ops;
}

bool is_core_op(std::string_view op) { return std::ranges::binary_search(kCoreOps, op); }

std::span<const std::string_view> core_ops() { return kCoreOps; }

}  // namespace coil
