#pragma once
// Which ops of ATen lower/ takes as they are: the rows of pointwise.def with a formula, and of
// lowered.def. Here, since passes/ must know and stands below lower/.

#include <span>
#include <string_view>

namespace coil::ops {

bool is_lowered(std::string_view full_name);
/// All of them, sorted.
std::span<const std::string_view> lowered_ops();

}  // namespace coil::ops
