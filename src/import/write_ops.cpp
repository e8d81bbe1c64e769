#include "import/write_ops.h"

#include <algorithm>

#include "graph/args.h"
#include "graph/builder.h"
#include "graph/info_check.h"
#include "graph/rule.h"
#include "graph/rules.h"
#include "import/alias_ops.h"

namespace coil {
namespace {

/// The op without the write: "add_.Tensor" gives "add.Tensor", "__iand__.Tensor" "__and__.Tensor".
/// Empty where the name is not one of an in-place op.
std::string functional_name(const std::string& op) {
  const std::string name(base_name(op));
  const std::string overload = op.substr(name.size());
  if (op == "normal_") return "normal_functional";
  if (op == "bernoulli_.float") return "bernoulli.p";
  if (name == "_index_put_impl_") return "index_put";
  if (name.starts_with("__i") && name.ends_with("__")) return "__" + name.substr(3) + overload;
  if (name.size() < 2 || !name.ends_with('_') || name.ends_with("__")) return "";
  return name.substr(0, name.size() - 1) + overload;
}

/// Ops that only change how `self` is seen.
bool sets_dims(std::string_view op) {
  constexpr std::string_view kNames[] = {"t_",       "transpose_", "swapaxes_", "swapdims_",
                                         "squeeze_", "unsqueeze_", "detach_",   "as_strided_"};
  return std::ranges::find(kNames, base_name(op)) != std::end(kNames);
}

}  // namespace

const WriteOps::Row* WriteOps::find(std::string_view op) {
  static constexpr Row kRows[] = {
      {"_assert_tensor_metadata", &WriteOps::nothing},
      {"_assert_scalar", &WriteOps::assert_scalar},
      {"_linalg_check_errors", &WriteOps::linalg_check_errors},
      {"_assert_async", &WriteOps::assert_tensor},
      {"_assert_async.msg", &WriteOps::assert_tensor},
      {"sym_constrain_range", &WriteOps::constrain_range},
      {"sym_constrain_range_for_size", &WriteOps::constrain_range},
      {"lift_fresh_copy", &WriteOps::lift_fresh_copy},
      {"copy_", &WriteOps::copy},
      {"fill_.Scalar", &WriteOps::fill_scalar},
      {"fill_.Tensor", &WriteOps::fill_tensor},
      {"zero_", &WriteOps::zero},
      {"batch_norm", &WriteOps::batch_norm},
      {"native_batch_norm", &WriteOps::batch_norm},
      {"_native_batch_norm_legit", &WriteOps::batch_norm},
      {"instance_norm", &WriteOps::instance_norm},
  };
  for (const Row& row : kRows)
    if (row.op == op) return &row;
  return nullptr;
}

std::optional<std::vector<ImportValue>> WriteOps::run() {
  if (const Row* row = find(call_.op)) return (this->*row->resolve)();
  if (sets_dims(call_.op)) return set_dims();
  const std::optional<ops::Schema> schema = ops::find_schema(call_.op);
  if (!schema) return std::nullopt;
  if (const int flag = schema->arg_index("check_errors"); flag >= 0) {
    const bool* asked = std::get_if<bool>(&arg(static_cast<std::size_t>(flag)));
    if (asked != nullptr && *asked) return checked(static_cast<std::size_t>(flag));
  }
  const bool writes_other =
      std::any_of(schema->args.begin(), schema->args.end(),
                  [&](const auto& a) { return a.written && &a != schema->args.data(); });
  const bool writes_self = !schema->args.empty() && schema->args[0].written;
  if (!writes_self && !writes_other) return std::nullopt;
  const std::string functional = functional_name(call_.op);
  if (writes_other || functional.empty() || !ops::find_schema(functional))
    return builder_.unsupported(call_);
  return in_place(functional);
}

TensorId WriteOps::tensor(std::size_t i) const {
  const TensorId* id = i < call_.args.size() ? std::get_if<TensorId>(&call_.args[i]) : nullptr;
  if (id == nullptr) throw BuildError{error(str("argument {} must be a tensor", i))};
  return *id;
}

const Arg& WriteOps::arg(std::size_t i) const {
  static const Arg kNone = None{};
  if (i >= call_.args.size()) return kNone;
  const Arg* plain = std::get_if<Arg>(&call_.args[i]);
  if (plain == nullptr) throw BuildError{error(str("argument {} cannot be a tensor", i))};
  return *plain;
}

/// The condition holds on every call: it is checked where it can be, and known from here on.
WriteOps::Results WriteOps::assert_scalar() {
  const sym::Expr* condition = std::get_if<sym::Expr>(&arg(0));
  if (condition == nullptr) return {};
  const std::string* text = std::get_if<std::string>(&arg(1));
  Graph& graph = builder_.graph();
  graph.facts.add(*condition);
  graph.checks.push_back({*condition, text != nullptr ? *text : graph.syms->text(*condition)});
  return {};
}

/// No element of `info` tells of a matrix that could not be taken apart.
WriteOps::Results WriteOps::linalg_check_errors() {
  const std::string* api = std::get_if<std::string>(&arg(1));
  check_info(tensor(0), api ? *api : call_.op);
  return {};
}

WriteOps::Results WriteOps::checked(std::size_t flag) {
  ImportCall plain = call_;
  plain.args.at(flag) = Arg(false);
  Results results = builder_.plain_call(plain);
  check_info(std::get<TensorId>(results.back()), std::string(base_name(call_.op)));
  return results;
}

void WriteOps::check_info(TensorId info, const std::string& api) {
  Graph& graph = builder_.graph();
  const ValueId set =
      builder_.call_op("ne.Scalar", {builder_.read(info), graph.syms->constant(0)}, call_);
  const ValueId any = builder_.call_op("any", {set}, call_);
  const sym::Expr failed = graph.type(builder_.call_op("item", {any}, call_)).expr;
  graph.checks.push_back({graph.syms->eq(failed, graph.syms->constant(0)), info_error(api)});
}

/// The same of a tensor's one element, which is looked at in every call.
WriteOps::Results WriteOps::assert_tensor() {
  ValueId value = builder_.read(tensor(0));
  if (!is_bool(builder_.graph().type(value).dtype))
    value = builder_.call_op("ne.Scalar", {value, builder_.syms().constant(0)}, call_);
  const ValueId holds = builder_.call_op("item", {value}, call_);
  sym::Arena& syms = builder_.syms();
  const sym::Expr condition = syms.eq(builder_.graph().type(holds).expr, syms.constant(1));
  const bool has_text = call_.op == "_assert_async.msg";
  const std::string* text = has_text ? std::get_if<std::string>(&arg(1)) : nullptr;
  builder_.graph().checks.push_back({condition, text != nullptr ? *text : "assertion"});
  return {};
}

WriteOps::Results WriteOps::constrain_range() {
  const sym::Expr* size = std::get_if<sym::Expr>(&arg(0));
  if (size == nullptr) return {};
  sym::Arena& syms = builder_.syms();
  const bool is_size = call_.op == "sym_constrain_range_for_size";
  std::vector<sym::Expr> conditions;
  if (is_size) conditions.push_back(syms.le(syms.constant(0), *size));
  if (const sym::Expr* min = std::get_if<sym::Expr>(&arg(1)))
    conditions.push_back(syms.le(*min, *size));
  if (const sym::Expr* max = std::get_if<sym::Expr>(&arg(2)))
    conditions.push_back(syms.le(*size, *max));
  for (sym::Expr condition : conditions) {
    if (syms.as_const(condition) == 1) continue;
    builder_.graph().facts.add(condition);
    builder_.graph().checks.push_back({condition, syms.text(condition)});
  }
  return {};
}

WriteOps::Results WriteOps::lift_fresh_copy() {
  ImportCall clone = call_;
  clone.op = "clone";
  clone.args = {tensor(0), Arg(MemoryFormat::Contiguous)};
  return builder_.plain_call(clone);
}

WriteOps::Results WriteOps::copy() {
  const TensorId self = tensor(0);
  if (const Arg* number = std::get_if<Arg>(&call_.args.at(1)))
    builder_.write(self, filled(builder_.type(self), *number), call_);
  else if (tensor(1) != self)  // of itself nothing is copied, nor made a 1 that is true
    builder_.write(self, builder_.read(tensor(1)), call_);
  return {self};
}

ValueId WriteOps::filled(const Type& like, Arg value) {
  return builder_.call_op("full", {like.shape, std::move(value), like.dtype}, call_);
}

WriteOps::Results WriteOps::fill_scalar() {
  builder_.write(tensor(0), filled(builder_.type(tensor(0)), arg(1)), call_);
  return self();
}

WriteOps::Results WriteOps::fill_tensor() {
  builder_.write(tensor(0), builder_.read(tensor(1)), call_);
  return self();
}

WriteOps::Results WriteOps::zero() {
  const Type type = builder_.type(tensor(0));
  const bool has_point = is_float(type.dtype) || is_complex(type.dtype);
  const Arg nought = has_point ? Arg(0.0) : Arg(builder_.syms().constant(0));
  builder_.write(tensor(0), filled(type, nought), call_);
  return self();
}

WriteOps::Results WriteOps::set_dims() {
  const TensorId self = tensor(0);
  ImportCall view = call_;
  view.op = functional_name(call_.op);
  builder_.rebind(self, [&](TensorId before) {
    view.args[0] = before;
    std::optional<Results> results = AliasOps(builder_, view).run();
    const TensorId* now = results ? std::get_if<TensorId>(&results->at(0)) : nullptr;
    if (now == nullptr) throw BuildError{error("not supported")};
    return *now;
  });
  return {self};
}

/// batch_norm in training writes its statistics, though its schema does not say so. In evaluation
/// it is an ordinary op.
WriteOps::Results WriteOps::batch_norm() {
  const bool* is_training = std::get_if<bool>(&arg(5));
  const bool is_plain = is_training == nullptr || !*is_training;
  // Of nothing, eager's batch_norm has no statistics.
  const bool is_empty =
      call_.op == "batch_norm" && known_empty(builder_.graph(), builder_.type(tensor(0)));
  if (is_plain || is_empty) return builder_.plain_call(call_);
  ImportCall part = call_;
  const bool has_statistics = std::holds_alternative<TensorId>(call_.args.at(3));
  part.args.resize(8, Arg(None{}));  // without cudnn_enabled
  if (has_statistics) {
    part.op = "_native_batch_norm_legit_functional";
  } else {
    part.op = "_native_batch_norm_legit.no_stats";
    part.args.erase(part.args.begin() + 3, part.args.begin() + 5);
  }
  Type not_stated;
  not_stated.kind = TypeKind::None;
  part.expected.resize(call_.names.size(), not_stated);
  Results results = builder_.plain_call(part);
  if (has_statistics) {
    for (std::size_t i : {std::size_t{3}, std::size_t{4}})
      builder_.write(tensor(i), builder_.read(std::get<TensorId>(results.at(i))), call_);
  }
  results.resize(call_.names.size());
  return results;
}

/// A batch norm in which each channel of each sample is a channel of its own; the statistics become
/// the mean of those of the samples. Of nothing the batch norm leaves them.
WriteOps::Results WriteOps::instance_norm() {
  const bool* uses_input = std::get_if<bool>(&arg(5));
  const bool has_statistics = std::holds_alternative<TensorId>(call_.args.at(3)) &&
                              std::holds_alternative<TensorId>(call_.args.at(4));
  if (uses_input == nullptr || !*uses_input || !has_statistics) return builder_.plain_call(call_);
  const Type input = builder_.type(tensor(0));
  if (input.ndim() < 2) throw BuildError{error("the input must have at least 2 dims")};
  sym::Arena& syms = builder_.syms();
  const sym::Expr batch = input.shape[0], channels = input.shape[1];
  std::vector<sym::Expr> merged = input.shape;
  merged[0] = syms.constant(1);
  merged[1] = syms.mul(batch, channels);
  const ValueId dense =
      builder_.call_op("clone", {builder_.read(tensor(0)), MemoryFormat::Contiguous}, call_);
  ImportCall norm{"_native_batch_norm_legit_functional", {}, call_.names, {}, call_.loc};
  norm.args = {
      std::get<TensorId>(builder_.result(builder_.call_op("view", {dense, merged}, call_)))};
  for (std::size_t i = 1; i < 5; ++i) {
    if (!std::holds_alternative<TensorId>(call_.args.at(i))) {
      norm.args.push_back(Arg(None{}));
      continue;
    }
    const std::vector<sym::Expr> times = {batch};
    const ValueId each = builder_.call_op("repeat", {builder_.read(tensor(i)), times}, call_);
    norm.args.push_back(std::get<TensorId>(builder_.result(each)));
  }
  norm.args.insert(norm.args.end(), {arg(5), arg(6), arg(7)});
  Results parts;
  if (known_empty(builder_.graph(), input)) {
    norm.op = "batch_norm";
    norm.args.push_back(false);  // cudnn_enabled
    parts = {builder_.plain_call(norm).at(0),
             {},
             {},
             std::get<TensorId>(norm.args[3]),
             std::get<TensorId>(norm.args[4])};
  } else {
    parts = builder_.plain_call(norm);
  }
  const auto part = [&](std::size_t i, const std::vector<sym::Expr>& shape) {
    return builder_.call_op("view", {builder_.read(std::get<TensorId>(parts.at(i))), shape}, call_);
  };
  for (std::size_t i : {std::size_t{3}, std::size_t{4}}) {
    const std::vector<sym::Expr> first = {syms.constant(0)};
    const ValueId mean =
        builder_.call_op("mean.dim", {part(i, {batch, channels}), first, false, None{}}, call_);
    builder_.write(tensor(i), mean, call_);
  }
  return {builder_.result(part(0, input.shape))};
}

WriteOps::Results WriteOps::in_place(const std::string& functional) {
  const TensorId self = tensor(0);
  const std::optional<ops::Schema> schema = ops::find_schema(functional);
  ImportCall pure = call_;
  pure.op = functional;
  pure.expected.clear();  // those of `self`, which need not be those of the functional op
  if (pure.args.size() > schema->args.size()) pure.args.resize(schema->args.size());
  const Results results = builder_.plain_call(pure);
  const TensorId* value = results.empty() ? nullptr : std::get_if<TensorId>(&results[0]);
  if (value == nullptr) throw BuildError{error("not supported")};
  builder_.write(self, builder_.read(*value), call_);
  builder_.check_expected(builder_.type(self), call_, 0);
  return {self};
}

}  // namespace coil
