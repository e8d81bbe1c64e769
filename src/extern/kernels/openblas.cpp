#include "extern/kernels/openblas.h"

#include <algorithm>
#include <cstdio>
#include <tuple>

#include "base/process.h"

namespace coil::external {
namespace {

enum CblasOrder : int { kRowMajor = 101 };
enum CblasTranspose : int { kNoTrans = 111, kTrans = 112 };

/// The part of OpenBLAS's C interface that is used; sizes are `int` unless it is built with 64
/// bits.
struct Functions {
  char* (*get_config)() = nullptr;
  char* (*get_corename)() = nullptr;
  int (*get_parallel)() = nullptr;
  void (*set_num_threads)(int) = nullptr;
  void (*sgemm)(int, int, int, int, int, int, float, const float*, int, const float*, int, float,
                float*, int) = nullptr;
  void (*dgemm)(int, int, int, int, int, int, double, const double*, int, const double*, int,
                double, double*, int) = nullptr;
};

class OpenBlas : public GemmRoutine {
 public:
  static Result<std::shared_ptr<const OpenBlas>> open(const std::string& setting) {
    const Library library = COIL_TRY(Library::open(setting, {"libopenblas.so.0"}));
    auto out = std::make_shared<OpenBlas>();
    Functions& f = out->f_;
    COIL_TRY(library.need("openblas_get_config", f.get_config));
    COIL_TRY(library.need("openblas_get_corename", f.get_corename));
    COIL_TRY(library.need("openblas_get_parallel", f.get_parallel));
    COIL_TRY(library.need("openblas_set_num_threads", f.set_num_threads));
    COIL_TRY(library.need("cblas_sgemm", f.sgemm));
    COIL_TRY(library.need("cblas_dgemm", f.dgemm));
    COIL_TRY(out->check_build());
    f.set_num_threads(1);
    return std::shared_ptr<const OpenBlas>(out);
  }

  Status multiply_f32(const GemmBlock& g) const override { return multiply<float>(f_.sgemm, g); }
  Status multiply_f64(const GemmBlock& g) const override { return multiply<double>(f_.dgemm, g); }

 private:
  Status check_build() const {
    const std::string config = f_.get_config(), core = f_.get_corename();
    int major = 0, minor = 0, patch = 0;
    if (std::sscanf(config.c_str(), "OpenBLAS %d.%d.%d", &major, &minor, &patch) != 3)
      return error("it does not say its version: '{}'", config);
    if (std::tuple(major, minor, patch) < std::tuple(0, 3, 10))
      return error("version {}.{}.{} is too old; 0.3.10 or newer will do", major, minor, patch);
    if (config.find("USE64BITINT") != config.npos)
      return error("it is built with sizes of 64 bits");
    // One without threads of its own holds no locks around its memory.
    if (f_.get_parallel() == 0)
      return error("it is built without threads, so several threads may not call it at once");
    if (core == "generic" || core == "Generic" || core == "Prescott")
      return error("it does not know this processor and would run its kernels for '{}'", core);
    return Ok{};
  }

  template <class T>
  static Status multiply(void (*gemm)(int, int, int, int, int, int, T, const T*, int, const T*, int,
                                      T, T*, int),
                         const GemmBlock& g) {
    if (std::max({g.k, g.lda, g.ldb, g.ldc}) > INT32_MAX)
      return error("OpenBLAS has sizes of 32 bits");
    const auto narrow = [](i64 size) { return static_cast<int>(size); };
    gemm(kRowMajor, g.a_transposed ? kTrans : kNoTrans, g.b_transposed ? kTrans : kNoTrans,
         narrow(g.m), narrow(g.n), narrow(g.k), T(1), static_cast<const T*>(g.a), narrow(g.lda),
         static_cast<const T*>(g.b), narrow(g.ldb), T(0), static_cast<T*>(g.c), narrow(g.ldc));
    return Ok{};
  }

  Functions f_;
};

}  // namespace

Result<std::shared_ptr<const GemmRoutine>> open_openblas(const std::string& setting,
                                                         int proof_limit_ms) {
  const Status proof = run_in_child(
      [&]() -> Status {
        const std::shared_ptr<const OpenBlas> blas = COIL_TRY(OpenBlas::open(setting));
        COIL_TRY(prove_gemm(*blas));
        return prove_gemm_f64(*blas);
      },
      proof_limit_ms);
  if (!proof.ok()) return proof.error();
  return std::shared_ptr<const GemmRoutine>(COIL_TRY(OpenBlas::open(setting)));
}

}  // namespace coil::external
