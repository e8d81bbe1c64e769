// A small library with the functions of oneDNN 3 that coil calls: layouts are dims and strides, and
// those that it chooses itself are reversed (channels last), so that every copy is needed. Macros
// make it a bad one: VERSION, RUNTIME, IMPLEMENTATION, and FAULT, run when a convolution begins.
#include <unistd.h>

#include <cstdlib>
#include <map>

#ifndef VERSION
#define VERSION 3, 4, 1
#endif
#ifndef RUNTIME
#define RUNTIME 1
#endif
#ifndef IMPLEMENTATION
#define IMPLEMENTATION "jit:fake"
#endif
#ifndef FAULT
#define FAULT
#endif

using Int = long long;

struct Version {
  int major, minor, patch;
  const char* hash;
  unsigned cpu, gpu;
};
struct Layout {
  int ndim = 0;
  Int dims[12] = {}, strides[12] = {};
};
struct Memory {
  const Layout* layout;
  float* data;
};
struct Primitive {
  bool is_conv = false, has_bias = false;
  Layout source, weights, result, scratch = {};
  Int stride[3] = {}, dilation[3] = {}, pad[3] = {};
};
struct Argument {
  int which;
  Memory* memory;
};

Layout chosen(const Layout& any) {
  Layout out = any;
  if (out.strides[0] >= 0) return out;
  Int stride = 1;
  for (int d = 0; d < out.ndim; ++d) {
    out.strides[d] = stride;
    stride *= out.dims[d];
  }
  return out;
}

Int count(const Layout& l) {
  Int n = l.ndim > 0;
  for (int d = 0; d < l.ndim; ++d) n *= l.dims[d];
  return n;
}

// Calls f(index) for every index tuple of dims.
template <class F>
void for_each(int ndim, const Int* dims, F f) {
  Int index[12] = {}, total = 1;
  for (int d = 0; d < ndim; ++d) total *= dims[d];
  for (Int i = 0; i < total; ++i) {
    Int left = i;
    for (int d = ndim; d-- > 0;) {
      index[d] = left % dims[d];
      left /= dims[d];
    }
    f(index);
  }
}

float& at(const Memory& m, const Int* index) {
  Int offset = 0;
  for (int d = 0; d < m.layout->ndim; ++d) offset += index[d] * m.layout->strides[d];
  return m.data[offset];
}

void convolve(const Primitive& p, std::map<int, Memory*>& m) {
  float extra = 0;
  FAULT;
  const int rank = p.result.ndim - 2, grouped = p.weights.ndim - p.result.ndim;
  const Int groups = grouped ? p.weights.dims[0] : 1;
  const Int ic = p.weights.dims[1 + grouped], oc = p.result.dims[1] / groups;
  for_each(p.result.ndim, p.result.dims, [&](const Int* y) {
    const Int group = y[1] / oc;
    float sum = extra + (p.has_bias ? m[41]->data[y[1]] : 0);
    Int kernel[4] = {ic};
    for (int d = 0; d < rank; ++d) kernel[d + 1] = p.weights.dims[2 + grouped + d];
    for_each(rank + 1, kernel, [&](const Int* k) {
      Int x[5] = {y[0], group * ic + k[0]}, w[6] = {group, y[1] % oc, k[0]};
      for (int d = 0; d < rank; ++d) {
        x[2 + d] = y[2 + d] * p.stride[d] + k[1 + d] * (p.dilation[d] + 1) - p.pad[d];
        if (x[2 + d] < 0 || x[2 + d] >= p.source.dims[2 + d]) return;
        w[3 + d] = k[1 + d];
      }
      sum += at(*m[1], x) * at(*m[33], grouped ? w : w + 1);
    });
    at(*m[17], y) = sum;
  });
}

