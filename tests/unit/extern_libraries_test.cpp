// Libraries that work, and those that do not. They are small ones that the test compiles
// (data/fake_*.cpp), so that no real one is needed.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/process.h"
#include "driver/load.h"
#include "driver/runner.h"
#include "extern/kernels/onednn.h"
#include "extern/kernels/openblas.h"
#include "target/cpp/toolchain.h"

namespace coil {
namespace {

namespace fs = std::filesystem;

std::string search_path() {
  const char* path = std::getenv("PATH");
  return path ? path : "/usr/bin";
}

class ExternLibraries : public ::testing::Test {
 protected:
  void SetUp() override {
    // A folder of its own for each test: what is loaded once stays known by its path.
    const char* test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::temp_directory_path() / str("coil_extern_{}_{}", ::getpid(), test);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// Compiles data/fake_NAME.cpp with these macros.
  std::string build(const std::string& name, const std::vector<std::string>& macros = {}) {
    const std::string path = (folder_ / str("lib{}_{}.so", name, ++count_)).string();
    std::vector<std::string> command = {cpp::find_toolchain({}, search_path())->path};
    for (const char* word : {"-std=c++17", "-fPIC", "-shared", "-o"}) command.push_back(word);
    command.push_back(path);
    command.push_back(str("{}/tests/unit/data/fake_{}.cpp", COIL_SOURCE_DIR, name));
    for (const std::string& m : macros) command.push_back("-D" + m);
    const std::vector<ProcessResult> made = *run_processes({command}, 1);
    EXPECT_EQ(made[0].exit_code, 0) << made[0].output;
    return path;
  }

  std::string blas_reason(const std::vector<std::string>& macros, int limit_ms = 20'000) {
    const auto opened = external::open_openblas(build("openblas", macros), limit_ms);
    return opened.ok() ? "" : opened.error().message;
  }
  std::string dnn_reason(const std::vector<std::string>& macros, int limit_ms = 20'000) {
    const auto opened = external::OneDnn::open(build("onednn", macros), limit_ms);
    return opened.ok() ? "" : opened.error().message;
  }

  /// Compiles a graph's text for the cpp target.
  ReadyModel ready(const std::string& text, const std::map<std::string, std::string>& set) {
    const std::string path = (folder_ / "model.graph").string();
    std::ofstream(path) << text;
    Options options;
    for (const auto& [key, value] : set) EXPECT_TRUE(options.set(key, value).ok());
    Result<ReadyModel> made =
        make_ready(*load_model(path), options, {search_path(), folder_.string()});
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    return std::move(*made);
  }

  fs::path folder_;
  int count_ = 0;
};

TEST_F(ExternLibraries, OpenBlasThatWorks) { EXPECT_EQ(blas_reason({}), ""); }

TEST_F(ExternLibraries, OpenBlasIsRefusedWithItsReason) {
  EXPECT_EQ(blas_reason({"CONFIG=\"OpenBLAS 0.3.9 Zen\""}),
            "version 0.3.9 is too old; 0.3.10 or newer will do");
  EXPECT_EQ(blas_reason({"CONFIG=\"ATLAS\""}), "it does not say its version: 'ATLAS'");
  EXPECT_EQ(blas_reason({"CONFIG=\"OpenBLAS 0.3.26 USE64BITINT\""}),
            "it is built with sizes of 64 bits");
  EXPECT_EQ(blas_reason({"PARALLEL=0"}),
            "it is built without threads, so several threads may not call it at once");
  EXPECT_EQ(blas_reason({"CORE=\"Prescott\""}),
            "it does not know this processor and would run its kernels for 'Prescott'");
  EXPECT_EQ(blas_reason({"NO_DGEMM"}), "it has no function cblas_dgemm");
  EXPECT_EQ(blas_reason({"FAULT=extra=1"}),
            "its product of two small matrices is wrong: 76 where 75 is right");
  EXPECT_EQ(blas_reason({"FAULT=std::abort()"}), "was ended by signal 6");
  EXPECT_EQ(blas_reason({"FAULT=*(volatile int*)8=1"}), "was ended by signal 11");
  EXPECT_EQ(blas_reason({"FAULT=std::exit(3)"}), "ended the process with exit code 3");
  EXPECT_EQ(blas_reason({"FAULT=pause()"}, 500), "gave no answer in 0.5 s");
}

TEST_F(ExternLibraries, FilesThatAreNoLibrary) {
  const std::string text = (folder_ / "text.so").string();
  std::ofstream(text) << "not a library\n";
  const auto opened = external::open_openblas(text);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message.find("text.so: "), std::string::npos) << opened.error().message;
  const auto other = external::OneDnn::open(build("openblas"));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().message, "it has no function dnnl_version");
}

TEST_F(ExternLibraries, OneDnnThatWorks) { EXPECT_EQ(dnn_reason({}), ""); }

TEST_F(ExternLibraries, OneDnnIsRefusedWithItsReason) {
  EXPECT_EQ(dnn_reason({"VERSION=2,5,9"}), "version 2.5.9 is too old; 2.6 or newer will do");
  EXPECT_EQ(dnn_reason({"VERSION=4,0,0"}), "version 4.0.0 is too new: 2.6 to 3.x will do");
  EXPECT_EQ(dnn_reason({"VERSION=2,7,0"}), "it has no function dnnl_memory_desc_init_by_strides");
  EXPECT_EQ(dnn_reason({"RUNTIME=4"}),
            "it is built for a thread run time other than OpenMP, which coil cannot keep to one "
            "thread");
  EXPECT_EQ(dnn_reason({"RUNTIME=2"}),
            "its OpenMP run time cannot be found to keep it to one thread");
  EXPECT_EQ(dnn_reason({"IMPLEMENTATION=\"ref:any\""}),
            "it would fall to its reference path 'ref:any'");
  EXPECT_EQ(dnn_reason({"IMPLEMENTATION=\"gemm:jit\""}),
            "'gemm:jit' multiplies weights by the zeros of the padding, which shows where they are "
            "infinite or NaN");
  EXPECT_NE(dnn_reason({"FAULT=extra=1"}).find("its small convolution is wrong: "),
            std::string::npos);
  EXPECT_EQ(dnn_reason({"FAULT=std::abort()"}), "was ended by signal 6");
  EXPECT_EQ(dnn_reason({"FAULT=pause()"}, 500), "gave no answer in 0.5 s");
}

std::vector<float> whole_numbers(i64 count) {
  std::vector<float> out;
  for (i64 i = 0; i < count; ++i) out.push_back(static_cast<float>(i * 13 % 17 - 8));
  return out;
}

/// The first output of a call with inputs of whole numbers.
std::vector<float> outputs(const ReadyModel& model) {
  std::vector<runtime::Value> inputs;
  for (const ProgramInput& input : model.compilation->program.inputs) {
    std::vector<i64> shape;
    for (sym::Expr e : model.compilation->program.buffers[input.buffer].shape)
      shape.push_back(model.compilation->program.syms->as_const(e).value());
    runtime::Tensor t = *runtime::Tensor::allocate(DType::f32, shape);
    const std::vector<float> data = whole_numbers(t.numel());
    std::copy(data.begin(), data.end(), reinterpret_cast<float*>(t.data));
    inputs.push_back(t);
  }
  const std::vector<runtime::Value> made = *model.runner->call(inputs);
  const runtime::Tensor t = *std::get<runtime::Tensor>(made[0]).contiguous();
  const auto* data = reinterpret_cast<const float*>(t.data);
  return {data, data + t.numel()};
}

/// The same values as the interpreter gives, near enough for sums in another order, and the same
/// bits on any number of threads.
void expect_right(const std::function<ReadyModel(const std::map<std::string, std::string>&)>& make,
                  std::map<std::string, std::string> options, const std::string& candidate) {
  const std::vector<float> wanted = outputs(make({{"target", "interp"}}));
  std::vector<float> before;
  for (const char* threads : {"1", "2", "7"}) {
    options["threads"] = threads;
    const ReadyModel model = make(options);
    ASSERT_EQ(model.compilation->choices.size(), 1u);
    EXPECT_EQ(model.compilation->choices[0].candidate, candidate)
        << join(model.compilation->choices[0].refused, "; ",
                [](const Choice::Refusal& r) { return r.candidate + ": " + r.reason; });
    const std::vector<float> got = outputs(model);
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], wanted[i], 1e-4 * (1 + std::abs(wanted[i]))) << "at " << i;
    if (before.empty()) before = got;
    EXPECT_EQ(got, before);
  }
}

