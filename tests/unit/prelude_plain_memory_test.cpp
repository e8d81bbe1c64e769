#include "prelude_memory.inc"
#include "prelude_plain.inc"
