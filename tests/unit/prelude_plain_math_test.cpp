#include "prelude_math.inc"
#include "prelude_plain.inc"
