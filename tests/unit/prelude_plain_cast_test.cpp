#include "prelude_plain.inc"
#include "prelude_cast.inc"
