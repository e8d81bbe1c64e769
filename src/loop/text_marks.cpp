#include "loop/text_marks.h"

#include <charconv>
#include <cmath>

namespace coil::loop_text {
std::string_view combine_name(StoreCombine combine) {
  switch (combine) {
    case StoreCombine::None: return "";
    case StoreCombine::Sum: return "sum";
    case StoreCombine::Prod: return "prod";
    case StoreCombine::Min: return "min";
    case StoreCombine::Max: return "max";
  }
  COIL_UNREACHABLE();
}

std::optional<StoreCombine> combine_from_name(std::string_view name) {
  using enum StoreCombine;
  for (StoreCombine c : {Sum, Prod, Min, Max})
    if (combine_name(c) == name) return c;
  return std::nullopt;
}

std::string_view policy_name(IndexPolicy policy) {
  switch (policy) {
    case IndexPolicy::Assert: return "assert";
    case IndexPolicy::Wrap: return "wrap";
    case IndexPolicy::Clamp: return "clamp";
    case IndexPolicy::NotZero: return "not_zero";
  }
  COIL_UNREACHABLE();
}

std::optional<IndexPolicy> policy_from_name(std::string_view name) {
  using enum IndexPolicy;
  for (IndexPolicy p : {Assert, Wrap, Clamp, NotZero})
    if (policy_name(p) == name) return p;
  return std::nullopt;
}

std::string scalar_text(const ops::Scalar& value) {
  if (is_bool(value.dtype)) return value.i != 0 ? "true" : "false";
  if (!is_float(value.dtype)) return str("{}", value.i);
  if (std::isnan(value.f)) return std::signbit(value.f) ? "-nan" : "nan";
  // The shortest decimal of the narrower type, unless reading it as a double rounds differently.
  const std::string text = str("{}", static_cast<float>(value.f));
  double read = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), read);
  if (end.ec == std::errc{} && value.dtype != DType::f64 &&
      ops::Scalar::of_float(value.dtype, read) == value)
    return text;
  return str("{}", value.f);
}

Result<ops::Scalar> parse_scalar(TextReader& in, DType dtype) {
  if (is_complex(dtype)) return in.error_here(str("no constant has dtype {}", name(dtype)));
  if (is_bool(dtype)) {
    if (in.accept("true")) return ops::Scalar::of_bool(true);
    if (in.accept("false")) return ops::Scalar::of_bool(false);
    return in.error_here(str("expected true or false, found {}", in.found()));
  }
  if (is_float(dtype)) return ops::Scalar::of_float(dtype, COIL_TRY(in.number()));
  return ops::Scalar::of_int(dtype, COIL_TRY(in.integer()));
}

bool is_strided(const Layout& layout, std::size_t ndim) {
  if (layout.entries.size() != ndim) return false;
  for (std::size_t d = 0; d < ndim; ++d)
    if (layout.entries[d].dim != d || layout.entries[d].factor != 1) return false;
  return true;
}

bool is_contiguous(sym::Arena& syms, const Buffer& buffer) {
  const Layout& layout = buffer.layout;
  if (layout.offset.valid() && !syms.is_const(layout.offset, 0)) return false;
  if (!is_strided(layout, buffer.shape.size())) return false;
  const std::vector<sym::Expr> strides = contiguous_strides(syms, buffer.shape);
  for (std::size_t d = 0; d < strides.size(); ++d)
    if (layout.entries[d].stride != strides[d]) return false;
  return true;
}

bool outputs_are_marked(const LoopProgram& program) {
  sym::Arena& syms = *program.syms;
  BufferId last;
  for (const ProgramOutput& output : program.outputs) {
    if (output.kind != OutputKind::Value || !output.buffer.valid()) return false;
    const Buffer& buffer = program.buffers[output.buffer];
    if (buffer.kind != BufferKind::Temp || buffer.dtype != output.dtype) return false;
    if (last.valid() && output.buffer <= last) return false;
    last = output.buffer;
    const bool at_start = !output.offset.valid() || syms.is_const(output.offset, 0);
    if (output.shape != buffer.shape || !at_start || !is_contiguous(syms, buffer)) return false;
    if (output.strides != contiguous_strides(syms, output.shape)) return false;
  }
  return true;
}

bool inputs_are_plain(const LoopProgram& program) {
  BufferId last;
  for (const ProgramInput& input : program.inputs) {
    if (!input.buffer.valid() || input.is_complex) return false;
    if (program.buffers[input.buffer].name != input.name) return false;
    if (last.valid() && input.buffer <= last) return false;
    last = input.buffer;
  }
  std::size_t count = 0;
  for (const Buffer& buffer : program.buffers) count += buffer.kind == BufferKind::Input;
  return count == program.inputs.size();
}

Side<BufferId, bool> open_by_default(const LoopProgram& program) {
  Side<BufferId, bool> open(program.buffers.size());
  for (BufferId id : program.buffers.ids()) open[id] = program.buffers[id].kind == BufferKind::Temp;
  for (const ProgramOutput& output : program.outputs)
    if (output.buffer.valid()) open[output.buffer] = false;
  return open;
}

}  // namespace coil::loop_text
