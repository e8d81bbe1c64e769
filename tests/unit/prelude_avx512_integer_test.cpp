#include "prelude_avx512.inc"
#include "prelude_integer.inc"
