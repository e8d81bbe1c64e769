#include "extern/kernels/onednn.h"

#include <algorithm>

#include "base/process.h"
#include "extern/kernels/onednn_conv.h"

namespace coil::external {
namespace {

// Values of the C interface that versions 2.6 to 3.x have in common.
constexpr int kSuccess = 0, kCpu = 1, kF32 = 3, kAnyFormat = 1, kForwardInference = 96;
constexpr int kConvolutionDirect = 1, kScratchFromUser = 1;
constexpr unsigned kDefaultStream = 1, kSequential = 1, kOpenMp = 2;
constexpr int kImplementationName = 8;
constexpr int kSourceLayout = 129, kWeightsLayout = 131, kResultLayout = 133, kScratchLayout = 136;
constexpr std::size_t kMostDims = 12;

struct Version {
  int major, minor, patch;
  const char* hash;
  unsigned cpu_runtime, gpu_runtime;
};

// Version 2 has descriptors by value: memory for them, at least as large (696 and 5976 bytes).
struct LayoutV2 {
  alignas(16) std::byte bytes[1024];
};
struct ConvolutionV2 {
  alignas(16) std::byte bytes[8192];
};

using Dims = const i64*;

}  // namespace

struct OneDnn::Functions {
  int major = 0;
  const Version* (*version)() = nullptr;
  int (*engine_create)(void**, int, std::size_t) = nullptr;
  int (*engine_destroy)(void*) = nullptr;
  int (*stream_create)(void**, void*, unsigned) = nullptr;
  int (*stream_destroy)(void*) = nullptr;
  int (*memory_create)(void**, const void*, void*, void*) = nullptr;
  int (*memory_destroy)(void*) = nullptr;
  int (*attr_create)(void**) = nullptr;
  int (*attr_set_scratchpad_mode)(void*, int) = nullptr;
  int (*attr_destroy)(void*) = nullptr;
  int (*query)(const void*, int, int, void*) = nullptr;
  const void* (*query_layout)(const void*, int, int) = nullptr;
  int (*description_destroy)(void*) = nullptr;
  int (*primitive_create)(void**, const void*) = nullptr;
  int (*primitive_execute)(const void*, void*, int, const DnnlArgument*) = nullptr;
  int (*primitive_destroy)(void*) = nullptr;
  int (*reorder_create)(void**, const void*, void*, const void*, void*, const void*) = nullptr;
  std::size_t (*layout_bytes)(const void*) = nullptr;
  int (*layout_equal)(const void*, const void*) = nullptr;
  int (*sgemm)(char, char, i64, i64, i64, float, const float*, i64, const float*, i64, float,
               float*, i64) = nullptr;
  // Version 2.
  int (*layout_init_strides)(void*, int, Dims, int, Dims) = nullptr;
  int (*layout_init_tag)(void*, int, Dims, int, int) = nullptr;
  int (*conv_init)(void*, int, int, const void*, const void*, const void*, const void*, Dims, Dims,
                   Dims, Dims) = nullptr;
  int (*description_create)(void**, const void*, const void*, void*, const void*) = nullptr;
  // Version 3.
  int (*layout_create_strides)(void**, int, Dims, int, Dims) = nullptr;
  int (*layout_create_tag)(void**, int, Dims, int, int) = nullptr;
  int (*layout_clone)(void**, const void*) = nullptr;
  int (*layout_destroy)(void*) = nullptr;
  int (*conv_create)(void**, void*, int, int, const void*, const void*, const void*, const void*,
                     Dims, Dims, Dims, Dims, const void*) = nullptr;
  // Of the OpenMP run time that the library uses; null where it is built without threads.
  int (*omp_get_max_threads)() = nullptr;
  void (*omp_set_num_threads)(int) = nullptr;

