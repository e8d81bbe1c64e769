// The text form of level 1: parsing of bodies.

#include <algorithm>

#include "loop/text_marks.h"
#include "loop/text_parse.h"
#include "loop/text_region.h"

namespace coil::loop_text {

Status ProgramParser::parse_body() {
  Body body;
  body.name = COIL_TRY(in_.word());
  Origin origin = COIL_TRY(parse_origin());
  body.from = std::move(origin.from);
  body.locs = std::move(origin.locs);
  body.init = origin.init;
  COIL_TRY(in_.expect("{"));
  Names scope = scope_;
  if (in_.accept("dims")) COIL_TRY(parse_dims(body, scope));
  COIL_TRY(BodyParser(*this, body, std::move(scope)).parse());
  program_.order.emplace_back(program_.bodies.add(std::move(body)));
  return Ok{};
}

Status BodyParser::parse() {
  while (!in_.accept("}")) COIL_TRY(parse_inst());
  return Ok{};
}

Status BodyParser::parse_inst() {
  if (in_.at("store") || in_.at("store.sum") || in_.at("store.prod") || in_.at("store.min") ||
      in_.at("store.max"))
    return parse_store();
  std::vector<std::string> targets;
  do {
    targets.push_back(COIL_TRY(in_.word()));
  } while (in_.accept(","));
  COIL_TRY(in_.expect("="));
  return parse_right_side(std::move(targets));
}

Status BodyParser::parse_store() {
  const std::string word = COIL_TRY(in_.word());
  Inst inst;
  inst.kind = InstKind::Store;
  if (word != "store") inst.store_combine = *combine_from_name(word.substr(6));
  COIL_TRY(parse_element(inst));
  inst.dtype = program_.program_.buffers[inst.buffer].dtype;
  COIL_TRY(in_.expect(","));
  inst.operands.push_back(COIL_TRY(parse_val()));
  COIL_TRY(parse_mask(inst));
  body_.insts.push_back(std::move(inst));
  return Ok{};
}

Status BodyParser::parse_right_side(std::vector<std::string> targets) {
  const Error unknown = in_.error_here(str("expected an instruction, found {}", in_.found()));
  const std::string word = COIL_TRY(in_.word());
  Inst inst;
  std::vector<DType> dtypes(1);
  if (word == "index") {
    if (targets.size() != 1) return unknown;
    return parse_index(targets[0]);
  }
  if (word == "load") {
    COIL_TRY(parse_load(inst));
  } else if (word == "const") {
    inst.kind = InstKind::Const;
    inst.dtype = COIL_TRY(program_.parse_dtype());
    inst.constant = COIL_TRY(loop_text::parse_scalar(in_, inst.dtype));
  } else if (word == "value") {
    inst.kind = InstKind::Value;
    inst.dtype = DType::i64;
    inst.expr = COIL_TRY(program_.parse_expr(scope_));
  } else if (word == "scalar") {
    inst.kind = InstKind::Scalar;
    inst.dtype = COIL_TRY(program_.parse_dtype());
    const Error missing = in_.error_here(str("unknown scalar {}", in_.found()));
    const auto& scalars = program_.program_.scalars;
    const auto at = std::ranges::find(scalars, COIL_TRY(in_.name()));
    if (at == scalars.end()) return missing;
    inst.scalar = static_cast<u32>(at - scalars.begin());
  } else if (word.starts_with("reduce") || word.starts_with("scan")) {
    COIL_TRY(parse_combining(inst, word, dtypes));
    return define(inst, targets, dtypes);
  } else {
    if (!ops::scalar_from_name(word)) return unknown;
    COIL_TRY(parse_op(inst, word));
  }
  dtypes[0] = inst.dtype;
  return define(inst, targets, dtypes);
}

Status BodyParser::define(Inst& inst, const std::vector<std::string>& targets,
                          const std::vector<DType>& dtypes) {
  if (targets.size() != dtypes.size())
    return in_.error_here(str("{} results for {} names", dtypes.size(), targets.size()));
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Val v(body_.val_dtypes.size());
    body_.val_dtypes.push_back(dtypes[i]);
    inst.results.push_back(v);
    if (!vals_.emplace(targets[i], v).second)
      return in_.error_here(str("value {} is defined twice", targets[i]));
  }
  body_.insts.push_back(std::move(inst));
  return Ok{};
}

Status BodyParser::parse_index(const std::string& variable) {
  Inst inst;
  inst.kind = InstKind::Index;
  inst.dtype = DType::i64;
  inst.operands.push_back(COIL_TRY(parse_val()));
  COIL_TRY(in_.expect("in"));
  if (COIL_TRY(in_.integer()) != 0) return in_.error_here("an index starts at 0");
  COIL_TRY(in_.expect("."));
  COIL_TRY(in_.expect("."));
  sym::Arena& syms = program_.syms_;
  inst.extent = syms.add(COIL_TRY(program_.parse_expr(scope_)), syms.constant(1));
  const Error unknown =
      in_.error_here(str("expected assert, wrap or clamp, found {}", in_.found()));
  const std::optional<IndexPolicy> policy = policy_from_name(COIL_TRY(in_.word()));
  if (!policy) return unknown;
  inst.policy = *policy;
  const sym::Range extent = syms.range(inst.extent);
  const i64 last = extent.hi == sym::kMaxInt ? sym::kMaxInt : std::max<i64>(extent.hi, 1) - 1;
  inst.expr = syms.variable({variable, sym::Role::Value, {0, last}, {}});
  if (!scope_.emplace(variable, inst.expr).second)
    return in_.error_here(str("index {} is defined twice", variable));
  body_.insts.push_back(std::move(inst));
  return Ok{};
}

