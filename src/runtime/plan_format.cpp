#include "runtime/plan_format.h"

#include <bit>

#include "base/packed.h"

namespace coil::runtime {
namespace {

constexpr int kMostDepth = 64;  // of plans in plans
constexpr char kMarkStart = '\1', kMarkEnd = '\2';

template <class T, class Of>
concept Is = std::is_same_v<std::remove_const_t<T>, Of>;

/// What runs a kernel: units of a launch, or a template on its blocks.
enum class RunBy : u8 { Units, Blocks };

/// What all plans of a program share.
struct Outer {
  std::size_t kernels, constants, symbols, scalars;
};

/// The fields of a plan, stated once. `Io` writes them, reads them or lists the names; `Any` is
/// Plan or const Plan. What must hold for a plan to be sound is said with `require`.
template <class Io, class Any>
class PlanFields {
 public:
  PlanFields(Io& io, Any& plan, const Outer& outer, int depth = 0)
      : io_(io), plan_(plan), outer_(outer), depth_(depth) {}

  void run() {
    io_.name(plan_.name);
    each(plan_.scalars, [&](auto& name) { io_.name(name); });
    each(plan_.exprs, [&](auto& code) {
      each(code, [&](auto& word) { io_.number(word); });
      io_.require([&] { return valid(code, static_cast<u32>(outer_.symbols)); });
    });
    exprs(plan_.slots);
    each(plan_.inputs, [&](auto& input) { fields(input); });
    each(plan_.buffers, [&](auto& buffer) { fields(buffer); });
    each(plan_.bindings, [&](auto& binding) { fields(binding); });
    each(plan_.ranges, [&](auto& range) {
      symbol(range.symbol);
      io_.number(range.lo);
      io_.number(range.hi);
    });
    each(plan_.checks, [&](auto& check) { fields(check); });
    io_.require([&] { return depth_ < kMostDepth; });
    each(plan_.subplans, [&](auto& sub) { PlanFields(io_, sub, outer_, depth_ + 1).run(); });
    each(plan_.init, [&](auto& step) { fields(step); });
    each(plan_.run, [&](auto& step) { fields(step); });
    each(plan_.outputs, [&](auto& output) { fields(output); });
    each(plan_.states, [&](auto& state) {
      buffer(state.state);
      buffer(state.updated);
    });
  }

 private:
  template <class List, class F>
  void each(List& list, F f) {
    io_.size(list);
    for (auto& item : list) f(item);
  }
  template <class N>
  void below(N& number, std::size_t limit) {
    io_.number(number);
    io_.require([&] { return static_cast<u64>(number) < limit; });
  }
  template <class N>
  void expr(N& e) {
    below(e, plan_.exprs.size());
  }
  template <class List>
  void exprs(List& list) {
    each(list, [&](auto& e) { expr(e); });
  }
  template <class N>
  void buffer(N& b) {
    below(b, plan_.buffers.size());
  }
  template <class List>
  void buffers(List& list) {
    each(list, [&](auto& b) { buffer(b); });
  }
  template <class N>
  void symbol(N& s) {
    below(s, outer_.symbols);
  }
  template <class N>
  void tensor_input(N& i) {
    below(i, plan_.inputs.size());
    io_.require([&] { return plan_.inputs[i].kind == PlanInput::Kind::Tensor; });
  }
  template <class T>
  void window(T& t) {
    exprs(t.shape);
    exprs(t.strides);
    io_.require([&] { return t.shape.size() == t.strides.size(); });
  }
  template <class T>
  void dtype(T& d) {
    below(d, kNumDTypes);
  }

  /// A fixed argument or result; never a tensor.
  template <class V>
  void value(V& v) {
    std::size_t kind = v.index();
    below(kind, std::variant_size_v<Value>);
    io_.require([&] { return kind != 0; });
    io_.choose(v, kind);
    if (auto* i = std::get_if<i64>(&v)) io_.number(*i);
    if (auto* d = std::get_if<double>(&v)) io_.real(*d);
    if (auto* b = std::get_if<bool>(&v)) io_.number(*b);
    if (auto* s = std::get_if<std::string>(&v)) io_.text(*s);
  }

