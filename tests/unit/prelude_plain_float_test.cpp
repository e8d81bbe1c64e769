#include "prelude_float.inc"
#include "prelude_plain.inc"
