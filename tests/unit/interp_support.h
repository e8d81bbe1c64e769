#pragma once
// Programs in text, run by the interpreter on small tensors.

#include <gtest/gtest.h>

#include <cstring>

#include "target/interp/interp.h"

namespace coil::interp_test {

template <class T>
runtime::Tensor tensor(DType dtype, std::vector<i64> shape, const std::vector<T>& data) {
  runtime::Tensor t = *runtime::Tensor::allocate(dtype, std::move(shape));
  EXPECT_EQ(t.numel(), static_cast<i64>(data.size()));
  EXPECT_EQ(static_cast<std::size_t>(size_of(dtype)), sizeof(T));
  if (!data.empty()) std::memcpy(t.data, data.data(), data.size() * sizeof(T));
  return t;
}
inline runtime::Tensor floats(std::vector<i64> shape, const std::vector<float>& data) {
  return tensor(DType::f32, std::move(shape), data);
}
inline runtime::Tensor ints(std::vector<i64> shape, const std::vector<i64>& data) {
  return tensor(DType::i64, std::move(shape), data);
}

template <class T>
std::vector<T> elements(const runtime::Value& value) {
  const auto& t = std::get<runtime::Tensor>(value);
  EXPECT_EQ(static_cast<std::size_t>(size_of(t.dtype)), sizeof(T));
  const runtime::Tensor dense = *t.contiguous();
  std::vector<T> data(static_cast<std::size_t>(dense.numel()));
  if (!data.empty()) std::memcpy(data.data(), dense.data, data.size() * sizeof(T));
  return data;
}

inline LoopProgram parse(const std::string& lines) {
  Result<LoopProgram> program = parse_program("program p {\n" + lines + "\n}", "t");
  EXPECT_TRUE(program.ok()) << program.error().message;
  return program.ok() ? std::move(*program) : LoopProgram{};
}

inline std::vector<runtime::Value> run(const std::string& lines,
                                       const std::vector<runtime::Value>& inputs,
                                       interp::InterpOptions options = {}) {
  const auto values = interp::run(parse(lines), inputs, options);
  EXPECT_TRUE(values.ok()) << values.error().message;
  return values.ok() ? *values : std::vector<runtime::Value>(8);
}

/// The message of a call that fails.
inline std::string run_error(const std::string& lines, const std::vector<runtime::Value>& inputs) {
  const auto values = interp::run(parse(lines), inputs, {});
  return values.ok() ? "" : values.error().message;
}

}  // namespace coil::interp_test
