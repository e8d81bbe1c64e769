// What lowering makes of whole graphs: views without bodies, init, dynamic sizes, unsupported ops.

#include <gtest/gtest.h>

#include "graph/text.h"
#include "lower/lower.h"

namespace coil {
namespace {

Result<LoopProgram> lowered(std::string_view text) {
  const Result<Graph> graph = parse_graph(text, "test.coil");
  if (!graph.ok()) return graph.error();
  return lower(*graph, Options());
}

TEST(LowerProgram, AViewIsASubstitution) {
  const auto p = lowered(R"(graph g(%x: f32[s0, 768]) {
    size s0 in 1..64 hint 4
    %v = view(%x, [s0, 12, 64])
    %p = permute(%v, [1, 0, 2])
    %r = relu(%p)
    return %r
  })");
  ASSERT_TRUE(p.ok()) << p.error().message;
  ASSERT_TRUE(verify(*p).ok());
  EXPECT_EQ(p->bodies.size(), 1u);
  const std::string text = to_text(*p);
  EXPECT_NE(text.find("load f32 %x[i1, i0*64 + i2]"), std::string::npos) << text;
}

TEST(LowerProgram, ScaleAndShiftOfBatchNormRunOnce) {
  const auto p = lowered(R"(graph g(%x: f32[2, 6, 3, 4]) {
    const %w: f32[6] = seed 1
    const %b: f32[6] = seed 2
    const %m: f32[6] = seed 3
    const %v: f32[6] = seed 4
    %y, %s, %t = _native_batch_norm_legit_no_training(%x, %w, %b, %m, %v, 0.1, 1e-05)
    return %y
  })");
  ASSERT_TRUE(p.ok()) << p.error().message;
  ASSERT_TRUE(verify(*p).ok());
  ASSERT_EQ(p->bodies.size(), 2u);
  EXPECT_TRUE(p->bodies[BodyId(0)].init);
  EXPECT_FALSE(p->bodies[BodyId(1)].init);
}

TEST(LowerProgram, UnsupportedOpsAreListedAtOnce) {
  const auto p = lowered(R"(graph g(%x: f32[4]) {
    %a = eye(4, dtype=c64)
    %b = add.Tensor(%x, %a)
    %c = eye(4, dtype=c64)
    %d = add.Tensor(%b, %c)
    return %d
  })");
  ASSERT_FALSE(p.ok());
  EXPECT_NE(p.error().message.find("node a: eye is not supported"), std::string::npos)
      << p.error().message;
  EXPECT_NE(p.error().message.find("node c: eye is not supported"), std::string::npos);
}

}  // namespace
}  // namespace coil
