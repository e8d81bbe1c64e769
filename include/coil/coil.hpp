#pragma once
// The C interface in C++: owners that free themselves, and errors as exceptions.

#include <coil/coil.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace coil::api {

/// What a function of the C interface said when it failed.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The results of one call. Values stay valid while this object lives.
class Results {
 public:
  explicit Results(coil_results* results) : results_(results, coil_free_results) {}
  std::size_t size() const { return coil_result_count(results_.get()); }
  coil_value operator[](std::size_t index) const { return coil_result(results_.get(), index); }

 private:
  std::unique_ptr<coil_results, void (*)(coil_results*)> results_;
};

/// A compiled model. Throws Failure.
class Model {
 public:
  /// `options`: "key=value", as after -O on the command line.
  explicit Model(const std::string& path, const std::vector<std::string>& options = {})
      : model_(load(path, options), coil_free_model) {}

  Results operator()(const std::vector<coil_value>& inputs) {
    char* error = nullptr;
    coil_results* results = coil_call(model_.get(), inputs.data(), inputs.size(), &error);
    if (!results) fail(error);
    return Results(results);
  }

  std::vector<std::string> input_names() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < coil_input_count(model_.get()); ++i)
      names.emplace_back(coil_input_name(model_.get(), i));
    return names;
  }

 private:
  [[noreturn]] static void fail(char* error) {
    const std::string text = error ? error : "unknown error";
    coil_free_text(error);
    throw Failure(text);
  }

  static coil_model* load(const std::string& path, const std::vector<std::string>& options) {
    std::vector<const char*> texts;
    for (const std::string& o : options) texts.push_back(o.c_str());
    char* error = nullptr;
    coil_model* model = coil_load(path.c_str(), texts.data(), texts.size(), &error);
    if (!model) fail(error);
    return model;
  }

  std::unique_ptr<coil_model, void (*)(coil_model*)> model_;
};

/// A contiguous tensor argument over memory that outlives the call.
inline coil_value tensor(coil_dtype dtype, const std::vector<int64_t>& shape, void* data) {
  coil_value v{};
  v.kind = COIL_TENSOR;
  v.dtype = dtype;
  v.ndim = static_cast<int32_t>(shape.size());
  v.shape = shape.data();
  v.data = data;
  return v;
}

}  // namespace coil::api
