#include "prelude_avx2.inc"
#include "prelude_float.inc"
