#include "import/alias_ops.h"

#include <algorithm>
#include <numeric>

#include "graph/builder.h"
#include "graph/rule.h"
#include "graph/rules.h"

namespace coil {
const AliasOps::Row* AliasOps::find(std::string_view op) {
  static constexpr Row kRows[] = {
      {"alias", &AliasOps::same},
      {"data", &AliasOps::same},
      {"detach", &AliasOps::same},
      {"lift", &AliasOps::same},
      {"lift_fresh", &AliasOps::same},
      {"positive", &AliasOps::same},
      {"resolve_conj", &AliasOps::same},
      {"resolve_neg", &AliasOps::same},
      {"requires_grad_", &AliasOps::same},
      {"pin_memory", &AliasOps::same},
      {"dropout", &AliasOps::same_in_evaluation},
      {"dropout_", &AliasOps::same_in_evaluation},
      {"alpha_dropout", &AliasOps::same_in_evaluation},
      {"alpha_dropout_", &AliasOps::same_in_evaluation},
      {"feature_dropout", &AliasOps::same_in_evaluation},
      {"feature_dropout_", &AliasOps::same_in_evaluation},
      {"feature_alpha_dropout", &AliasOps::same_in_evaluation},
      {"feature_alpha_dropout_", &AliasOps::same_in_evaluation},
      {"cartesian_prod", &AliasOps::only_one},
      {"contiguous", &AliasOps::contiguous},
      {"to.dtype", &AliasOps::to_dtype},
      {"to.device", &AliasOps::to_device},
      {"to.dtype_layout", &AliasOps::to_dtype_layout},
      {"to.other", &AliasOps::to_other},
      {"type_as", &AliasOps::type_as},
      {"reshape", &AliasOps::reshape},
      {"view", &AliasOps::reshape},
      {"_unsafe_view", &AliasOps::reshape},
      {"_reshape_alias", &AliasOps::reshape},
      {"reshape_as", &AliasOps::reshape_like},
      {"view_as", &AliasOps::reshape_like},
      {"ravel", &AliasOps::ravel},
      {"flatten.using_ints", &AliasOps::flatten},
      {"unflatten.int", &AliasOps::unflatten},
      {"expand", &AliasOps::expand},
      {"broadcast_to", &AliasOps::expand},
      {"expand_as", &AliasOps::expand_like},
      {"broadcast_tensors", &AliasOps::broadcast_tensors},
      {"meshgrid.*", &AliasOps::meshgrid},
      {"view.dtype", &AliasOps::view_dtype},
      {"view_as_real", &AliasOps::view_as_real},
      {"view_as_complex", &AliasOps::view_as_complex},
      {"real", &AliasOps::real},
      {"imag", &AliasOps::imag},
      {"conj", &AliasOps::conj},
      {"_conj", &AliasOps::conj},
      {"as_strided", &AliasOps::as_strided},
      {"as_strided_copy", &AliasOps::as_strided_copy},
      {"as_strided_scatter", &AliasOps::as_strided_scatter},
      {"t", &AliasOps::transpose_last},
      {"mT", &AliasOps::transpose_last},
      {"mH", &AliasOps::transpose_last},
      {"adjoint", &AliasOps::transpose_last},
      {"matrix_H", &AliasOps::transpose_last},
      {"numpy_T", &AliasOps::reverse_dims},
      {"transpose.int", &AliasOps::transpose},
      {"swapaxes", &AliasOps::transpose},
      {"swapdims", &AliasOps::transpose},
      {"permute", &AliasOps::permute},
      {"einsum", &AliasOps::einsum},
      {"movedim.*", &AliasOps::movedim},
      {"moveaxis.*", &AliasOps::movedim},
      {"select.int", &AliasOps::select},
      {"slice.Tensor", &AliasOps::slice},
      {"narrow", &AliasOps::narrow},
      {"unsqueeze", &AliasOps::unsqueeze},
      {"squeeze", &AliasOps::squeeze},
      {"squeeze.dim", &AliasOps::squeeze},
      {"squeeze.dims", &AliasOps::squeeze},
      {"diagonal", &AliasOps::diagonal},
      {"linalg_diagonal", &AliasOps::diagonal},
      {"unfold", &AliasOps::unfold},
      {"chunk", &AliasOps::chunk},
      {"unsafe_chunk", &AliasOps::chunk},
      {"split.Tensor", &AliasOps::split},
      {"unsafe_split.Tensor", &AliasOps::split},
      {"split.sizes", &AliasOps::split_sizes},
      {"split_with_sizes", &AliasOps::split_sizes},
      {"unsafe_split_with_sizes", &AliasOps::split_sizes},
      {"tensor_split.sections", &AliasOps::tensor_split},
      {"tensor_split.indices", &AliasOps::tensor_split},
      {"hsplit.*", &AliasOps::axis_split},
      {"vsplit.*", &AliasOps::axis_split},
      {"dsplit.*", &AliasOps::axis_split},
      {"unbind.int", &AliasOps::unbind},
      {"atleast_1d", &AliasOps::at_least},
      {"atleast_2d", &AliasOps::at_least},
      {"atleast_3d", &AliasOps::at_least},
      {"atleast_1d.Sequence", &AliasOps::at_least_each},
      {"atleast_2d.Sequence", &AliasOps::at_least_each},
      {"atleast_3d.Sequence", &AliasOps::at_least_each},
  };
  for (const Row& row : kRows) {
    const bool is_any = row.op.ends_with(".*");  // of all overloads
    if (is_any ? row.op.substr(0, row.op.size() - 2) == base_name(op) : row.op == op) return &row;
  }
  return nullptr;
}

std::optional<std::vector<ImportValue>> AliasOps::run() {
  const Row* row = find(call_.op);
  if (row == nullptr) return std::nullopt;
  if (row->resolve == &AliasOps::same_in_evaluation && flag(2)) return std::nullopt;
  if (row->resolve == &AliasOps::only_one && tensors(0).size() != 1) return std::nullopt;
  if (row->resolve == &AliasOps::einsum && !view_of_einsum()) return std::nullopt;
  return (this->*row->resolve)();
}

const Arg& AliasOps::arg(std::size_t i) const {
  static const Arg kNone = None{};
  if (i >= call_.args.size()) return kNone;
  const Arg* plain = std::get_if<Arg>(&call_.args[i]);
  if (plain == nullptr)
    throw BuildError{builder_.error_at(call_, str("argument {} cannot be a tensor", i))};
  return *plain;
}

TensorId AliasOps::tensor(std::size_t i) const {
  const TensorId* id = i < call_.args.size() ? std::get_if<TensorId>(&call_.args[i]) : nullptr;
  if (id == nullptr)
    throw BuildError{builder_.error_at(call_, str("argument {} must be a tensor", i))};
  return *id;
}

std::vector<TensorId> AliasOps::tensors(std::size_t i) const {
  const auto* list =
      i < call_.args.size() ? std::get_if<std::vector<TensorId>>(&call_.args[i]) : nullptr;
  if (list == nullptr || std::ranges::any_of(*list, [](TensorId t) { return !t.valid(); }))
    throw BuildError{builder_.error_at(call_, str("argument {} must be a list of tensors", i))};
  return *list;
}

sym::Expr AliasOps::expr(std::size_t i) const {
  if (const sym::Expr* e = std::get_if<sym::Expr>(&arg(i))) return *e;
  throw BuildError{builder_.error_at(call_, str("argument {} must be an integer", i))};
}

i64 AliasOps::integer(std::size_t i) const {
  if (std::optional<i64> value = builder_.syms().as_const(expr(i))) return *value;
  throw BuildError{builder_.error_at(call_, str("argument {} must be a fixed integer", i))};
}

AliasOps::Exprs AliasOps::exprs(std::size_t i) const {
  if (const Exprs* list = std::get_if<Exprs>(&arg(i))) return *list;
  if (const sym::Expr* e = std::get_if<sym::Expr>(&arg(i))) return {*e};
  const auto* empty = i < call_.args.size() ? std::get_if<std::vector<double>>(&arg(i)) : nullptr;
  if (empty != nullptr && empty->empty()) return {};
  throw BuildError{builder_.error_at(call_, str("argument {} must be a list of integers", i))};
}

std::vector<i64> AliasOps::integers(std::size_t i) const {
  std::vector<i64> values;
  for (sym::Expr e : exprs(i)) {
    const std::optional<i64> value = builder_.syms().as_const(e);
    if (!value)
      throw BuildError{builder_.error_at(call_, str("argument {} must hold fixed integers", i))};
    values.push_back(*value);
  }
  return values;
}

bool AliasOps::flag(std::size_t i) const {
  if (const bool* value = std::get_if<bool>(&arg(i))) return *value;
  throw BuildError{builder_.error_at(call_, str("argument {} must be a bool", i))};
}

i64 AliasOps::wrap(i64 dim, i64 count) const {
  const i64 n = std::max<i64>(count, 1);
  if (dim < -n || dim >= n)
    throw BuildError{builder_.error_at(call_, str("dim {} of a tensor with {} dims", dim, count))};
  return dim < 0 ? dim + n : dim;
}

TensorId AliasOps::step(TensorId of, std::string op, std::vector<Arg> args, std::size_t result) {
  return builder_.view(of, ViewStep{std::move(op), std::move(args)}, call_, result);
}

ImportValue AliasOps::copied(const std::string& op, TensorId of, std::vector<Arg> args) {
  ImportCall copy{op, {of}, call_.names, call_.expected, call_.loc};
  for (Arg& a : args) copy.args.push_back(std::move(a));
  return builder_.plain_call(copy).at(0);
}

AliasOps::Results AliasOps::same() { return one(builder_.alias(tensor(0), call_)); }

AliasOps::Results AliasOps::only_one() { return one(builder_.alias(tensors(0)[0], call_)); }

AliasOps::Results AliasOps::same_in_evaluation() { return same(); }

bool AliasOps::has_format(const Type& type, const Arg& memory_format) {
  const MemoryFormat* format = std::get_if<MemoryFormat>(&memory_format);
  if (format == nullptr) return true;
  switch (*format) {
    case MemoryFormat::Preserve: return true;
    case MemoryFormat::Contiguous: return is_contiguous(builder_.graph(), type);
    case MemoryFormat::ChannelsLast: return is_channels_last(builder_.graph(), type);
    case MemoryFormat::ChannelsLast3d:
      return strides_for(builder_.graph(), type, MemoryFormat::ChannelsLast3d) == type.strides;
  }
  COIL_UNREACHABLE();
}

AliasOps::Results AliasOps::contiguous() {
  const Arg format = is_none(1) ? Arg(MemoryFormat::Contiguous) : arg(1);
  if (has_format(type(), format)) return same();
  return one(copied("clone", tensor(0), {format}));
}

AliasOps::Results AliasOps::converted(DType dtype, bool copy, const Arg& memory_format) {
  if (!copy && dtype == type().dtype && has_format(type(), memory_format)) return same();
  return one(copied("_to_copy", tensor(0), {dtype, None{}, None{}, None{}, false, memory_format}));
}

AliasOps::Results AliasOps::to_dtype() {
  const DType* dtype = std::get_if<DType>(&arg(1));
  return converted(dtype != nullptr ? *dtype : type().dtype, flag(3), arg(4));
}

AliasOps::Results AliasOps::to_device() {
  const DType* dtype = std::get_if<DType>(&arg(2));
  return converted(dtype != nullptr ? *dtype : type().dtype, flag(4), arg(5));
}

AliasOps::Results AliasOps::to_dtype_layout() {
  const DType* dtype = std::get_if<DType>(&arg(1));
  return converted(dtype != nullptr ? *dtype : type().dtype, flag(6), arg(7));
}

AliasOps::Results AliasOps::to_other() {
  return converted(builder_.type(tensor(1)).dtype, flag(3), arg(4));
}

AliasOps::Results AliasOps::type_as() {
  return converted(builder_.type(tensor(1)).dtype, false, None{});
}

TensorId AliasOps::reshaped(TensorId of, Exprs shape, std::size_t result) {
  Graph& graph = builder_.graph();
  const Type from = builder_.type(of);
  shape = value_or_throw(complete_shape(graph, from.shape, std::move(shape)));
  const std::optional<Exprs> strides = view_strides(graph, from, shape);
  if (strides && shape == from.shape && *strides == from.strides)
    return builder_.alias(of, call_, result);
  if (!strides) {
    const ValueId copy =
        builder_.call_op("clone", {builder_.read(of), MemoryFormat::Contiguous}, call_);
    of = builder_.add_base(copy, Origin::Computed, 0);
  }
  return step(of, "view", {std::move(shape)}, result);
}

AliasOps::Results AliasOps::reshape() { return one(reshaped(tensor(0), exprs(1))); }

AliasOps::Results AliasOps::reshape_like() {
  return one(reshaped(tensor(0), builder_.type(tensor(1)).shape));
}

AliasOps::Results AliasOps::ravel() {
  // Of what is not contiguous, a copy, even where a view of one dim would do.
  TensorId self = tensor(0);
  if (!is_contiguous(builder_.graph(), type())) {
    const ValueId copy =
        builder_.call_op("clone", {builder_.read(self), MemoryFormat::Contiguous}, call_);
    self = builder_.add_base(copy, Origin::Computed, 0);
  }
  return one(reshaped(self, {numel(builder_.syms(), type().shape)}));
}

AliasOps::Results AliasOps::flatten() {
  const i64 first = dim(1), last = dim(2);
  if (last < first) throw BuildError{builder_.error_at(call_, "start_dim comes after end_dim")};
  const Exprs from = type().shape;
  if (from.empty()) return one(reshaped(tensor(0), {builder_.syms().constant(1)}));
  if (first == last) return same();
  Exprs shape(from.begin(), from.begin() + first);
  shape.push_back(builder_.syms().product(std::span(from).subspan(first, last - first + 1)));
  shape.insert(shape.end(), from.begin() + last + 1, from.end());
  return one(reshaped(tensor(0), std::move(shape)));
}

AliasOps::Results AliasOps::unflatten() {
  const i64 at = dim(1);
  const Exprs from = type().shape;
  if (from.empty())
    throw BuildError{builder_.error_at(call_, "a 0-d tensor has no dim to unflatten")};
  const Exprs sizes = value_or_throw(complete_shape(builder_.graph(), {&from[at], 1}, exprs(2)));
  Exprs shape(from.begin(), from.begin() + at);
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  shape.insert(shape.end(), from.begin() + at + 1, from.end());
  return one(reshaped(tensor(0), std::move(shape)));
}

TensorId AliasOps::expanded(TensorId of, Exprs shape, std::size_t result) {
  const Exprs from = builder_.type(of).shape;
  if (shape.size() < from.size())
    throw BuildError{builder_.error_at(call_, "the expanded shape has fewer dims than the tensor")};
  const std::size_t lead = shape.size() - from.size();
  for (std::size_t d = lead; d < shape.size(); ++d)
    if (builder_.syms().is_const(shape[d], -1)) shape[d] = from[d - lead];
  if (shape == from) return builder_.alias(of, call_, result);
  return step(of, "expand", {std::move(shape), false}, result);
}

AliasOps::Results AliasOps::expand() { return one(expanded(tensor(0), exprs(1))); }

AliasOps::Results AliasOps::expand_like() {
  return one(expanded(tensor(0), builder_.type(tensor(1)).shape));
}

AliasOps::Results AliasOps::broadcast_tensors() {
  std::vector<Type> types;
  for (TensorId t : tensors(0)) types.push_back(builder_.type(t));
  const Exprs shape = value_or_throw(broadcast(builder_.graph(), types));
  Results results;
  for (TensorId t : tensors(0)) results.push_back(expanded(t, shape, results.size()));
  return results;
}

AliasOps::Results AliasOps::meshgrid() {
  const std::vector<TensorId> axes = tensors(0);
  const std::string* indexing = std::get_if<std::string>(&arg(1));
  const bool is_swapped = indexing != nullptr && *indexing == "xy" && axes.size() >= 2;
  const auto place = [&](std::size_t i) { return is_swapped && i < 2 ? 1 - i : i; };
  Exprs shape(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i)
    shape[place(i)] = numel(builder_.syms(), builder_.type(axes[i]).shape);
  Results results;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Exprs ones(axes.size(), builder_.syms().constant(1));
    ones[place(i)] = shape[place(i)];
    const TensorId column = step(axes[i], "view", {ones}, call_.names.size());
    results.push_back(expanded(column, shape, i));
  }
  return results;
}

