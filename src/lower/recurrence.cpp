// LSTM, GRU and plain recurrent layers. The projections of all inputs are one gemm; then a loop
// over the steps carries the hidden state through one gemm and one body of gates.

#include "base/check.h"
#include "lower/body_builder.h"
#include "lower/registry.h"

namespace coil::lowering {
namespace {

using ops::ScalarOp;

enum class CellKind : u8 { Lstm, Gru, Tanh, Relu };

i64 gate_count(CellKind kind) {
  switch (kind) {
    case CellKind::Lstm: return 4;
    case CellKind::Gru: return 3;
    case CellKind::Tanh:
    case CellKind::Relu: return 1;
  }
  COIL_UNREACHABLE();
}

/// One layer in one direction.
struct Layer {
  CellKind kind = CellKind::Lstm;
  Access w_ih, w_hh;  // [gates*H, in], [gates*H, H]
  std::optional<Access> b_ih, b_hh;
  std::vector<Access> state;  // h [B, H], and c of an LSTM
  bool reverse = false;
  std::string name;  // "lstm.l0", "lstm.l0.back"
};

struct LayerResult {
  Access ys;                  // [T, B, H], in time order
  std::vector<Access> state;  // the final h and c
};

Val sigmoid(BodyBuilder& b, Val x) {
  const Val one = b.constant(b.dtype(x), 1);
  return b.div(one, b.add(one, b.op(ScalarOp::exp, {b.neg(x)})));
}

Val tanh(BodyBuilder& b, Val x) { return b.op(ScalarOp::tanh, {x}); }

BufferId plain_buffer(Lowering& l, const std::string& name, DType dtype, Exprs shape,
                      BufferKind kind) {
  Buffer buffer;
  buffer.name = name;
  buffer.dtype = dtype;
  buffer.layout = strided_layout(contiguous_strides(l.syms, shape), Expr());
  buffer.layout.open = false;
  buffer.shape = std::move(shape);
  buffer.kind = kind;
  buffer.source = static_cast<u32>(l.program.inputs.size());
  return l.add_buffer(std::move(buffer));
}

void add_product(Lowering& l, const std::string& name, const Access& a, const Access& weight,
                 BufferId out) {
  const std::vector<i64> swapped{1, 0};
  Structured gemm;
  gemm.name = name;
  gemm.attrs = Gemm{};
  gemm.inputs = {a, permute(l.syms, weight, swapped)};
  gemm.outputs = {l.whole(out)};
  l.add_structured(std::move(gemm));
}

/// x @ w_ih^T + b_ih for all steps: [T, B, gates*H] in the computing dtype.
BufferId project_inputs(Lowering& l, const Layer& layer, const Access& x, DType dtype) {
  sym::Arena& syms = l.syms;
  const Expr steps = x.extents[0], batch = x.extents[1], width = layer.w_ih.extents[0];
  const Expr rows = syms.mul(steps, batch);
  const Access flat = l.linear(reshape(syms, l.prover, x, Exprs{rows, x.extents[2]}), "rows");
  const Exprs shape{steps, batch, width};
  const BufferId product =
      plain_buffer(l, layer.name + ".xw", dtype, {rows, width}, BufferKind::Temp);
  add_product(l, layer.name + ".xw", flat, l.linear(layer.w_ih, "w_ih"), product);
  const BufferId out = plain_buffer(l, layer.name + ".xg", dtype, shape, BufferKind::Temp);
  BodyBuilder b(l, layer.name + ".xg");
  const Exprs at = b.dims(shape);
  Val v = b.load(reshape(syms, l.prover, l.whole(product), shape), at);
  if (layer.b_ih) v = b.add(v, b.cast(b.load(*layer.b_ih, Exprs{at[2]}), dtype));
  b.store(out, at, v);
  b.finish();
  return out;
}

/// The sub-program of one step: inputs h (and c), w_hh, xg and b_hh; outputs the new state and y.
class StepProgram {
 public:
  StepProgram(Lowering& outer, const Layer& layer, DType dtype, Expr position)
      : l_(outer.graph, outer.facts, outer.unsupported),
        layer_(layer),
        dtype_(dtype),
        position_(position) {
    l_.enter(outer.node());
    l_.program.name = layer.name + ".step";
  }