  Status find_common(const Library& l) {
    COIL_TRY(l.need("dnnl_engine_create", engine_create));
    COIL_TRY(l.need("dnnl_engine_destroy", engine_destroy));
    COIL_TRY(l.need("dnnl_stream_create", stream_create));
    COIL_TRY(l.need("dnnl_stream_destroy", stream_destroy));
    COIL_TRY(l.need("dnnl_memory_create", memory_create));
    COIL_TRY(l.need("dnnl_memory_destroy", memory_destroy));
    COIL_TRY(l.need("dnnl_primitive_attr_create", attr_create));
    COIL_TRY(l.need("dnnl_primitive_attr_set_scratchpad_mode", attr_set_scratchpad_mode));
    COIL_TRY(l.need("dnnl_primitive_attr_destroy", attr_destroy));
    COIL_TRY(l.need("dnnl_primitive_desc_query", query));
    COIL_TRY(l.need("dnnl_primitive_desc_query_md", query_layout));
    COIL_TRY(l.need("dnnl_primitive_desc_destroy", description_destroy));
    COIL_TRY(l.need("dnnl_primitive_create", primitive_create));
    COIL_TRY(l.need("dnnl_primitive_execute", primitive_execute));
    COIL_TRY(l.need("dnnl_primitive_destroy", primitive_destroy));
    COIL_TRY(l.need("dnnl_reorder_primitive_desc_create", reorder_create));
    COIL_TRY(l.need("dnnl_memory_desc_get_size", layout_bytes));
    COIL_TRY(l.need("dnnl_memory_desc_equal", layout_equal));
    return l.need("dnnl_sgemm", sgemm);
  }

  Status find_versioned(const Library& l) {
    if (major == 2) {
      COIL_TRY(l.need("dnnl_memory_desc_init_by_strides", layout_init_strides));
      COIL_TRY(l.need("dnnl_memory_desc_init_by_tag", layout_init_tag));
      COIL_TRY(l.need("dnnl_dilated_convolution_forward_desc_init", conv_init));
      return l.need("dnnl_primitive_desc_create", description_create);
    }
    COIL_TRY(l.need("dnnl_memory_desc_create_with_strides", layout_create_strides));
    COIL_TRY(l.need("dnnl_memory_desc_create_with_tag", layout_create_tag));
    COIL_TRY(l.need("dnnl_memory_desc_clone", layout_clone));
    COIL_TRY(l.need("dnnl_memory_desc_destroy", layout_destroy));
    return l.need("dnnl_convolution_forward_primitive_desc_create", conv_create);
  }

  /// Its version is one that this file is written for, and it can be kept to one thread.
  Status check_build(const Library& l) {
    COIL_TRY(l.need("dnnl_version", version));
    const Version& v = *version();
    major = v.major;
    if (std::pair(v.major, v.minor) < std::pair(2, 6))
      return error("version {}.{}.{} is too old; 2.6 or newer will do", v.major, v.minor, v.patch);
    if (v.major > 3)
      return error("version {}.{}.{} is too new: 2.6 to 3.x will do", v.major, v.minor, v.patch);
    if (v.cpu_runtime == kSequential) return Ok{};
    if (v.cpu_runtime != kOpenMp)
      return error(
          "it is built for a thread run time other than OpenMP, which coil cannot keep "
          "to one thread");
    l.find("omp_get_max_threads", omp_get_max_threads);
    l.find("omp_set_num_threads", omp_set_num_threads);
    if (!omp_get_max_threads || !omp_set_num_threads)
      return error("its OpenMP run time cannot be found to keep it to one thread");
    return Ok{};
  }

