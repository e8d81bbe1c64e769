#include "shrink_program.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <vector>

#include "loop/program.h"

namespace coil::shrink_program {
namespace {

void make_input(LoopProgram& p, BufferId b) {
  Buffer& buffer = p.buffers[b];
  buffer.kind = BufferKind::Input;
  buffer.starts = BufferId();
  buffer.source = static_cast<u32>(p.inputs.size());
  ProgramInput input;
  input.name = buffer.name;
  input.buffer = b;
  p.inputs.push_back(std::move(input));
}

template <class I, class T>
Table<I, T> without(const Table<I, T>& all, I gone) {
  Table<I, T> out;
  for (I id : all.ids())
    if (id != gone) out.add(all[id]);
  return out;
}

LoopProgram without_step(const LoopProgram& program, std::size_t at) {
  LoopProgram p = program;
  const Step gone = p.order[at];
  p.order.erase(p.order.begin() + static_cast<std::ptrdiff_t>(at));
  if (const auto* body = std::get_if<BodyId>(&gone)) {
    std::vector<BufferId> stored;
    for (const Inst& i : p.bodies[*body].insts)
      if (i.kind == InstKind::Store && std::ranges::find(stored, i.buffer) == stored.end())
        stored.push_back(i.buffer);
    for (BufferId b : stored) make_input(p, b);
    p.bodies = without(p.bodies, *body);
  } else if (const auto* node = std::get_if<StructuredId>(&gone)) {
    for (const Access& a : p.structured[*node].outputs) make_input(p, a.buffer);
    p.structured = without(p.structured, *node);
  }
  for (Step& s : p.order) {
    if (s.index() != gone.index()) continue;
    std::visit(
        [&](auto& id) { id.index -= id.index > std::visit([](auto g) { return g.index; }, gone); },
        s);
  }
  return p;
}

bool is_used(const Body& body, Val v) {
  return std::ranges::any_of(body.insts, [&](const Inst& i) {
    return i.mask == v || std::ranges::find(i.operands, v) != i.operands.end();
  });
}

/// Drops what nothing uses and numbers the values anew.
void clean(LoopProgram& p, Body& body) {
  for (std::size_t at = body.insts.size(); at-- > 0;) {
    const Inst& i = body.insts[at];
    if (i.kind == InstKind::Store) continue;
    bool used = std::ranges::any_of(i.results, [&](Val v) { return is_used(body, v); });
    if (i.kind == InstKind::Index)
      used = std::ranges::any_of(body.insts, [&](const Inst& o) {
        return std::ranges::any_of(o.index, [&](sym::Expr e) { return p.syms->uses(e, i.expr); });
      });
    if (!used) body.insts.erase(body.insts.begin() + static_cast<std::ptrdiff_t>(at));
  }
  std::vector<DType> dtypes;
  Side<Val, Val> to;
  for (Inst& i : body.insts) {
    for (Val& v : i.operands) v = to[v];
    if (i.mask.valid()) i.mask = to[i.mask];
    for (Val& v : i.results) {
      to[v] = Val(dtypes.size());
      dtypes.push_back(body.val_dtypes[v.index]);
      v = to[v];
    }
  }
  body.val_dtypes = std::move(dtypes);
}

/// An instruction gone: its users take `instead`.
LoopProgram without_value(const LoopProgram& program, BodyId id, std::size_t at, Val instead) {
  LoopProgram p = program;
  Body& body = p.bodies[id];
  const Val gone = body.insts[at].results[0];
  for (Inst& i : body.insts) {
    for (Val& v : i.operands)
      if (v == gone) v = instead;
    if (i.mask == gone) i.mask = instead;
  }
  clean(p, body);
  return p;
}

/// A constant in the place of an instruction.
LoopProgram with_constant(const LoopProgram& program, BodyId id, std::size_t at) {
  LoopProgram p = program;
  Body& body = p.bodies[id];
  Inst constant;
  constant.kind = InstKind::Const;
  constant.dtype = body.insts[at].dtype;
  constant.constant = ops::Scalar::of_int(constant.dtype, 1);
  constant.results = body.insts[at].results;
  body.insts[at] = std::move(constant);
  clean(p, body);
  return p;
}

LoopProgram without_mask(const LoopProgram& program, BodyId id, std::size_t at) {
  LoopProgram p = program;
  p.bodies[id].insts[at].mask = Val();
  clean(p, p.bodies[id]);
  return p;
}

LoopProgram without_store(const LoopProgram& program, BodyId id, std::size_t at) {
  LoopProgram p = program;
  Body& body = p.bodies[id];
  const BufferId b = body.insts[at].buffer;
  body.insts.erase(body.insts.begin() + static_cast<std::ptrdiff_t>(at));
  if (std::ranges::none_of(
          body.insts, [&](const Inst& i) { return i.kind == InstKind::Store && i.buffer == b; }))
    make_input(p, b);
  clean(p, body);
  return p;
}

bool is_named_again(const std::string& text, const std::string& name, int times) {
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const char next = at + name.size() < text.size() ? text[at + name.size()] : ' ';
    times -= !std::isalnum(static_cast<unsigned char>(next)) && next != '_';
  }
  return times < 0;
}

/// Without buffers that nothing names.
std::string tidy(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  buffer ") && !line.starts_with("  input ")) {
      out += line + "\n";
      continue;
    }
    const std::size_t first = line.find('%'), colon = std::min(line.find(" : "), line.size());
    std::string names;
    std::istringstream list(line.substr(first, colon - first));
    for (std::string name; std::getline(list, name, ',');) {
      if (name[0] == ' ') name.erase(0, 1);
      const bool is_input = text.find("\" " + name + "\n") != std::string::npos;
      if (is_named_again(text, name, is_input ? 2 : 1)) names += (names.empty() ? "" : ", ") + name;
    }
    if (!names.empty()) out += line.substr(0, first) + names + line.substr(colon) + "\n";
  }
  return out;
}

