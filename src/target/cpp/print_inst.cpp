#include "target/cpp/print_inst.h"

#include <algorithm>

#include "target/cpp/spelling.h"

namespace coil::cpp {
namespace {

const char* policy_name(IndexPolicy policy) {
  switch (policy) {
    case IndexPolicy::Assert: return "Policy::Assert";
    case IndexPolicy::Wrap: return "Policy::Wrap";
    case IndexPolicy::Clamp: return "Policy::Clamp";
    case IndexPolicy::NotZero: return "Policy::NotZero";
  }
  COIL_UNREACHABLE();
}

const char* combine_function(StoreCombine combine, DType dtype) {
  switch (combine) {
    case StoreCombine::None: return "";
    case StoreCombine::Sum: return is_bool(dtype) ? "bit_or" : "add";
    case StoreCombine::Prod: return is_bool(dtype) ? "bit_and" : "mul";
    case StoreCombine::Min: return is_bool(dtype) ? "bit_and" : "min";
    case StoreCombine::Max: return is_bool(dtype) ? "bit_or" : "max";
  }
  COIL_UNREACHABLE();
}

std::string comma(const std::vector<std::string>& items) {
  return join(items, ", ", [](const std::string& s) { return s; });
}

}  // namespace

InstPrinter::InstPrinter(const Kernel& kernel, IndexPrinter& index, TextWriter& out)
    : kernel_(kernel), syms_(*kernel.syms), index_(index), out_(out) {}

std::string InstPrinter::type(DType dtype, bool lanes) const {
  if (!lanes) return value_type(dtype);
  return is_bool(dtype) ? "mask16" : value_type(dtype) + "x16";
}

std::string InstPrinter::constant(const ops::Scalar& value, bool lanes) const {
  return lanes ? str("splat16({})", literal(value)) : literal(value);
}

std::string InstPrinter::active(Val mask) const {
  std::string out;
  if (mask.valid()) out = str("mask16({})", use(mask));
  if (count_.empty()) return out;
  const std::string lanes = str("active_lanes({})", count_);
  return out.empty() ? lanes : str("bit_and({}, {})", out, lanes);
}

std::string InstPrinter::op_text(ops::ScalarOp op, DType result,
                                 const std::vector<std::string>& operands) const {
  const bool converts = op == ops::ScalarOp::cast || op == ops::ScalarOp::bitcast;
  if (!converts) return str("{}({})", spelling(op), comma(operands));
  return str("{}<{}>({})", spelling(op), cast_type(result), comma(operands));
}

const KernelInst* InstPrinter::earlier(const KernelInst& user, Val v) const {
  for (const Stage& s : kernel_.stages) {
    if (s.insts.empty() || &user < &s.insts.front() || &user > &s.insts.back()) continue;
    for (const KernelInst* k = &user; k-- != &s.insts.front();) {
      const auto& results = k->inst.results;
      if (std::find(results.begin(), results.end(), v) != results.end()) return k;
      if (k->kind == KernelOp::Store) return nullptr;
    }
  }
  return nullptr;
}

std::string InstPrinter::raw_bits(const KernelInst& k) {
  const Val operand = k.inst.operands[0];
  const DType from = kernel_.val_dtypes[operand.index];
  const KernelInst* load = earlier(k, operand);
  const bool is_in_memory = load && load->kind == KernelOp::Load && !load->inst.mask.valid() &&
                            !(in_tile_ && tiles_.contains(load));
  if (!is_narrow_float(from)) return use(operand);
  if (!is_in_memory) return str("to_bits16<{}>({})", name(from), use(operand));
  Address a = address_of(*load);
  for (std::string* place : {&a.pointer, &a.base}) *place = str("(const i16*)({})", *place);
  return lanes() ? load_lanes(a) : str("load1({})", a.pointer);
}

/// Narrow floats are held as f32, whose bits are others, and which may lose those of a NaN: bits
/// are taken from memory, and put there, as they are.
void InstPrinter::bitcast(const KernelInst& k) {
  const DType from = kernel_.val_dtypes[k.inst.operands[0].index], to = k.inst.dtype;
  const std::string bits = raw_bits(k);
  if (is_narrow_float(to)) {
    const std::string name_of_bits = bits_name(k.inst.results[0]);
    out_.line("const auto {} = {};", name_of_bits,
              is_narrow_float(from) ? bits : op_text(k.inst.op, DType::i16, {bits}));
    return define(k.inst, str("of_bits16<{}>({})", name(to), name_of_bits));
  }
  define(k.inst, is_narrow_float(from) && to == DType::i16 ? bits : op_text(k.inst.op, to, {bits}));
}

void InstPrinter::define(Val value, const std::string& text) {
  has_lanes_.resize(kernel_.val_dtypes.size());
  has_lanes_[value.index] = lanes();
  out_.line("const auto {} = {};", value_name(value), text);
}

std::string InstPrinter::use(Val v) const {
  if (!lanes() || has_lanes_[v.index]) return value_name(v);
  return str("splat16({})", value_name(v));
}

void InstPrinter::print(const KernelInst& k) {
  const Inst& inst = k.inst;
  switch (k.kind) {
    case KernelOp::Load: return load(k);
    case KernelOp::Store: return store(k);
    case KernelOp::Const: return define(inst, constant(inst.constant, lanes()));
    case KernelOp::Value:
      return define(inst,
                    lanes() ? index_.vector(inst.expr) : str("i64({})", index_.scalar(inst.expr)));
    case KernelOp::Scalar: {
      std::size_t at = 0;
      while (kernel_.scalars[at] != inst.scalar) ++at;
      return define(inst, lanes() ? str("splat16(num{})", at) : str("num{}", at));
    }
    case KernelOp::Index: return index(k);
    case KernelOp::Op: {
      if (inst.op == ops::ScalarOp::bitcast) return bitcast(k);
      std::vector<std::string> operands;
      for (Val v : inst.operands) operands.push_back(use(v));
      return define(inst, op_text(inst.op, inst.dtype, operands));
    }
    case KernelOp::Accumulate: return accumulate(k);
    case KernelOp::Finish: return;  // the loop's end has folded the slots into the result names
    case KernelOp::Scan: return scan(k);
  }
}

InstPrinter::Address InstPrinter::address_of(const KernelInst& k) {
  const sym::Expr at = coil::address(syms_, kernel_.buffers[k.buffer].layout, k.inst.index);
  Address out;
  out.base = str("buf{}", k.buffer);
  if (!lanes()) {
    out.pointer = str("{} + {}", out.base, index_.scalar(at));
    return out;
  }
  if (kernel_.buffers[k.buffer].kept && !lanes_in_loop_) {  // each lane has a row, interleaved
    out.pointer = str("{} + {} * 16", out.base, index_.scalar(at));
    out.stride = "1";
    return out;
  }
  const sym::Expr axis = index_.lane_axis();
  const std::optional<sym::Expr> stride =
      index_.has_lane_variable(at) ? std::nullopt : syms_.stride(at, axis);
  if (stride) {
    out.pointer = str("{} + {}", out.base, index_.scalar(at));
    const std::optional<i64> known = syms_.as_const(*stride);
    out.stride = known ? str("{}", *known) : index_.scalar(*stride);
  }
  out.vector = index_.vector(at);
  return out;
}

void InstPrinter::open_tile(const KernelInst& k, u32 tile) {
  tiles_[&k] = tile;
  const bool loads = k.kind == KernelOp::Load;
  const Val value = loads ? k.inst.results[0] : k.inst.operands[0];
  out_.line("{} q{}[16];", type(kernel_.val_dtypes[value.index], true), tile);
  if (!loads) return;
  const Address a = address_of(k);
  out_.line("load_tile(q{}, {}, {}, {}, points);", tile, a.pointer, a.stride,
            count_.empty() ? "16" : count_);
}

void InstPrinter::close_tile(const KernelInst& k) {
  const Address a = address_of(k);
  out_.line("store_tile({}, {}, q{}, {}, points);", a.pointer, a.stride, tiles_.at(&k),
            count_.empty() ? "16" : count_);
}

void InstPrinter::load(const KernelInst& k) {
  if (in_tile_ && tiles_.contains(&k)) return define(k.inst, str("q{}[point]", tiles_[&k]));
  const Address a = address_of(k);
  const std::string mask = k.inst.mask.valid() ? active(k.inst.mask) : "";
  if (!lanes()) {
    if (!k.inst.mask.valid()) return define(k.inst, str("load1({})", a.pointer));
    return define(k.inst, str("{} ? load1({}) : {}", value_name(k.inst.mask), a.pointer,
                              literal(k.inst.other)));
  }
  if (k.inst.mask.valid()) {
    const std::string loaded = a.stride == "1" ? str("load_mask({}, {})", a.pointer, mask)
                                               : str("gather({}, {}, {})", a.base, a.vector, mask);
    const std::string some =
        str("where({}, {}, {})", use(k.inst.mask), loaded, constant(k.inst.other, true));
    // A window that reaches into padding at its first and last places only.
    const std::string whole = a.stride.empty() ? "" : true_in_all_lanes(k.inst.mask);
    if (whole.empty() || is_bool(k.inst.dtype)) return define(k.inst, some);
    return define(k.inst, str("{} ? {} : {}", whole, load_lanes(a), some));
  }
  define(k.inst, load_lanes(a));
}

std::string InstPrinter::load_lanes(const Address& a) const {
  if (a.stride == "0") return str("splat16(load1({}))", a.pointer);
  if (a.stride.empty())
    return count_.empty() ? str("gather({}, {})", a.base, a.vector)
                          : str("gather({}, {}, {})", a.base, a.vector, active(Val()));
  const std::string stride = a.stride == "1" ? "" : str(", {}", a.stride);
  const char* function = a.stride == "1" ? "load" : "load_strided";
  return count_.empty() ? str("{}({}{})", function, a.pointer, stride)
                        : str("{}_n({}{}, {})", function, a.pointer, stride, count_);
}

const Inst* InstPrinter::definition(Val v) const {
  for (const Stage& s : kernel_.stages) {
    for (const KernelInst& k : s.insts) {
      if (std::find(k.inst.results.begin(), k.inst.results.end(), v) == k.inst.results.end())
        continue;
      const bool is_cast = k.kind == KernelOp::Op && k.inst.op == ops::ScalarOp::cast;
      if (is_cast) return definition(k.inst.operands[0]);
      return k.kind == KernelOp::Value ? &k.inst : nullptr;
    }
  }
  return nullptr;
}

bool InstPrinter::holds_between(sym::Expr e) {
  const auto operands = syms_.operands(e);
  switch (syms_.kind(e)) {
    case sym::Kind::And:
      return std::all_of(operands.begin(), operands.end(),
                         [&](sym::Expr o) { return holds_between(o); });
    case sym::Kind::Lt:
    case sym::Kind::Le:
      return std::all_of(operands.begin(), operands.end(), [&](sym::Expr o) {
        return syms_.stride(o, index_.lane_axis()).has_value();
      });
    default: return false;
  }
}

std::string InstPrinter::true_in_all_lanes(Val mask) {
  const Inst* value = definition(mask);
  if (!value || index_.has_lane_variable(value->expr) || !holds_between(value->expr)) return "";
  const std::string last = count_.empty() ? "15" : str("{} - 1", count_);
  return str("({} & {})", index_.scalar(value->expr), index_.scalar_at(value->expr, last));
}

void InstPrinter::store(const KernelInst& k) {
  const Inst& inst = k.inst;
  std::string value = use(inst.operands[0]);
  if (in_tile_ && tiles_.contains(&k)) {
    out_.line("q{}[point] = {};", tiles_[&k], value);
    return;
  }
  Address a = address_of(k);
  const KernelInst* made = earlier(k, inst.operands[0]);
  if (made && made->kind == KernelOp::Op && made->inst.op == ops::ScalarOp::bitcast &&
      is_narrow_float(made->inst.dtype) && inst.store_combine == StoreCombine::None) {
    value = bits_name(inst.operands[0]);
    for (std::string* place : {&a.pointer, &a.base}) *place = str("(i16*)({})", *place);
  }
  const std::string together = combine_function(inst.store_combine, inst.dtype);
  if (!lanes()) {
    const std::string guard = inst.mask.valid() ? str("if ({}) ", value_name(inst.mask)) : "";
    const std::string stored =
        together.empty() ? value : str("{}(load1({}), {})", together, a.pointer, value);
    out_.line("{}store1({}, {});", guard, a.pointer, stored);
    return;
  }
  const std::string on = active(inst.mask);
  const std::string mask = on.empty() ? "splat16(true)" : on;
  if (!together.empty()) {
    out_.line("store_combined({}, {}, {}, {}, [](auto a, auto b) {{ return {}(a, b); }});", a.base,
              a.vector, value, mask, together);
  } else if (inst.mask.valid() && a.stride == "1") {
    out_.line("store_mask({}, {}, {});", a.pointer, value, mask);
  } else if (inst.mask.valid() || a.stride.empty() || a.stride == "0") {
    out_.line("scatter({}, {}, {}, {});", a.base, a.vector, value, mask);
  } else {
    const std::string stride = a.stride == "1" ? "" : str(", {}", a.stride);
    const char* function = a.stride == "1" ? "store" : "store_strided";
    if (count_.empty()) {
      out_.line("{}({}{}, {});", function, a.pointer, stride, value);
    } else {
      out_.line("{}_n({}{}, {}, {});", function, a.pointer, stride, value, count_);
    }
  }
}

void InstPrinter::index(const KernelInst& k) {
  const Inst& inst = k.inst;
  auto [site, fresh] = site_of_.try_emplace(inst.expr, sites_);
  if (fresh) ++sites_;
  const std::string name = str("n{}", site->second);
  const std::string extent = index_.scalar(inst.extent);
  const sym::Expr position = point_;
  const std::string at = position.valid() ? index_.scalar(position) : "i64(0)";
  std::string step = "i64(0)";
  if (lanes() && position.valid())
    if (const std::optional<sym::Expr> s = syms_.stride(position, index_.lane_axis()))
      step = index_.scalar(*s);
  std::string on = active(inst.mask);
  if (!lanes()) on = inst.mask.valid() ? value_name(inst.mask) : "";
  if (on.empty()) on = lanes() ? "splat16(true)" : "true";
  out_.line("{} {} = cast<i64>({});", lanes() ? "i64x16" : "i64", name, use(inst.operands[0]));
  out_.line("if (!check_index<{}>({}, {}, {}, fault, {}, {}, {})) return;",
            policy_name(inst.policy), name, extent, on, site->second, at, step);
  index_.name(inst.expr, name, lanes());
}

std::string InstPrinter::slot_name(u32 accumulator, u32 slot, std::size_t component) const {
  if (slots_in_array_) return str("{}[{}]", slot_array(accumulator, component), slot);
  return str("a{}_{}_{}{}", accumulator, slot, component, of_tile_);
}
std::string InstPrinter::slot_array(u32 accumulator, std::size_t component) const {
  return str("s{}_{}{}", accumulator, component, of_tile_);
}
std::string InstPrinter::total_name(u32 accumulator, std::size_t component) const {
  return str("w{}_{}{}", accumulator, component, of_tile_);
}
std::string InstPrinter::scan_name(const Inst& inst, std::size_t component) const {
  return str("c{}_{}{}", inst.results[0].index, component, of_tile_);
}

std::vector<std::string> InstPrinter::lift(const Inst& inst, const std::string& prefix) {
  const ops::Combine& combine = kernel_.combines[inst.combine];
  std::vector<std::string> names;
  if (combine.name.empty()) {
    for (Val v : inst.operands) names.push_back(use(v));
    return names;
  }
  const std::vector<ops::RegionInst> lifted = ops::lift(combine);
  for (std::size_t i = 0; i < lifted.size(); ++i) {
    names.push_back(str("{}{}", prefix, i));
    std::string text;
    if (lifted[i].constant) {
      text = constant(*lifted[i].constant, lanes());
    } else if (lifted[i].operands[0] == 0) {
      text = str("cast<{}>({})", cast_type(lifted[i].dtype), use(inst.operands[0]));
    } else {
      text =
          lanes() ? index_.vector(loop_position_) : str("i64({})", index_.scalar(loop_position_));
    }
    out_.line("const auto {} = {};", names.back(), text);
  }
  return names;
}

void InstPrinter::combine(const ops::Combine& combine, const std::vector<std::string>& left,
                          const std::vector<std::string>& right, bool lanes) {
  std::vector<std::string> values = left;
  values.insert(values.end(), right.begin(), right.end());
  for (const ops::RegionInst& r : combine.insts) {
    if (r.constant) {
      values.push_back(constant(*r.constant, lanes));
      continue;
    }
    std::vector<std::string> operands;
    for (u32 o : r.operands) operands.push_back(values[o]);
    values.push_back(str("t{}", temporaries_++));
    out_.line("const auto {} = {};", values.back(), op_text(r.op, r.dtype, operands));
  }
  // All results are formed before the first name of `left` changes.
  std::vector<std::string> results;
  for (std::size_t i = 0; i < combine.results.size(); ++i) {
    const std::string& value = values[combine.results[i]];
    const bool is_left = combine.results[i] < left.size();
    results.push_back(is_left && combine.results[i] != i ? str("t{}", temporaries_++) : value);
    if (results.back() != value) out_.line("const auto {} = {};", results.back(), value);
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i] != left[i]) out_.line("{} = {};", left[i], results[i]);
}