  template <Is<PlanInput> T>
  void fields(T& item) {
    using Kind = PlanInput::Kind;
    io_.name(item.name);
    below(item.kind, static_cast<std::size_t>(Kind::Fixed) + 1);
    switch (item.kind) {
      case Kind::Tensor:
        dtype(item.dtype);
        window(item);
        break;
      case Kind::Int: expr(item.value); break;
      case Kind::Float: below(item.scalar, outer_.scalars); break;
      case Kind::Fixed: value(item.fixed); break;
    }
  }

  template <Is<PlanBuffer> T>
  void fields(T& item) {
    io_.name(item.name);
    dtype(item.dtype);
    below(item.where, static_cast<std::size_t>(Where::Nowhere) + 1);
    expr(item.bytes);
    window(item);
    switch (item.where) {
      case Where::Input: tensor_input(item.source); break;
      case Where::Constant:
      case Where::State: below(item.source, outer_.constants); [[fallthrough]];
      case Where::Derived: io_.require([&] { return depth_ == 0; }); break;
      case Where::Arena: below(item.source, plan_.slots.size()); break;
      case Where::Output:
      case Where::Heap:
      case Where::Nowhere: break;
    }
  }

  template <Is<Binding> T>
  void fields(T& item) {
    symbol(item.symbol);
    below(item.input, plan_.inputs.size());
    io_.number(item.dim);
    io_.number(item.factor);
    io_.require([&] {
      const PlanInput& input = plan_.inputs[item.input];
      const bool is_int = item.dim < 0 && input.kind == PlanInput::Kind::Int;
      const bool is_size = item.dim >= 0 && input.kind == PlanInput::Kind::Tensor &&
                           static_cast<std::size_t>(item.dim) < input.shape.size();
      return item.factor > 0 && (is_int || is_size);
    });
  }

  template <Is<PlanOutput> T>
  void fields(T& item) {
    using Kind = PlanOutput::Kind;
    below(item.kind, static_cast<std::size_t>(Kind::None) + 1);
    switch (item.kind) {
      case Kind::AliasOfInput:
      case Kind::MutatedInput: tensor_input(item.target); [[fallthrough]];
      case Kind::Tensor:
        dtype(item.dtype);
        buffer(item.buffer);
        window(item);
        expr(item.offset);
        break;
      case Kind::Constant: value(item.constant); break;
      case Kind::Int:
      case Kind::Bool: expr(item.value); break;
      case Kind::None: break;
    }
  }

  template <Is<PlanStep> T>
  void fields(T& item) {
    std::size_t kind = item.index();
    below(kind, std::variant_size_v<PlanStep>);
    io_.choose(item, kind);
    std::visit([&](auto& step) { fields(step); }, item);
  }

  template <Is<Launch> T>
  void fields(T& item) {
    arguments(item, RunBy::Units);
    expr(item.units);
    io_.number(item.grain);
    io_.require([&] { return item.grain > 0; });
    io_.number(item.serial);
    io_.number(item.follows);
  }
  /// On blocks, a kernel may also take what each block gives.
  template <class T>
  void arguments(T& item, RunBy by) {
    const bool on_blocks = by == RunBy::Blocks;
    below(item.kernel, outer_.kernels);
    each(item.buffers, [&](auto& b) {
      io_.number(b);
      io_.require([&] { return b < plan_.buffers.size() || (on_blocks && b == kBlockBuffer); });
    });
    each(item.symbols, [&](auto& s) {
      io_.number(s);
      io_.require(
          [&] { return s < outer_.symbols || (on_blocks && s >= kBlockBatch && s < kBlockEnd); });
    });
    each(item.scalars, [&](auto& s) { below(s, outer_.scalars); });
    each(item.index_names, [&](auto& name) { io_.name(name); });
  }
  template <class T>
  void epilogue(T& item) {
    arguments(item, RunBy::Blocks);
    io_.require([&] {
      return item.buffers.size() <= kMostEpilogueArguments &&
             item.symbols.size() <= kMostEpilogueArguments;
    });
  }

