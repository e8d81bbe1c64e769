// Random programs: fused and unfused schedules and the interpreter give the same bits.
//
// COIL_RANDOM_PROGRAMS says how many programs run, COIL_RANDOM_SEED with which one to begin.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "random_program.h"
#include "schedule_check.h"
#include "shrink_program.h"

namespace coil {
namespace {

using schedule_check::check;
using schedule_check::Outcome;

u64 from_environment(const char* name, u64 otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// The first word of a difference: a smaller program must fail in the same way.
std::string kind_of(const std::string& difference) {
  return difference.substr(0, difference.find(':'));
}

TEST(ScheduleRandom, FusedEqualsUnfused) {
  const u64 count = from_environment("COIL_RANDOM_PROGRAMS", 300),
            first = from_environment("COIL_RANDOM_SEED", 1);
  schedule_run::Counts counts;
  int failures = 0;
  for (u64 seed = first; seed < first + count && failures < 5; ++seed) {
    const random_program::Text text = random_program::make(seed);
    const Outcome outcome = check(text.program, text.sizes);
    for (const auto& [name, n] : outcome.counts) counts[name] += n;
    if (outcome.difference.empty()) continue;
    ++failures;
    const std::string kind = kind_of(outcome.difference);
    const std::string small =
        !outcome.runs ? text.program
                      : shrink_program::shrink(text.program, [&](const std::string& smaller) {
                          const Outcome o = check(smaller, text.sizes);
                          return o.runs && !o.difference.empty() && kind_of(o.difference) == kind;
                        });
    const Outcome last = check(small, text.sizes);
    std::string values;
    for (const auto& [name, n] : text.sizes) values += str(" {} = {}", name, n);
    ADD_FAILURE() << "seed " << seed << ": " << outcome.difference
                  << "\nsmallest: " << last.difference << values << "\n"
                  << small;
  }
  for (const char* name : {"fused group",
                           "row of several stages",
                           "kept row",
                           "recomputed",
                           "recomputed under a mask",
                           "epilogue",
                           "neighbours of one read",
                           "fused view of another rank",
                           "stored and read in one group",
                           "memory taken over",
                           "partial write",
                           "made at init",
                           "several outputs",
                           "size of a call",
                           "tree of many lanes",
                           "tree of one lane",
                           "checked index",
                           "masked load",
                           "scan",
                           "closing launch",
                           "rows split over threads"}) {
    EXPECT_TRUE(counts[name] > 0 || count < 300) << name << " never arose";
    RecordProperty(name, std::to_string(counts[name]));
    if (std::getenv("COIL_RANDOM_PROGRAMS"))
      printf("%8lld %s\n", static_cast<long long>(counts[name]), name);
  }
}

}  // namespace
}  // namespace coil
