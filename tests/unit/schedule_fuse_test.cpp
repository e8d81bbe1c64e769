// Which bodies share a kernel, and the reasons why not.

#include <gtest/gtest.h>

#include "schedule/fuse.h"
#include "schedule/schedule.h"

namespace coil {
namespace {

LoopProgram parse(const std::string& lines) {
  Result<LoopProgram> program = parse_program("program p {\n" + lines + "\n}", "t");
  EXPECT_TRUE(program.ok()) << program.error().message;
  return program.ok() ? std::move(*program) : LoopProgram{};
}

std::string chain(const std::string& second) {
  return R"(
  buffer %x: f32[4, 8] input
  buffer %h: f32[4, 8]
  body first {
    dims i0 < 4, i1 < 8
    v0 = load f32 %x[i0, i1]
    v1 = neg v0
    store %h[i0, i1], v1
  }
)" + second;
}

/// The reason of the only decision, with "yes: " or "no: ".
std::string decision(const LoopProgram& program) {
  const Schedule s = schedule(program, Options{});
  EXPECT_EQ(s.decisions.size(), 1u);
  if (s.decisions.empty()) return "";
  return (s.decisions[0].yes ? "yes: " : "no: ") + s.decisions[0].reason;
}

TEST(Fuse, SamePoint) {
  const LoopProgram p = parse(chain(R"(
  buffer %y: f32[4, 8] output
  body second {
    dims j0 < 4, j1 < 8
    v0 = load f32 %h[j0, j1]
    v1 = abs v0
    store %y[j0, j1], v1
  })"));
  EXPECT_EQ(decision(p), "yes: same element; saves a read of %h");
  EXPECT_EQ(schedule(p, Options{}).groups.size(), 1u);
  Options unfused;
  ASSERT_TRUE(unfused.set("fuse", "off").ok());
  EXPECT_EQ(schedule(p, unfused).groups.size(), 2u);
}

TEST(Fuse, OtherPlace) {
  EXPECT_EQ(decision(parse(chain(R"(
  buffer %y: f32[4, 8] output
  body second {
    dims j0 < 4, j1 < 8
    v0 = load f32 %h[3 - j0, j1]
    store %y[j0, j1], v0
  })"))), "no: %h is read at another place than it is written");
}

TEST(Fuse, Reduction) {
  EXPECT_EQ(decision(parse(chain(R"(
  buffer %y: f32[4] output
  body second {
    dims j0 < 4 | reduce r0 < 8
    v0 = load f32 %h[j0, r0]
    v1 = reduce.sum v0 over r0 tree 1x1
    store %y[j0], v1
  })"))), "no: second is not pointwise");
}

TEST(Fuse, OtherExtent) {
  EXPECT_EQ(decision(parse(chain(R"(
  buffer %y: f32[2, 8] output
  body second {
    dims j0 < 2, j1 < 8
    v0 = load f32 %h[j0, j1]
    store %y[j0, j1], v0
  })"))), "no: dim 0 has extent 4 in one, 2 in the other");
}

}  // namespace
}  // namespace coil
