#pragma once
// A pool of threads that runs ranges. It is an object with an owner: no thread of it is known to
// the rest of the process, and two pools do not disturb each other.

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/ids.h"

namespace coil::runtime {

/// `worker` is in 0..threads-1 and no two chunks that run at the same time in one parallel_for have
/// the same: it can index scratch memory.
using RangeFunction = void (*)(void* context, i64 lo, i64 hi, int worker);

class ThreadPool {
 public:
  /// `threads` counts the caller, so 1 means that everything runs inline.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// A pool that a forked child, which has none of its threads, leaves alone.
  static std::shared_ptr<ThreadPool> create(int threads);
  /// Whether this is the process whose threads the pool has.
  bool is_own() const { return getpid() == process_; }

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls function(context, lo, hi, worker) over [begin, end) and returns when all is done.
  ///
  /// Each worker gets at most one contiguous chunk, of at least `grain` elements except the last;
  /// the chunks depend on the range, the grain and the number of threads alone. Safe from many
  /// threads at once: while the pool is busy, another caller (or a nested call) runs its whole
  /// range inline as worker 0. The first exception by chunk order is rethrown once all chunks are
  /// done.
  void parallel_for(i64 begin, i64 end, i64 grain, RangeFunction function, void* context);

  /// The same for anything callable as f(lo, hi, worker), without a copy or an allocation.
  template <class F>
  void parallel_for(i64 begin, i64 end, i64 grain, F&& f) {
    using Callable = std::remove_reference_t<F>;
    parallel_for(
        begin, end, grain,
        [](void* context, i64 lo, i64 hi, int worker) {
          (*static_cast<Callable*>(context))(lo, hi, worker);
        },
        const_cast<void*>(static_cast<const void*>(&f)));
  }

 private:
  struct Region {
    RangeFunction function = nullptr;
    void* context = nullptr;
    i64 begin = 0, end = 0;
    int chunks = 0;
  };

  void worker_loop(int worker);
  void run_chunk(int chunk) noexcept;
  void wake(u64 generation);
  u64 wait_for_region(u64 seen);
  void wait_until_done();

  const pid_t process_ = getpid();
  std::vector<std::thread> workers_;
  std::vector<std::exception_ptr> errors_;  // one slot a chunk
  std::atomic<bool> busy_{false};           // a caller's region runs
  Region region_;                           // written before generation_ is released

  // Each on its own cache line: workers read the first while finishing ones write the second.
  alignas(64) std::atomic<u64> generation_{0};
  alignas(64) std::atomic<int> unfinished_{0};
  alignas(64) std::atomic<int> sleepers_{0};
  std::mutex sleep_mutex_;
  std::condition_variable wake_up_;
  std::condition_variable done_;
  bool caller_sleeps_ = false;  // under sleep_mutex_
  std::atomic<bool> stop_{false};
};

}  // namespace coil::runtime
