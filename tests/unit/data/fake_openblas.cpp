// A small library with the functions of OpenBLAS that coil calls. Macros make it a bad one: CONFIG
// (what it says of itself), CORE, PARALLEL, and FAULT, run when a product begins.
#include <unistd.h>

#include <cstdlib>

#ifndef CONFIG
#define CONFIG "OpenBLAS 0.3.26 DYNAMIC_ARCH NO_AFFINITY Zen MAX_THREADS=64"
#endif
#ifndef CORE
#define CORE "Zen"
#endif
#ifndef PARALLEL
#define PARALLEL 1
#endif
#ifndef FAULT
#define FAULT
#endif

template <class T>
void multiply(int a_how, int b_how, int m, int n, int k, const T* a, int lda, const T* b, int ldb,
              T* c, int ldc) {
  T extra = 0;
  FAULT;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      T sum = extra;
      for (int l = 0; l < k; ++l)
        sum += (a_how == 112 ? a[l * lda + i] : a[i * lda + l]) *
               (b_how == 112 ? b[j * ldb + l] : b[l * ldb + j]);
      c[i * ldc + j] = sum;
    }
}

extern "C" {
const char* openblas_get_config() { return CONFIG; }
const char* openblas_get_corename() { return CORE; }
int openblas_get_parallel() { return PARALLEL; }
void openblas_set_num_threads(int) {}
void cblas_sgemm(int, int a_how, int b_how, int m, int n, int k, float, const float* a, int lda,
                 const float* b, int ldb, float, float* c, int ldc) {
  multiply(a_how, b_how, m, n, k, a, lda, b, ldb, c, ldc);
}
#ifndef NO_DGEMM
void cblas_dgemm(int, int a_how, int b_how, int m, int n, int k, double, const double* a, int lda,
                 const double* b, int ldb, double, double* c, int ldc) {
  multiply(a_how, b_how, m, n, k, a, lda, b, ldb, c, ldc);
}
#endif
}
