#pragma once
// oneDNN 2.6 to 3.x through its C interface. Its types are declared here as far as they are used;
// the two major versions differ in how descriptors are made, which is all hidden in onednn.cpp.

#include "extern/kernels/gemm.h"
#include "extern/kernels/library.h"

namespace coil::external {

/// A handle of the library's, destroyed with its owner.
using DnnlHandle = std::shared_ptr<void>;

/// An argument of an execution: which one, and its memory object.
struct DnnlArgument {
  int which = 0;
  void* memory = nullptr;
};
enum DnnlArgumentKind : int {
  kDnnlSource = 1,
  kDnnlResult = 17,
  kDnnlWeights = 33,
  kDnnlBias = 41,
  kDnnlScratch = 80,
};

/// A convolution of f32 as oneDNN describes it; all sizes with the batch and channels first, those
/// of weights with the groups before them where there is more than one.
struct DnnlConv {
  DnnlHandle source, weights, bias, result;  // descriptors; bias may be null
  std::vector<i64> stride, dilation, pad_begin, pad_end;
};

/// What makes and runs a primitive: the primitive, and the layouts that it chose.
struct DnnlPrimitive {
  DnnlHandle primitive;
  DnnlHandle source, weights, result, scratch;
  std::string implementation;  // the library's name for it
};

class OneDnn : public GemmRoutine {
 public:
  /// Opens the library (`setting`: "auto" or a path) and proves it, or the reason why it is not
  /// used.
  static Result<std::shared_ptr<const OneDnn>> open(const std::string& setting,
                                                    int proof_limit_ms = kProofLimitMs);

  Status multiply_f32(const GemmBlock& block) const override;
  Status multiply_f64(const GemmBlock& block) const override;

  /// The layout of a tensor of f32 with these strides; without any, whichever a primitive chooses.
  Result<DnnlHandle> layout(const std::vector<i64>& shape, const std::vector<i64>& strides) const;
  i64 bytes(const DnnlHandle& layout) const;
  bool equal(const DnnlHandle& a, const DnnlHandle& b) const;
  Result<DnnlPrimitive> convolution(const DnnlConv& conv) const;
  /// Copies from one layout to another.
  Result<DnnlPrimitive> reorder(const DnnlHandle& from, const DnnlHandle& to) const;

  struct Functions;
  /// One OpenMP thread for the calling thread, for as long as this lives.
  class OneThread {
   public:
    explicit OneThread(const Functions& functions);
    ~OneThread();
    OneThread(const OneThread&) = delete;
    OneThread& operator=(const OneThread&) = delete;

   private:
    const Functions& f_;
    const int before_;
  };

  /// Executions on the calling thread alone: a stream, and the memory objects they name.
  class Task {
   public:
    explicit Task(const OneDnn& library);
    ~Task();
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;
    DnnlArgument argument(int which, const DnnlHandle& layout, const void* data);
    void execute(const DnnlPrimitive& primitive, std::vector<DnnlArgument> arguments,
                 void* scratch);
    /// Something went wrong; executions after that do nothing.
    bool failed() const { return failed_; }

   private:
    const OneDnn& library_;
    const OneThread one_;
    void* stream_ = nullptr;
    std::vector<void*> memories_;
    bool failed_ = false;
  };

  explicit OneDnn(std::shared_ptr<const Functions> functions);

 private:
  static Result<std::shared_ptr<const OneDnn>> load(const std::string& setting);
  Result<DnnlPrimitive> finish(void* description) const;
  Result<DnnlHandle> attributes() const;

  std::shared_ptr<const Functions> f_;
  DnnlHandle engine_;
};

}  // namespace coil::external