Status BodyParser::parse_op(Inst& inst, const std::string& word) {
  inst.kind = InstKind::Op;
  inst.op = *ops::scalar_from_name(word);
  if (ops::info(inst.op).result == ops::ResultRule::Given)
    inst.dtype = COIL_TRY(program_.parse_dtype());
  inst.operands = COIL_TRY(parse_vals());
  std::vector<DType> dtypes;
  for (Val v : inst.operands) dtypes.push_back(dtype(v));
  inst.dtype = result_dtype(inst.op, dtypes, inst.dtype);
  return Ok{};
}

Status BodyParser::parse_load(Inst& inst) {
  inst.kind = InstKind::Load;
  inst.dtype = COIL_TRY(program_.parse_dtype());
  COIL_TRY(parse_element(inst));
  COIL_TRY(parse_mask(inst));
  if (!inst.mask.valid()) return Ok{};
  COIL_TRY(in_.expect("else"));
  inst.other = COIL_TRY(loop_text::parse_scalar(in_, inst.dtype));
  return Ok{};
}

Status BodyParser::parse_element(Inst& inst) {
  inst.buffer = COIL_TRY(program_.parse_buffer());
  inst.index = COIL_TRY(program_.parse_exprs(scope_));
  return Ok{};
}

Status BodyParser::parse_mask(Inst& inst) {
  if (in_.accept("if")) inst.mask = COIL_TRY(parse_val());
  return Ok{};
}

Result<Val> BodyParser::parse_val() {
  const Error unknown = in_.error_here(str("unknown value {}", in_.found()));
  const auto at = vals_.find(COIL_TRY(in_.word()));
  if (at == vals_.end()) return unknown;
  return at->second;
}

Result<std::vector<Val>> BodyParser::parse_vals() {
  std::vector<Val> items;
  do {
    items.push_back(COIL_TRY(parse_val()));
  } while (in_.accept(","));
  return items;
}

/// `.sum v0 over r0 tree 16x4`, or without a name and with a region of its own.
Status BodyParser::parse_combining(Inst& inst, const std::string& word,
                                   std::vector<DType>& results) {
  const Error unknown = in_.error_here(str("no combine '{}' for this dtype", word));
  const std::string kind = word.substr(0, word.find('.'));
  if (kind != "reduce" && kind != "scan") return unknown;
  inst.kind = kind == "reduce" ? InstKind::Reduce : InstKind::Scan;
  inst.operands = COIL_TRY(parse_vals());
  COIL_TRY(parse_over(inst));
  if (inst.kind == InstKind::Reduce) COIL_TRY(parse_tree(inst.tree));
  ops::Combine combine;
  if (word.size() > kind.size()) {
    auto named = ops::named_combine(word.substr(kind.size() + 1), dtype(inst.operands[0]));
    if (!named) return unknown;
    combine = std::move(*named);
  } else {
    combine = COIL_TRY(parse_region(in_));
  }
  inst.dtype = combine.values.at(0);
  results = combine.values;
  inst.combine = static_cast<u32>(body_.combines.size());
  body_.combines.push_back(std::move(combine));
  return Ok{};
}

/// `over r0, r1`: always all dims of the kind.
Status BodyParser::parse_over(const Inst& inst) {
  const DimKind kind = inst.kind == InstKind::Reduce ? DimKind::Reduce : DimKind::Scan;
  bool first = true;
  for (const Dim& dim : body_.dims) {
    if (dim.kind != kind) continue;
    COIL_TRY(in_.expect(first ? "over" : ","));
    COIL_TRY(in_.expect(program_.syms_.var(dim.var).name));
    first = false;
  }
  return Ok{};
}

/// `tree 16x4 block 1024`; 16x4 is read as the integer 16 and the word x4.
Status BodyParser::parse_tree(ops::Tree& tree) {
  if (!in_.accept("tree")) return Ok{};
  const Error wrong = in_.error_here("expected a tree like 16x4, each from 1 to 4096");
  const i64 lanes = COIL_TRY(in_.integer());
  const std::string accs = COIL_TRY(in_.word());
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (accs.size() < 2 || accs.size() > 5 || accs[0] != 'x' ||
      !std::all_of(accs.begin() + 1, accs.end(), is_digit))
    return wrong;
  const int count = std::stoi(accs.substr(1));
  if (lanes < 1 || lanes > 4096 || count < 1 || count > 4096) return wrong;
  tree.lanes = static_cast<u16>(lanes);
  tree.accs = static_cast<u16>(count);
  if (in_.accept("block")) {
    const i64 block = COIL_TRY(in_.integer());
    if (block < 1 || block > INT32_MAX) return in_.error_here("a block is from 1 to 2147483647");
    tree.block = static_cast<u32>(block);
  }
  return Ok{};
}

}  // namespace coil::loop_text