/// The first partial values are the total, as they are.
void InstPrinter::accumulate_partials(const KernelInst& k, const std::vector<std::string>& right) {
  std::vector<std::string> totals;
  for (std::size_t i = 0; i < right.size(); ++i) totals.push_back(total_name(k.accumulator, i));
  out_.line("if ({}) {{", started_);
  out_.indent();
  combine(kernel_.combines[k.inst.combine], totals, right, lanes());
  out_.dedent();
  out_.raw_line("} else {");
  out_.indent();
  for (std::size_t i = 0; i < right.size(); ++i) out_.line("{} = {};", totals[i], right[i]);
  out_.dedent();
  out_.raw_line("}");
}

void InstPrinter::accumulate(const KernelInst& k) {
  const ops::Combine& c = kernel_.combines[k.inst.combine];
  out_.raw_line("{");
  out_.indent();
  const std::vector<std::string> right = lift(k.inst, "e");
  if (k.inst.tree.accs == 0) {
    accumulate_partials(k, right);
    out_.dedent();
    return out_.raw_line("}");
  }
  std::vector<std::string> slots, left;
  for (std::size_t i = 0; i < c.values.size(); ++i)
    slots.push_back(slots_in_array_
                        ? str("{}[slot % {}]", slot_array(k.accumulator, i), k.inst.tree.accs)
                        : slot_name(k.accumulator, slot_ % k.inst.tree.accs, i));
  // Lanes past the end of the row leave their slot as it is.
  const bool guarded = !count_.empty() && lanes_in_loop_;
  left = slots;
  if (guarded)
    for (std::size_t i = 0; i < slots.size(); ++i) {
      left[i] = str("m{}", i);
      out_.line("auto {} = {};", left[i], slots[i]);
    }
  combine(c, left, right, lanes());
  if (guarded)
    for (std::size_t i = 0; i < slots.size(); ++i)
      out_.line("{} = where(active_lanes({}), {}, {});", slots[i], count_, left[i], slots[i]);
  out_.dedent();
  out_.raw_line("}");
}

void InstPrinter::scan(const KernelInst& k) {
  const ops::Combine& c = kernel_.combines[k.inst.combine];
  std::vector<std::string> carried;
  for (std::size_t i = 0; i < c.values.size(); ++i) carried.push_back(scan_name(k.inst, i));
  out_.raw_line("{");
  out_.indent();
  combine(c, carried, lift(k.inst, "e"), lanes());
  out_.dedent();
  out_.raw_line("}");
  for (std::size_t i = 0; i < c.values.size(); ++i) define(k.inst.results[i], carried[i]);
}

}  // namespace coil::cpp
