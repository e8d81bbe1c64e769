#pragma once
// What every generated kernel includes. README.md says what is here.

#include "60_memory.h"
#include "80_math_rare.h"
