#include "prelude_avx512.inc"
#include "prelude_memory.inc"
