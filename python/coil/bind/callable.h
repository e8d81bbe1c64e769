#pragma once
// A compiled graph as an object that Python calls with a list of tensors and ints.

#include "driver/runner.h"
#include "import/fx.h"
#include "runtime/call.h"
#include "tensors.h"

#include <set>

namespace coil::python {

/// A call that failed: wrong inputs, or an index out of range in the data.
struct RunFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// How arguments and results of a call stand to those of its graph.
struct CallForm {
  std::vector<int>
      passed;  // by result, the argument that is returned in its place, or -1; or empty
  std::vector<InputMemory> memories;  // arguments of which the graph takes the memory
  std::set<u32> written;              // arguments
};

class Callable {
 public:
  Callable(std::shared_ptr<const Torch> torch, std::shared_ptr<Compilation> compilation,
           CallForm form);

  /// The results in order; empties `args`, as AOT Autograd's boxed calls do. Safe from many
  /// threads; the GIL is free while the program runs.
  nb::list call(nb::list args);
  const Compilation& compilation() const { return *compilation_; }

 private:
  /// Memory from torch in which one or more results lie.
  struct Block {
    u32 buffer = 0;
    DType dtype = DType::f32;
    std::size_t output = 0;     // the first one in it, of Plan::outputs
    bool is_shared = false;     // other outputs lie in it, too
    nb::object shape, strides;  // of the tensor, where the plan fixes them and they fill it
  };
  struct Result {
    enum class Kind : u8 { InBlock, OfInput, Other };
    Kind kind = Kind::Other;
    std::size_t output = 0;  // of Plan::outputs
    u32 block = 0;
  };
  struct Run;
  class Inputs;

  void plan_results();
  void read_args(const nb::list& args, std::vector<runtime::Value>& out) const;
  /// The tensor becomes the memory in which it lies.
  void widen(const InputMemory& memory, PyObject* arg, runtime::Tensor& t) const;
  /// A memory that is written, or read where another argument is written, shares nothing with it.
  void check_apart(const InputMemory& memory, const std::vector<runtime::Value>& args) const;
  void allocate(Run& run) const;
  nb::object result(const Run& run, const Result& r, const runtime::Value& value) const;
  /// A tensor of torch's with the address of its first element and that one's place in the storage.
  struct Memory {
    PyObject* tensor;
    const std::byte* start;
    DType dtype;
    i64 offset;
  };
  /// `t`, which lies in this memory, as a view of it.
  nb::object view_in(const Memory& memory, const runtime::Tensor& t) const;
  nb::object copied(const runtime::Tensor& from) const;
  nb::object plain(const runtime::Value& value) const;
  std::vector<runtime::Value> interpret(std::vector<runtime::Value>& inputs);
  nb::list results(const nb::list& args, const Run* run,
                   const std::vector<runtime::Value>& values) const;

  std::shared_ptr<const Torch> torch_;
  std::shared_ptr<Compilation> compilation_;
  std::unique_ptr<runtime::Instance> instance_;  // null: the interpreter runs it
  std::unique_ptr<Runner> interpreter_;
  std::mutex interpreter_turn_;
  std::vector<Block> blocks_;
  std::vector<Result> results_;
  CallForm form_;
  std::vector<std::vector<runtime::Value>> spare_;  // inputs of calls that are over; under the GIL
};

}  // namespace coil::python
