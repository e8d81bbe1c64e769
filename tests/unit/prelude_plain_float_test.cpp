#include "prelude_plain.inc"
#include "prelude_float.inc"
