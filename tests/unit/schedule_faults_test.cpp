// Programs that a schedule once got wrong, each the smallest one that showed it.

#include <gtest/gtest.h>

#include "schedule_check.h"

namespace coil {
namespace {

std::string difference(const std::string& lines) {
  const schedule_check::Outcome outcome =
      schedule_check::check("program p {" + lines + "\n}\n", {});
  return outcome.runs ? outcome.difference : "does not run: " + outcome.difference;
}

TEST(ScheduleFaults, ScanBesideLanesOnItsRow) {
  EXPECT_EQ(difference(R"(
  buffer %x: f32[48] input
  buffer %a: f32[] output
  buffer %b: f32[48] output
  body total {
    dims | reduce i0 < 48
    v0 = load f32 %x[i0]
    v1 = reduce.sum v0 over i0 tree 16x2
    store %a[], v1
  }
  body running {
    dims | scan i0 < 48
    v0 = load f32 %x[i0]
    v1 = scan.sum v0 over i0
    store %b[i0], v1
  })"),
            "");
}

TEST(ScheduleFaults, RowOfOnePointReadBehindTheReduction) {
  EXPECT_EQ(difference(R"(
  buffer %x: f32[17, 1] input
  buffer %h: f32[17, 1]
  buffer %y: f32[17] output
  body running {
    dims i0 < 17 | scan i1 < 1
    v0 = load f32 %x[i0, i1]
    v1 = scan.max v0 over i1
    store %h[i0, i1], v1
  }
  body total {
    dims i0 < 17 | reduce i1 < 1
    v0 = load f32 %x[i0, i1]
    v1 = reduce.sum v0 over i1 tree 1x4
    v2 = load f32 %h[i0, 0]
    v3 = add v1, v2
    store %y[i0], v3
  })"),
            "");
}

TEST(ScheduleFaults, AxesOfOneName) {
  EXPECT_EQ(difference(R"(
  buffer %x: f32[4, 15, 4] input
  buffer %h: f32[60, 4] output
  buffer %y: f32[60] output
  body first {
    dims i0 < 15, i1 < 4, i2 < 4
    v0 = load f32 %x[i1, i0, i2]
    v1 = exp v0
    store %h[i0*4 + i1, i2], v1
  }
  body second {
    dims i0 < 60 | reduce i1 < 4
    v0 = load f32 %h[i0, i1]
    v1 = reduce.sum v0 over i1 tree 16x4
    store %y[i0], v1
  })"),
            "");
}

TEST(ScheduleFaults, NarrowFloatsUnderAMask) {
  EXPECT_EQ(difference(R"(
  buffer %x: bf16[16] input
  buffer %h: bf16[16]
  buffer %y: bf16[16] output
  body first {
    dims i0 < 16
    v0 = load bf16 %x[i0]
    v1 = cast f32 v0
    v2 = neg v1
    v3 = cast bf16 v2
    store %h[i0], v3
  }
  body second {
    dims i0 < 16
    v0 = value i0 - 1
    v1 = const i64 0
    v2 = ge v0, v1
    v3 = load bf16 %h[i0 - 1] if v2 else 2
    store %y[i0], v3
  })"),
            "");
}

/// `wide` comes to wait for `dear`, which is younger than `other`; `other` waits for `wide` itself.
TEST(ScheduleFaults, GroupThatComesToWaitForAYoungerOne) {
  EXPECT_EQ(difference(R"(
  buffer %x: f32[16, 2] input
  buffer %t: f32[4, 6] input
  buffer %at: i64[] output
  buffer %other: f32[18] output
  buffer %dear: f32[4] output
  buffer %wide: f32[16, 2] output
  buffer %y: f32[4] output
  body largest {
    dims | reduce i0 < 16, i1 < 2
    v0 = load f32 %x[i0, i1]
    v1, v2 = reduce.argmax v0 over i0, i1 tree 1x1
    v3 = const i64 4
    v4 = remainder v2, v3
    store %at[], v4
  }
  body picked {
    dims i0 < 3, i1 < 6
    v0 = load i64 %at[]
    n0 = index v0 in 0..3 assert
    v1 = load f32 %t[n0, i1]
    store %other[i0 + i1*3], v1
  }
  body dear {
    dims i0 < 4
    v0 = const f32 1
    v1 = exp v0
    v2 = sin v1
    v3 = const f32 3
    v4 = mul v2, v3
    store %dear[i0], v4
  }
  body spread {
    dims i0 < 16, i1 < 2
    v0 = load i64 %at[]
    n1 = index v0 in 0..3 assert
    v1 = load f32 %dear[n1]
    store %wide[i0, i1], v1
  }
  body last {
    dims i0 < 4
    v0 = load f32 %dear[i0]
    v1 = load f32 %other[i0*2]
    v2 = add v0, v1
    store %y[i0], v2
  })"),
            "");
}

/// %b cannot lie where %a lies: %turned is computed again from %a while %b is written.
TEST(ScheduleFaults, MemoryTakenOverBesideARecomputedReader) {
  EXPECT_EQ(difference(R"(
  buffer %x: f32[34] input
  buffer %a, %turned: f32[34]
  buffer %b: f32[34] starts %a
  buffer %y: f32[34] output
  body first {
    dims i0 < 34
    v0 = load f32 %x[i0]
    v1 = neg v0
    store %a[i0], v1
  }
  body turn {
    dims i0 < 34
    v0 = load f32 %a[33 - i0]
    store %turned[i0], v0
  }
  body write {
    dims i0 < 34
    v0 = load f32 %turned[i0]
    store %b[i0], v0
  }
  body last {
    dims i0 < 34
    v0 = load f32 %b[i0]
    store %y[i0], v0
  })"),
            "");
}

/// The order of sums into one place stays: no row kernel goes through the points in another one.
TEST(ScheduleFaults, StoresThatMeetBesideAReductionOfTheirRow) {
  EXPECT_EQ(difference(R"(
  buffer %x: f32[20, 6] input
  buffer %n: i64[20, 6] input
  buffer %z: f32[3] input
  buffer %b: f32[3] starts %z output
  buffer %y: f32[20] output
  body scatter {
    dims i0 < 20, i1 < 6
    v0 = load f32 %x[i0, i1]
    v1 = load i64 %n[i0, i1]
    v2 = const i64 3
    v3 = remainder v1, v2
    n0 = index v3 in 0..2 assert
    store.sum %b[n0], v0
  }
  body total {
    dims i0 < 20 | reduce i1 < 6
    v0 = load f32 %x[i0, i1]
    v1 = reduce.sum v0 over i1 tree 1x4
    store %y[i0], v1
  })"),
            "");
}

TEST(ScheduleFaults, StoresThatMeetBesideAViewOfAnotherOrder) {
  EXPECT_EQ(difference(R"(
  buffer %x: f32[120] input
  buffer %n: i64[120] input
  buffer %z: f32[3] input
  buffer %b: f32[3] starts %z output
  buffer %y: f32[6, 20] output
  body scatter {
    dims i0 < 120
    v0 = load f32 %x[i0]
    v1 = load i64 %n[i0]
    v2 = const i64 3
    v3 = remainder v1, v2
    n0 = index v3 in 0..2 assert
    store.sum %b[n0], v0
  }
  body turned {
    dims i0 < 6, i1 < 20
    v0 = load f32 %x[i0 + 6*i1]
    v1 = exp v0
    store %y[i0, i1], v1
  })"),
            "");
}

/// Row after row, though lanes could take sixteen rows at once.
TEST(ScheduleFaults, StoresThatMeetAlongAScan) {
  EXPECT_EQ(difference(R"(
  buffer %x: f32[20, 6] input
  buffer %n: i64[20, 6] input
  buffer %z: f32[3] input
  buffer %b: f32[3] starts %z output
  body scatter {
    dims i0 < 20 | scan i1 < 6
    v0 = load f32 %x[i0, i1]
    v9 = scan.sum v0 over i1
    v1 = load i64 %n[i0, i1]
    v2 = const i64 3
    v3 = remainder v1, v2
    n0 = index v3 in 0..2 assert
    store.sum %b[n0], v9
  })"),
            "");
}

}  // namespace
}  // namespace coil
