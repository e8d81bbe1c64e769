#pragma once
// What resampling and its gradients share: which input elements an output element is made of.

#include <optional>
#include <vector>

#include "lower/body_builder.h"
#include "lower/registry.h"

namespace coil::lowering {

/// One input position along a dim and its weight.
struct Tap {
  Expr index;
  Val weight;
};

struct Resample {
  Access in;                                  // of a gradient: the extents of the input alone
  std::size_t lead = 2;                       // batch and channel dims
  std::vector<std::optional<double>> scales;  // the user's factor of each spatial dim
  bool align_corners = false;
  DType dtype = DType::f32;  // of positions and weights
};
/// The arguments of the present op, whose input is `in`.
Resample resample_args(const Args& args, Access in, DType dtype);

/// Input positions per output position along spatial dim k.
Val step_of(BodyBuilder& b, const Resample& r, std::size_t k, Expr out, DType dtype);
/// An element position as an index; outside it is the nearest element.
Expr clamped(BodyBuilder& b, Val position, Expr extent);

using MakeTaps = std::vector<Tap> (*)(BodyBuilder& b, const Resample& r, std::size_t k, Expr at,
                                      Expr out);
/// The taps along spatial dim k of output position `at` of `out`.
std::vector<Tap> linear_taps(BodyBuilder& b, const Resample& r, std::size_t k, Expr at, Expr out);
std::vector<Tap> cubic_taps(BodyBuilder& b, const Resample& r, std::size_t k, Expr at, Expr out);
std::vector<Tap> nearest_taps(BodyBuilder& b, const Resample& r, std::size_t k, Expr at, Expr out);
std::vector<Tap> nearest_exact_taps(BodyBuilder& b, const Resample& r, std::size_t k, Expr at,
                                    Expr out);
MakeTaps taps_of(std::string_view op);

/// Keys, "Cubic convolution interpolation for digital image processing" (1981): the weight at
/// distance x in 0..1, and in 1..2, for his parameter a.
Val cubic_near(BodyBuilder& b, Val x, double a);
Val cubic_far(BodyBuilder& b, Val x, double a);
inline constexpr double kCubicSharp = -0.75, kCubicAntialias = -0.5;

/// Resampling that goes dim by dim with tables of weights: antialiased, and of u8 images.
Status lower_separably(Lowering& l, const Node& node, const Resample& r);

}  // namespace coil::lowering
