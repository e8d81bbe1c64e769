#include "prelude_cast.inc"
#include "prelude_plain.inc"
