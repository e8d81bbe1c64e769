// Structured nodes: matrix products, convolution, attention.

#include <cmath>

#include "base/check.h"
#include "lower/body_builder.h"
#include "lower/pointwise.h"
#include "lower/registry.h"

namespace coil::lowering {
namespace {

/// Products of bools have no terms: the graph's rules admit no others.
Status no_terms(Lowering& l) {
  l.fill(l.result(), 0, l.name());
  return Ok{};
}

/// An operand of the node: a view, if its address is linear in each dim, else a copy.
Access operand(Lowering& l, ValueId v, std::string_view suffix) {
  return l.linear(l.access(v), suffix);
}

void add_gemm(Lowering& l, const Access& a, const Access& b, BufferId out,
              const std::string& name) {
  Structured gemm;
  gemm.name = name;
  gemm.attrs = Gemm{};
  gemm.inputs = {a, b};
  gemm.outputs = {l.whole(out)};
  l.add_structured(std::move(gemm));
}

std::vector<i64> repeated(std::vector<i64> v, std::size_t n) {
  if (v.size() == 1) v.assign(n, v[0]);
  return v;
}

}  // namespace

Status lower_mm(Lowering& l, const Node& node, const Args& args) {
  const Access a = operand(l, args.tensor("self"), "a");
  const Access b = operand(l, args.tensor("mat2"), "b");
  const DType dtype = l.type(node.outs[0]).dtype;
  if (is_bool(dtype)) return no_terms(l);
  if (is_complex(dtype)) return l.unsupported_case("complex matrices");
  add_gemm(l, a, b, l.result(), l.name());
  return Ok{};
}

bool is_zero(const Lowering& l, const Arg& factor) {
  const auto* e = std::get_if<Expr>(&factor);
  const auto* x = std::get_if<double>(&factor);
  const auto* flag = std::get_if<bool>(&factor);
  return (e && l.syms.is_const(*e, 0)) || (x && *x == 0) || (flag && !*flag);
}

/// alpha * (a @ b) + beta * self, rounded once; self is not read where beta is 0, nor is the
/// product where alpha is and eager calls BLAS.
Status lower_addmm(Lowering& l, const Node& node, const Args& args) {
  const bool batch = node.op == "baddbmm";
  const Access a = operand(l, args.tensor(batch ? "batch1" : "mat1"), "a");
  const Access b = operand(l, args.tensor(batch ? "batch2" : "mat2"), "b");
  const Type& type = l.type(node.outs[0]);
  if (is_bool(type.dtype)) return no_terms(l);
  if (is_complex(type.dtype)) return l.unsupported_case("complex matrices");
  const DType dtype = compute_dtype(type.dtype);
  const bool drops_product = is_zero(l, args["alpha"]) && !batch && !is_narrow_float(type.dtype);
  const BufferId product = drops_product ? BufferId{} : l.temp("mm", dtype, type.shape);
  if (!drops_product) add_gemm(l, a, b, product, str("{}.mm", l.name()));
  const Access bias = broadcast_to(l.syms, l.access(args.tensor("self")), type.shape);
  const BufferId out = l.result();
  BodyBuilder body(l, l.name());
  const Exprs at = body.dims(type.shape);
  const auto scaled = [&](std::string_view factor, Val v) {
    const Arg& arg = args[factor];
    const auto* e = std::get_if<Expr>(&arg);
    const auto* x = std::get_if<double>(&arg);
    if ((e && l.syms.is_const(*e, 1)) || (x && *x == 1)) return v;
    return body.mul(scalar_value(body, arg, dtype), v);
  };
  const auto scaled_product = [&] { return scaled("alpha", body.load(product, at)); };
  const auto scaled_bias = [&] { return scaled("beta", body.cast(body.load(bias, at), dtype)); };
  if (is_zero(l, args["beta"]))
    body.store(out, at, drops_product ? body.constant(dtype, 0) : scaled_product());
  else if (drops_product)
    body.store(out, at, scaled_bias());
  else
    body.store(out, at, body.add(scaled_product(), scaled_bias()));
  body.finish();
  return Ok{};
}

Status lower_convolution(Lowering& l, const Node& node, const Args& args) {
  const Access x = operand(l, args.tensor("input"), "x");
  const Access w = operand(l, args.tensor("weight"), "w");
  if (is_complex(l.type(node.outs[0]).dtype)) return l.unsupported_case("complex convolution");
  const std::size_t spatial = w.extents.size() - 2;
  if (x.extents.size() != w.extents.size())
    return l.unsupported_case("an input without a batch dim");
  if (l.syms.is_const(x.extents[1], 0)) {  // a result without elements
    l.fill(l.result(), 0, l.name());
    return Ok{};
  }
  Conv conv;
  conv.stride = repeated(args.integers("stride"), spatial);
  conv.padding = repeated(args.integers("padding"), spatial);
  conv.dilation = repeated(args.integers("dilation"), spatial);
  conv.output_padding = repeated(args.integers("output_padding"), spatial);
  conv.groups = args.integer("groups");
  conv.transposed = args.flag("transposed");
  Structured s;
  s.name = l.name();
  s.attrs = std::move(conv);
  s.inputs = {x, w};
  if (args.has("bias")) s.inputs.push_back(operand(l, args.tensor("bias"), "bias"));
  s.outputs = {l.whole(l.result())};
  l.add_structured(std::move(s));
  return Ok{};
}

namespace {

/// An operand of attention as [b, h, rows, features].
Result<Access> heads(Lowering& l, ValueId v, std::string_view suffix) {
  Access a = operand(l, v, suffix);
  if (a.extents.size() > 4) return l.unsupported_case("more than four dims");
  if (a.extents.size() == 3) a = unsqueeze(l.syms, a, 1);
  while (a.extents.size() < 4) a = unsqueeze(l.syms, a, 0);
  return a;
}

/// Repeats dim `dim` of extent 1.
Access spread(Lowering& l, const Access& a, std::size_t dim, Expr extent) {
  Exprs shape = a.extents;
  if (!l.syms.is_const(shape[dim], 1)) return a;
  shape[dim] = extent;
  return broadcast_to(l.syms, a, shape);
}

/// The mask as [b, h, m, n]: its dims stand for the last ones of the scores.
Access mask_operand(Lowering& l, ValueId v, const Type& query, const Access& q, const Access& k) {
  Access mask = l.access(v);
  const Exprs scores{q.extents[0], q.extents[1], q.extents[2], k.extents[2]};
  // Scores of a query [b, m, d] are [b, m, n], and so is the mask: the head is dim 1.
  if (query.ndim() == 3 && mask.extents.size() == 3) mask = unsqueeze(l.syms, mask, 1);
  return l.linear(broadcast_to(l.syms, mask, scores), "mask");
}

struct AttentionOperands {
  ValueId query;
  Access q, k, v;
  ValueId mask;  // may be invalid
};

Status add_attention(Lowering& l, const Node& node, const Attention& attention,
                     const AttentionOperands& o) {
  Structured s;
  s.name = l.name();
  s.attrs = attention;
  s.inputs = {o.q, o.k, o.v};
  if (attention.has_mask) s.inputs.push_back(mask_operand(l, o.mask, l.type(o.query), o.q, o.k));
  const Type& type = l.type(node.outs[0]);
  BufferId out;
  if (type.ndim() == 4) {
    out = l.result();
  } else {  // a result is a whole buffer of four dims: the node's own is a view of it
    out = l.temp("heads", type.dtype,
                 {o.q.extents[0], o.q.extents[1], o.q.extents[2], o.v.extents[3]});
    l.set(node.outs[0], reshape(l.syms, l.prover, l.whole(out), type.shape));
  }
  s.outputs = {l.whole(out)};
  l.add_structured(std::move(s));
  return Ok{};
}

}  // namespace

Status lower_attention(Lowering& l, const Node& node, const Args& args) {
  const ValueId query = args.tensor("query");
  if (args.number("dropout_p") != 0) return l.unsupported_case("dropout needs random numbers");
  const Access q = COIL_TRY(heads(l, query, "q"));
  Access k = COIL_TRY(heads(l, args.tensor("key"), "k"));
  Access v = COIL_TRY(heads(l, args.tensor("value"), "v"));
  k = spread(l, k, 0, q.extents[0]);
  v = spread(l, v, 0, q.extents[0]);
  Attention attention;
  attention.causal = args.flag("is_causal");
  attention.has_mask = args.has("attn_mask");
  if (args.has("scale")) {
    attention.scale = args.number("scale");
  } else {
    const auto width = l.syms.as_const(q.extents[3]);
    if (!width) return l.unsupported_case("the default scale of a dynamic head size; give scale=");
    attention.scale = 1 / std::sqrt(static_cast<double>(*width));
  }
  return add_attention(l, node, attention,
                       {query, q, k, v, attention.has_mask ? args.tensor("attn_mask") : ValueId()});
}

Status lower_softmax_attention(Lowering& l, const Node& node, const Args& args) {
  const ValueId query = args.tensor("query");
  const Access q = COIL_TRY(heads(l, query, "q"));
  const Access k = COIL_TRY(heads(l, args.tensor("key"), "k"));
  const Access v = COIL_TRY(heads(l, args.tensor("value"), "v"));
  Attention attention;
  attention.scale = args.number("scale");
  attention.has_mask = args.has("mask");
  attention.nan_rows = true;
  return add_attention(l, node, attention,
                       {query, q, k, v, attention.has_mask ? args.tensor("mask") : ValueId()});
}

}  // namespace coil::lowering
