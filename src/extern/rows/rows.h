#pragma once
// What the libraries take of structured nodes.

#include "candidates/candidate.h"

namespace coil {

/// Adds candidates `onednn` and `openblas`. A library is opened and proved when the first node asks
/// for it; where its option is off, or it is refused, its candidate refuses all nodes with the
/// reason.
void add_library_candidates(Candidates& candidates, const Options& options);

}  // namespace coil
