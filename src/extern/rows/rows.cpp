#include "extern/rows/rows.h"

#include <algorithm>
#include <optional>

#include "extern/kernels/onednn_conv.h"
#include "extern/kernels/openblas.h"

namespace coil {
namespace {

using external::ConvShape;
using external::GemmRoutine;
using external::OneDnn;
using external::OneDnnConv;

/// A library that is opened once, by the first who asks.
template <class Handle>
class Lazy {
 public:
  using Open = Result<Handle> (*)(const std::string& setting);
  Lazy(const Options& options, std::string_view key, Open open)
      : key_(key), setting_(options.text(key)), isa_(options.text("isa")), open_(open) {}

  const Result<Handle>& get() {
    if (!handle_) handle_ = open();
    return *handle_;
  }

 private:
  Result<Handle> open() const {
    if (setting_ == "off") return error("option {} is off: a library's bits are its own", key_);
    if (isa_ != "native")
      return error("option isa is {}: a library chooses its instructions by itself", isa_);
    Result<Handle> opened = open_(setting_);
    if (!opened.ok())
      return error("the library ({}) is refused: {}", setting_, opened.error().message);
    return opened;
  }

  std::string key_, setting_, isa_;
  Open open_;
  std::optional<Result<Handle>> handle_;
};

DType dtype_of(const LoopProgram& program, const Access& a) {
  return program.buffers[a.buffer].dtype;
}

/// Strides of an operand in elements, by its dims.
std::vector<sym::Expr> strides_of(const LoopProgram& program, const Access& a) {
  sym::Arena& syms = *program.syms;
  const sym::Expr at = address(syms, program.buffers[a.buffer].layout, a.index);
  std::vector<sym::Expr> out;
  for (sym::Expr v : a.vars) {
    const std::optional<sym::Expr> stride = syms.stride(at, v);
    COIL_CHECK(stride, "an operand is not linear in {}", syms.text(v));
    out.push_back(*stride);
  }
  return out;
}

/// Whether a matrix lies transposed; an Error where neither its rows nor its columns are in one
/// piece.
Result<bool> is_transposed(const LoopProgram& program, const Access& a) {
  sym::Arena& syms = *program.syms;
  const std::vector<sym::Expr> strides = strides_of(program, a);
  const std::size_t row = strides.size() - 2;
  // Lines of `length` elements follow each other without overlap, or there is one.
  const auto in_lines = [&](std::size_t along, std::size_t across) {
    if (syms.as_const(strides[along]) != 1) return false;
    const std::optional<i64> stride = syms.as_const(strides[across]),
                             length = syms.as_const(a.extents[along]);
    return syms.as_const(a.extents[across]) == 1 || strides[across] == a.extents[along] ||
           (stride && length && *stride >= std::max(*length, i64{1}));
  };
  if (in_lines(row + 1, row)) return false;
  if (in_lines(row, row + 1)) return true;
  return error("neither rows nor columns of %{} are in one piece", program.buffers[a.buffer].name);
}

Result<Implementation> library_gemm(const std::string& name,
                                    std::shared_ptr<const GemmRoutine> routine,
                                    const LoopProgram& program, const Structured& node) {
  auto gemm = std::make_shared<external::LibraryGemm>();
  gemm->routine = std::move(routine);
  gemm->a_transposed = COIL_TRY(is_transposed(program, node.inputs[0]));
  gemm->b_transposed = COIL_TRY(is_transposed(program, node.inputs[1]));
  Implementation out;
  out.name = name + ".gemm";
  out.bind = [gemm](runtime::Call& call) {
    call.function = external::run_library_gemm;
    call.bound = gemm;
    return Status(Ok{});
  };
  return out;
}

/// Inputs and output are all of one element type; the reason where they are not of `wanted`.
Status need_dtype(const LoopProgram& program, const Structured& node, DType wanted) {
  const DType in = dtype_of(program, node.inputs[0]), out = dtype_of(program, node.outputs[0]);
  if (in != wanted || out != wanted)
    return error("it takes {} alone, not {} into {}", name(wanted), name(in), name(out));
  return Ok{};
}

Result<std::vector<i64>> constants(const LoopProgram& program, const std::vector<sym::Expr>& list) {
  std::vector<i64> out;
  for (sym::Expr e : list) {
    const std::optional<i64> value = program.syms->as_const(e);
    if (!value) return error("sizes are not known before a call");
    out.push_back(*value);
  }
  return out;
}

Result<ConvShape> conv_shape(const LoopProgram& program, const Structured& node) {
  const Conv& conv = std::get<Conv>(node.attrs);
  const Access &x = node.inputs[0], &w = node.inputs[1], &y = node.outputs[0];
  ConvShape s;
  const std::vector<i64> in = COIL_TRY(constants(program, x.extents)),
                         weight = COIL_TRY(constants(program, w.extents)),
                         out = COIL_TRY(constants(program, y.extents));
  for (const std::vector<i64>& shape : {in, weight, out})
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return error("it is empty");
  s.n = in[0];
  s.ic = in[1];
  s.oc = out[1];
  s.groups = conv.groups;
  s.input.assign(in.begin() + 2, in.end());
  s.kernel.assign(weight.begin() + 2, weight.end());
  s.output.assign(out.begin() + 2, out.end());
  s.stride = conv.stride;
  s.padding = conv.padding;
  s.dilation = conv.dilation;
  s.x_strides = COIL_TRY(constants(program, strides_of(program, x)));
  s.w_strides = COIL_TRY(constants(program, strides_of(program, w)));
  s.y_strides = COIL_TRY(constants(program, strides_of(program, y)));
  s.has_bias = node.inputs.size() == 3;
  if (s.has_bias &&
      COIL_TRY(constants(program, strides_of(program, node.inputs[2]))) != std::vector<i64>{1})
    return error("the bias is not in one piece");
  return s;
}

Result<Implementation> onednn_conv(const std::shared_ptr<const OneDnn>& library,
                                   const LoopProgram& program, const Structured& node) {
  COIL_TRY(need_dtype(program, node, DType::f32));
  if (std::get<Conv>(node.attrs).transposed) return error("it is a transposed convolution");
  const ConvShape shape = COIL_TRY(conv_shape(program, node));
  const std::shared_ptr<const OneDnnConv> conv = COIL_TRY(OneDnnConv::create(library, shape));
  Implementation out;
  out.name = "onednn.conv." + conv->implementation();
  out.bind = [conv](runtime::Call& call) {
    const bool is_pack = call.name.starts_with("pack.");
    call.function = is_pack ? external::pack_onednn_conv : external::run_onednn_conv;
    call.bound = conv;
    return Status(Ok{});
  };
  out.packed_bytes = [conv](std::span<const runtime::CallOperand>) { return conv->packed_bytes(); };
  // The library chooses the layout of weights by all that it knows of the convolution.
  out.layout = node.name;
  return out;
}

}  // namespace

void add_library_candidates(Candidates& candidates, const Options& options) {
  using Blas = std::shared_ptr<const GemmRoutine>;
  using Dnn = std::shared_ptr<const OneDnn>;
  const auto blas = std::make_shared<Lazy<Blas>>(
      options, "openblas", [](const std::string& s) { return external::open_openblas(s); });
  const auto dnn = std::make_shared<Lazy<Dnn>>(
      options, "onednn", [](const std::string& s) { return OneDnn::open(s); });
  candidates.add(
      "openblas",
      [blas](const LoopProgram& program, const Structured& node) -> Result<Implementation> {
        const Blas library = COIL_TRY(Result<Blas>(blas->get()));
        if (dtype_of(program, node.inputs[0]) != DType::f64)
          COIL_TRY(need_dtype(program, node, DType::f32));
        else
          COIL_TRY(need_dtype(program, node, DType::f64));
        return library_gemm("openblas", library, program, node);
      });
  candidates.add(
      "onednn",
      [dnn](const LoopProgram& program, const Structured& node) -> Result<Implementation> {
        const Dnn library = COIL_TRY(Result<Dnn>(dnn->get()));
        if (std::holds_alternative<Conv>(node.attrs)) return onednn_conv(library, program, node);
        COIL_TRY(need_dtype(program, node, DType::f32));
        return library_gemm("onednn", library, program, node);
      });
}

}  // namespace coil
