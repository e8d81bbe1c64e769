// The prelude with AVX2, FMA and F16C. g++ defines the macros that go with a target pragma; clang
// does not, so there the file needs the flags.
#define COIL_KERNEL_NAMESPACE coil_kernel_avx2
#define SUITE PreludeAvx2
#include <gtest/gtest.h>  // and what it includes: before the pragma, which is for the prelude

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/dtype.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define PRELUDE_RUNS \
  (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#include "prelude_body.h"
#pragma GCC pop_options
#elif defined(__AVX2__) && defined(__FMA__)
#define PRELUDE_RUNS true
#include "prelude_body.h"
#endif