AliasOps::Results AliasOps::view_dtype() {
  const DType* dtype = std::get_if<DType>(&arg(1));
  if (dtype == nullptr) throw BuildError{builder_.error_at(call_, "argument 1 must be a dtype")};
  if (*dtype == type().dtype) return same();
  return one(step(tensor(0), "view.dtype", {*dtype}));
}

AliasOps::Results AliasOps::view_as_real() { return one(step(tensor(0), "view_as_real", {})); }

AliasOps::Results AliasOps::view_as_complex() {
  return one(step(tensor(0), "view_as_complex", {}));
}

AliasOps::Results AliasOps::real() {
  if (!is_complex(type().dtype)) return same();
  const TensorId pairs = step(tensor(0), "view_as_real", {}, call_.names.size());
  return one(
      step(pairs, "select.int", {builder_.syms().constant(ndim()), builder_.syms().constant(0)}));
}

AliasOps::Results AliasOps::imag() {
  if (!is_complex(type().dtype))
    throw BuildError{builder_.error_at(call_, "imag needs a complex tensor")};
  const TensorId pairs = step(tensor(0), "view_as_real", {}, call_.names.size());
  return one(
      step(pairs, "select.int", {builder_.syms().constant(ndim()), builder_.syms().constant(1)}));
}

AliasOps::Results AliasOps::conj() {
  if (!is_complex(type().dtype)) return same();
  return one(copied("conj_physical", tensor(0), {}));
}

