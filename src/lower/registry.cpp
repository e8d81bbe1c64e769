#include "lower/registry.h"

#include <algorithm>

#include "lower/pointwise.h"

namespace coil::lowering {
namespace {

struct Row {
  std::string_view op;
  LowerFn lower;
};

constexpr Row kRows[] = {
#define LOWERED(op, family) {op, lower_##family},
#include "ops/lowered.def"
#undef LOWERED
};

constexpr LowerFn kTakeComplex[] = {
    lower_pointwise, lower_view,       lower_split,     lower_index,      lower_index_put,
    lower_cat,       lower_flip,       lower_roll,      lower_repeat,     lower_full,
    lower_empty,     lower_prod,       lower_cumprod,   lower_logsumexp,  lower_logcumsumexp,
    lower_fft,       lower_cholesky,   lower_lu_factor, lower_lu_unpack,  lower_lu_solve,
    lower_qr,        lower_ldl_factor, lower_ldl_solve, lower_reflectors, lower_solve_triangular,
    lower_eigh,      lower_eig,        lower_svd,       lower_matrix_exp, lower_bitcast_view,
};

}  // namespace

bool takes_complex(LowerFn lower) {
  return std::ranges::find(kTakeComplex, lower) != std::end(kTakeComplex);
}

LowerFn find_lowering(std::string_view op) {
  if (pointwise_formula(op)) return lower_pointwise;
  for (const Row& row : kRows)
    if (row.op == op) return row.lower;
  return nullptr;
}

}  // namespace coil::lowering
