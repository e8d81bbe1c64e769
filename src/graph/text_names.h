#pragma once
// Spellings that the printer and the parser of level 0 share.

#include <string_view>

#include "graph/graph.h"

namespace coil {

/// In the order of MemoryFormat.
inline constexpr std::string_view kFormatNames[] = {"contiguous_format", "preserve_format",
                                                    "channels_last", "channels_last_3d"};
std::string_view format_name(MemoryFormat format);

/// Whether % and the text are one Name token.
bool is_name(std::string_view text);
/// Whether the text is one Word token, and so needs no quotes.
bool is_word(std::string_view text);
/// The same of a word with a line number: model.py:12.
bool is_place(std::string_view text);

}  // namespace coil