bool all_store(const LoopProgram& p) {
  return std::ranges::all_of(p.bodies, [](const Body& b) {
    return std::ranges::any_of(b.insts, [](const Inst& i) { return i.kind == InstKind::Store; });
  });
}

class Shrinker {
 public:
  Shrinker(std::string text, const std::function<bool(const std::string&)>& fails)
      : text_(std::move(text)), fails_(fails) {}

  std::string run() {
    while (pass()) continue;
    return text_;
  }

 private:
  bool take(const LoopProgram& candidate) {
    if (!verify(candidate).ok() || !all_store(candidate)) return false;
    for (const std::string& text : {tidy(to_text(candidate)), to_text(candidate)}) {
      if (text == text_ || !fails_(text)) continue;
      text_ = text;
      return true;
    }
    return false;
  }

  /// Whether something could be dropped.
  bool pass() {
    const Result<LoopProgram> parsed = parse_program(text_, "t");
    if (!parsed.ok()) return false;
    const LoopProgram& p = *parsed;
    for (std::size_t o = 0; o < p.outputs.size() && p.outputs.size() > 1; ++o) {
      LoopProgram candidate = p;
      candidate.outputs.erase(candidate.outputs.begin() + static_cast<std::ptrdiff_t>(o));
      if (take(candidate)) return true;
    }
    for (std::size_t at = p.order.size(); at-- > 0;)
      if (take(without_step(p, at))) return true;
    for (BodyId id : p.bodies.ids())
      if (shrink_body(p, id)) return true;
    return false;
  }

  bool shrink_body(const LoopProgram& p, BodyId id) {
    const Body& body = p.bodies[id];
    for (std::size_t at = 0; at < body.insts.size(); ++at) {
      const Inst& i = body.insts[at];
      if (i.kind == InstKind::Store && take(without_store(p, id, at))) return true;
      if (i.kind == InstKind::Store && i.mask.valid() && take(without_mask(p, id, at))) return true;
      if (i.kind == InstKind::Load && i.mask.valid() && take(without_mask(p, id, at))) return true;
      if (i.results.size() != 1 || i.kind == InstKind::Const) continue;
      for (Val v : i.operands)
        if (body.val_dtypes[v.index] == body.val_dtypes[i.results[0].index] &&
            i.kind == InstKind::Op && take(without_value(p, id, at, v)))
          return true;
      if (i.kind != InstKind::Reduce && i.kind != InstKind::Scan && take(with_constant(p, id, at)))
        return true;
    }
    return false;
  }

  std::string text_;
  const std::function<bool(const std::string&)>& fails_;
};

}  // namespace

std::string shrink(const std::string& text, const std::function<bool(const std::string&)>& fails) {
  return Shrinker(text, fails).run();
}

}  // namespace coil::shrink_program
