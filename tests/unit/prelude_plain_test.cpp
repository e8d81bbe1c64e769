// The prelude without machine instructions, as `-O isa=plain` compiles it.
#define COIL_FORCE_PLAIN
#define COIL_KERNEL_NAMESPACE coil_kernel_plain
#define SUITE PreludePlain
#define PRELUDE_RUNS true
#include "prelude_body.h"
