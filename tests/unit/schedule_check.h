#pragma once
// Whether the schedules of a program, fused and unfused, give the bits that the interpreter gives.

#include <map>
#include <string>

#include "schedule_run.h"

namespace coil::schedule_check {

using Sizes = std::map<std::string, i64>;

struct Outcome {
  bool runs = false;            // the text is a program, and the interpreter runs it
  std::string difference;       // or why a schedule does not run; "" where all agree
  schedule_run::Counts counts;  // of the fused run
};

/// `sizes` gives each size that is not from data a value. Inputs depend on their names only. NaN
/// equals NaN.
Outcome check(const std::string& program, const Sizes& sizes);

}  // namespace coil::schedule_check
