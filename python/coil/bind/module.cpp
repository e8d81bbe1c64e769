// The extension module coil._coil: graphs in, callables out. What is thin enough to be Python is
// in the package's .py files.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "callable.h"
#include "driver/load.h"
#include "graph/data.h"
#include "graph/text.h"
#include "import/functionalize.h"
#include "import/fx.h"
#include "import/pt2.h"
#include "ops/schema.h"
#include "passes/passes.h"

namespace coil::python {
namespace {

/// A graph or an option that coil does not take.
struct CompileFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class T>
T must(Result<T> made) {
  if (!made.ok()) throw CompileFailure(made.error().message);
  return std::move(*made);
}

/// A graph that Python read, until it is compiled.
struct Program {
  LoadedModel model;
  std::vector<MissingOp> missing;
  std::vector<InputMemory> memories;
};

/// What all compilations of a process share.
struct Session {
  std::shared_ptr<const Torch> torch;
  Environment environment;
};

Session make_session(const std::string& search_path, const std::string& cache_dir, int threads) {
  return {std::make_shared<Torch>(),
          {search_path, cache_dir, runtime::ThreadPool::create(threads)}};
}

/// The elements of a CPU tensor, whose memory is copied: constants of graphs are small.
Storage storage_of(const Torch& torch, nb::handle object) {
  runtime::Tensor t;
  torch.view(object.ptr(), t);
  const i64 elements = must(runtime::span_elements(t.shape, t.strides));
  const auto bytes = static_cast<std::size_t>(elements * size_of(t.dtype));
  return inline_storage({t.data, bytes});
}

/// The same without a copy: the tensor lives as long as the storage does.
Storage shared_storage(const Torch& torch, nb::handle object) {
  runtime::Tensor t;
  torch.view(object.ptr(), t);
  Storage storage;
  storage.source = StorageSource::File;  // texts do not show the elements
  storage.file = "torch";
  storage.bytes = must(runtime::span_elements(t.shape, t.strides)) * size_of(t.dtype);
  storage.data = t.data;
  const auto release = [](PyObject* tensor) {
    if (!Py_IsInitialized()) return;
    const nb::gil_scoped_acquire held;
    Py_DECREF(tensor);
  };
  storage.owner = std::shared_ptr<PyObject>(object.inc_ref().ptr(), release);
  return storage;
}

/// Ctrl-C while coil compiled, which also ends the compilers that it had started, is what the
/// caller hears of, and not that they failed.
void check_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

/// `copied` and `shared`: the tensors that the document's constants name, in that order.
Program import_graph(const Session& session, const std::string& document, const nb::list& copied,
                     const nb::list& shared) {
  std::vector<Storage> constants;
  for (nb::handle tensor : copied) constants.push_back(storage_of(*session.torch, tensor));
  for (nb::handle tensor : shared) constants.push_back(shared_storage(*session.torch, tensor));
  const nb::gil_scoped_release free;
  FxProgram read = must(import_fx(document, std::move(constants), &composite_rules()));
  Program out;
  out.missing = std::move(read.missing);
  out.memories = std::move(read.memories);
  out.model.type_differences = std::move(read.type_differences);
  out.model.program = std::move(read.graph);
  return out;
}

Program load_file(const std::string& path) {
  const nb::gil_scoped_release free;
  return {must(load_model(path)), {}, {}};
}

std::unique_ptr<Callable> compile_program(const Session& session, const Program& program,
                                          const Options& options, std::vector<int> passed) {
  std::optional<Result<std::shared_ptr<Compilation>>> compilation;
  {
    const nb::gil_scoped_release free;
    compilation = compile(program.model, options, session.environment);
  }
  check_signals();
  CallForm form{std::move(passed), program.memories, {}};
  if (const auto* graph = std::get_if<Graph>(&program.model.program))
    for (const Output& output : graph->outputs)
      if (output.kind == OutputKind::MutatedInput) form.written.insert(output.target);
  return std::make_unique<Callable>(session.torch, must(std::move(*compilation)), std::move(form));
}

std::string graph_text(const Program& program) {
  const auto* graph = std::get_if<Graph>(&program.model.program);
  return graph ? to_text(*graph) : to_text(std::get<LoopProgram>(program.model.program));
}

std::vector<std::string> input_names(const Callable& callable) {
  std::vector<std::string> names;
  for (const auto& input : callable.compilation().program.inputs) names.push_back(input.name);
  return names;
}

std::vector<std::pair<std::string, double>> stage_times(const Callable& callable) {
  std::vector<std::pair<std::string, double>> times;
  for (const StageTime& t : callable.compilation().times) times.emplace_back(t.name, t.ms);
  return times;
}

}  // namespace

NB_MODULE(_coil, m) {
  nb::set_leak_warnings(false);  // compiled functions may outlive the interpreter
  m.doc() = "The compiled part of coil. Use the package coil.";
  const nb::object base = nb::steal(PyErr_NewExceptionWithDoc(
      "coil.CoilError", "What coil says when it fails.", PyExc_RuntimeError, nullptr));
  m.attr("CoilError") = base;
  nb::exception<CompileFailure>(m, "CompileError", base.ptr());
  nb::exception<RunFailure>(m, "RunError", base.ptr());

  nb::class_<Options>(m, "Options")
      .def(nb::init<>())
      .def(
          "set",
          [](Options& o, const std::string& key, const std::string& value) {
            must(o.set(key, value));
          },
          nb::arg("key"), nb::arg("value"), "Sets one option; CompileError for an unknown one.")
      .def_static("help", &Options::help, "All options, one a line.");

  nb::class_<Session>(m, "Session", "What all compilations of a process share.")
      .def(
          "__init__",
          [](Session* self, const std::string& search_path, const std::string& cache_dir,
             int threads) { new (self) Session(make_session(search_path, cache_dir, threads)); },
          nb::arg("search_path"), nb::arg("cache_dir"), nb::arg("threads"))
      .def("import_graph", &import_graph, nb::arg("document"), nb::arg("copied"),
           nb::arg("shared") = nb::list(),
           "Reads an FX graph written as JSON. The constants that it names are first those of "
           "`copied`, then those of `shared`, whose memory is used where it lies.")
      .def("compile", &compile_program, nb::arg("program"), nb::arg("options"),
           nb::arg("passed") = std::vector<int>(),
           "`passed`: by result, the argument that is returned in its place, or -1.");

  nb::class_<Program>(m, "Program", "A graph that was read, not yet compiled.")
      .def_prop_ro(
          "missing",
          [](const Program& p) {
            std::vector<std::tuple<std::string, std::string, int>> rows;
            for (const MissingOp& o : p.missing) rows.emplace_back(o.op, o.place, o.count);
            return rows;
          },
          "Ops that coil has not: name, first place, uses.")
      .def_prop_ro("type_differences", [](const Program& p) { return p.model.type_differences; })
      .def_prop_ro("warnings", [](const Program& p) { return p.model.warnings; })
      .def(
          "set_random_seed", [](Program& p, u64 seed) { set_random_seed(p.model, seed); },
          nb::arg("seed"), "Of the random numbers that a file's program draws.")
      .def("text", &graph_text, "coil's text of the graph.");
  m.def(
      "has_op", [](const std::string& op) { return can_import(op, composite_rules()); },
      nb::arg("op"), "Whether coil takes this op of ATen: \"add.Tensor\", \"relu\".");
  m.def(
      "is_random", [](const std::string& op) { return ops::is_random(op); }, nb::arg("op"),
      "Whether this op of ATen draws random numbers that coil makes.");
  m.def("load", &load_file, nb::arg("path"), "Reads a .pt2 file or coil's text.");

  nb::class_<Callable>(m, "Callable", nb::dynamic_attr(), "A compiled graph.")
      .def("__call__", &Callable::call, nb::arg("args"),
           "Runs on a list of tensors and numbers; a list of the results.")
      .def_prop_ro("input_names", &input_names)
      .def_prop_ro("stage_times", &stage_times, "Milliseconds by pass.")
      .def_prop_ro("kernel_names",
                   [](const Callable& c) {
                     std::vector<std::string> names;
                     for (const Kernel& k : c.compilation().kernels) names.push_back(k.name);
                     return names;
                   })
      .def_prop_ro(
          "sources", [](const Callable& c) { return c.compilation().sources; },
          "Generated C++ by kernel.");
}

}  // namespace coil::python
