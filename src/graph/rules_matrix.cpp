// Matrix products, convolution, attention.

#include <algorithm>

#include "graph/rule.h"

namespace coil {
namespace {

Status dims_are(const Call& call, std::string_view name, std::size_t ndim) {
  const Type& type = call.tensor(name);
  if (type.ndim() == ndim) return Ok{};
  return call.fail("{} must have {} dims, not {}", name, ndim, text(call.syms, type));
}

Status dtypes_agree(const Call& call, const Type& a, const Type& b) {
  if (a.dtype == b.dtype) return Ok{};
  return call.fail("operands of dtype {} and {} do not go together", name(a.dtype), name(b.dtype));
}

/// As in eager, bools have no products, but for those without any term.
Status has_products(const Call& call, const Type& a, const Type& b) {
  if (!is_bool(a.dtype) || known_empty(call.graph, a) || known_empty(call.graph, b)) return Ok{};
  return call.fail("matrices of bool have no product: convert them to another dtype");
}

/// a[.., m, k] times b[.., k, n], with a batch dim in front or without.
Result<Types> product(const Call& call, std::string_view first, std::string_view second,
                      bool batched) {
  COIL_TRY(dims_are(call, first, batched ? 3 : 2));
  COIL_TRY(dims_are(call, second, batched ? 3 : 2));
  const Type& a = call.tensor(first);
  const Type& b = call.tensor(second);
  COIL_TRY(dtypes_agree(call, a, b));
  COIL_TRY(has_products(call, a, b));
  const std::size_t rows = batched ? 1 : 0;
  COIL_TRY(call.sizes_agree(a.shape[rows + 1], b.shape[rows]));
  if (batched) COIL_TRY(call.sizes_agree(a.shape[0], b.shape[0]));
  Sizes shape(a.shape.begin(), a.shape.end() - 1);
  shape.push_back(b.shape[rows + 1]);
  DType dtype = a.dtype;
  if (call.schema.arg_index("out_dtype") >= 0) dtype = call.dtype("out_dtype", dtype);
  return Types{call.contiguous(dtype, std::move(shape))};
}

/// The addend must broadcast to the product.
Status broadcasts_to(const Call& call, const Type& result) {
  const Type& addend = call.tensor("self");
  const Sizes shape = COIL_TRY(call.named(broadcast(call.graph, result.shape, addend.shape)));
  if (shape != result.shape)
    return call.fail("{} does not broadcast to {}", text(call.syms, addend),
                     text(call.syms, result));
  return Ok{};
}

/// addmm and the like.
Result<Types> added(const Call& call, Result<Types> of) {
  if (!of.ok()) return of;
  const Type& result = of->at(0);
  const Type& factor = call.graph.type(std::get<ValueId>(call.node.args[1]));
  COIL_TRY(dtypes_agree(call, call.tensor("self"), factor));
  COIL_TRY(broadcasts_to(call, result));
  if (is_bool(result.dtype) && !known_empty(call.graph, result))
    return call.fail("matrices of bool have no product: convert them to another dtype");
  return of;
}

Result<Types> mm(const Call& call) { return product(call, "self", "mat2", false); }
Result<Types> bmm(const Call& call) { return product(call, "self", "mat2", true); }
Result<Types> addmm(const Call& call) { return added(call, product(call, "mat1", "mat2", false)); }
Result<Types> baddbmm(const Call& call) {
  return added(call, product(call, "batch1", "batch2", true));
}

Result<Types> matrix_vector(const Call& call, std::string_view matrix) {
  COIL_TRY(dims_are(call, matrix, 2));
  COIL_TRY(dims_are(call, "vec", 1));
  const Type& m = call.tensor(matrix);
  COIL_TRY(dtypes_agree(call, m, call.tensor("vec")));
  COIL_TRY(has_products(call, m, call.tensor("vec")));
  COIL_TRY(call.sizes_agree(m.shape[1], call.tensor("vec").shape[0]));
  return Types{call.contiguous(m.dtype, {m.shape[0]})};
}

Result<Types> mv(const Call& call) { return matrix_vector(call, "self"); }
Result<Types> addmv(const Call& call) { return added(call, matrix_vector(call, "mat")); }

Result<Types> dot(const Call& call) {
  const std::string_view second = call.base() == "dot" ? "tensor" : "other";
  COIL_TRY(dims_are(call, "self", 1));
  COIL_TRY(dims_are(call, second, 1));
  COIL_TRY(dtypes_agree(call, call.self(), call.tensor(second)));
  if (is_bool(call.self().dtype)) return call.fail("vectors of bool have no product");
  COIL_TRY(call.sizes_agree(call.self().shape[0], call.tensor(second).shape[0]));
  return Types{call.contiguous(call.self().dtype, {})};
}

/// The one product here whose operands may differ in dtype: it is elementwise arithmetic.
Result<Types> addr(const Call& call) {
  COIL_TRY(dims_are(call, "vec1", 1));
  COIL_TRY(dims_are(call, "vec2", 1));
  const Type &a = call.tensor("vec1"), &b = call.tensor("vec2");
  Promotion operands;
  operands.tensors = {call.tensor("self"), a, b};
  Type result = call.contiguous(promote(operands), {a.shape[0], b.shape[0]});
  COIL_TRY(broadcasts_to(call, result));
  return Types{std::move(result)};
}

/// Item i of a list that holds one number a spatial dim, or one for all.
sym::Expr per_dim(const Call& call, std::string_view name, std::size_t i) {
  const Sizes& list = call.sizes(name);
  return list.size() == 1 ? list[0] : list[i];
}

sym::Expr window_count(const Call& call, sym::Expr size, sym::Expr kernel, std::size_t i) {
  sym::Arena& syms = call.syms;
  const sym::Expr one = call.number(1);
  const sym::Expr reach = syms.mul(per_dim(call, "dilation", i), syms.sub(kernel, one));
  const sym::Expr pad = syms.mul(call.number(2), per_dim(call, "padding", i));
  const sym::Expr stride = per_dim(call, "stride", i);
  if (!call.flag("transposed")) {
    const sym::Expr room = syms.sub(syms.sub(syms.add(size, pad), reach), one);
    return syms.add(syms.floordiv(room, stride), one);
  }
  const sym::Expr spread = syms.mul(syms.sub(size, one), stride);
  return syms.add(syms.add(syms.sub(spread, pad), syms.add(reach, one)),
                  per_dim(call, "output_padding", i));
}

Type with_height(const Call& call, Type type) {
  type.strides.insert(type.strides.begin() + 2, call.syms.mul(type.shape[2], type.strides[2]));
  type.shape.insert(type.shape.begin() + 2, call.number(1));
  return type;
}

/// Eager convolves a sequence as a contiguous plane of height 1, whose layout can count as
/// channels_last, as the weight's can.
Type sequence_layout(const Call& call, Type out) {
  const Type& input = call.tensor("input");
  const bool stays = is_contiguous(call.graph, input);
  const Type plane = with_height(call, stays ? input : call.contiguous(input.dtype, input.shape));
  if (!suggests_channels_last(call.graph, plane) &&
      !suggests_channels_last(call.graph, with_height(call, call.tensor("weight"))))
    return out;
  out.strides = channels_last_strides(call.graph, with_height(call, out));
  out.strides.erase(out.strides.begin() + 2);
  return out;
}

/// Eager computes no transposed convolution whose result would end in elements that no window
/// reaches.
Status output_padding_fits(const Call& call, std::size_t spatial) {
  const std::vector<i64> added = COIL_TRY(call.constants("output_padding"));
  const std::vector<i64> stride = COIL_TRY(call.constants("stride"));
  const std::vector<i64> dilation = COIL_TRY(call.constants("dilation"));
  const auto at = [](const std::vector<i64>& list, std::size_t i) {
    return list.size() == 1 ? list[0] : list[i];
  };
  for (std::size_t i = 0; i < spatial; ++i)
    if (at(added, i) >= std::max(at(stride, i), at(dilation, i)))
      return call.fail("output padding {} must be smaller than the stride or the dilation",
                       at(added, i));
  return Ok{};
}

Result<Types> convolution(const Call& call) {
  const Type& input = call.tensor("input");
  const Type& weight = call.tensor("weight");
  COIL_TRY(dtypes_agree(call, input, weight));
  if (is_bool(input.dtype)) return call.fail("does not take bools");
  if (weight.ndim() < 3 || weight.ndim() > 5)
    return call.fail("weight is {}", text(call.syms, weight));
  const std::size_t spatial = weight.ndim() - 2;
  if (input.ndim() != weight.ndim())
    return call.fail("input {} does not go with weight {}", text(call.syms, input),
                     text(call.syms, weight));
  for (std::string_view name : {"stride", "padding", "dilation", "output_padding"}) {
    const std::size_t count = call.sizes(name).size();
    if (count != 1 && count != spatial)
      return call.fail("{} has {} numbers for {} dims", name, count, spatial);
  }
  for (const auto& [name, least] : {std::pair("stride", 1), std::pair("dilation", 1),
                                    std::pair("padding", 0), std::pair("output_padding", 0)})
    for (i64 value : COIL_TRY(call.constants(name)))
      if (value < least || value > INT32_MAX) return call.fail("{} holds {}", name, value);
  const sym::Expr groups = call.integer("groups");
  if (known_less(call.graph, groups, call.number(1))) return call.fail("groups must be positive");
  const bool transposed = call.flag("transposed");
  const bool has_images = !known_value(call.graph, input.shape[0], 0);
  if (transposed && has_images) COIL_TRY(output_padding_fits(call, spatial));
  const sym::Expr channels = transposed ? call.syms.mul(weight.shape[1], groups) : weight.shape[0];
  COIL_TRY(call.sizes_agree(input.shape[1],
                            transposed ? weight.shape[0] : call.syms.mul(weight.shape[1], groups)));
  if (call.has("bias")) {
    COIL_TRY(dims_are(call, "bias", 1));
    COIL_TRY(dtypes_agree(call, input, call.tensor("bias")));
    COIL_TRY(call.sizes_agree(call.tensor("bias").shape[0], channels));
  }
  // Where there are no channels to add up, eager makes none.
  const bool has_none = known_value(call.graph, input.shape[1], 0);
  Sizes shape = {input.shape[0], has_none ? call.number(0) : channels};
  for (std::size_t i = 0; i < spatial; ++i) {
    shape.push_back(window_count(call, input.shape[2 + i], weight.shape[2 + i], i));
    if (known_less(call.graph, shape.back(), call.number(0)))
      return call.fail("the kernel is larger than the padded input");
  }
  Type out = call.contiguous(input.dtype, std::move(shape));
  if (spatial == 1) return Types{sequence_layout(call, std::move(out))};
  if (suggests_channels_last(call.graph, input) || suggests_channels_last(call.graph, weight))
    out.strides = channels_last_strides(call.graph, out);
  return Types{std::move(out)};
}

/// Whether torch's CPU takes its fused attention, and not the product of matrices.
bool is_fused_attention(const Call& call) {
  const Type& query = call.tensor("query");
  for (std::string_view name : {"query", "key", "value"}) {
    const Type& t = call.tensor(name);
    if (t.ndim() != 4 || !known_equal(call.graph, t.shape[3], query.shape[3]) ||
        !known_value(call.graph, t.strides[3], 1))
      return false;
  }
  const double* dropout = std::get_if<double>(&call.arg("dropout_p"));
  return dropout != nullptr && *dropout == 0.0;
}

Result<Types> attention(const Call& call) {
  const Type& query = call.tensor("query");
  const Type& key = call.tensor("key");
  const Type& value = call.tensor("value");
  if (query.ndim() < 2 || key.ndim() != query.ndim() || value.ndim() != query.ndim())
    return call.fail("query, key and value must have the same number of dims, at least 2");
  if (!is_float(query.dtype)) return call.fail("operands must be floats");
  COIL_TRY(dtypes_agree(call, query, key));
  COIL_TRY(dtypes_agree(call, query, value));
  const std::size_t n = query.ndim();
  COIL_TRY(call.sizes_agree(query.shape[n - 1], key.shape[n - 1]));
  COIL_TRY(call.sizes_agree(key.shape[n - 2], value.shape[n - 2]));
  Sizes shape(query.shape.begin(), query.shape.end() - 2);
  if (!call.flag("enable_gqa")) {
    shape = COIL_TRY(call.named(broadcast(call.graph, shape, std::span(value.shape).first(n - 2))));
  }
  shape.push_back(query.shape[n - 2]);
  shape.push_back(value.shape[n - 1]);
  Type out = call.contiguous(query.dtype, shape);
  // The fused kernel's result is laid out as the query.
  if (is_fused_attention(call))
    out.strides = pointwise_strides(call.graph, std::span(&query, 1), shape);
  return Types{std::move(out)};
}

/// Dense in the order of its dims, whatever the operands' layouts.
Result<Types> softmax_attention(const Call& call) {
  const Type& query = call.tensor("query");
  const Type& key = call.tensor("key");
  const Type& value = call.tensor("value");
  const std::size_t n = query.ndim();
  if (n < 3 || n > 4) return call.fail("the query must have 3 or 4 dims, not {}", n);
  for (const Type* type : {&key, &value}) {
    COIL_TRY(dtypes_agree(call, query, *type));
    if (type->ndim() != n) return call.fail("an operand has {} dims, not {}", type->ndim(), n);
    for (std::size_t d = 0; d + 2 < n; ++d)
      COIL_TRY(call.sizes_agree(query.shape[d], type->shape[d]));
  }
  if (!is_float(query.dtype)) return call.fail("operands must be floats");
  COIL_TRY(call.sizes_agree(query.shape[n - 1], key.shape[n - 1]));
  COIL_TRY(call.sizes_agree(key.shape[n - 2], value.shape[n - 2]));
  Sizes scores(query.shape.begin(), query.shape.end() - 1);
  scores.push_back(key.shape[n - 2]);
  if (call.has("mask")) {
    const Type& mask = call.tensor("mask");
    if (!is_bool(mask.dtype)) COIL_TRY(dtypes_agree(call, query, mask));
    const Sizes spread = COIL_TRY(call.named(broadcast(call.graph, scores, mask.shape)));
    if (spread.size() != n) return call.fail("the mask has {} dims", mask.ndim());
    for (std::size_t d = 0; d < n; ++d) COIL_TRY(call.sizes_agree(spread[d], scores[d]));
  }
  Sizes shape(query.shape.begin(), query.shape.end() - 1);
  shape.push_back(value.shape[n - 1]);
  return Types{call.contiguous(query.dtype, std::move(shape))};
}

Result<Types> flash_attention(const Call& call) {
  COIL_TRY(dims_are(call, "query", 4));
  COIL_TRY(dims_are(call, "value", 4));
  Type out = call.tensor("query");
  const Sizes shape = out.shape;
  out.strides = pointwise_strides(call.graph, std::span(&out, 1), shape);
  const Sizes rows = {shape[0], shape[2], shape[1]};
  const Sizes dense = contiguous_strides(call.syms, rows);
  Type logsumexp = call.strided(compute_dtype(out.dtype), {shape[0], shape[1], shape[2]},
                                {dense[0], dense[2], dense[1]});
  return Types{std::move(out), std::move(logsumexp)};
}

constexpr RuleRow kRules[] = {
    {"mm", mm},
    {"mm.dtype", mm},
    {"bmm", bmm},
    {"bmm.dtype", bmm},
    {"addmm", addmm},
    {"addmm.dtype", addmm},
    {"baddbmm", baddbmm},
    {"baddbmm.dtype", baddbmm},
    {"mv", mv},
    {"addmv", addmv},
    {"dot", dot},
    {"vdot", dot},
    {"addr", addr},
    {"convolution", convolution},
    {"scaled_dot_product_attention", attention},
    {"softmax_attention", softmax_attention},
    {"_scaled_dot_product_flash_attention_for_cpu", flash_attention},
};

}  // namespace

std::span<const RuleRow> matrix_rules() { return kRules; }

}  // namespace coil
