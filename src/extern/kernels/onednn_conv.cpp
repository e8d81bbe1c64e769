#include "extern/kernels/onednn_conv.h"

#include <algorithm>
#include <atomic>

namespace coil::external {
namespace {

using runtime::CallOperand;
using runtime::CallTools;

constexpr i64 kLine = 64;  // bytes: pieces of scratch begin at multiples

// An image is shared by at most kMostBlocks threads; below kLeastChannels the library's kernels
// have too little to keep in registers.
constexpr i64 kMostBlocks = 8, kLeastChannels = 32;

/// How many channels or groups a block has: a function of the shape alone.
i64 block_of(i64 channels) {
  if (channels % kLeastChannels != 0) return channels;
  i64 block = kLeastChannels;
  while (channels / block > kMostBlocks && channels % (2 * block) == 0) block *= 2;
  return block;
}

i64 product(const std::vector<i64>& list) {
  i64 out = 1;
  for (i64 x : list) out *= x;
  return out;
}

std::vector<i64> joined(std::vector<i64> head, const std::vector<i64>& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

/// Why an implementation is not used, or "".
std::string unwanted(const std::string& implementation) {
  if (implementation.find("ref") != std::string::npos)
    return str("it would fall to its reference path '{}'", implementation);
  if (implementation.starts_with("gemm"))
    return str(
        "'{}' multiplies weights by the zeros of the padding, which shows where they are "
        "infinite or NaN",
        implementation);
  return implementation.empty() ? "it does not name its implementation" : "";
}

}  // namespace

/// One call: the operands and where its pieces of scratch are.
struct OneDnnConv::Call {
  const std::byte* x = nullptr;
  const std::byte* bias = nullptr;
  std::byte* y = nullptr;
  const std::byte* weights = nullptr;
  std::byte* sources = nullptr;
  std::byte* per_worker = nullptr;  // result, block, scratch
  i64 worker_bytes = 0;
  const CallTools* tools = nullptr;
};

Result<OneDnnConv::Copy> OneDnnConv::copy(const DnnlHandle& from, const DnnlHandle& to) const {
  if (library_->equal(from, to)) return Copy();
  return Copy(COIL_TRY(library_->reorder(from, to)));
}

i64 OneDnnConv::bytes(const DnnlHandle& layout) const {
  return layout ? (library_->bytes(layout) + kLine - 1) / kLine * kLine : 0;
}

Result<std::shared_ptr<const OneDnnConv>> OneDnnConv::create(std::shared_ptr<const OneDnn> library,
                                                             const ConvShape& shape) {
  std::shared_ptr<OneDnnConv> out(new OneDnnConv);
  out->library_ = std::move(library);
  out->shape_ = shape;
  const i64 wanted = block_of(shape.groups == 1 ? shape.oc : shape.groups);
  out->blocks_ = (shape.groups == 1 ? shape.oc : shape.groups) / wanted;
  out->slices_ = shape.groups == 1 ? 1 : out->blocks_;
  out->in_channels_ = shape.ic / out->slices_;
  out->out_channels_ = shape.oc / out->blocks_;
  COIL_TRY(out->choose_layouts());
  return std::shared_ptr<const OneDnnConv>(out);
}

Status OneDnnConv::choose_layouts() {
  const ConvShape& s = shape_;
  const OneDnn& l = *library_;
  const std::vector<i64> x_shape = joined({1, in_channels_}, s.input);
  const std::vector<i64> y_shape = joined({1, out_channels_}, s.output);
  const i64 positions = product(s.output);
  std::vector<i64> w_shape = joined({out_channels_, s.ic / s.groups}, s.kernel);
  std::vector<i64> w_strides = s.w_strides, block_strides(s.output.size(), 1);
  for (std::size_t d = s.output.size(); d-- > 1;)
    block_strides[d - 1] = block_strides[d] * s.output[d];
  if (s.groups > 1) {
    const i64 of_group = s.oc / s.groups;
    w_shape[0] = of_group;
    w_shape.insert(w_shape.begin(), out_channels_ / of_group);
    w_strides.insert(w_strides.begin(), of_group * s.w_strides[0]);
  }
  x_ = COIL_TRY(l.layout(x_shape, s.x_strides));
  y_ = COIL_TRY(l.layout(y_shape, s.y_strides));
  w_ = COIL_TRY(l.layout(w_shape, w_strides));
  block_ =
      COIL_TRY(l.layout(y_shape, joined({out_channels_ * positions, positions}, block_strides)));
  DnnlConv conv;
  conv.source = COIL_TRY(l.layout(x_shape, {}));
  conv.weights = COIL_TRY(l.layout(w_shape, {}));
  conv.result = COIL_TRY(l.layout(y_shape, {}));
  if (s.has_bias) conv.bias = bias_ = COIL_TRY(l.layout({out_channels_}, {1}));
  conv.stride = s.stride;
  conv.pad_begin = s.padding;
  for (std::size_t d = 0; d < s.input.size(); ++d) {
    conv.dilation.push_back(s.dilation[d] - 1);
    conv.pad_end.push_back((s.output[d] - 1) * s.stride[d] + s.dilation[d] * (s.kernel[d] - 1) + 1 -
                           s.input[d] - s.padding[d]);
  }
  conv_ = COIL_TRY(l.convolution(conv));
  if (const std::string reason = unwanted(conv_.implementation); !reason.empty())
    return Error{reason};
  if (!conv_.source || !conv_.weights || !conv_.result)
    return error("it does not say which layouts it works in");
  x_to_source_ = COIL_TRY(copy(x_, conv_.source));
  w_to_weights_ = COIL_TRY(copy(w_, conv_.weights));
  result_to_block_ = COIL_TRY(copy(conv_.result, block_));
  result_to_y_ = COIL_TRY(copy(conv_.result, y_));
  block_to_y_ = COIL_TRY(copy(block_, y_));
  source_bytes_ = bytes(conv_.source);
  weights_bytes_ = bytes(conv_.weights);
  result_bytes_ = bytes(conv_.result);
  block_bytes_ = bytes(block_);
  scratch_bytes_ = bytes(conv_.scratch);
  for (const Copy* c :
       {&x_to_source_, &w_to_weights_, &result_to_block_, &result_to_y_, &block_to_y_})
    if (*c) scratch_bytes_ = std::max(scratch_bytes_, bytes((*c)->scratch));
  return Ok{};
}

Status OneDnnConv::pack(const std::byte* w, std::byte* packed) const {
  OneDnn::Task task(*library_);
  std::vector<std::byte> scratch(static_cast<std::size_t>(scratch_bytes_ + kLine));
  for (i64 b = 0; b < blocks_; ++b) {
    const std::byte* from =
        w + b * out_channels_ * shape_.w_strides[0] * static_cast<i64>(sizeof(float));
    std::byte* to = packed + b * weights_bytes_;
    if (w_to_weights_)
      task.execute(
          *w_to_weights_,
          {task.argument(kDnnlSource, w_, from), task.argument(kDnnlResult, conv_.weights, to)},
          scratch.data());
    else
      std::copy_n(from, library_->bytes(w_), to);
  }
  if (task.failed()) return error("oneDNN failed to pack a weight");
  return Ok{};
}

Result<OneDnnConv::Call> OneDnnConv::begin(std::span<const CallOperand> o,
                                           const CallTools& tools) const {
  Call call;
  call.x = o[0].data;
  call.y = o.back().data;
  if (shape_.has_bias) call.bias = o[2].data;
  call.tools = &tools;
  call.worker_bytes = result_bytes_ + block_bytes_ + scratch_bytes_;
  const i64 sources = x_to_source_ ? shape_.n * slices_ * source_bytes_ : 0;
  const i64 weights = tools.packed ? 0 : packed_bytes();
  std::byte* scratch = static_cast<std::byte*>(
      COIL_TRY(tools.scratch.take(sources + weights + call.worker_bytes * tools.pool.threads())));
  call.sources = scratch;
  call.per_worker = scratch + sources + weights;
  call.weights = tools.packed ? static_cast<const std::byte*>(tools.packed) : scratch + sources;
  if (!tools.packed) COIL_TRY(pack(o[1].data, scratch + sources));
  return call;
}

Status OneDnnConv::run(std::span<const CallOperand> operands, const CallTools& tools) const {
  const Call call = COIL_TRY(begin(operands, tools));
  std::atomic<bool> failed{false};
  if (x_to_source_)
    tools.pool.parallel_for(0, shape_.n * slices_, 1, [&](i64 lo, i64 hi, int worker) {
      for (i64 i = lo; i < hi && !failed; ++i)
        if (!bring_source(call, i, worker)) failed = true;
    });
  tools.pool.parallel_for(0, shape_.n * blocks_, 1, [&](i64 lo, i64 hi, int worker) {
    for (i64 i = lo; i < hi && !failed; ++i)
      if (!compute(call, i, worker)) failed = true;
  });
  if (failed) return error("oneDNN failed in a convolution ({})", implementation());
  return Ok{};
}

/// Brings slice `index` of all images' into the layout of the primitive.
bool OneDnnConv::bring_source(const Call& call, i64 index, int worker) const {
  const i64 image = index / slices_, slice = index % slices_;
  const std::byte* from =
      call.x + (image * shape_.x_strides[0] + slice * in_channels_ * shape_.x_strides[1]) *
                   static_cast<i64>(sizeof(float));
  OneDnn::Task task(*library_);
  task.execute(*x_to_source_,
               {task.argument(kDnnlSource, x_, from),
                task.argument(kDnnlResult, conv_.source, call.sources + index * source_bytes_)},
               call.per_worker + worker * call.worker_bytes + result_bytes_ + block_bytes_);
  return !task.failed();
}

/// Computes block `index` of all images', runs the epilogue on it and stores it.
bool OneDnnConv::compute(const Call& call, i64 index, int worker) const {
  constexpr i64 size = sizeof(float);
  const i64 image = index / blocks_, block = index % blocks_, slice = slices_ == 1 ? 0 : block;
  std::byte* result = call.per_worker + worker * call.worker_bytes;
  std::byte* rows = result + result_bytes_;
  std::byte* scratch = rows + block_bytes_;
  const i64 channel0 = block * out_channels_;
  std::byte* y = call.y;
  if (y) y += (image * shape_.y_strides[0] + channel0 * shape_.y_strides[1]) * size;
  const std::byte* source =
      x_to_source_
          ? call.sources + (image * slices_ + slice) * source_bytes_
          : call.x +
                (image * shape_.x_strides[0] + slice * in_channels_ * shape_.x_strides[1]) * size;
  const bool has_epilogue = call.tools->epilogue != nullptr;
  const Copy& out = has_epilogue ? result_to_block_ : result_to_y_;
  std::byte* place = has_epilogue ? rows : y;
  std::byte* made = out ? result : place;
  OneDnn::Task task(*library_);
  std::vector<DnnlArgument> arguments = {
      task.argument(kDnnlSource, conv_.source, source),
      task.argument(kDnnlWeights, conv_.weights, call.weights + block * weights_bytes_),
      task.argument(kDnnlResult, conv_.result, made)};
  if (shape_.has_bias)
    arguments.push_back(task.argument(kDnnlBias, bias_, call.bias + channel0 * size));
  task.execute(conv_, std::move(arguments), scratch);
  if (out)
    task.execute(*out,
                 {task.argument(kDnnlSource, conv_.result, made),
                  task.argument(kDnnlResult, has_epilogue ? block_ : y_, place)},
                 scratch);
  if (!has_epilogue || task.failed()) return !task.failed();
  const i64 positions = product(shape_.output);
  call.tools->epilogue(call.tools->epilogue_context, image, channel0, out_channels_, 0, positions,
                       rows, positions);
  if (call.y && block_to_y_)
    task.execute(*block_to_y_,
                 {task.argument(kDnnlSource, block_, rows), task.argument(kDnnlResult, y_, y)},
                 scratch);
  else if (call.y)
    std::copy_n(rows, out_channels_ * positions * size, y);
  return !task.failed();
}

Status run_onednn_conv(const void* attributes, std::span<const CallOperand> operands,
                       const CallTools& tools) {
  return static_cast<const OneDnnConv*>(attributes)->run(operands, tools);
}

Status pack_onednn_conv(const void* attributes, std::span<const CallOperand> operands,
                        const CallTools& tools) {
  return static_cast<const OneDnnConv*>(attributes)
      ->pack(operands[1].data, static_cast<std::byte*>(tools.packed));
}

Status prove_conv(const std::shared_ptr<const OneDnn>& library) {
  constexpr i64 ic = 16, oc = 64, size = 9, kernel = 3, made = 5;  // stride 2, padding 1
  ConvShape s;
  s.ic = ic;
  s.oc = oc;
  s.input = {size, size};
  s.kernel = {kernel, kernel};
  s.output = {made, made};
  s.stride = {2, 2};
  s.padding = {1, 1};
  s.dilation = {1, 1};
  s.x_strides = {ic * size * size, size * size, size, 1};
  s.w_strides = {ic * kernel * kernel, kernel * kernel, kernel, 1};
  s.y_strides = {oc * made * made, made * made, made, 1};
  const std::shared_ptr<const OneDnnConv> conv = COIL_TRY(OneDnnConv::create(library, s));
  std::vector<float> x(ic * size * size), w(oc * ic * kernel * kernel), y(oc * made * made);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = proof_number(static_cast<i64>(i));
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = proof_number(static_cast<i64>(5 * i + 2));
  const auto operand = [](std::vector<float>& data, std::vector<i64> strides) {
    return CallOperand{
        DType::f32, reinterpret_cast<std::byte*>(data.data()), {}, std::move(strides)};
  };
  const CallOperand operands[] = {operand(x, s.x_strides), operand(w, s.w_strides),
                                  operand(y, s.y_strides)};
  runtime::ThreadPool pool(1);
  runtime::Scratch scratch;
  COIL_TRY(conv->run(operands, CallTools{pool, scratch}));
  for (i64 o = 0; o < oc; ++o)
    for (i64 i = 0; i < made * made; ++i) {
      float sum = 0;
      for (i64 c = 0; c < ic; ++c)
        for (i64 k = 0; k < kernel * kernel; ++k) {
          const i64 row = i / made * 2 + k / kernel - 1, column = i % made * 2 + k % kernel - 1;
          if (row >= 0 && row < size && column >= 0 && column < size)
            sum += x[(c * size + row) * size + column] * w[(o * ic + c) * kernel * kernel + k];
        }
      if (y[o * made * made + i] != sum)
        return error("its small convolution is wrong: {} where {} is right", y[o * made * made + i],
                     sum);
    }
  return Ok{};
}

}  // namespace coil::external