  LoopProgram build(const Lowering& outer, const std::vector<BufferId>& operands,
                    std::size_t states) {
    std::vector<BufferId> inputs;
    for (BufferId b : operands) inputs.push_back(input(outer.program.buffers[b]));
    const Buffer h = l_.program.buffers[inputs[0]];
    const Access w_hh = l_.whole(inputs[states]);
    xg_ = inputs[states + 1];
    const BufferId product =
        plain_buffer(l_, "hw", dtype_, {h.shape[0], w_hh.extents[0]}, BufferKind::Temp);
    add_product(l_, "hw", l_.whole(inputs[0]), w_hh, product);
    b_hh_ = layer_.b_hh ? inputs[states + 2] : BufferId();
    std::vector<BufferId> outputs;
    constexpr std::string_view kNames[] = {"h_next", "c_next"};
    for (std::size_t k = 0; k < states; ++k)
      outputs.push_back(
          plain_buffer(l_, std::string(kNames[k]), h.dtype, h.shape, BufferKind::Temp));
    outputs.push_back(plain_buffer(l_, "y", h.dtype, h.shape, BufferKind::Temp));
    gates(inputs, product, outputs, h.shape);
    for (BufferId b : outputs) output(b);
    return std::move(l_.program);
  }

 private:
  BufferId input(const Buffer& outer) {
    Buffer copy = outer;
    copy.kind = BufferKind::Input;
    copy.source = static_cast<u32>(l_.program.inputs.size());
    copy.starts = {};
    copy.layout.open = false;
    const BufferId id = l_.add_buffer(std::move(copy));
    ProgramInput in;
    in.name = l_.program.buffers[id].name;
    in.buffer = id;
    l_.program.inputs.push_back(std::move(in));
    return id;
  }
  void output(BufferId b) {
    ProgramOutput out;
    out.buffer = b;
    out.dtype = l_.program.buffers[b].dtype;
    out.shape = l_.program.buffers[b].shape;
    out.strides = contiguous_strides(l_.syms, out.shape);
    out.offset = l_.syms.constant(0);
    l_.program.outputs.push_back(std::move(out));
  }

  struct Gate {
    Val from_x, from_h;
  };
  /// Gate number `k` of hidden element at[1].
  Gate gate(BodyBuilder& b, BufferId product, const Exprs& at, Expr hidden, i64 k) {
    sym::Arena& syms = l_.syms;
    const Expr column = syms.add(syms.mul(hidden, syms.constant(k)), at[1]);
    Val h = b.load(product, Exprs{at[0], column});
    if (b_hh_.valid()) h = b.add(h, b.cast(b.load(b_hh_, Exprs{column}), dtype_));
    return {b.load(xg_, Exprs{position_, at[0], column}), h};
  }

  void gates(const std::vector<BufferId>& inputs, BufferId product,
             const std::vector<BufferId>& outputs, const Exprs& shape) {
    BodyBuilder b(l_, "gates");
    const Exprs at = b.dims(shape);
    const auto sum = [&](i64 k) {
      const Gate g = gate(b, product, at, shape[1], k);
      return b.add(g.from_h, g.from_x);
    };
    const auto old = [&](std::size_t k) { return b.cast(b.load(inputs[k], at), dtype_); };
    Val h;
    switch (layer_.kind) {
      case CellKind::Lstm: {
        const Val in = sigmoid(b, sum(0)), forget = sigmoid(b, sum(1));
        const Val cell = tanh(b, sum(2)), out = sigmoid(b, sum(3));
        const Val c = b.add(b.mul(forget, old(1)), b.mul(in, cell));
        b.store(outputs[1], at, c);
        h = b.mul(out, tanh(b, c));
        break;
      }
      case CellKind::Gru: {
        const Val reset = sigmoid(b, sum(0)), keep = sigmoid(b, sum(1));
        const Gate fresh = gate(b, product, at, shape[1], 2);
        const Val candidate = tanh(b, b.add(fresh.from_x, b.mul(reset, fresh.from_h)));
        h = b.add(b.mul(b.sub(old(0), candidate), keep), candidate);
        break;
      }
      case CellKind::Tanh: h = tanh(b, sum(0)); break;
      case CellKind::Relu: h = b.max(sum(0), b.constant(dtype_, 0)); break;
    }
    b.store(outputs[0], at, h);
    b.store(outputs.back(), at, h);
    b.finish();
  }

