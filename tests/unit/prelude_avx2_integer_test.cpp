#include "prelude_avx2.inc"
#include "prelude_integer.inc"
