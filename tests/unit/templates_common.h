#pragma once
// Arrays of any dtype for the tests of prebuilt kernels, read and written as doubles.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "base/dtype.h"
#include "base/machine.h"
#include "runtime/threads.h"
#include "templates/cpu/table.h"

namespace coil::templates {

class Array {
 public:
  Array(DType dtype, i64 count)
      : dtype_(dtype), bytes_(static_cast<size_t>(count * size_of(dtype)), 0) {}

  DType dtype() const { return dtype_; }
  i64 size() const { return static_cast<i64>(bytes_.size()) / size_of(dtype_); }
  void* data() { return bytes_.data(); }
  const void* data() const { return bytes_.data(); }
  const std::vector<u8>& bytes() const { return bytes_; }

  double get(i64 i) const {
    switch (dtype_) {
      case DType::u8:
      case DType::b8: return at<u8>(i);
      case DType::i8: return at<i8>(i);
      case DType::i16: return at<i16>(i);
      case DType::i32: return at<i32>(i);
      case DType::i64: return static_cast<double>(at<i64>(i));
      case DType::u16: return at<u16>(i);
      case DType::u32: return at<u32>(i);
      case DType::u64: return static_cast<double>(at<u64>(i));
      case DType::f16: return f16_to_f32(at<u16>(i));
      case DType::bf16: return bf16_to_f32(at<u16>(i));
      case DType::f32: return at<float>(i);
      case DType::f64: return at<double>(i);
      case DType::f8e4m3fn: return f8e4m3fn_to_f32(at<u8>(i));
      case DType::f8e5m2: return f8e5m2_to_f32(at<u8>(i));
      case DType::c32:
      case DType::c64:
      case DType::c128: break;
    }
    std::abort();
  }
  void set(i64 i, double x) {
    switch (dtype_) {
      case DType::u8:
      case DType::b8:
      case DType::i8: return put<u8>(i, u8(i64(x)));
      case DType::i16:
      case DType::u16: return put<u16>(i, u16(i64(x)));
      case DType::i32:
      case DType::u32: return put<u32>(i, u32(i64(x)));
      case DType::i64:
      case DType::u64: return put<u64>(i, u64(i64(x)));
      case DType::f16: return put<u16>(i, f32_to_f16(float(x)));
      case DType::bf16: return put<u16>(i, f32_to_bf16(float(x)));
      case DType::f32: return put<float>(i, float(x));
      case DType::f64: return put<double>(i, x);
      case DType::f8e4m3fn: return put<u8>(i, f32_to_f8e4m3fn(float(x)));
      case DType::f8e5m2: return put<u8>(i, f32_to_f8e5m2(float(x)));
      case DType::c32:
      case DType::c64:
      case DType::c128: break;
    }
    std::abort();
  }
  /// Floats in [-1, 1], integers in -100..100 (0..100 unsigned).
  void fill(u32 seed) {
    std::mt19937 random(seed);
    for (i64 i = 0; i < size(); ++i) {
      const double unit = double(random()) / 4294967295.0;
      if (is_float(dtype_))
        set(i, unit * 2 - 1);
      else if (is_bool(dtype_))
        set(i, unit < 0.6);
      else
        set(i, std::floor(is_unsigned(dtype_) ? unit * 100 : unit * 200 - 100));
    }
  }

 private:
  template <class T>
  T at(i64 i) const {
    T r;
    std::memcpy(&r, &bytes_[static_cast<size_t>(i) * sizeof(T)], sizeof(T));
    return r;
  }
  template <class T>
  void put(i64 i, T x) {
    std::memcpy(&bytes_[static_cast<size_t>(i) * sizeof(T)], &x, sizeof(T));
  }
  DType dtype_;
  std::vector<u8> bytes_;
};

/// 64-byte aligned memory full of NaN patterns: nothing may be read before it is written.
class Scratch {
 public:
  explicit Scratch(i64 bytes) : bytes_(static_cast<size_t>(bytes + 64), 0xff) {}
  void* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    return bytes_.data() + (64 - address % 64) % 64;
  }

 private:
  std::vector<u8> bytes_;
};

/// Takes the blocks that an epilogue sees, each element exactly once, as elements of `out`.
class BlockSink {
 public:
  BlockSink(DType accumulator, DType out, i64 batch, i64 rows, i64 cols)
      : accumulator_(accumulator),
        rows_(rows),
        cols_(cols),
        values_(out, batch * rows * cols),
        calls_(static_cast<size_t>(batch * rows * cols)) {}

  template <class Args>
  void attach(Args* args) {
    args->epilogue = take;
    args->epilogue_context = this;
  }
  double get(i64 batch, i64 row, i64 col) const { return values_.get(index(batch, row, col)); }
  void check_each_once() const {
    for (int calls : calls_) ASSERT_EQ(calls, 1);
  }

 private:
  i64 index(i64 batch, i64 row, i64 col) const { return (batch * rows_ + row) * cols_ + col; }
  /// The kernel calls it from several threads, for different elements.
  static void take(void* context, i64 batch, i64 row0, i64 rows, i64 col0, i64 cols, void* block,
                   i64 ld) {
    BlockSink& sink = *static_cast<BlockSink*>(context);
    for (i64 i = 0; i < rows; ++i) {
      for (i64 j = 0; j < cols; ++j) {
        Array one(sink.accumulator_, 1);
        std::memcpy(one.data(),
                    static_cast<char*>(block) + (i * ld + j) * size_of(sink.accumulator_),
                    static_cast<size_t>(size_of(sink.accumulator_)));
        const i64 to = sink.index(batch, row0 + i, col0 + j);
        sink.values_.set(to, one.get(0));
        ++sink.calls_[static_cast<size_t>(to)];
      }
    }
  }

  DType accumulator_;
  i64 rows_, cols_;
  Array values_;
  std::vector<int> calls_;
};

/// The instruction sets that this machine can run.
inline std::vector<Isa> runnable_isas() {
  std::vector<Isa> isas = {Isa::Plain};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) isas.push_back(Isa::Avx2);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
    isas.push_back(Isa::Avx512);
  }
#elif defined(__aarch64__)
  isas.push_back(Isa::Neon);
#endif
  return isas;
}

/// What one rounding to `dtype` may add to a relative error.
inline double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return 1e-14;
    case DType::f32: return 4e-6;
    case DType::f16: return 1e-3;
    case DType::bf16: return 8e-3;
    case DType::f8e4m3fn: return 7e-2;
    case DType::f8e5m2: return 0.13;
    default: return 0;
  }
}

}  // namespace coil::templates
