#include "templates/cpu/factor.h"

#include <mutex>
#include <optional>

namespace coil::templates {
namespace {

i64 worker_bytes(const runtime::FactorArgs& args) {
  return (runtime::factor_scratch_bytes(args) + 63) / 64 * 64;
}

/// The error of the first matrix that has one, whichever thread comes upon it first.
class FirstError {
 public:
  void add(i64 batch, const Error& error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!error_ || batch < batch_) {
      batch_ = batch;
      error_ = error;
    }
  }
  Status status() const { return error_ ? Status(*error_) : Status(Ok{}); }

 private:
  std::mutex mutex_;
  i64 batch_ = 0;
  std::optional<Error> error_;
};

}  // namespace

i64 factor_scratch_bytes(const runtime::FactorArgs& args, int threads) {
  return worker_bytes(args) * threads;
}

Status factor(const runtime::FactorArgs& args, runtime::ThreadPool& pool, void* scratch) {
  FirstError first;
  const i64 bytes = worker_bytes(args);
  pool.parallel_for(0, args.operands[0].shape[0], 1, [&](i64 lo, i64 hi, int worker) {
    std::byte* memory = static_cast<std::byte*>(scratch) + worker * bytes;
    for (i64 batch = lo; batch < hi; ++batch)
      if (const Status done = runtime::run_factor(args, batch, memory); !done.ok())
        first.add(batch, done.error());
  });
  return first.status();
}

}  // namespace coil::templates
