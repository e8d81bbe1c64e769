#include "prelude_plain.inc"
#include "prelude_memory.inc"
