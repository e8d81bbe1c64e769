// The command line of coil.

#include <CLI/CLI.hpp>
#include <charconv>

#include "cli.h"

namespace coil::cli {
namespace {

// In words of our own: those of CLI::Range are not the same in all releases.
std::string thread_count(const std::string& text) {
  int count = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool is_right =
      status == std::errc() && end == text.data() + text.size() && count >= 1 && count <= 1024;
  return is_right ? "" : str("Value {} not in range 1 to 1024", text);
}

void add_common(CLI::App& command, Common& common) {
  command
      .add_option("MODEL", common.model,
                  "a .pt2 that torch.export saved, or coil's text of level 0 or 1")
      ->required();
  command.add_option("--target", common.target,
                     "cpp (compiled kernels, the default) or interp (the oracle)");
  command.add_option("--threads", common.threads, "threads of the pool (default: one per core)")
      ->check(thread_count);
  command
      .add_option("-O", common.options,
                  "key=value, an option of the compiler; see `coil --options`")
      ->allow_extra_args(false);
}

void add_inputs(CLI::App& command, Common& common) {
  command.add_option(
      "--inputs", common.inputs,
      "an .npz with the inputs: arrays named as the inputs are, or in0, in1, ...; _bf16 marks "
      "bfloat16 bits as uint16, _callK the K-th call");
  command.add_option("--seed", common.seed,
                     "seed of the random numbers that the model draws, and of random inputs where "
                     "--inputs is not given (default 0)");
}

int guarded(const std::function<Result<int>()>& command) {
  try {
    const Result<int> code = command();
    if (code.ok()) return *code;
    print_error(code.error().message);
    return kUserError;
  } catch (const InternalError& e) {
    print_error(str("internal error (a defect of coil): {}", e.what()));
    return kDefect;
  } catch (const std::bad_alloc&) {
    print_error("out of memory");
    return kUserError;
  } catch (const std::exception& e) {
    print_error(str("internal error (a defect of coil): {}", e.what()));
    return kDefect;
  }
}

struct Arguments {
  RunArguments run;
  CheckArguments check;
  BenchArguments bench;
  Common explain;
  DumpArguments dump;
  std::string cache_action;
};

void declare(CLI::App& app, Arguments& a, std::function<Result<int>()>& chosen) {
  CLI::App* run = app.add_subcommand(
      "run", "compile a model and run it, and compare its outputs with expected ones");
  add_common(*run, a.run.common);
  add_inputs(*run, a.run.common);
  run->add_option("--outputs", a.run.outputs, "write the outputs to this .npz");
  run->add_option("--expect", a.run.expect,
                  "compare the outputs with this .npz (arrays out0, out1, ...)");
  run->add_option("--rtol", a.run.rtol,
                  "relative tolerance (default: that of torch.testing.assert_close)");
  run->add_option("--atol", a.run.atol, "absolute tolerance (likewise)");
  run->footer("example: coil run model.pt2 --inputs in.npz --expect out.npz -O isa=avx2");
  run->callback([&] { chosen = [&] { return cli::run(a.run); }; });

  CLI::App* check = app.add_subcommand(
      "check", "compare every target, fused and unfused, with the interpreter in double");
  add_common(*check, a.check.common);
  add_inputs(*check, a.check.common);
  check->callback([&] { chosen = [&] { return cli::check(a.check); }; });

  CLI::App* bench = app.add_subcommand("bench", "compile time by stage, run time, kernels, memory");
  add_common(*bench, a.bench.common);
  add_inputs(*bench, a.bench.common);
  bench->add_flag("--json", a.bench.json, "print one JSON object");
  bench->add_flag("--counts", a.bench.counts,
                  "only count kernels, bytes and operations; compiles nothing");
  bench->callback([&] { chosen = [&] { return cli::bench(a.bench); }; });

  CLI::App* explain = app.add_subcommand(
      "explain", "kernels with the ops and source lines they hold, decisions, memory");
  add_common(*explain, a.explain);
  explain->callback([&] { chosen = [&] { return cli::explain(a.explain); }; });

  CLI::App* dump = app.add_subcommand("dump", "each level of the compiler as text");
  add_common(*dump, a.dump.common);
  dump->add_option("--stage", a.dump.stages,
                   "graph,loops,schedule,kernels,plan,code,triton, or some of them (a .kernels "
                   "text has kernels,code,triton)");
  dump->add_option("-o", a.dump.folder, "write files into this folder instead of printing");
  dump->callback([&] { chosen = [&] { return cli::dump(a.dump); }; });

  CLI::App* cache =
      app.add_subcommand("cache", "the cache of compiled programs and objects ($COIL_CACHE_DIR)");
  cache->add_option("ACTION", a.cache_action, "stats, clear or verify")
      ->required()
      ->check(CLI::IsMember({"stats", "clear", "verify"}));
  cache->callback([&] { chosen = [&] { return cli::cache(a.cache_action); }; });
}

/// `; did you mean 'X'?`, or nothing if no candidate is near.
std::string suggestion(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string near = nearest(word, candidates);
  return near.empty() ? std::string() : str("; did you mean '{}'?", near);
}

/// What to say of words that no command or option takes. `words` are those of the command line.
std::string unexpected(const CLI::App& app, const std::vector<std::string>& words) {
  const std::vector<CLI::App*> given = app.get_subcommands();
  const auto is_option = [](const std::string& w) { return w.starts_with('-'); };
  if (given.empty()) {
    std::vector<std::string> names;
    for (const CLI::App* c : app.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(c->get_name());
    const auto word = std::find_if_not(words.begin(), words.end(), is_option);
    if (word != words.end()) return str("unknown command '{}'{}", *word, suggestion(*word, names));
  }
  const std::vector<std::string> left = app.remaining(true);
  const auto option = std::find_if(left.begin(), left.end(), is_option);
  if (option == left.end())
    return str("unexpected argument '{}'", left.empty() ? std::string() : left.front());
  const CLI::App& command = given.empty() ? app : *given.front();
  std::vector<std::string> names;
  for (const CLI::Option* o : command.get_options())
    for (const std::string& name : o->get_lnames()) names.push_back("--" + name);
  const std::string name = option->substr(0, option->find('='));
  return str("unknown option '{}'{}", name, suggestion(name, names));
}

int main(int argc, char** argv) {
  CLI::App app("coil compiles PyTorch graphs to fast kernels.", "coil");
  app.footer(
      "exit codes: 0 right, 1 a mismatch, 2 an error of the user or the environment, 3 a defect of "
      "coil");
  app.set_version_flag("--version", "coil 0.1.0");
  bool show_options = false;
  app.add_flag("--options", show_options, "list the compiler's options (-O key=value)");
  Arguments arguments;
  std::function<Result<int>()> chosen;
  declare(app, arguments, chosen);
  app.require_subcommand(0, 1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    const std::vector<CLI::App*> given = app.get_subcommands();
    const std::string what = dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr
                                 ? unexpected(app, {argv + 1, argv + argc})
                                 : std::string(e.what());
    print_error(
        str("{}\nsee `coil {}--help`", what, given.empty() ? "" : given.front()->get_name() + " "));
    return kUserError;
  }
  if (show_options) {
    print(Options::help());
    return kRight;
  }
  if (!chosen) {
    print(app.help());
    return kRight;
  }
  return guarded(chosen);
}

}  // namespace
}  // namespace coil::cli

int main(int argc, char** argv) { return coil::cli::main(argc, argv); }
