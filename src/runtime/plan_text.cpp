// The text of a plan, for `dump --stage plan` and `explain`.

#include "base/text.h"
#include "runtime/plan.h"

namespace coil::runtime {
namespace {

const char* spelling(ExprOp op) {
  switch (op) {
    case ExprOp::Push:
    case ExprOp::Load: return "";
    case ExprOp::Add: return "+";
    case ExprOp::Mul: return "*";
    case ExprOp::FloorDiv: return "//";
    case ExprOp::Mod: return "%";
    case ExprOp::Min: return "min";
    case ExprOp::Max: return "max";
    case ExprOp::Eq: return "==";
    case ExprOp::Ne: return "!=";
    case ExprOp::Lt: return "<";
    case ExprOp::Le: return "<=";
    case ExprOp::And: return "and";
    case ExprOp::Or: return "or";
    case ExprOp::Not: return "not";
    case ExprOp::Select: return "select";
  }
  return "";
}

std::string strip(const std::string& text) {
  return text.size() > 1 && text.front() == '(' && text.back() == ')'
             ? text.substr(1, text.size() - 2)
             : text;
}

class PlanPrinter {
 public:
  PlanPrinter(const Plan& plan, const std::vector<std::string>& symbols, TextWriter& out)
      : plan_(plan), symbols_(symbols), out_(out) {}

  void run() {
    out_.line("plan {} {{", plan_.name);
    out_.indent();
    checks();
    if (!plan_.slots.empty()) {
      out_.raw_line("arena");
      out_.indent();
      for (std::size_t i = 0; i < plan_.slots.size(); ++i)
        out_.line("slot {} : {} bytes", i, expr(plan_.slots[i]));
      out_.dedent();
    }
    section("init", plan_.init);
    section("run", plan_.run);
    outputs();
    out_.dedent();
    out_.raw_line("}");
  }

 private:
  std::string expr(ExprRef e) const { return to_text(plan_.exprs[e], symbols_); }
  std::string list(const std::vector<ExprRef>& exprs) const {
    return "[" + join(exprs, ", ", [&](ExprRef e) { return expr(e); }) + "]";
  }
  std::string place(u32 buffer) const {
    if (buffer == kBlockBuffer) return "block";
    const PlanBuffer& b = plan_.buffers[buffer];
    if (b.where == Where::Arena) return str("%{} in slot {}", b.name, b.source);
    return "%" + b.name;
  }
  std::string places(const std::vector<u32>& buffers) const {
    return join(buffers, ", ", [&](u32 b) { return place(b); });
  }

  void checks() {
    for (const PlanInput& i : plan_.inputs) {
      if (i.kind == PlanInput::Kind::Tensor)
        out_.line("check  %{} {} {}", i.name, name(i.dtype), list(i.shape));
      if (i.kind == PlanInput::Kind::Int) out_.line("check  %{} int {}", i.name, expr(i.value));
      if (i.kind == PlanInput::Kind::Float) out_.line("check  %{} float", i.name);
      if (i.kind == PlanInput::Kind::Fixed) out_.line("check  %{} fixed", i.name);
    }
    for (const Binding& b : plan_.bindings)
      out_.line("bind   {} = {}{}", symbols_[b.symbol],
                b.dim < 0 ? "%" + plan_.inputs[b.input].name
                          : str("%{} dim {}", plan_.inputs[b.input].name, b.dim),
                b.factor == 1 ? std::string() : str(" / {}", b.factor));
    for (const SymbolRange& r : plan_.ranges)
      out_.line("check  {} in {}..{}", symbols_[r.symbol], r.lo,
                r.hi == INT64_MAX ? "" : std::to_string(r.hi));
    for (const PlanCheck& c : plan_.checks) print(c);
  }

  void section(const char* title, const std::vector<PlanStep>& steps) {
    if (steps.empty()) return;
    out_.raw_line(title);
    out_.indent();
    for (const PlanStep& s : steps) std::visit([&](const auto& step) { print(step); }, s);
    out_.dedent();
  }

