#include <coil/coil.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace {

class CApi : public ::testing::Test {
 protected:
  std::string write(const std::string& text) {
    const std::string path =
        ::testing::TempDir() + "c_api_test_" + std::to_string(::getpid()) + ".graph";
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(CApi, CompilesAndCallsAModel) {
  const std::string path = write(
      "graph double_it(%x: f32[s0, 3]) {\n"
      "  size s0 in 0..64\n"
      "  %y = add.Tensor(%x, %x) : f32[s0, 3]\n"
      "  return %y\n"
      "}\n");
  coil::api::Model model(path, {"target=cpp"});
  EXPECT_EQ(model.input_names(), std::vector<std::string>{"x"});
  for (int64_t rows : {0, 1, 2, 17}) {
    std::vector<float> x(static_cast<std::size_t>(rows) * 3);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 2;
    const std::vector<int64_t> shape = {rows, 3};
    const coil::api::Results results = model({coil::api::tensor(COIL_F32, shape, x.data())});
    ASSERT_EQ(results.size(), 1u);
    const coil_value y = results[0];
    ASSERT_EQ(y.kind, COIL_TENSOR);
    ASSERT_EQ(y.ndim, 2);
    EXPECT_EQ(y.shape[0], rows);
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_EQ(static_cast<const float*>(y.data)[i], 2 * x[i]);
  }
}

TEST_F(CApi, ErrorsAreMessages) {
  char* error = nullptr;
  EXPECT_EQ(coil_load("/nowhere/model.pt2", nullptr, 0, &error), nullptr);
  ASSERT_NE(error, nullptr);
  EXPECT_NE(std::string(error).find("/nowhere/model.pt2"), std::string::npos);
  coil_free_text(error);
  const char* options[] = {"targt=cpp"};
  error = nullptr;
  EXPECT_EQ(coil_load("x", options, 1, &error), nullptr);
  ASSERT_NE(error, nullptr);
  EXPECT_NE(std::string(error).find("did you mean 'target'"), std::string::npos);
  coil_free_text(error);
}

TEST_F(CApi, AWrongArgumentIsNamed) {
  coil::api::Model model(write("graph g(%x: f32[2]) {\n  %y = neg(%x)\n  return %y\n}\n"),
                         {"target=interp"});
  std::vector<double> x(2);
  const std::vector<int64_t> shape = {2};
  try {
    model({coil::api::tensor(COIL_F64, shape, x.data())});
    FAIL() << "an f64 argument was taken for f32";
  } catch (const coil::api::Failure& e) {
    EXPECT_NE(std::string(e.what()).find("input 0 (x) is f64, expected f32"), std::string::npos)
        << e.what();
  }
}

}  // namespace