// More rows and columns than one block has; b as it is and transposed, with an epilogue and
// without, a constant and an input.
TEST_F(ExternLibraries, ProductsByBlocks) {
  const std::string blas = build("openblas"), dnn = build("onednn");
  for (const char* text : {
           "graph g(%a: f32[131, 70], %b: f32[70, 290]) {\n"
           "  %c = mm(%a, %b)\n  return %c\n}\n",
           "graph g(%a: f32[131, 70], %b: f32[290, 70]) {\n"
           "  const %w: f32[290] = seed 1\n"
           "  %c = linear(%a, %b, %w)\n  %r = relu(%c)\n  return %r\n}\n",
           "graph g(%a: f32[3, 140, 20], %b: f32[3, 20, 30]) {\n"
           "  %c = bmm(%a, %b)\n  %t = transpose.int(%c, 1, 2)\n  %d = neg(%t)\n  return %d\n}\n",
           "graph g(%a: f32[1, 40]) {\n"
           "  const %b: f32[30, 40] = seed 1\n  %c = linear(%a, %b, None)\n  return %c\n}\n",
       }) {
    SCOPED_TRACE(text);
    const auto make = [&](const std::map<std::string, std::string>& set) {
      return ready(text, set);
    };
    expect_right(make, {{"openblas", blas}, {"prefer", "openblas"}}, "openblas");
    expect_right(make, {{"onednn", dnn}, {"prefer", "onednn"}}, "onednn");
  }
}

