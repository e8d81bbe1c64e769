#pragma once
// Pieces of the text form of level 1 that the printer, the parser and the verifier share.

#include <string>
#include <string_view>

#include "graph/text_names.h"
#include "loop/program.h"

namespace coil::loop_text {

/// "sum", ... of a combining store; "" for None.
std::string_view combine_name(StoreCombine combine);
std::optional<StoreCombine> combine_from_name(std::string_view name);
/// "assert", "wrap", "clamp".
std::string_view policy_name(IndexPolicy policy);
std::optional<IndexPolicy> policy_from_name(std::string_view name);
/// "768", "1e-05", "-inf", "true": reads back as the same value where the dtype is known.
std::string scalar_text(const ops::Scalar& value);
Result<ops::Scalar> parse_scalar(TextReader& in, DType dtype);
/// Whether the buffer lies densely in row-major order.
bool is_contiguous(sym::Arena& syms, const Buffer& buffer);
/// Whether the layout has one entry with factor 1 for each dim, in order.
bool is_strided(const Layout& layout, std::size_t ndim);
/// Whether all outputs are whole, contiguous, distinct temporaries in the order of the buffers:
/// then the word `output` at the buffers says it all.
bool outputs_are_marked(const LoopProgram& program);
/// Whether inputs are buffers in order, named as their buffers are: then no `inputs` line is
/// needed.
bool inputs_are_plain(const LoopProgram& program);
/// The default of Layout::open: temporaries that are no output.
Side<BufferId, bool> open_by_default(const LoopProgram& program);

}  // namespace coil::loop_text
