// The text of a schedule: groups with their bodies, decisions with reasons, memory.

#include "base/text.h"
#include "schedule/schedule.h"

namespace coil {
namespace {

class SchedulePrinter {
 public:
  SchedulePrinter(const LoopProgram& program, const Schedule& schedule, TextWriter& out)
      : program_(program), schedule_(schedule), syms_(*program.syms), out_(out) {}

  void run() {
    out_.line("schedule {} {{", program_.name);
    out_.indent();
    for (const ScheduleStep& step : schedule_.order) {
      if (const auto* group = std::get_if<GroupId>(&step))
        print(schedule_.groups[*group]);
      else if (const auto* node = std::get_if<StructuredId>(&step))
        print(program_.structured[*node]);
      else
        print(program_.controls[std::get<ControlId>(step)]);
    }
    for (const Decision& d : schedule_.decisions)
      out_.line("{} {} -> {}  {}", answer(d), d.from, d.to, d.reason);
    memory();
    for (std::size_t i = 0; i < schedule_.subschedules.size(); ++i)
      SchedulePrinter(program_.subprograms[i], schedule_.subschedules[i], out_).run();
    out_.dedent();
    out_.raw_line("}");
  }

 private:
  static const char* answer(const Decision& d) {
    switch (d.question) {
      case Question::Share: return d.yes ? "yes  " : "no   ";
      case Question::Recompute: return d.yes ? "again" : "once ";
    }
    COIL_UNREACHABLE();
  }

  std::string axes(const std::vector<Axis>& list) const {
    return join(list, ", ", [&](const Axis& a) {
      return str("{} < {}", syms_.text(a.var), syms_.text(a.extent));
    });
  }

  void print(const Group& g, const char* word = "group") {
    std::string head = str("{} {}", word, g.name);
    if (g.init) head += " init";
    if (!g.grid.empty() || !g.inner.empty()) head += " axes " + axes(g.grid);
    if (!g.inner.empty()) head += " | " + axes(g.inner);
    out_.raw_line(head);
    out_.indent();
    if (g.node.valid()) print(program_.structured[g.node]);
    for (const Instance& i : g.instances) {
      const Body& body = program_.bodies[i.body];
      std::vector<std::string> dims;
      for (std::size_t d = 0; d < i.dims.size(); ++d)
        dims.push_back(str("{}={}", syms_.text(body.dims[d].var), syms_.text(i.dims[d])));
      const std::string stage = g.inner.empty() ? "" : str(" stage {}", i.stage);
      out_.line("holds {} ({}){}", body.name,
                join(dims, ", ", [](const std::string& s) { return s; }), stage);
    }
    for (const Group& part : g.closing) print(part, "closes with");
    out_.dedent();
  }

  void print(const Structured& node) {
    const auto buffers = [&](const std::vector<Access>& list) {
      return join(list, ", ",
                  [&](const Access& a) { return "%" + program_.buffers[a.buffer].name; });
    };
    out_.line("node {} ({}) -> {}", node.name, buffers(node.inputs), buffers(node.outputs));
  }
  void print(const Control& c) { out_.line("control {}", c.name); }

  void memory() {
    out_.raw_line("memory");
    out_.indent();
    for (BufferId b : program_.buffers.ids()) {
      const BufferPlan& p = schedule_.buffers.get(b);
      const std::string name = "%" + program_.buffers[b].name;
      const std::string size = syms_.text(bytes_of(syms_, program_.buffers[b]));
      switch (p.place) {
        case Place::External: break;
        case Place::Arena:
          out_.line("{} slot {}, {} bytes, live {}..{}", name, p.slot, size, p.first, p.last);
          break;
        case Place::Within:
          out_.line("{} takes over %{} in slot {}", name,
                    program_.buffers[program_.buffers[b].starts].name, p.slot);
          break;
        case Place::Output: out_.line("{} output, {} bytes", name, size); break;
        case Place::Derived: out_.line("{} made at init, {} bytes", name, size); break;
        case Place::Heap: out_.line("{} allocated in the call, {} bytes", name, size); break;
        case Place::Gone:
          out_.line("{} gone: {}", name,
                    schedule_.recomputed.get(b).valid() ? "computed where it is read"
                                                        : "stays in registers");
          break;
        case Place::Kept: out_.line("{} kept: a row in its kernel's scratch", name); break;
      }
    }
    for (std::size_t s = 0; s < schedule_.slots.size(); ++s)
      out_.line("slot {} : {} bytes", s, syms_.text(schedule_.slots[s].bytes));
    out_.dedent();
  }

  const LoopProgram& program_;
  const Schedule& schedule_;
  sym::Arena& syms_;
  TextWriter& out_;
};

}  // namespace

std::string to_text(const LoopProgram& program, const Schedule& schedule) {
  TextWriter out;
  SchedulePrinter(program, schedule, out).run();
  return out.text();
}

}  // namespace coil