/// The whole memory of a tensor; its elements are what as_strided counts. Behind a view of another
/// dtype it is one row, whose bytes are then seen as elements of that dtype.
TensorId AliasOps::memory_of(TensorId self) {
  const TensorId root = builder_.base(builder_.base_of(self)).root;
  const Type whole = builder_.type(root);
  const DType dtype = builder_.type(self).dtype;
  if (whole.dtype == dtype) return root;
  sym::Arena& syms = builder_.syms();
  const i64 ratio = std::max(1, size_of(dtype) / size_of(whole.dtype));  // elements of it for one
  const sym::Expr one = syms.constant(1), many = syms.constant(ratio);
  sym::Expr count = one;
  for (std::size_t i = 0; i < whole.ndim(); ++i)
    count = syms.add(count, syms.mul(syms.sub(whole.shape[i], one), whole.strides[i]));
  if (known_empty(builder_.graph(), whole)) count = syms.constant(0);
  count = syms.mul(syms.floordiv(count, many), many);
  const TensorId row =
      step(root, "as_strided", {Exprs{count}, Exprs{one}, syms.constant(0)}, call_.names.size());
  return step(row, "view.dtype", {dtype}, call_.names.size());
}

AliasOps::Results AliasOps::as_strided() {
  const TensorId self = tensor(0);
  const TensorId root = memory_of(self);
  const bool is_whole = builder_.chain(self).empty();
  if (is_none(3) && !is_whole)
    throw BuildError{builder_.error_at(call_, "as_strided of a view needs its storage_offset")};
  // Its numbers count in the memory of the base, whatever view it is called on.
  const Arg offset = is_none(3) ? Arg(builder_.syms().constant(0)) : arg(3);
  return one(step(root, "as_strided", {exprs(1), exprs(2), offset}));
}

