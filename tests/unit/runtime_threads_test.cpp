#include "runtime/threads.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <stdexcept>

namespace coil::runtime {
namespace {

TEST(ThreadPool, EveryIndexOnceOnAnyNumberOfThreads) {
  for (int threads : {0, 1, 2, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), std::max(threads, 1));
    for (i64 count : {0, 1, 2, 6, 7, 8, 1000}) {
      std::vector<int> hits(static_cast<size_t>(count), 0);
      pool.parallel_for(5, 5 + count, 1, [&](i64 lo, i64 hi, int worker) {
        EXPECT_LT(worker, pool.threads());
        for (i64 i = lo; i < hi; ++i) ++hits[static_cast<size_t>(i - 5)];
      });
      EXPECT_EQ(std::accumulate(hits.begin(), hits.end(), i64{0}), count);
      for (int h : hits) EXPECT_EQ(h, 1);
    }
  }
}

TEST(ThreadPool, ChunksDependOnRangeAndGrainAlone) {
  ThreadPool pool(4);
  const auto chunks = [&](i64 count, i64 grain) {
    std::vector<i64> sizes(4, 0);
    pool.parallel_for(0, count, grain, [&](i64 lo, i64 hi, int worker) {
      sizes[static_cast<size_t>(worker)] = hi - lo;
    });
    return sizes;
  };
  EXPECT_EQ(chunks(10, 1), (std::vector<i64>{3, 3, 2, 2}));
  EXPECT_EQ(chunks(10, 4), (std::vector<i64>{4, 3, 3, 0}));
  EXPECT_EQ(chunks(10, 10), (std::vector<i64>{10, 0, 0, 0}));
  EXPECT_EQ(chunks(3, 1), (std::vector<i64>{1, 1, 1, 0}));
}

TEST(ThreadPool, ManyShortRegionsAndSleepsBetween) {
  ThreadPool pool(3);
  std::vector<i64> sums(3, 0);
  for (int i = 0; i < 3000; ++i) {
    pool.parallel_for(0, 30, 1, [&](i64 lo, i64 hi, int worker) {
      sums[static_cast<size_t>(worker)] += hi - lo;
    });
    if (i % 1000 == 500) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(sums[0] + sums[1] + sums[2], 90000);
}

TEST(ThreadPool, SlowWorkerIsAwaited) {
  ThreadPool pool(2);
  std::vector<int> hits(2, 0);
  pool.parallel_for(0, 2, 1, [&](i64 lo, i64, int) {
    if (lo == 1) std::this_thread::sleep_for(std::chrono::milliseconds(8));
    hits[static_cast<size_t>(lo)] = 1;
  });
  EXPECT_EQ(hits, (std::vector<int>{1, 1}));
}

TEST(ThreadPool, NestedCallsRunInline) {
  ThreadPool pool(4);
  std::atomic<i64> sum{0};
  pool.parallel_for(0, 8, 1, [&](i64 lo, i64 hi, int) {
    for (i64 i = lo; i < hi; ++i) {
      pool.parallel_for(0, 10, 1, [&](i64 l, i64 h, int worker) {
        EXPECT_EQ(worker, 0);
        EXPECT_EQ(h - l, 10);
        sum += h - l;
      });
    }
  });
  EXPECT_EQ(sum.load(), 80);
}

TEST(ThreadPool, CallersFromManyThreads) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  std::vector<i64> totals(6, 0);
  for (size_t c = 0; c < totals.size(); ++c) {
    callers.emplace_back([&, c] {
      for (int round = 0; round < 300; ++round) {
        i64 parts[3] = {0, 0, 0};
        pool.parallel_for(0, 100, 1, [&](i64 lo, i64 hi, int worker) {
          for (i64 i = lo; i < hi; ++i) parts[worker] += i;
        });
        totals[c] += parts[0] + parts[1] + parts[2];
      }
    });
  }
  for (std::thread& t : callers) t.join();
  for (i64 total : totals) EXPECT_EQ(total, 300 * 4950);
}

TEST(ThreadPool, FirstExceptionByChunkIsRethrownAndThePoolLives) {
  ThreadPool pool(4);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> ran{0};
    try {
      pool.parallel_for(0, 4, 1, [&](i64 lo, i64, int) {
        ++ran;
        if (lo >= 1) throw std::runtime_error(std::to_string(lo));
      });
      FAIL() << "nothing thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "1");
    }
    EXPECT_EQ(ran.load(), 4);
  }
  ThreadPool inline_pool(1);
  EXPECT_THROW(inline_pool.parallel_for(0, 4, 1, [](i64, i64, int) { throw 1; }), int);
}

}  // namespace
}  // namespace coil::runtime
