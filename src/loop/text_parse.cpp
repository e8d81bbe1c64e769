// The text form of level 1: parsing of programs and their declarations.

#include "loop/text_parse.h"

#include <algorithm>
#include <cstring>

#include "loop/text_marks.h"

namespace coil {
namespace loop_text {

ProgramParser::ProgramParser(TextReader& in, std::shared_ptr<sym::Arena> syms, Names outer,
                             int depth)
    : in_(in), syms_(*syms), scope_(std::move(outer)), depth_(depth) {
  program_.syms = std::move(syms);
}

Result<LoopProgram> ProgramParser::parse() {
  if (depth_ > kMaxProgramDepth) return in_.error_here("programs are nested too deeply");
  COIL_TRY(in_.expect("program"));
  program_.name = COIL_TRY(in_.word());
  COIL_TRY(in_.expect("{"));
  while (!in_.accept("}")) COIL_TRY(parse_item());
  COIL_TRY(finish());
  return std::move(program_);
}

Status ProgramParser::parse_item() {
  if (in_.accept("size")) return parse_size();
  if (in_.accept("scalar")) return parse_scalar_name();
  if (in_.accept("input")) return parse_input();
  if (in_.accept("buffer")) return parse_buffers();
  if (in_.accept("body")) return parse_body();
  if (in_.accept("output")) return parse_output();
  if (in_.accept("commit")) return parse_commit();
  if (in_.accept("fact")) {
    program_.facts.add(COIL_TRY(parse_expr(scope_)));
    return Ok{};
  }
  if (in_.accept("check")) {
    const sym::Expr condition = COIL_TRY(parse_expr(scope_));
    program_.checks.push_back({condition, COIL_TRY(in_.string())});
    return Ok{};
  }
  for (std::string_view kind : {"gemm", "conv", "attention", "sort", "topk", "factor", "fft"})
    if (in_.accept(kind)) return parse_structured(kind);
  for (std::string_view kind : {"if", "while", "for"})
    if (in_.accept(kind)) return parse_control(kind);
  return in_.error_here(str("expected a declaration, a body or '}}', found {}", in_.found()));
}

Status ProgramParser::parse_size() {
  const std::string name = COIL_TRY(in_.word());
  if (scope_.contains(name)) return in_.error_here(str("size {} is declared twice", name));
  sym::Variable variable{name, sym::Role::Size, {}, {}};
  if (in_.accept("in")) {
    if (!in_.at(".")) variable.range.lo = COIL_TRY(in_.integer());
    COIL_TRY(in_.expect("."));
    COIL_TRY(in_.expect("."));
    if (in_.peek().kind == TokenKind::Integer || in_.at("-"))
      variable.range.hi = COIL_TRY(in_.integer());
    if (variable.range.lo > variable.range.hi)
      return in_.error_here(str("the range of size {} is empty", name));
  }
  ProgramSize size;
  if (in_.accept("hint")) size.hint = COIL_TRY(in_.integer());
  if (in_.accept("from")) {
    variable.role = sym::Role::Value;
    size_sources_.emplace_back(program_.sizes.size(), COIL_TRY(in_.name()));
  }
  size.var = syms_.variable(std::move(variable));
  scope_.emplace(name, size.var);
  program_.sizes.push_back(size);
  return Ok{};
}

Status ProgramParser::parse_scalar_name() {
  do {
    const std::string name = COIL_TRY(in_.name());
    if (std::ranges::find(program_.scalars, name) != program_.scalars.end())
      return in_.error_here(str("scalar %{} is declared twice", name));
    program_.scalars.push_back(name);
  } while (in_.accept(","));
  return Ok{};
}

Status ProgramParser::parse_input() {
  // A buffer is declared after the `input` line that names it; finish() joins them.
  ProgramInput input;
  input.name = COIL_TRY(in_.string());
  if (in_.accept("int")) {
    input.size = COIL_TRY(parse_expr(scope_));
  } else if (in_.accept("scalar")) {
    const std::string name = COIL_TRY(in_.name());
    const auto at = std::ranges::find(program_.scalars, name);
    if (at == program_.scalars.end()) return in_.error_here(str("unknown scalar %{}", name));
    input.is_float = true;
    input.scalar = static_cast<u32>(at - program_.scalars.begin());
  } else if (in_.accept("fixed")) {
    input.is_fixed = true;
    input.fixed = COIL_TRY(parse_constant_arg());
  } else {
    pending_inputs_.emplace_back(program_.inputs.size(), COIL_TRY(in_.name()));
    input.is_complex = in_.accept("complex");
  }
  program_.inputs.push_back(std::move(input));
  return Ok{};
}

Status ProgramParser::parse_buffers() {
  std::vector<std::string> names;
  do {
    names.push_back(COIL_TRY(in_.name()));
  } while (in_.accept(","));
  COIL_TRY(in_.expect(":"));
  Buffer buffer;
  buffer.dtype = COIL_TRY(parse_dtype());
  buffer.shape = COIL_TRY(parse_exprs(scope_));
  COIL_TRY(parse_layout(buffer));
  std::optional<bool> open;
  if (in_.at("open") || in_.at("fixed")) open = COIL_TRY(in_.word()) == "open";
  if (in_.accept("starts")) buffer.starts = COIL_TRY(parse_buffer());
  bool marked = false;
  COIL_TRY(parse_kind(buffer, marked));
  const bool is_constant = buffer.kind == BufferKind::Constant || buffer.kind == BufferKind::State;
  if (is_constant && names.size() > 1 && program_.storages.back().source != StorageSource::Absent)
    return in_.error_here("constants with data are declared one by one");
  for (const std::string& name : names) {
    buffer.name = name;
    const BufferId id = program_.buffers.add(buffer);
    stated_open_[id] = open;
    if (!buffers_.emplace(name, id).second)
      return in_.error_here(str("buffer %{} is declared twice", name));
    if (marked) marked_outputs_.push_back(id);
    if (!is_constant) continue;
    if (name != names.front()) {  // the group's first one has what parse_constant made
      program_.storages.push_back(program_.storages.back());
      program_.constants.push_back(program_.constants.back());
      program_.constants.back().storage = static_cast<u32>(program_.storages.size() - 1);
    }
    program_.constants.back().value = value_named(name);
    program_.buffers[id].source = static_cast<u32>(program_.constants.size() - 1);
  }
  return Ok{};
}

Status ProgramParser::parse_layout(Buffer& buffer) {
  std::vector<sym::Expr> strides = contiguous_strides(syms_, buffer.shape);
  if (in_.accept("layout")) {
    buffer.layout = COIL_TRY(parse_layout_entries());
  } else {
    if (in_.accept("strides")) strides = COIL_TRY(parse_exprs(scope_));
    buffer.layout = strided_layout(strides, sym::Expr());
  }
  if (in_.accept("offset")) buffer.layout.offset = COIL_TRY(parse_expr(scope_));
  return Ok{};
}

Result<Layout> ProgramParser::parse_layout_entries() {
  Layout layout;
  COIL_TRY(in_.expect("["));
  while (!in_.accept("]")) {
    if (!layout.entries.empty()) COIL_TRY(in_.expect(","));
    const std::string dim = COIL_TRY(in_.word());
    LayoutEntry entry;
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (dim.size() < 2 || dim.size() > 4 || dim[0] != 'd' ||
        !std::all_of(dim.begin() + 1, dim.end(), is_digit))
      return in_.error_here(str("expected a dim like d0, found '{}'", dim));
    entry.dim = static_cast<u32>(std::stoul(dim.substr(1)));
    if (in_.accept("/")) {
      COIL_TRY(in_.expect("/"));
      entry.factor = COIL_TRY(in_.integer());
    }
    COIL_TRY(in_.expect(":"));
    entry.stride = COIL_TRY(parse_expr(scope_));
    layout.entries.push_back(entry);
  }
  return layout;
}

/// After a buffer, `output` alone marks it; with what is returned after it, it is the next
/// declaration.
bool ProgramParser::at_output_mark() const {
  if (!in_.at("output") || in_.peek(1).kind == TokenKind::Name) return false;
  const std::string_view next = in_.peek(1).text;
  for (std::string_view word : {"into", "alias", "value", "constant", "none"})
    if (next == word) return false;
  return true;
}

Status ProgramParser::parse_kind(Buffer& buffer, bool& marked_output) {
  if (in_.accept("input")) {
    buffer.kind = BufferKind::Input;
  } else if (at_output_mark()) {
    COIL_TRY(in_.word());
    marked_output = true;
  } else if (in_.at("const") || in_.at("state")) {
    buffer.kind = in_.at("const") ? BufferKind::Constant : BufferKind::State;
    COIL_TRY(in_.word());
    return parse_constant(buffer);
  }
  return Ok{};
}

Status ProgramParser::parse_constant(Buffer& buffer) {
  Constant constant;
  constant.is_state = buffer.kind == BufferKind::State;
  Storage storage;
  storage.source = StorageSource::Absent;
  if (in_.peek().kind == TokenKind::String) constant.fqn = COIL_TRY(in_.string());
  if (in_.accept("=")) {
    if (in_.accept("seed")) {
      storage.source = StorageSource::Seed;
      storage.seed = static_cast<u64>(COIL_TRY(in_.integer()));
    } else if (in_.accept("file")) {
      storage.source = StorageSource::File;
      storage.file = COIL_TRY(in_.string());
      storage.key = COIL_TRY(in_.string());
    } else {
      COIL_TRY(parse_inline(storage, buffer.dtype));
    }
    if (in_.accept("at")) constant.offset = COIL_TRY(in_.integer());
  }
  constant.storage = static_cast<u32>(program_.storages.size());
  program_.storages.push_back(std::move(storage));
  program_.constants.push_back(std::move(constant));
  return Ok{};
}

Status ProgramParser::parse_inline(Storage& storage, DType dtype) {
  COIL_TRY(in_.expect("{"));
  auto bytes = std::make_shared<std::vector<std::byte>>();
  const std::size_t size = static_cast<std::size_t>(size_of(dtype));
  while (!in_.accept("}")) {
    if (!bytes->empty()) COIL_TRY(in_.expect(","));
    const ops::Scalar value = COIL_TRY(loop_text::parse_scalar(in_, dtype));
    bytes->resize(bytes->size() + size);
    ops::write_element(dtype, bytes->data(), static_cast<i64>(bytes->size() / size) - 1, value);
  }
  storage.source = StorageSource::Inline;
  storage.bytes = static_cast<i64>(bytes->size());
  storage.data = bytes->data();
  storage.owner = std::move(bytes);
  return Ok{};
}

Status ProgramParser::parse_output() {
  ProgramOutput output;
  if (in_.accept("none")) {
    output.kind = OutputKind::None;
  } else if (in_.accept("value")) {
    output.kind = OutputKind::Int;
    if (in_.peek().kind == TokenKind::Name) {
      output.buffer = COIL_TRY(parse_buffer());
    } else {
      output.expr = COIL_TRY(parse_expr(scope_));
    }
  } else if (in_.accept("constant")) {
    output.kind = OutputKind::Constant;
    output.constant = COIL_TRY(parse_constant_arg());
  } else {
    if (in_.at("alias") || in_.at("into")) {
      const bool alias = in_.accept("alias");
      COIL_TRY(in_.expect(alias ? "of" : "into"));
      const bool of_output = alias && in_.accept("output");
      if (!of_output) COIL_TRY(in_.expect("input"));
      output.kind = !alias      ? OutputKind::MutatedInput
                    : of_output ? OutputKind::AliasOfOutput
                                : OutputKind::AliasOfInput;
      const i64 target = COIL_TRY(in_.integer());
      if (target < 0 || target > INT32_MAX) return in_.error_here("no such input or output");
      output.target = static_cast<u32>(target);
    }
    COIL_TRY(parse_window(output));
  }
  program_.outputs.push_back(std::move(output));
  return Ok{};
}

Status ProgramParser::parse_window(ProgramOutput& output) {
  output.buffer = COIL_TRY(parse_buffer());
  COIL_TRY(in_.expect(":"));
  output.dtype = COIL_TRY(parse_dtype());
  output.shape = COIL_TRY(parse_exprs(scope_));
  output.strides = contiguous_strides(syms_, output.shape);
  if (in_.accept("strides")) output.strides = COIL_TRY(parse_exprs(scope_));
  if (in_.accept("offset")) output.offset = COIL_TRY(parse_expr(scope_));
  return Ok{};
}

Result<Arg> ProgramParser::parse_constant_arg() {
  if (in_.accept("int")) return Arg(COIL_TRY(parse_expr(scope_)));
  if (in_.accept("float")) return Arg(COIL_TRY(in_.number()));
  if (in_.accept("string")) return Arg(COIL_TRY(in_.string()));
  if (in_.accept("none")) return Arg(None{});
  COIL_TRY(in_.expect("bool"));
  return Arg(COIL_TRY(loop_text::parse_scalar(in_, DType::b8)).i != 0);
}

Status ProgramParser::parse_commit() {
  ProgramState state;
  state.state = COIL_TRY(parse_buffer());
  COIL_TRY(in_.expect("="));
  state.updated = COIL_TRY(parse_buffer());
  program_.states.push_back(state);
  return Ok{};
}

/// Joins what was named before it was declared, and makes inputs and outputs of the buffers' marks.
Status ProgramParser::finish() {
  const auto find = [&](const std::string& name) -> Result<BufferId> {
    const auto at = buffers_.find(name);
    if (at == buffers_.end()) return in_.error_here(str("unknown buffer %{}", name));
    return at->second;
  };
  for (const auto& [size, name] : size_sources_) program_.sizes[size].from = COIL_TRY(find(name));
  for (const auto& [input, name] : pending_inputs_)
    program_.inputs[input].buffer = COIL_TRY(find(name));
  const bool implied = program_.inputs.empty();
  for (BufferId id : program_.buffers.ids()) {
    Buffer& buffer = program_.buffers[id];
    if (buffer.kind != BufferKind::Input) continue;
    if (implied) {
      buffer.source = static_cast<u32>(program_.inputs.size());
      ProgramInput input;
      input.name = buffer.name;
      input.buffer = id;
      program_.inputs.push_back(std::move(input));
      continue;
    }
    const auto at = std::ranges::find(program_.inputs, id, &ProgramInput::buffer);
    if (at == program_.inputs.end())
      return in_.error_here(str("input buffer %{} has no input line", buffer.name));
    buffer.source = static_cast<u32>(at - program_.inputs.begin());
  }
  if (!marked_outputs_.empty() && !program_.outputs.empty())
    return in_.error_here("mark buffers as output, or write output lines, not both");
  for (BufferId id : marked_outputs_) {
    const Buffer& buffer = program_.buffers[id];
    ProgramOutput output;
    output.buffer = id;
    output.dtype = buffer.dtype;
    output.shape = buffer.shape;
    output.strides = contiguous_strides(syms_, buffer.shape);
    program_.outputs.push_back(std::move(output));
  }
  const Side<BufferId, bool> open = open_by_default(program_);
  for (BufferId id : program_.buffers.ids())
    program_.buffers[id].layout.open = stated_open_.get(id).value_or(open.get(id));
  return Ok{};
}

Result<ProgramParser::Origin> ProgramParser::parse_origin() {
  Origin origin;
  origin.init = in_.accept("init");
  if (in_.accept("from")) {
    do {
      origin.from.push_back(value_named(COIL_TRY(in_.name())));
    } while (in_.accept(","));
  }
  while (in_.accept("@")) {
    Loc loc;
    if (in_.peek().kind == TokenKind::String) {
      loc.frame = COIL_TRY(in_.string());
    } else {
      loc.frame = COIL_TRY(in_.word());
      COIL_TRY(in_.expect(":"));
      loc.frame += str(":{}", COIL_TRY(in_.integer()));
    }
    if (in_.accept("in"))
      loc.module = COIL_TRY(in_.peek().kind == TokenKind::String ? in_.string() : in_.word());
    const auto key = std::pair(loc.frame, loc.module);
    auto at = locs_.find(key);
    if (at == locs_.end()) at = locs_.emplace(key, program_.locs.add(std::move(loc))).first;
    origin.locs.push_back(at->second);
  }
  return origin;
}

ValueId ProgramParser::value_named(const std::string& name) {
  const auto [at, is_new] = values_.emplace(name, ValueId(values_.size()));
  if (is_new) program_.value_names[at->second] = name;
  return at->second;
}

Result<sym::Expr> ProgramParser::parse_expr(const Names& scope) {
  return syms_.parse(in_, [&](std::string_view name) -> std::optional<sym::Expr> {
    const auto at = scope.find(name);
    return at == scope.end() ? std::nullopt : std::optional(at->second);
  });
}

Result<std::vector<sym::Expr>> ProgramParser::parse_exprs(const Names& scope) {
  std::vector<sym::Expr> items;
  COIL_TRY(in_.expect("["));
  while (!in_.accept("]")) {
    if (!items.empty()) COIL_TRY(in_.expect(","));
    items.push_back(COIL_TRY(parse_expr(scope)));
  }
  return items;
}

Result<std::vector<i64>> ProgramParser::parse_ints() {
  std::vector<i64> items;
  COIL_TRY(in_.expect("["));
  while (!in_.accept("]")) {
    if (!items.empty()) COIL_TRY(in_.expect(","));
    items.push_back(COIL_TRY(in_.integer()));
  }
  return items;
}

Result<BufferId> ProgramParser::parse_buffer() {
  const Error unknown = in_.error_here(str("unknown buffer {}", in_.found()));
  const auto at = buffers_.find(COIL_TRY(in_.name()));
  if (at == buffers_.end()) return unknown;
  return at->second;
}

Result<std::vector<BufferId>> ProgramParser::parse_buffer_list() {
  std::vector<BufferId> items;
  do {
    items.push_back(COIL_TRY(parse_buffer()));
  } while (in_.accept(","));
  return items;
}

Result<DType> ProgramParser::parse_dtype() {
  const Error unknown = in_.error_here(str("expected a dtype, found {}", in_.found()));
  const std::optional<DType> dtype = dtype_from_name(COIL_TRY(in_.word()));
  if (!dtype) return unknown;
  return *dtype;
}

}  // namespace loop_text

Result<LoopProgram> parse_program(std::string_view text, const std::string& file) {
  TextReader in(text, file);
  LoopProgram program =
      COIL_TRY(loop_text::ProgramParser(in, std::make_shared<sym::Arena>(), {}, 0).parse());
  if (!in.at_end()) return in.error_here(str("expected the end, found {}", in.found()));
  return program;
}

}  // namespace coil