  template <Is<Call> T>
  void fields(T& item) {
    io_.text(item.name);
    each(item.attributes, [&](auto& number) { io_.number(number); });
    each(item.operands, [&](auto& operand) {
      io_.number(operand.buffer);
      if (operand.buffer == kNoBuffer) return;
      io_.require([&] { return operand.buffer < plan_.buffers.size(); });
      window(operand);
      expr(operand.offset);
    });
    if (io_.present(item.epilogue)) epilogue(*item.epilogue);
    if (io_.present(item.packed)) buffer(*item.packed);
    io_.bind(item);
  }

  template <Is<CopyStep> T>
  void fields(T& item) {
    buffer(item.from);
    buffer(item.to);
  }

  template <Is<ReadSize> T>
  void fields(T& item) {
    symbol(item.symbol);
    buffer(item.buffer);
    io_.number(item.lo);
    io_.number(item.hi);
  }

  template <Is<PlanCheck> T>
  void fields(T& item) {
    expr(item.condition);
    io_.name(item.text);
  }

  template <Is<ControlStep> T>
  void fields(T& item) {
    using Kind = ControlStep::Kind;
    below(item.kind, static_cast<std::size_t>(Kind::For) + 1);
    io_.name(item.name);
    each(item.plans, [&](auto& p) { below(p, plan_.subplans.size()); });
    buffers(item.carried);
    buffers(item.operands);
    buffers(item.results);
    switch (item.kind) {
      case Kind::If:
        io_.number(item.predicate);
        if (item.predicate < 0)
          expr(item.condition);
        else
          io_.require([&] { return static_cast<u32>(item.predicate) < plan_.buffers.size(); });
        break;
      case Kind::While: break;
      case Kind::For:
        symbol(item.step);
        expr(item.extent);
        break;
    }
    io_.require([&] { return fit(item); });
  }

  /// Whether the subplans take and give what a control step passes and stores.
  bool fit(const ControlStep& c) const {
    const std::size_t results = c.results.size(), carried = c.carried.size();
    const auto takes = [&](std::size_t k, std::size_t inputs, std::size_t outputs) {
      const Plan& sub = plan_.subplans[c.plans[k]];
      for (const PlanOutput& o : sub.outputs)
        if (o.kind > PlanOutput::Kind::MutatedInput) return false;
      return sub.inputs.size() <= inputs && sub.outputs.size() >= outputs;
    };
    switch (c.kind) {
      case ControlStep::Kind::If:
        return c.plans.size() == 2 && takes(0, c.operands.size(), results) &&
               takes(1, c.operands.size(), results);
      case ControlStep::Kind::While:
        return c.plans.size() == 2 && results == carried &&
               takes(0, results + c.operands.size(), 1) &&
               takes(1, results + c.operands.size(), results);
      case ControlStep::Kind::For:
        return c.plans.size() == 1 && results >= carried &&
               takes(0, carried + c.operands.size(), results);
    }
    COIL_UNREACHABLE();
  }

  Io& io_;
  Any& plan_;
  const Outer& outer_;
  int depth_;
};

class Writer {
 public:
  template <class N>
  void number(N n) {
    out.number(static_cast<i64>(n));
  }
  void real(double d) { out.number(std::bit_cast<i64>(d)); }
  void text(const std::string& text) { out.text(text); }
  void name(const std::string&) {}
  template <class List>
  void size(const List& list) {
    number(list.size());
  }
  template <class T>
  bool present(const std::optional<T>& item) {
    number(item.has_value());
    return item.has_value();
  }
  template <class V>
  void choose(const V&, std::size_t) {}
  template <class F>
  void require(F) {}
  void bind(const Call&) {}

