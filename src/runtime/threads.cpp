#include "runtime/threads.h"

#include <algorithm>
#include <chrono>

namespace coil::runtime {

namespace {

// How long a worker looks for the next region, and a caller for the end of its own, before it
// sleeps. Waking a sleeper costs 10 to 100 us, and the regions of one run follow each other
// closely.
constexpr std::chrono::microseconds kSpinTime{1500};
constexpr int kSpinsPerClockRead = 64;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Polls `ready` for kSpinTime at most; the last value it had. Gives the processor away now and
/// then, so that more threads than processors still make progress.
template <class Ready>
bool spin_until(Ready ready) {
  const auto start = std::chrono::steady_clock::now();
  for (int round = 0;; ++round) {
    for (int i = 0; i < kSpinsPerClockRead; ++i) {
      if (ready()) return true;
      pause_briefly();
    }
    if (std::chrono::steady_clock::now() - start > kSpinTime) return ready();
    if (round % 4 == 3) std::this_thread::yield();
  }
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  const int extra = std::max(threads, 1) - 1;
  errors_.resize(static_cast<size_t>(extra) + 1);
  workers_.reserve(static_cast<size_t>(extra));
  for (int i = 1; i <= extra; ++i) workers_.emplace_back([this, i] { worker_loop(i); });
}

std::shared_ptr<ThreadPool> ThreadPool::create(int threads) {
  // In a child, joining would never end, nor would destroying a condition that a lost thread waits
  // for.
  return {new ThreadPool(threads), [](ThreadPool* pool) {
            if (pool->is_own()) delete pool;
          }};
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  wake(generation_.load(std::memory_order_relaxed) + 1);
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::parallel_for(i64 begin, i64 end, i64 grain, RangeFunction function,
                              void* context) {
  const i64 count = end - begin;
  if (count <= 0) return;
  const i64 grains = grain <= 1 ? count : (count - 1) / grain + 1;
  const int chunks = static_cast<int>(std::min<i64>(threads(), grains));
  if (chunks == 1 || busy_.exchange(true, std::memory_order_acquire)) {
    return function(context, begin, end, 0);
  }

  region_ = {function, context, begin, end, chunks};
  unfinished_.store(threads() - 1, std::memory_order_relaxed);
  wake(generation_.load(std::memory_order_relaxed) + 1);
  run_chunk(0);
  wait_until_done();

  std::exception_ptr first;
  for (int i = 0; i < chunks; ++i) {
    std::exception_ptr error = std::exchange(errors_[static_cast<size_t>(i)], nullptr);
    if (error && !first) first = error;
  }
  busy_.store(false, std::memory_order_release);
  if (first) std::rethrow_exception(first);
}

void ThreadPool::run_chunk(int chunk) noexcept {
  const Region& r = region_;
  const i64 count = r.end - r.begin;
  const i64 size = count / r.chunks, larger = count % r.chunks;
  const i64 lo = r.begin + chunk * size + std::min<i64>(chunk, larger);
  const i64 hi = lo + size + (chunk < larger ? 1 : 0);
  try {
    r.function(r.context, lo, hi, chunk);
  } catch (...) {
    errors_[static_cast<size_t>(chunk)] = std::current_exception();
  }
}

void ThreadPool::worker_loop(int worker) {
  u64 seen = 0;
  while (true) {
    seen = wait_for_region(seen);
    if (stop_.load(std::memory_order_relaxed)) return;
    if (worker < region_.chunks) run_chunk(worker);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      std::lock_guard held(sleep_mutex_);
      if (caller_sleeps_) done_.notify_one();
    }
  }
}

/// Publishes the region, then wakes those who sleep. Both this and a worker that goes to sleep
/// write their own flag before they read the other's (sequentially consistent), so one sees the
/// other.
void ThreadPool::wake(u64 generation) {
  generation_.store(generation, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  std::lock_guard held(sleep_mutex_);
  wake_up_.notify_all();
}

u64 ThreadPool::wait_for_region(u64 seen) {
  const auto arrived = [&] { return generation_.load(std::memory_order_acquire) != seen; };
  if (!spin_until(arrived)) {
    std::unique_lock held(sleep_mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    wake_up_.wait(held, [&] { return generation_.load(std::memory_order_seq_cst) != seen; });
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }
  return generation_.load(std::memory_order_acquire);
}

void ThreadPool::wait_until_done() {
  const auto done = [&] { return unfinished_.load(std::memory_order_acquire) == 0; };
  if (spin_until(done)) return;
  std::unique_lock held(sleep_mutex_);
  caller_sleeps_ = true;
  done_.wait(held, done);
  caller_sleeps_ = false;
}

}  // namespace coil::runtime
