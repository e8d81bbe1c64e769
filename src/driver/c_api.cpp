// The C interface: turns Results and exceptions into messages, and values into plain structs.

#include <coil/coil.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "driver/runner.h"

struct coil_model {
  coil::ReadyModel ready;
  std::mutex turn;  // the interpreter runs one call at a time
};

struct coil_results {
  std::vector<coil::runtime::Value> values;
};

namespace coil {
namespace {

static_assert(COIL_C128 + 1 == kNumDTypes && COIL_BOOL == static_cast<int>(DType::b8) &&
                  COIL_F32 == static_cast<int>(DType::f32),
              "coil_dtype has the order of DType");

void set_error(char** error, const std::string& text) {
  if (!error) return;
  *error = static_cast<char*>(std::malloc(text.size() + 1));
  if (*error) std::memcpy(*error, text.c_str(), text.size() + 1);
}

/// Runs `f`; whatever goes wrong becomes a message and a null result.
template <class T, class F>
T* guarded(char** error, F f) {
  try {
    Result<T*> made = f();
    if (made.ok()) return *made;
    set_error(error, made.error().message);
  } catch (const std::bad_alloc&) {
    set_error(error, "out of memory");
  } catch (const std::exception& e) {
    set_error(error, str("internal error (a defect of coil): {}", e.what()));
  }
  return nullptr;
}

Result<runtime::Value> value_of(const coil_value& v, std::size_t index) {
  switch (v.kind) {
    case COIL_INT: return runtime::Value(i64{v.integer});
    case COIL_FLOAT: return runtime::Value(v.real);
    case COIL_TRUTH: return runtime::Value(v.integer != 0);
    case COIL_TEXT: return runtime::Value(std::string(v.text ? v.text : ""));
    case COIL_NONE: return runtime::Value(std::monostate{});
    case COIL_TENSOR: break;
  }
  if (v.dtype < 0 || v.dtype >= kNumDTypes || v.ndim < 0 || (v.ndim > 0 && !v.shape))
    return error("input {} is not a sound tensor", index);
  runtime::Tensor t;
  t.dtype = static_cast<DType>(v.dtype);
  t.shape.assign(v.shape, v.shape + v.ndim);
  if (v.strides)
    t.strides.assign(v.strides, v.strides + v.ndim);
  else
    t.strides = runtime::contiguous_strides(t.shape);
  const i64 elements = COIL_TRY(runtime::span_elements(t.shape, t.strides));
  if (elements > 0 && !v.data) return error("input {} has no data", index);
  t.data = static_cast<std::byte*>(v.data);
  return runtime::Value(t);
}

}  // namespace
}  // namespace coil

extern "C" {

coil_model* coil_load(const char* path, const char* const* options, size_t count, char** error) {
  using namespace coil;
  return guarded<coil_model>(error, [&]() -> Result<coil_model*> {
    Options parsed;
    for (size_t i = 0; i < count; ++i) {
      const std::string text = options[i];
      const std::size_t at = text.find('=');
      if (at == text.npos) return coil::error("option '{}' lacks a value; write key=value", text);
      COIL_TRY(parsed.set(text.substr(0, at), text.substr(at + 1)));
    }
    const char* search_path = std::getenv("PATH");
    const Environment environment{search_path ? search_path : "", parsed.text("cache_dir")};
    const LoadedModel model = COIL_TRY(load_model(path));
    auto made = std::make_unique<coil_model>();
    made->ready = COIL_TRY(make_ready(model, parsed, environment));
    return made.release();
  });
}

void coil_free_model(coil_model* model) { delete model; }

size_t coil_input_count(const coil_model* model) {
  return model->ready.compilation->program.inputs.size();
}

const char* coil_input_name(const coil_model* model, size_t index) {
  const auto& inputs = model->ready.compilation->program.inputs;
  return index < inputs.size() ? inputs[index].name.c_str() : nullptr;
}

coil_results* coil_call(coil_model* model, const coil_value* inputs, size_t count, char** error) {
  using namespace coil;
  return guarded<coil_results>(error, [&]() -> Result<coil_results*> {
    std::vector<runtime::Value> values;
    for (size_t i = 0; i < count; ++i) values.push_back(COIL_TRY(value_of(inputs[i], i)));
    auto made = std::make_unique<coil_results>();
    if (model->ready.compilation->options.text("target") == "interp") {
      std::lock_guard<std::mutex> lock(model->turn);
      made->values = COIL_TRY(model->ready.runner->call(values));
    } else {
      made->values = COIL_TRY(model->ready.runner->call(values));
    }
    return made.release();
  });
}

size_t coil_result_count(const coil_results* results) { return results->values.size(); }

coil_value coil_result(const coil_results* results, size_t index) {
  using namespace coil;
  coil_value out{};
  out.kind = COIL_NONE;
  if (index >= results->values.size()) return out;
  const runtime::Value& v = results->values[index];
  if (const auto* t = std::get_if<runtime::Tensor>(&v)) {
    out.kind = COIL_TENSOR;
    out.dtype = static_cast<coil_dtype>(t->dtype);
    out.ndim = static_cast<int32_t>(t->shape.size());
    out.shape = t->shape.data();
    out.strides = t->strides.data();
    out.data = t->data;
  } else if (const auto* i = std::get_if<i64>(&v)) {
    out.kind = COIL_INT;
    out.integer = *i;
  } else if (const auto* f = std::get_if<double>(&v)) {
    out.kind = COIL_FLOAT;
    out.real = *f;
  } else if (const auto* b = std::get_if<bool>(&v)) {
    out.kind = COIL_TRUTH;
    out.integer = *b;
  } else if (const auto* s = std::get_if<std::string>(&v)) {
    out.kind = COIL_TEXT;
    out.text = s->c_str();
  }
  return out;
}

void coil_free_results(coil_results* results) { delete results; }

void coil_free_text(char* text) { std::free(text); }

}  // extern "C"
