// What may happen to a function that runs in a child process.

#include "base/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <stdexcept>

namespace coil {
namespace {

std::string reason(const std::function<Status()>& f, int limit_ms = 20'000) {
  const Status status = run_in_child(f, limit_ms);
  return status.ok() ? "" : status.error().message;
}

TEST(RunInChild, HandsOverWhatTheFunctionReturned) {
  EXPECT_EQ(reason([]() -> Status { return Ok{}; }), "");
  EXPECT_EQ(reason([]() -> Status { return error("no use"); }), "no use");
  EXPECT_EQ(reason([]() -> Status { throw std::runtime_error("thrown"); }), "thrown");
  const std::string lengthy(1 << 18, 'x');  // more than a pipe holds
  EXPECT_EQ(reason([&]() -> Status { return Error{lengthy}; }), lengthy);
}

TEST(RunInChild, SurvivesWhatTheFunctionDoes) {
  EXPECT_EQ(reason([]() -> Status {
              raise(SIGSEGV);
              return Ok{};
            }),
            "was ended by signal 11");
  EXPECT_EQ(reason([]() -> Status { _exit(7); }), "ended the process with exit code 7");
  EXPECT_EQ(reason([]() -> Status { _exit(0); }), "ended the process with exit code 0");
  EXPECT_EQ(reason(
                []() -> Status {
                  while (true) pause();
                },
                200),
            "gave no answer in 0.2 s");
}

TEST(RunInChild, ChangesNothingHere) {
  int value = 1;
  EXPECT_EQ(reason([&]() -> Status {
              value = 2;
              return Ok{};
            }),
            "");
  EXPECT_EQ(value, 1);
}

}  // namespace
}  // namespace coil
