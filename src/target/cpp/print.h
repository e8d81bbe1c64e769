#pragma once
// Prints a kernel as C++ over the prelude. The kernel decides everything; this only spells.

#include <string>

#include "kernel/kernel.h"

namespace coil::cpp {

/// One function, `extern "C" void NAME(void* const* buffers, const i64* symbols, const f64*
/// scalars, i64 lo, i64 hi, Fault* fault)`, which does the units lo..hi-1 of the kernel's work. The
/// text does not depend on names, places or the instruction set, so equal kernels print equal text.
std::string print_kernel(const Kernel& kernel, const std::string& function_name);

}  // namespace coil::cpp