  Lowering l_;
  const Layer& layer_;
  DType dtype_;
  Expr position_;  // of the step in time
  BufferId xg_, b_hh_;
};

/// A whole contiguous buffer for the loop's sub-program.
BufferId whole_operand(Lowering& l, const Access& a, std::string_view suffix) {
  const BufferId b = l.materialise(a, suffix);
  l.program.buffers[b].layout.open = false;
  return b;
}

/// `a` with its first dim read backwards.
Access reversed(Lowering& l, const Access& a) {
  sym::Arena& syms = l.syms;
  const Exprs vars = fresh_vars(syms, a.extents);
  Exprs point = vars;
  point[0] = syms.sub(syms.sub(a.extents[0], syms.constant(1)), vars[0]);
  return view_of(syms, a, vars, a.extents, point);
}

LayerResult run_layer(Lowering& l, const Layer& layer, const Access& x) {
  sym::Arena& syms = l.syms;
  const DType narrow = l.dtype_of(layer.state[0]), dtype = compute_dtype(narrow);
  const Expr steps = x.extents[0];
  const BufferId xg = project_inputs(l, layer, x, dtype);
  Control loop;
  loop.name = l.fresh_body_name(layer.name);
  loop.from = l.from();
  loop.locs = l.locs();
  const Expr step = fresh_var(syms, "t", sym::Role::Step, steps);
  loop.kind = For{step, steps};
  constexpr std::string_view kNames[] = {"h0", "c0"};
  for (std::size_t k = 0; k < layer.state.size(); ++k)
    loop.carried.push_back(whole_operand(l, layer.state[k], kNames[k]));
  loop.operands = {whole_operand(l, layer.w_hh, "w_hh"), xg};
  if (layer.b_hh) loop.operands.push_back(whole_operand(l, *layer.b_hh, "b_hh"));
  std::vector<BufferId> inputs = loop.carried;
  inputs.insert(inputs.end(), loop.operands.begin(), loop.operands.end());
  const Expr position = layer.reverse ? syms.sub(syms.sub(steps, syms.constant(1)), step) : step;
  StepProgram body(l, layer, dtype, position);
  l.program.subprograms.push_back(body.build(l, inputs, layer.state.size()));
  loop.programs = {static_cast<u32>(l.program.subprograms.size() - 1)};
  LayerResult result;
  for (const Access& state : layer.state) {
    const BufferId last =
        plain_buffer(l, layer.name + ".last", narrow, state.extents, BufferKind::Temp);
    loop.results.push_back(last);
    result.state.push_back(l.whole(last));
  }
  Exprs shape = layer.state[0].extents;
  shape.insert(shape.begin(), steps);
  const BufferId ys = plain_buffer(l, layer.name + ".ys", narrow, shape, BufferKind::Temp);
  loop.results.push_back(ys);
  result.ys = layer.reverse ? reversed(l, l.whole(ys)) : l.whole(ys);
  l.program.order.push_back(l.program.controls.add(std::move(loop)));
  return result;
}

/// out[.., i, ..] = parts[i / each][.., i % each, ..] along dim `d`.
void join(Lowering& l, const std::vector<Access>& parts, std::size_t d, BufferId out,
          const std::string& name) {
  sym::Arena& syms = l.syms;
  BodyBuilder b(l, name);
  const Exprs at = b.dims(l.program.buffers[out].shape);
  Expr begin = syms.constant(0);
  Val all;
  for (const Access& part : parts) {
    const Expr end = syms.add(begin, part.extents[d]);
    Exprs point = at;
    point[d] = syms.sub(at[d], begin);
    const Val mask = b.test(syms.logical_and(syms.le(begin, at[d]), syms.lt(at[d], end)));
    const Val v = b.load_if(mask, ops::Scalar::of_int(l.dtype_of(part), 0), part, point);
    all = all.valid() ? b.where(mask, v, all) : v;
    begin = end;
  }
  b.store(out, at, all);
  b.finish();
}

struct Parameters {
  std::vector<ValueId> all;
  std::size_t next = 0;
  ValueId take() { return all.at(next++); }
};

Access select_first(Lowering& l, const Access& a, std::size_t k) {
  const Exprs extents(a.extents.begin() + 1, a.extents.end());
  const Exprs vars = fresh_vars(l.syms, extents);
  Exprs point = vars;
  point.insert(point.begin(), l.syms.constant(static_cast<i64>(k)));
  return view_of(l.syms, a, vars, extents, point);
}

Status recurrence(Lowering& l, const Node& node, const Args& args, CellKind kind) {
  const std::vector<ValueId> hx = args.tensors("hx");
  const bool bias = args.flag("has_biases");
  const std::size_t directions = args.flag("bidirectional") ? 2 : 1;
  const auto layers = static_cast<std::size_t>(args.integer("num_layers"));
  if (args.flag("train") && args.number("dropout") != 0 && layers > 1)
    return l.unsupported_case("dropout needs random numbers");
  Parameters params{args.tensors("params"), 0};
  if (params.all.size() != layers * directions * (bias ? 4 : 2))
    return l.unsupported_case("projections (proj_size)");
  const std::vector<i64> time_first{1, 0, 2};
  Access x = l.access(args.tensor("input"));
  if (args.flag("batch_first")) x = permute(l.syms, x, time_first);
  std::vector<std::vector<Access>> finals(hx.size());
  const i64 gates = gate_count(kind);
  for (std::size_t k = 0; k < layers; ++k) {
    std::vector<Access> ys;
    for (std::size_t d = 0; d < directions; ++d) {
      Layer layer;
      layer.kind = kind;
      layer.name = str("{}.l{}{}", l.name(), k, d ? ".back" : "");
      layer.reverse = d == 1;
      layer.w_ih = l.access(params.take());
      layer.w_hh = l.access(params.take());
      if (bias) layer.b_ih = l.access(params.take());
      if (bias) layer.b_hh = l.access(params.take());
      if (layer.w_hh.extents.size() != 2 ||
          !l.prover.is_equal(layer.w_hh.extents[0],
                             l.syms.mul(layer.w_hh.extents[1], l.syms.constant(gates))))
        return l.unsupported_case(str("its weights are not those of {} gates", gates));
      for (ValueId h : hx) {
        Access state = l.access(h);
        // Each layer and direction has its own row of hx: a copy, since the loop carries it on.
        state = select_first(l, state, k * directions + d);
        layer.state.push_back(state);
      }
      LayerResult result = run_layer(l, layer, x);
      ys.push_back(result.ys);
      for (std::size_t s = 0; s < hx.size(); ++s)
        finals[s].push_back(unsqueeze(l.syms, result.state[s], 0));
    }
    x = ys[0];
    if (directions == 2) {
      Exprs shape = ys[0].extents;
      shape[2] = l.syms.add(ys[0].extents[2], ys[1].extents[2]);
      const std::string name = str("{}.l{}.both", l.name(), k);
      const BufferId both = plain_buffer(l, name, l.dtype_of(ys[0]), shape, BufferKind::Temp);
      join(l, ys, 2, both, name);
      x = l.whole(both);
    }
  }
  l.set(node.outs[0], args.flag("batch_first") ? permute(l.syms, x, time_first) : x);
  for (std::size_t s = 0; s < hx.size(); ++s)
    if (l.used(node.outs[s + 1]))
      join(l, finals[s], 0, l.result(node.outs[s + 1]), l.name_of(node.outs[s + 1]));
  return Ok{};
}

}  // namespace

Status lower_lstm(Lowering& l, const Node& node, const Args& args) {
  return recurrence(l, node, args, CellKind::Lstm);
}

Status lower_gru(Lowering& l, const Node& node, const Args& args) {
  return recurrence(l, node, args, CellKind::Gru);
}

Status lower_rnn(Lowering& l, const Node& node, const Args& args) {
  return recurrence(l, node, args, node.op == "rnn_relu.input" ? CellKind::Relu : CellKind::Tanh);
}

}  // namespace coil::lowering