extern "C" {
const Version* dnnl_version() {
  static const Version version = {VERSION, "", RUNTIME, 0};
  return &version;
}
int dnnl_engine_create(void** e, int, unsigned long) { return *e = std::malloc(1), 0; }
int dnnl_engine_destroy(void* e) { return std::free(e), 0; }
int dnnl_stream_create(void** s, void*, unsigned) { return *s = std::malloc(1), 0; }
int dnnl_stream_destroy(void* s) { return std::free(s), 0; }
int dnnl_memory_create(Memory** m, const Layout* l, void*, float* data) {
  return *m = new Memory{l, data}, 0;
}
int dnnl_memory_destroy(Memory* m) { return delete m, 0; }
int dnnl_primitive_attr_create(void** a) { return *a = std::malloc(1), 0; }
int dnnl_primitive_attr_set_scratchpad_mode(void*, int) { return 0; }
int dnnl_primitive_attr_destroy(void* a) { return std::free(a), 0; }
int dnnl_primitive_desc_query(const Primitive*, int what, int, const char** text) {
  if (what != 8) return 1;
  return *text = IMPLEMENTATION, 0;
}
const Layout* dnnl_primitive_desc_query_md(const Primitive* p, int what, int) {
  return what == 129   ? &p->source
         : what == 131 ? &p->weights
         : what == 133 ? &p->result
                       : &p->scratch;
}
int dnnl_primitive_desc_destroy(Primitive* p) { return delete p, 0; }
int dnnl_primitive_create(Primitive** p, const Primitive* from) {
  return *p = new Primitive(*from), 0;
}
int dnnl_primitive_destroy(Primitive* p) { return delete p, 0; }
int dnnl_primitive_execute(const Primitive* p, void*, int n, const Argument* arguments) {
  std::map<int, Memory*> m;
  for (int i = 0; i < n; ++i) m[arguments[i].which] = arguments[i].memory;
  if (p->is_conv)
    convolve(*p, m);
  else
    for_each(m[1]->layout->ndim, m[1]->layout->dims,
             [&](const Int* i) { at(*m[17], i) = at(*m[1], i); });
  return 0;
}
int dnnl_reorder_primitive_desc_create(Primitive** p, const Layout* from, void*, const Layout* to,
                                       void*, const void*) {
  *p = new Primitive{};
  (*p)->source = *from;
  (*p)->result = *to;
  return 0;
}
unsigned long dnnl_memory_desc_get_size(const Layout* l) {
  return static_cast<unsigned long>(count(*l)) * sizeof(float);
}
int dnnl_memory_desc_equal(const Layout* a, const Layout* b) {
  for (int d = 0; d < a->ndim; ++d)
    if (a->dims[d] != b->dims[d] || a->strides[d] != b->strides[d]) return 0;
  return a->ndim == b->ndim;
}
int dnnl_memory_desc_create_with_strides(Layout** l, int n, const Int* dims, int,
                                         const Int* strides) {
  *l = new Layout{n};
  for (int d = 0; d < n; ++d) {
    (*l)->dims[d] = dims[d];
    (*l)->strides[d] = strides[d];
  }
  return 0;
}
int dnnl_memory_desc_create_with_tag(Layout** l, int n, const Int* dims, int, int) {
  const Int unknown[12] = {-1};
  return dnnl_memory_desc_create_with_strides(l, n, dims, 3, unknown);
}
int dnnl_memory_desc_clone(Layout** l, const Layout* from) { return *l = new Layout(*from), 0; }
int dnnl_memory_desc_destroy(Layout* l) { return delete l, 0; }
int dnnl_convolution_forward_primitive_desc_create(Primitive** p, void*, int, int,
                                                   const Layout* source, const Layout* weights,
                                                   const Layout* bias, const Layout* result,
                                                   const Int* stride, const Int* dilation,
                                                   const Int* begin, const Int*, const void*) {
  *p = new Primitive{true, bias != nullptr, chosen(*source), chosen(*weights), chosen(*result)};
  for (int d = 0; d + 2 < result->ndim; ++d) {
    (*p)->stride[d] = stride[d];
    (*p)->dilation[d] = dilation[d];
    (*p)->pad[d] = begin[d];
  }
  return 0;
}
int dnnl_sgemm(char a_how, char b_how, Int m, Int n, Int k, float, const float* a, Int lda,
               const float* b, Int ldb, float, float* c, Int ldc) {
  for (Int i = 0; i < m; ++i)
    for (Int j = 0; j < n; ++j) {
      float sum = 0;
      for (Int l = 0; l < k; ++l)
        sum += (a_how == 'T' ? a[l * lda + i] : a[i * lda + l]) *
               (b_how == 'T' ? b[j * ldb + l] : b[l * ldb + j]);
      c[i * ldc + j] = sum;
    }
  return 0;
}
}
