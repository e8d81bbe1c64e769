#include "driver/runner.h"

#include <mutex>

#include "driver/program_cache.h"
#include "runtime/plan_format.h"

namespace coil {
namespace {

class InterpRunner : public Runner {
 public:
  explicit InterpRunner(interp::Interp interp) : interp_(std::move(interp)) {}
  Result<std::vector<runtime::Value>> call(std::span<const runtime::Value> inputs) override {
    return interp_.run(inputs);
  }

 private:
  interp::Interp interp_;
};

class CompiledRunner : public Runner {
 public:
  CompiledRunner(std::shared_ptr<Compilation> compilation,
                 std::unique_ptr<runtime::Instance> instance)
      : compilation_(std::move(compilation)), instance_(std::move(instance)) {}
  Result<std::vector<runtime::Value>> call(std::span<const runtime::Value> inputs) override {
    Result<std::vector<runtime::Value>> out = instance_->call(inputs);
    if (out.ok() || !runtime::has_marks(out.error().message)) return out;
    std::call_once(named_, [&] { names_ = present_names(*compilation_); });
    return Error{runtime::with_names(out.error().message, names_)};
  }

 private:
  std::shared_ptr<Compilation> compilation_;
  std::unique_ptr<runtime::Instance> instance_;
  std::once_flag named_;
  std::vector<std::string> names_;  // of a plan from the program cache, once a message needs them
};

}  // namespace

Result<std::unique_ptr<Runner>> make_runner(const std::shared_ptr<Compilation>& compilation,
                                            bool f64_outputs) {
  if (compilation->options.text("target") == "interp") {
    interp::InterpOptions options;
    options.widen = compilation->options.text("interp.widen") == "f64";
    options.f64_outputs = f64_outputs;
    interp::Interp made = COIL_TRY(interp::Interp::create(compilation->program, options));
    return std::unique_ptr<Runner>(new InterpRunner(std::move(made)));
  }
  std::unique_ptr<runtime::Instance> instance =
      COIL_TRY(runtime::Instance::open(compilation->model));
  return std::unique_ptr<Runner>(new CompiledRunner(compilation, std::move(instance)));
}

Result<std::shared_ptr<Compilation>> compile(const LoadedModel& model, const Options& options,
                                             const Environment& environment) {
  return std::visit([&](const auto& program) { return compile(program, options, environment); },
                    model.program);
}

Result<ReadyModel> make_ready(const LoadedModel& model, const Options& options,
                              const Environment& environment) {
  ReadyModel out;
  out.compilation = COIL_TRY(compile(model, options, environment));
  out.runner = COIL_TRY(make_runner(out.compilation));
  return out;
}

}  // namespace coil
