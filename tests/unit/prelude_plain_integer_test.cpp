#include "prelude_plain.inc"
#include "prelude_integer.inc"