  PackedWriter out;
};

class Reader {
 public:
  Reader(std::string_view bytes, BindCall bind) : in(bytes), bind_(bind) {}

  template <class N>
  void number(N& n) {
    const i64 given = in.number();
    n = static_cast<N>(given);
    if (static_cast<i64>(n) != given) in.fail();
  }
  void real(double& d) { d = std::bit_cast<double>(in.number()); }
  void text(std::string& text) { text = in.text(); }
  void name(std::string& name) { name = str("{}{}{}", kMarkStart, names_++, kMarkEnd); }
  template <class List>
  void size(List& list) {
    list.resize(in.count());
  }
  template <class T>
  bool present(std::optional<T>& item) {
    bool is_there = false;
    number(is_there);
    if (is_there) item.emplace();
    return is_there;
  }
  /// Makes `v` hold its alternative number `kind`.
  template <class V, std::size_t k = 0>
  void choose(V& v, std::size_t kind) {
    if constexpr (k < std::variant_size_v<V>) {
      if (k != kind) return choose<V, k + 1>(v, kind);
      v.template emplace<k>();
    }
  }
  template <class F>
  void require(F holds) {
    if (!in.failed() && !holds()) in.fail();
  }
  void bind(Call& call) {
    if (!in.failed() && !bind_(call).ok()) in.fail();
  }

  PackedReader in;

 private:
  BindCall bind_;
  std::size_t names_ = 0;
};

class NameList {
 public:
  template <class N>
  void number(const N&) {}
  void real(double) {}
  void text(const std::string&) {}
  void name(const std::string& name) { names.push_back(name); }
  template <class List>
  void size(const List&) {}
  template <class T>
  bool present(const std::optional<T>& item) {
    return item.has_value();
  }
  template <class V>
  void choose(const V&, std::size_t) {}
  template <class F>
  void require(F) {}
  void bind(const Call&) {}

  std::vector<std::string> names;
};

/// The outermost plan: the symbols, whose number all expressions need, come first.
template <class Io, class Any>
void all_fields(Io& io, Any& plan, const PlanSurroundings& around) {
  io.size(plan.symbols);
  for (auto& symbol : plan.symbols) io.name(symbol);
  std::size_t scalars = plan.scalars.size();
  io.number(scalars);
  const Outer outer{around.kernels, around.constants, plan.symbols.size(), scalars};
  PlanFields(io, plan, outer).run();
  io.require([&] { return plan.scalars.size() == scalars; });
}

}  // namespace

std::string pack(const Plan& plan) {
  Writer io;
  all_fields(io, plan, {});
  return io.out.take();
}

Result<Plan> unpack(std::string_view bytes, const PlanSurroundings& surroundings) {
  Reader io(bytes, surroundings.bind);
  Plan plan;
  all_fields(io, plan, surroundings);
  if (io.in.failed() || !io.in.at_end()) return error("the stored plan is damaged");
  return plan;
}

std::vector<std::string> names_of(const Plan& plan) {
  NameList io;
  all_fields(io, plan, {});
  return std::move(io.names);
}

bool has_marks(std::string_view text) { return text.find(kMarkStart) != text.npos; }

std::string with_names(std::string_view text, std::span<const std::string> names) {
  std::string out;
  while (true) {
    const std::size_t start = text.find(kMarkStart), end = text.find(kMarkEnd);
    out += text.substr(0, start);
    if (start == text.npos || end == text.npos || end < start) return out;
    std::size_t number = 0;
    for (char digit : text.substr(start + 1, end - start - 1))
      number = number * 10 + static_cast<std::size_t>(digit - '0');
    if (number < names.size()) out += names[number];
    text.remove_prefix(end + 1);
  }
}

}  // namespace coil::runtime
