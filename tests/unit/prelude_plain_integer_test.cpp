#include "prelude_integer.inc"
#include "prelude_plain.inc"
