#pragma once
// Elements of constants as text, and the random numbers of `seed N`.

#include <span>
#include <string>

#include "base/dtype.h"
#include "base/result.h"
#include "base/text.h"
#include "graph/storage.h"

namespace coil {

/// One element as text that reads back as the same bits, NaN payloads apart: 0.1, -3, true, (1,
/// 0.5).
std::string element_text(DType dtype, const std::byte* element);
/// Reads one element into `out`, of size_of(dtype) bytes. An Error where it does not fit the dtype.
Status read_element(TextReader& in, DType dtype, std::byte* out);
/// An Inline storage that owns a copy of these bytes.
Storage inline_storage(std::span<const std::byte> bytes);
/// `count` elements from `seed`: normal numbers of mean 0 and deviation 1 for floats, each part of
/// complex ones, 0..9 for integers, both values for bools. SplitMix64 and the method of Box and
/// Muller (1958); the same on every machine up to the last digit of log and cos.
Storage seeded_storage(DType dtype, u64 seed, i64 count);

}  // namespace coil
