#include "graph/info_check.h"

#include "base/check.h"

namespace coil {
namespace {

/// What is wrong, by a part of the function's name.
struct Row {
  std::string_view part, text;
};
constexpr Row kRows[] = {
    {"cholesky", "a matrix is not positive-definite, it has no Cholesky factor"},
    {"inv", "a matrix is singular, it has no inverse"},
    {"solve", "a matrix is singular, its system has no solution"},
    {"lu_factor", "a matrix is singular, a diagonal element of its factor U is zero"},
    {"ldl_factor", "a matrix is singular, a block of its factor D is zero"},
};

}  // namespace

std::string info_error(std::string_view api_name) {
  while (api_name.starts_with('_')) api_name.remove_prefix(1);
  std::string name(api_name);
  if (name.starts_with("linalg_")) name[6] = '.';
  for (const Row& row : kRows)
    if (name.find(row.part) != std::string::npos) return str("{}: {}", name, row.text);
  return str("{}: a matrix could not be factorised", name);
}

}  // namespace coil