// Several images and blocks of channels, strides, dilation, groups, a bias, an epilogue, and a
// weight that is packed or not.
TEST_F(ExternLibraries, ConvolutionsByBlocks) {
  const std::string dnn = build("onednn");
  for (const char* text : {
           "graph g(%x: f32[2, 3, 9, 11], %w: f32[64, 3, 3, 3]) {\n"
           "  %y = convolution(%x, %w, None, [2, 1], [1, 2], [1, 1], false, [0, 0], 1)\n"
           "  return %y\n}\n",
           "graph g(%x: f32[2, 6, 9, 11]) {\n"
           "  const %w: f32[96, 6, 3, 2] = seed 1\n  const %b: f32[96] = seed 2\n"
           "  %y = convolution(%x, %w, %b, [1, 2], [2, 0], [2, 1], false, [0, 0], 1)\n"
           "  %r = relu(%y)\n  return %r\n}\n",
           "graph g(%x: f32[2, 64, 5, 5]) {\n"
           "  const %w: f32[64, 1, 3, 3] = seed 1\n"
           "  %y = convolution(%x, %w, None, [1, 1], [1, 1], [1, 1], false, [0, 0], 64)\n"
           "  %r = relu(%y)\n  return %r\n}\n",
           "graph g(%x: f32[1, 6, 30]) {\n"
           "  const %w: f32[8, 3, 4] = seed 1\n  const %b: f32[8] = seed 2\n"
           "  %y = convolution(%x, %w, %b, [2], [0], [1], false, [0], 2)\n  return %y\n}\n",
       }) {
    SCOPED_TRACE(text);
    expect_right([&](const std::map<std::string, std::string>& set) { return ready(text, set); },
                 {{"onednn", dnn}, {"prefer", "onednn"}}, "onednn");
  }
}

TEST_F(ExternLibraries, NodesThatALibraryDoesNotTake) {
  const std::string dnn = build("onednn"), blas = build("openblas");
  const std::map<std::string, std::string> options = {
      {"onednn", dnn}, {"openblas", blas}, {"prefer", "onednn,openblas"}};
  const auto reasons = [&](const std::string& text, std::map<std::string, std::string> set) {
    const ReadyModel model = ready(text, set);
    EXPECT_EQ(model.compilation->choices.at(0).candidate, "template");
    return join(model.compilation->choices.at(0).refused, "; ",
                [](const Choice::Refusal& r) { return r.candidate + ": " + r.reason; });
  };
  const std::string half =
      "graph g(%a: bf16[8, 8], %b: bf16[8, 8]) {\n  %c = mm(%a, %b)\n  return %c\n}\n";
  EXPECT_EQ(reasons(half, options),
            "onednn: it takes f32 alone, not bf16 into bf16; openblas: it takes f32 alone, not "
            "bf16 into bf16");
  const std::string dynamic =
      "graph g(%x: f32[s0, 8, 9, 9]) {\n  size s0 in 1..64\n  const %w: f32[8, 8, 3, 3] = seed 1\n"
      "  %y = convolution(%x, %w, None, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)\n"
      "  return %y\n}\n";
  EXPECT_EQ(reasons(dynamic, options), "onednn: sizes are not known before a call");
  const std::string isa = "option isa is plain: a library chooses its instructions by itself";
  std::map<std::string, std::string> plain = options;
  plain["isa"] = "plain";
  EXPECT_EQ(reasons(dynamic, plain), "onednn: " + isa);
  EXPECT_EQ(reasons(dynamic, {{"prefer", "onednn"}}),
            "onednn: option onednn is off: a library's bits are its own");
  std::map<std::string, std::string> absent = options;
  absent["onednn"] = (folder_ / "absent.so").string();
  EXPECT_EQ(
      reasons(dynamic, absent),
      str("onednn: the library ({0}) is refused: {0}: cannot open shared object file: No such "
          "file or directory",
          absent["onednn"]));
}

}  // namespace
}  // namespace coil
