#include "ops/series.h"

namespace coil::ops {
namespace {

namespace table {
#define SERIES(name, ...) constexpr double name[] = {__VA_ARGS__};
#include "ops/series.def"
#undef SERIES
}  // namespace table

struct Series {
  std::string_view name;
  std::span<const double> coefficients;
};
constexpr Series kSeries[] = {
#define SERIES(name, ...) {#name, table::name},
#include "ops/series.def"
#undef SERIES
};

}  // namespace

std::span<const double> find_series(std::string_view name) {
  for (const Series& series : kSeries)
    if (series.name == name) return series.coefficients;
  return {};
}

}  // namespace coil::ops
