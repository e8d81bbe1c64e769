// The table of all decompositions, and which ops are left alone.

#include <map>

#include "graph/rules.h"
#include "ops/lowered.h"
#include "passes/composite.h"

namespace coil {
namespace {

using Registry = std::map<std::string_view, Decomposition, std::less<>>;

const Registry& registry() {
  static const Registry kRows = [] {
    Registry rows;
    for (std::span<const DecompositionRow> family :
         {matrix_decompositions(),    einsum_decompositions(),        conv_decompositions(),
          norm_decompositions(),      view_decompositions(),          split_decompositions(),
          create_decompositions(),    loss_decompositions(),          pointwise_decompositions(),
          reduce_decompositions(),    index_decompositions(),         scatter_decompositions(),
          segment_decompositions(),   embedding_bag_decompositions(), unique_decompositions(),
          pool_decompositions(),      attention_decompositions(),     linalg_decompositions(),
          histogram_decompositions(), distance_decompositions(),      random_decompositions(),
          fft_decompositions(),       stft_decompositions(),          grouped_decompositions()}) {
      for (const DecompositionRow& row : family) {
        const bool added = rows.emplace(row.op, row.rewrite).second;
        COIL_CHECK(added, "two decompositions of {}", row.op);
        COIL_CHECK(ops::find_schema(row.op).has_value(), "a decomposition of {}, which is no op",
                   row.op);
      }
    }
    for (std::string_view line : ops::schema_lines()) {
      const std::string_view op = line.substr(0, line.find('('));
      if (const Decomposition copy = view_copy_of(op)) rows.emplace(op, copy);
    }
    return rows;
  }();
  return kRows;
}

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

bool is_core_op(std::string_view op) {
  // Their rows are for masks, for dtypes that are computed in f32, and for dropout.
  if (op == "index.Tensor" || op == "index_put" || op == "scaled_dot_product_attention" ||
      may_compute_in_f32(op))
    return true;
  return is_own_op(op) || (ops::is_lowered(op) && find_decomposition(op) == nullptr);
}

}  // namespace coil