  DnnlHandle own(void* handle, int (*destroy)(void*)) const {
    return DnnlHandle(handle, [destroy](void* h) {
      if (h) destroy(h);
    });
  }
};

OneDnn::OneThread::OneThread(const Functions& functions)
    : f_(functions), before_(f_.omp_get_max_threads ? f_.omp_get_max_threads() : 1) {
  if (before_ != 1) f_.omp_set_num_threads(1);
}

OneDnn::OneThread::~OneThread() {
  if (before_ != 1) f_.omp_set_num_threads(before_);
}

OneDnn::OneDnn(std::shared_ptr<const Functions> functions) : f_(std::move(functions)) {}

Result<std::shared_ptr<const OneDnn>> OneDnn::load(const std::string& setting) {
  const Library library = COIL_TRY(Library::open(setting, {"libdnnl.so.3", "libdnnl.so.2"}));
  auto f = std::make_shared<Functions>();
  COIL_TRY(f->check_build(library));
  COIL_TRY(f->find_common(library));
  COIL_TRY(f->find_versioned(library));
  auto out = std::make_shared<OneDnn>(f);
  void* engine = nullptr;
  if (f->engine_create(&engine, kCpu, 0) != kSuccess) return error("it has no engine for the CPU");
  out->engine_ = f->own(engine, f->engine_destroy);
  return std::shared_ptr<const OneDnn>(out);
}

Result<std::shared_ptr<const OneDnn>> OneDnn::open(const std::string& setting, int proof_limit_ms) {
  const Status proof = run_in_child(
      [&]() -> Status {
        const std::shared_ptr<const OneDnn> library = COIL_TRY(load(setting));
        COIL_TRY(prove_gemm(*library));
        return prove_conv(library);
      },
      proof_limit_ms);
  if (!proof.ok()) return proof.error();
  return load(setting);
}

Status OneDnn::multiply_f32(const GemmBlock& g) const {
  const OneThread one(*f_);
  const int status =
      f_->sgemm(g.a_transposed ? 'T' : 'N', g.b_transposed ? 'T' : 'N', g.m, g.n, g.k, 1.0f,
                static_cast<const float*>(g.a), g.lda, static_cast<const float*>(g.b), g.ldb, 0.0f,
                static_cast<float*>(g.c), g.ldc);
  if (status != kSuccess) return error("dnnl_sgemm returned status {}", status);
  return Ok{};
}

Status OneDnn::multiply_f64(const GemmBlock&) const {
  return error("oneDNN multiplies no matrices of f64");
}

Result<DnnlHandle> OneDnn::layout(const std::vector<i64>& shape,
                                  const std::vector<i64>& strides) const {
  COIL_CHECK(shape.size() <= kMostDims, "oneDNN has at most {} dims", kMostDims);
  // Its types of dims are arrays of full length.
  i64 dims[kMostDims] = {}, steps[kMostDims] = {};
  std::copy(shape.begin(), shape.end(), dims);
  std::copy(strides.begin(), strides.end(), steps);
  const int ndim = static_cast<int>(shape.size());
  int status = kSuccess;
  DnnlHandle out;
  if (f_->major == 2) {
    auto made = std::make_shared<LayoutV2>();
    status = strides.empty() ? f_->layout_init_tag(made.get(), ndim, dims, kF32, kAnyFormat)
                             : f_->layout_init_strides(made.get(), ndim, dims, kF32, steps);
    out = made;
  } else {
    void* made = nullptr;
    status = strides.empty() ? f_->layout_create_tag(&made, ndim, dims, kF32, kAnyFormat)
                             : f_->layout_create_strides(&made, ndim, dims, kF32, steps);
    out = f_->own(made, f_->layout_destroy);
  }
  if (status != kSuccess) return error("it does not take the layout (status {})", status);
  return out;
}

i64 OneDnn::bytes(const DnnlHandle& layout) const {
  return static_cast<i64>(f_->layout_bytes(layout.get()));
}

bool OneDnn::equal(const DnnlHandle& a, const DnnlHandle& b) const {
  return f_->layout_equal(a.get(), b.get()) != 0;
}

Result<DnnlHandle> OneDnn::attributes() const {
  void* made = nullptr;
  if (f_->attr_create(&made) != kSuccess) return error("it cannot make attributes");
  const DnnlHandle out = f_->own(made, f_->attr_destroy);
  if (f_->attr_set_scratchpad_mode(made, kScratchFromUser) != kSuccess)
    return error("it does not take scratch memory from its caller");
  return out;
}

Result<DnnlPrimitive> OneDnn::convolution(const DnnlConv& c) const {
  const OneThread one(*f_);  // a primitive keeps the number of threads that it is made with
  const DnnlHandle attr = COIL_TRY(attributes());
  const auto dims = [](std::vector<i64> list) {
    list.resize(kMostDims);
    return list;
  };
  const std::vector<i64> stride = dims(c.stride), dilation = dims(c.dilation),
                         begin = dims(c.pad_begin), end = dims(c.pad_end);
  void* description = nullptr;
  int status = kSuccess;
  if (f_->major == 2) {
    ConvolutionV2 op;
    status = f_->conv_init(&op, kForwardInference, kConvolutionDirect, c.source.get(),
                           c.weights.get(), c.bias.get(), c.result.get(), stride.data(),
                           dilation.data(), begin.data(), end.data());
    if (status == kSuccess)
      status = f_->description_create(&description, &op, attr.get(), engine_.get(), nullptr);
  } else {
    status = f_->conv_create(&description, engine_.get(), kForwardInference, kConvolutionDirect,
                             c.source.get(), c.weights.get(), c.bias.get(), c.result.get(),
                             stride.data(), dilation.data(), begin.data(), end.data(), attr.get());
  }
  if (status != kSuccess) return error("it has no such convolution (status {})", status);
  return finish(description);
}

Result<DnnlPrimitive> OneDnn::reorder(const DnnlHandle& from, const DnnlHandle& to) const {
  const OneThread one(*f_);
  const DnnlHandle attr = COIL_TRY(attributes());
  void* description = nullptr;
  const int status = f_->reorder_create(&description, from.get(), engine_.get(), to.get(),
                                        engine_.get(), attr.get());
  if (status != kSuccess) return error("it does not copy between the layouts (status {})", status);
  return finish(description);
}

Result<DnnlPrimitive> OneDnn::finish(void* made) const {
  const DnnlHandle description = f_->own(made, f_->description_destroy);
  // A queried layout lives as long as its primitive's description; ours is a copy.
  const auto layout = [&](int which) {
    const void* found = f_->query_layout(made, which, 0);
    if (!found || f_->layout_bytes(found) == 0) return DnnlHandle();
    if (f_->major == 2) return DnnlHandle(const_cast<void*>(found), [description](void*) {});
    void* copy = nullptr;
    f_->layout_clone(&copy, found);
    return f_->own(copy, f_->layout_destroy);
  };
  DnnlPrimitive out;
  out.source = layout(kSourceLayout);
  out.weights = layout(kWeightsLayout);
  out.result = layout(kResultLayout);
  out.scratch = layout(kScratchLayout);
  const char* text = nullptr;
  if (f_->query(made, kImplementationName, 0, &text) == kSuccess && text) out.implementation = text;
  void* primitive = nullptr;
  if (const int status = f_->primitive_create(&primitive, made); status != kSuccess)
    return error("it cannot make the primitive (status {})", status);
  out.primitive = f_->own(primitive, f_->primitive_destroy);
  return out;
}

OneDnn::Task::Task(const OneDnn& library) : library_(library), one_(*library.f_) {
  const Functions& f = *library.f_;
  failed_ = f.stream_create(&stream_, library.engine_.get(), kDefaultStream) != kSuccess;
}

OneDnn::Task::~Task() {
  for (void* m : memories_) library_.f_->memory_destroy(m);
  if (stream_) library_.f_->stream_destroy(stream_);
}

DnnlArgument OneDnn::Task::argument(int which, const DnnlHandle& layout, const void* data) {
  void* made = nullptr;
  if (library_.f_->memory_create(&made, layout.get(), library_.engine_.get(),
                                 const_cast<void*>(data)) == kSuccess)
    memories_.push_back(made);
  else
    failed_ = true;
  return {which, made};
}

void OneDnn::Task::execute(const DnnlPrimitive& primitive, std::vector<DnnlArgument> arguments,
                           void* scratch) {
  if (primitive.scratch) arguments.push_back(argument(kDnnlScratch, primitive.scratch, scratch));
  if (failed_) return;
  failed_ = library_.f_->primitive_execute(primitive.primitive.get(), stream_,
                                           static_cast<int>(arguments.size()),
                                           arguments.data()) != kSuccess;
}

}  // namespace coil::external
