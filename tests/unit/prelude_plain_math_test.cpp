#include "prelude_plain.inc"
#include "prelude_math.inc"
