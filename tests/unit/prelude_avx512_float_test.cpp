#include "prelude_avx512.inc"
#include "prelude_float.inc"
