// Reductions, scans and softmax. Results are contiguous whatever the operand's layout is.

#include <numeric>

#include "graph/rule.h"

namespace coil {
namespace {

enum class Element : u8 { Same, Summed, Dtype, Bool, Index, Real, Float, Hash };

DType element_dtype(const Call& call, Element element) {
  const DType self = call.self().dtype;
  const bool whole = is_int(self) || is_bool(self);
  DType dtype = self;
  switch (element) {
    case Element::Same: return self;
    case Element::Summed: dtype = whole ? DType::i64 : self; break;
    case Element::Dtype: break;
    case Element::Bool: return self == DType::u8 ? DType::u8 : DType::b8;
    case Element::Index: return DType::i64;
    case Element::Hash: return DType::u64;
    case Element::Real: dtype = is_complex(self) ? real_of(self) : self; break;
    case Element::Float: return whole ? DType::f32 : self;
  }
  if (call.schema.arg_index("dtype") >= 0) dtype = call.dtype("dtype", dtype);
  return element == Element::Real && is_complex(dtype) ? real_of(dtype) : dtype;
}

/// The reduced dims: argument `dim`, where none and an empty list mean all of them.
Result<std::vector<i64>> reduced_dims(const Call& call) {
  const std::size_t ndim = call.self().ndim();
  std::vector<i64> all(ndim);
  std::iota(all.begin(), all.end(), i64{0});
  if (!call.has("dim")) return all;
  std::vector<i64> dims;
  if (std::holds_alternative<sym::Expr>(call.arg("dim"))) {
    dims = {COIL_TRY(call.dim("dim", ndim))};
  } else {
    dims = COIL_TRY(call.dims("dim", ndim));
    // `any` and `all` take an empty list at its word: nothing is reduced.
    if (dims.empty() && call.op() != "any.dims" && call.op() != "all.dims") return all;
  }
  return ndim == 0 ? all : dims;
}

bool keeps_dims(const Call& call) {
  return call.schema.arg_index("keepdim") >= 0 && call.flag("keepdim");
}

template <Element... elements>
Result<Types> reduce(const Call& call) {
  const std::vector<i64> dims = COIL_TRY(reduced_dims(call));
  const Sizes shape = reduced_shape(call, call.self(), dims, keeps_dims(call));
  return Types{call.contiguous(element_dtype(call, elements), shape)...};
}

/// A reduction whose result is one of the elements: there must be some.
template <Element... elements>
Result<Types> choose(const Call& call) {
  for (i64 d : COIL_TRY(reduced_dims(call)))
    if (known_value(call.graph, call.self().shape[d], 0))
      return call.fail("dim {} has no elements to choose from", d);
  return reduce<elements...>(call);
}

Result<Types> mean(const Call& call) {
  const DType dtype = element_dtype(call, Element::Dtype);
  if (!is_float(dtype) && !is_complex(dtype))
    return call.fail("the mean of {} needs a float dtype", name(call.self().dtype));
  return reduce<Element::Dtype>(call);
}

template <Element... elements>
Result<Types> scan(const Call& call) {
  COIL_TRY(call.dim("dim", call.self().ndim()));
  return Types{call.contiguous(element_dtype(call, elements), call.self().shape)...};
}

Result<Types> softmax(const Call& call) {
  const Type& self = call.self();
  COIL_TRY(call.dim("dim", self.ndim()));
  DType dtype = self.dtype;
  if (call.schema.arg_index("dtype") >= 0) {
    dtype = call.dtype("dtype", dtype);
  } else if (call.flag("half_to_float")) {
    dtype = DType::f32;
  }
  if (!is_float(dtype) && !known_empty(call.graph, self))
    return call.fail("needs floats, not {}", name(dtype));
  return Types{call.contiguous(dtype, self.shape)};
}

constexpr RuleRow kRules[] = {
    {"sum", reduce<Element::Summed>},
    {"sum.dim_IntList", reduce<Element::Summed>},
    {"nansum", reduce<Element::Summed>},
    {"mean", mean},
    {"mean.dim", mean},
    {"prod", reduce<Element::Summed>},
    {"prod.dim_int", reduce<Element::Summed>},
    {"amax", choose<Element::Same>},
    {"amin", choose<Element::Same>},
    {"aminmax", choose<Element::Same, Element::Same>},
    {"any", reduce<Element::Bool>},
    {"any.dim", reduce<Element::Bool>},
    {"any.dims", reduce<Element::Bool>},
    {"all", reduce<Element::Bool>},
    {"all.dim", reduce<Element::Bool>},
    {"all.dims", reduce<Element::Bool>},
    {"argmax", choose<Element::Index>},
    {"argmin", choose<Element::Index>},
    {"count_nonzero", reduce<Element::Index>},
    {"count_nonzero.dim_IntList", reduce<Element::Index>},
    {"max", choose<Element::Same>},
    {"min", choose<Element::Same>},
    {"max.dim", choose<Element::Same, Element::Index>},
    {"min.dim", choose<Element::Same, Element::Index>},
    {"median", reduce<Element::Same>},
    {"median.dim", choose<Element::Same, Element::Index>},
    {"mode", choose<Element::Same, Element::Index>},
    {"kthvalue", choose<Element::Same, Element::Index>},
    {"var", reduce<Element::Real>},
    {"var.dim", reduce<Element::Real>},
    {"var.correction", reduce<Element::Real>},
    {"std", reduce<Element::Real>},
    {"std.dim", reduce<Element::Real>},
    {"std.correction", reduce<Element::Real>},
    {"var_mean", reduce<Element::Real, Element::Same>},
    {"var_mean.dim", reduce<Element::Real, Element::Same>},
    {"var_mean.correction", reduce<Element::Real, Element::Same>},
    {"std_mean", reduce<Element::Real, Element::Same>},
    {"std_mean.dim", reduce<Element::Real, Element::Same>},
    {"std_mean.correction", reduce<Element::Real, Element::Same>},
    {"logsumexp", reduce<Element::Float>},
    {"norm.Scalar", reduce<Element::Real>},
    {"norm.ScalarOpt_dim", reduce<Element::Real>},
    {"norm.ScalarOpt_dim_dtype", reduce<Element::Real>},
    {"norm.ScalarOpt_dtype", reduce<Element::Real>},
    {"linalg_vector_norm", reduce<Element::Real>},
    {"hash_tensor", reduce<Element::Hash>},
    {"cumsum", scan<Element::Summed>},
    {"cumprod", scan<Element::Summed>},
    {"cummax", scan<Element::Same, Element::Index>},
    {"cummin", scan<Element::Same, Element::Index>},
    {"logcumsumexp", scan<Element::Same>},
    {"_softmax", softmax},
    {"_log_softmax", softmax},
    {"_safe_softmax", softmax},
    {"softmax.int", softmax},
    {"log_softmax.int", softmax},
};

}  // namespace

std::span<const RuleRow> reduce_rules() { return kRules; }

}  // namespace coil