  void print(const Launch& l) {
    out_.line("launch k{} ({}) units {}{}", l.kernel, places(l.buffers), expr(l.units),
              l.serial ? " serial" : "");
  }
  void print(const Call& c) {
    std::vector<std::string> operands;
    for (const PlanOperand& o : c.operands)
      if (o.buffer != kNoBuffer) operands.push_back(place(o.buffer) + " " + list(o.shape));
    if (c.packed) operands.push_back(place(*c.packed));
    out_.line("call   {} ({}){}", c.name,
              join(operands, ", ", [](const std::string& text) { return text; }),
              c.epilogue
                  ? str(" epilogue k{} ({})", c.epilogue->kernel, places(c.epilogue->buffers))
                  : std::string());
  }
  void print(const CopyStep& c) { out_.line("copy   {} to {}", place(c.from), place(c.to)); }
  void print(const ReadSize& r) {
    out_.line("size   {} from {}", symbols_[r.symbol], place(r.buffer));
  }
  void print(const PlanCheck& c) { out_.line("check  {}", c.text); }
  void print(const ControlStep& c) {
    switch (c.kind) {
      case ControlStep::Kind::If:
        out_.line("if {} {{  # {}",
                  c.predicate >= 0 ? place(static_cast<u32>(c.predicate)) : expr(c.condition),
                  c.name);
        break;
      case ControlStep::Kind::While: out_.line("while {{  # {}", c.name); break;
      case ControlStep::Kind::For:
        out_.line("for {} < {} {{  # {}", symbols_[c.step], expr(c.extent), c.name);
        break;
    }
    out_.indent();
    if (!c.carried.empty()) out_.line("carry  {}", places(c.carried));
    if (!c.operands.empty()) out_.line("read   {}", places(c.operands));
    if (!c.results.empty()) out_.line("give   {}", places(c.results));
    for (u32 p : c.plans) PlanPrinter(plan_.subplans[p], symbols_, out_).run();
    out_.dedent();
    out_.raw_line("}");
  }

  void outputs() {
    for (const PlanOutput& o : plan_.outputs) {
      const std::string window = o.kind <= PlanOutput::Kind::MutatedInput
                                     ? str("%{} {} {} strides {}", plan_.buffers[o.buffer].name,
                                           name(o.dtype), list(o.shape), list(o.strides))
                                     : std::string();
      switch (o.kind) {
        case PlanOutput::Kind::Tensor: out_.line("output {}", window); break;
        case PlanOutput::Kind::AliasOfInput:
          out_.line("output {} of input {}", window, o.target);
          break;
        case PlanOutput::Kind::MutatedInput:
          out_.line("write  {} into input {}", window, o.target);
          break;
        case PlanOutput::Kind::Constant: out_.raw_line("output a constant"); break;
        case PlanOutput::Kind::Int:
        case PlanOutput::Kind::Bool: out_.line("output {}", expr(o.value)); break;
        case PlanOutput::Kind::None: out_.raw_line("output none"); break;
      }
    }
    for (const PlanState& s : plan_.states)
      out_.line("commit %{} = {}", plan_.buffers[s.state].name, place(s.updated));
  }

  const Plan& plan_;
  const std::vector<std::string>& symbols_;
  TextWriter& out_;
};

}  // namespace

std::string to_text(const ExprCode& code, const std::vector<std::string>& symbols) {
  std::vector<std::string> stack;
  const auto pop = [&] {
    std::string top = stack.empty() ? "?" : std::move(stack.back());
    if (!stack.empty()) stack.pop_back();
    return top;
  };
  for (std::size_t at = 0; at < code.size(); ++at) {
    const auto op = static_cast<ExprOp>(code[at]);
    if (op == ExprOp::Push) {
      stack.push_back(std::to_string(code[++at]));
    } else if (op == ExprOp::Load) {
      const auto slot = static_cast<std::size_t>(code[++at]);
      stack.push_back(slot < symbols.size() ? symbols[slot] : "?");
    } else if (op == ExprOp::Not) {
      stack.push_back(str("(not {})", pop()));
    } else if (op == ExprOp::Select) {
      const std::string no = pop(), yes = pop(), condition = pop();
      stack.push_back(str("select({}, {}, {})", strip(condition), strip(yes), strip(no)));
    } else {
      const std::string b = pop(), a = pop();
      const bool call = op == ExprOp::Min || op == ExprOp::Max;
      stack.push_back(call ? str("{}({}, {})", spelling(op), strip(a), strip(b))
                           : str("({} {} {})", a, spelling(op), b));
    }
  }
  return strip(pop());
}

std::string to_text(const Plan& plan) {
  TextWriter out;
  PlanPrinter(plan, plan.symbols, out).run();
  return out.text();
}

}  // namespace coil::runtime
