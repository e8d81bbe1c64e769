#pragma once
// What every generated kernel includes. README.md says what is here.

#include "90_kernel.h"