/// A copy of what as_strided sees in the base, which the view that it is called on need not hold.
AliasOps::Results AliasOps::as_strided_copy() {
  const TensorId self = tensor(0);
  const TensorId of = is_none(3) ? self : memory_of(self);
  const TensorId seen = step(of, "as_strided", {exprs(1), exprs(2), arg(3)}, call_.names.size());
  return one(copied("clone", seen, {MemoryFormat::Contiguous}));
}

/// What `self` would be after a write into as_strided of it: into the base, of which it may be a
/// part.
AliasOps::Results AliasOps::as_strided_scatter() {
  const TensorId self = tensor(0);
  const bool from_self = is_none(4);
  const TensorId of = from_self ? self : memory_of(self);
  if (builder_.chain(of).size() > 0 && !from_self)
    throw BuildError{builder_.error_at(call_, "a view of another dtype is not supported here")};
  const ViewStep seen{"as_strided", {exprs(2), exprs(3), arg(4)}};
  ValueId source = builder_.read(tensor(1));
  Graph& graph = builder_.graph();
  if (graph.type(source).shape != exprs(2))
    throw BuildError{builder_.error_at(call_, "src has another shape than size says")};
  if (graph.type(source).dtype != type().dtype)
    source = builder_.call_op("_to_copy", {source, type().dtype}, call_);
  const ValueId before = builder_.read(of);
  ValueId value = builder_.updated(before, {seen}, source, call_);
  if (!from_self) {
    for (const ViewStep& step : builder_.chain(self)) {
      std::vector<Arg> args = {value};
      args.insert(args.end(), step.args.begin(), step.args.end());
      value = builder_.call_op(step.op, std::move(args), call_);
    }
  }
  builder_.check_expected(graph.type(value), call_, 0);
  return one(builder_.result(value));
}

}  // namespace coil
