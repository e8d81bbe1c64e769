#include "target/triton/print_inst.h"

#include <cmath>

#include "kernel/mapping_gpu.h"
#include "target/triton/spelling.h"

namespace coil::triton {
namespace {

std::string value_name(Val v) { return str("v{}", v.index); }

std::string comma(const std::vector<std::string>& items) {
  return join(items, ", ", [](const std::string& s) { return s; });
}

std::string both(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return a + b;
  return str("{} & {}", a, b);
}

bool is_plus_zero(const ops::Scalar& s) {
  return is_float(s.dtype) ? s.f == 0 && !std::signbit(s.f) : s.i == 0;
}

ops::ScalarOp op_of(StoreCombine combine, DType dtype) {
  const bool logical = is_bool(dtype);
  switch (combine) {
    case StoreCombine::Sum: return logical ? ops::ScalarOp::bits_or : ops::ScalarOp::add;
    case StoreCombine::Prod: return logical ? ops::ScalarOp::bits_and : ops::ScalarOp::mul;
    case StoreCombine::Min: return ops::ScalarOp::min;
    case StoreCombine::Max: return ops::ScalarOp::max;
    case StoreCombine::None: break;
  }
  COIL_UNREACHABLE();
}

std::string_view atomic_of(StoreCombine combine) {
  switch (combine) {
    case StoreCombine::Sum: return "tl.atomic_add";
    case StoreCombine::Min: return "tl.atomic_min";
    case StoreCombine::Max: return "tl.atomic_max";
    case StoreCombine::None:
    case StoreCombine::Prod: break;
  }
  COIL_UNREACHABLE();
}

}  // namespace

InstPrinter::InstPrinter(const Kernel& kernel, IndexPrinter& index, std::string name,
                         TextWriter& functions, TextWriter& out, u32 sites_before)
    : kernel_(kernel),
      syms_(*kernel.syms),
      index_(index),
      name_(std::move(name)),
      functions_(functions),
      out_(out),
      lanes_(kernel.val_dtypes.size()),
      sites_(sites_before) {
  for (const Stage& s : kernel.stages)
    for (const KernelInst& i : s.insts)
      if (i.kind == KernelOp::Load ||
          (i.kind == KernelOp::Store && i.inst.store_combine != StoreCombine::None))
        loaded_.insert(i.buffer);
}

/// Whether the expression is a tile at this place.
bool InstPrinter::varies(sym::Expr e) const {
  if (!in_tile()) return false;
  for (sym::Expr axis : at_.axes)
    if (uses(e, axis)) return true;
  for (sym::Expr n : index_lanes_)
    if (uses(e, n)) return true;
  return false;
}

/// The mask of the whole tile.
std::string InstPrinter::all_inside() const {
  std::string out;
  for (const std::string& mask : at_.masks) out = both(out, mask);
  return out;
}

/// A value, which may be one for all lanes, as a whole tile with `other` outside of the row.
std::string InstPrinter::tile_of(const std::string& value, const std::string& other) const {
  std::string inside = all_inside();
  if (inside.empty() || at_.axes.size() > 1) inside = both(str("({} == 0)", at_.zeros), inside);
  return str("tl.where({}, {}, {})", inside, value, other);
}

Status InstPrinter::print(const KernelInst& k) {
  const Inst& inst = k.inst;
  switch (k.kind) {
    case KernelOp::Load: return load(k);
    case KernelOp::Store: return store(k);
    case KernelOp::Const: define(inst.results[0], literal(inst.constant), false); return Ok{};
    case KernelOp::Value:
      define(inst.results[0], str("tl.cast({}, tl.int64)", index_.print(inst.expr)),
             varies(inst.expr));
      return Ok{};
    case KernelOp::Scalar: {
      std::size_t at = 0;
      while (kernel_.scalars[at] != inst.scalar) ++at;
      if (inst.dtype != DType::f64)
        return error("a scalar argument of {} has no spelling", name(inst.dtype));
      define(inst.results[0], str("tl.load(scalars + {})", at), false);
      return Ok{};
    }
    case KernelOp::Index: index(k); return Ok{};
    case KernelOp::Op: return define_op(inst);
    case KernelOp::Accumulate: return accumulate(k);
    case KernelOp::Finish: return finish(k);
    case KernelOp::Scan: return scan(k);
  }
  COIL_UNREACHABLE();
}

void InstPrinter::define(Val v, const std::string& text, bool lanes) {
  lanes_[v.index] = lanes;
  out_.line("{} = {}", value_name(v), text);
}

Status InstPrinter::define_op(const Inst& inst) {
  std::vector<std::string> operands;
  bool lanes = false;
  for (Val v : inst.operands) {
    operands.push_back(value_name(v));
    lanes |= varies(v);
  }
  // The dtype that decides the spelling is that of the last operand: the first of `where` is a
  // condition.
  const DType from = kernel_.val_dtypes[inst.operands.back().index];
  define(inst.results[0], COIL_TRY(op_text(inst.op, from, inst.dtype, operands)), lanes);
  return Ok{};
}

// ---- memory ----

/// Whether a kept row is a value: the row is one tile.
bool InstPrinter::is_register(const KernelInst& k) const {
  return kernel_.buffers[k.buffer].kept && at_.place == Place::RowTile;
}

Result<InstPrinter::Access> InstPrinter::access(const KernelInst& k) {
  const KernelBuffer& b = kernel_.buffers[k.buffer];
  if (!has_memory_type(b.dtype))
    return error("buffer %{}: {} has no type in Triton", b.name, name(b.dtype));
  const sym::Expr at = address(syms_, b.layout, k.inst.index);
  const bool guarded = k.inst.mask.valid();
  const bool is_store = k.kind == KernelOp::Store;
  Access out{index_.print(at), ""};
  if (in_tile()) {
    // A tile is read where its address varies, and written as a whole.
    const bool whole = is_store || (guarded && varies(k.inst.mask));
    bool widen = whole;
    for (std::size_t d = 0; d < at_.axes.size(); ++d) {
      const bool used = uses(at, at_.axes[d]);
      if (used || whole) out.mask = both(out.mask, at_.masks[d]);
      widen &= !used || at_.axes.size() > 1;
    }
    for (sym::Expr n : index_lanes_)
      if (uses(at, n) && !whole) out.mask = both("", all_inside());
    if (is_store && !varies(at) && !b.kept && k.inst.store_combine == StoreCombine::None)
      return error("all of a tile stores to one element of %{}", b.name);
    if (widen) out.offset = str("{} + {}", out.offset, at_.zeros);
    if (out.mask.empty() && at_.place == Place::RowTile && !at_.has_elements)
      out.mask = "any_" + at_.masks[0];
  }
  for (const auto& [n, ok] : checked_)
    if (uses(at, n)) out.mask = both(out.mask, ok);
  if (guarded) out.mask = both(out.mask, value_name(k.inst.mask));
  return b.kept ? kept_access(k, std::move(out)) : Result<Access>(std::move(out));
}

/// Scratch of a program in memory: a row of it for each of a tile's grid points, interleaved.
Result<InstPrinter::Access> InstPrinter::kept_access(const KernelInst& k, Access plain) const {
  if (at_.place != Place::GridTile && at_.place != Place::ColumnChunk) return plain;
  if (at_.place == Place::GridTile && at_.axes.size() != 1)
    return error("a kept row in a tile of rank 2 has no spelling");
  const sym::Expr at = address(syms_, kernel_.buffers[k.buffer].layout, k.inst.index);
  plain.offset = str("{} * {} + lane0", index_.print(at), kernel_.mapping.tile[0].extent);
  plain.mask = both(all_inside(), k.inst.mask.valid() ? value_name(k.inst.mask) : "");
  return plain;
}

Status InstPrinter::load(const KernelInst& k) {
  const Inst& inst = k.inst;
  const DType dtype = kernel_.buffers[k.buffer].dtype;
  const sym::Expr at = address(syms_, kernel_.buffers[k.buffer].layout, inst.index);
  const bool guard_varies = inst.mask.valid() && varies(inst.mask);
  std::string text;
  bool lanes = varies(at) || guard_varies || (kernel_.buffers[k.buffer].kept && in_tile());
  if (is_register(k)) {
    if (!kept_.contains(k.buffer) || at != at_.axes[0])
      return error("kept row %{} is read out of place", kernel_.buffers[k.buffer].name);
    text = kept_[k.buffer];
  } else {
    const Access a = COIL_TRY(access(k));
    const std::string pointer = str("buf{} + {}", k.buffer, a.offset);
    const std::string loaded = a.mask.empty()
                                   ? str("tl.load({})", pointer)
                                   : str("tl.load({}, mask={}, other=0)", pointer, a.mask);
    text = from_memory(dtype, loaded);
  }
  if (inst.mask.valid() && (is_register(k) || !is_plus_zero(inst.other)))
    text = str("tl.where({}, {}, {})", value_name(inst.mask), text, literal(inst.other));
  define(inst.results[0], text, lanes);
  return Ok{};
}

Status InstPrinter::store(const KernelInst& k) {
  const Inst& inst = k.inst;
  const KernelBuffer& b = kernel_.buffers[k.buffer];
  if (is_register(k)) {
    const sym::Expr at = address(syms_, b.layout, inst.index);
    if (inst.mask.valid() || inst.store_combine != StoreCombine::None || at != at_.axes[0])
      return error("kept row %{} is written in part or out of place", b.name);
    kept_[k.buffer] = str("kept{}", k.buffer);
    // Through memory it would be rounded to its dtype; values of that dtype already are.
    out_.line("{} = {}", kept_[k.buffer], value_name(inst.operands[0]));
    return Ok{};
  }
  const Access a = COIL_TRY(access(k));
  const std::string pointer = str("buf{} + {}", k.buffer, a.offset);
  if (inst.store_combine != StoreCombine::None) return store_combined(k, pointer, a.mask);
  // Threads of a program see what others of it stored after a barrier only.
  const bool shared = loaded_.contains(k.buffer);
  if (shared) out_.raw_line("tl.debug_barrier()");
  const std::string value = to_memory(b.dtype, value_name(inst.operands[0]));
  out_.line("tl.store({}, {}{})", pointer, value, a.mask.empty() ? "" : str(", mask={}", a.mask));
  if (shared) out_.raw_line("tl.debug_barrier()");
  return Ok{};
}

Status InstPrinter::store_combined(const KernelInst& k, const std::string& pointer,
                                   const std::string& mask) {
  const Inst& inst = k.inst;
  const DType dtype = kernel_.buffers[k.buffer].dtype;
  const std::string value = value_name(inst.operands[0]);
  const std::string masked = mask.empty() ? "" : str(", mask={}", mask);
  if (!kernel_.mapping.serial) {
    if (!combines_atomically(inst.store_combine, dtype))
      return error("a store that combines {} is not serial", name(dtype));
    out_.line("{}({}, {}{}, sem=\"relaxed\")", atomic_of(inst.store_combine), pointer, value,
              masked);
    return Ok{};
  }
  if (in_tile()) return error("a serial kernel with a tile");
  const std::string old = str("old{}", temporaries_++);
  const std::string other = mask.empty() ? "" : str("{}, other=0", masked);
  const DType compute = compute_dtype(dtype);
  out_.line("{} = {}", old, from_memory(dtype, str("tl.load({}{})", pointer, other)));
  const std::vector<std::string> operands = {old, value};
  out_.line("{} = {}", old,
            COIL_TRY(op_text(op_of(inst.store_combine, dtype), compute, compute, operands)));
  out_.raw_line("tl.debug_barrier()");
  out_.line("tl.store({}, {}{})", pointer, to_memory(dtype, old), masked);
  out_.raw_line("tl.debug_barrier()");
  return Ok{};
}

/// A checked index: the variable, and the mask of places where it may be used.
void InstPrinter::index(const KernelInst& k) {
  const Inst& inst = k.inst;
  const u32 site = sites_++;
  const std::string n = str("n{}", site), ok = str("ok{}", site);
  const std::string extent = str("tl.cast({}, tl.int64)", index_.print(inst.extent));
  const bool lanes = varies(inst.operands[0]) || (inst.mask.valid() && varies(inst.mask));
  const std::string guard = inst.mask.valid() ? value_name(inst.mask) : "";
  out_.line("{} = {}", n, value_name(inst.operands[0]));
  if (inst.policy == IndexPolicy::Wrap)
    out_.line("{0} = tl.where({0} < 0, {0} + {1}, {0})", n, extent);
  if (inst.policy == IndexPolicy::Clamp)
    out_.line("{0} = tl.maximum(tl.minimum({0}, {1} - 1), 0)", n, extent);
  if (inst.policy == IndexPolicy::NotZero) out_.line("{0} = tl.cast({0} == 0, tl.int64)", n);
  out_.line("{0} = ({1} >= 0) & ({1} < {2})", ok, n, extent);
  const std::string on = both(in_tile() ? all_inside() : "", guard);
  const std::string bad = on.empty() ? str("{} == 0", ok) : str("({}) & ({} == 0)", on, ok);
  const std::string word =
      in_tile() ? str("faults + ({} + {})", site, at_.zeros) : str("faults + {}", site);
  const std::string position = point_.valid() ? index_.print(point_) : "0";
  out_.line(
      "tl.atomic_max({}, 0x7fffffffffffffff - tl.cast({}{}, tl.int64), mask={}, sem=\"relaxed\")",
      word, position, in_tile() ? " + " + at_.zeros : "", bad);
  // A masked-off index is 0, unchecked.
  const std::string used = both(ok, guard);
  out_.line("{} = tl.cast(tl.where({}, {}, 0), {})", n, used, n, index_.type());
  index_.name(inst.expr, n);
  checked_[inst.expr] = ok;
  if (!guard.empty()) out_.line("{0} = {0} | ({1} == 0)", ok, guard);
  if (lanes) index_lanes_.insert(inst.expr);
}

// ---- reductions and scans ----

std::string InstPrinter::full(const ops::Scalar& value, const std::string& zeros) const {
  if (!in_tile()) return literal(value);
  return str("tl.where({0} == 0, {1}, {1})", zeros, literal(value));
}

/// Prints a combine as a function, once: left values, then right values.
Result<std::string> InstPrinter::combine_function(u32 combine) {
  if (const auto it = combines_.find(combine); it != combines_.end()) return it->second;
  return combines_[combine] =
             COIL_TRY(function_of(kernel_.combines[combine], str("{}_combine{}", name_, combine)));
}

Result<std::string> InstPrinter::function_of(const ops::Combine& c, const std::string& function) {
  std::vector<std::string> values;
  for (const char* side : {"a", "b"})
    for (std::size_t i = 0; i < c.values.size(); ++i) values.push_back(str("{}{}", side, i));
  std::vector<DType> dtypes = c.values;
  dtypes.insert(dtypes.end(), c.values.begin(), c.values.end());
  functions_.raw_line("@triton.jit");
  functions_.line("def {}({}):", function, comma(values));
  functions_.indent();
  for (const ops::RegionInst& r : c.insts) {
    const std::string result = str("c{}", values.size() - 2 * c.values.size());
    if (r.constant) {
      functions_.line("{} = {}", result, literal(*r.constant));
    } else {
      std::vector<std::string> operands;
      for (u32 o : r.operands) operands.push_back(values[o]);
      functions_.line("{} = {}", result,
                      COIL_TRY(op_text(r.op, dtypes[r.operands.back()], r.dtype, operands)));
    }
    values.push_back(result);
    dtypes.push_back(r.dtype);
  }
  std::vector<std::string> results;
  for (u32 r : c.results) results.push_back(values[r]);
  functions_.line("return {}", comma(results));
  functions_.dedent();
  functions_.raw_line("\n");
  return function;
}

Result<std::vector<std::string>> InstPrinter::lift(const Inst& inst) {
  const ops::Combine& c = kernel_.combines[inst.combine];
  std::vector<std::string> out;
  if (c.name.empty()) {
    for (Val v : inst.operands) out.push_back(value_name(v));
    return out;
  }
  const DType from = kernel_.val_dtypes[inst.operands[0].index];
  for (const ops::RegionInst& r : ops::lift(c)) {
    if (r.constant) {
      out.push_back(literal(*r.constant));
    } else if (r.operands[0] == 0) {
      const std::vector<std::string> operand = {value_name(inst.operands[0])};
      out.push_back(from == r.dtype
                        ? operand[0]
                        : COIL_TRY(op_text(ops::ScalarOp::cast, from, r.dtype, operand)));
    } else {
      out.push_back(str("tl.cast({}, tl.int64)", index_.print(loop_position_)));
    }
  }
  return out;
}

void InstPrinter::declare_carried(const Stage& s) {
  if (at_.place == Place::RowTile) return;
  for (const KernelInst& i : s.insts) {
    if (i.kind != KernelOp::Accumulate && i.kind != KernelOp::Scan) continue;
    const ops::Combine& c = kernel_.combines[i.inst.combine];
    for (std::size_t v = 0; v < c.values.size(); ++v) {
      if (i.kind == KernelOp::Accumulate) {
        out_.line("a{}_{} = {}", i.accumulator, v, full(c.identity[v], at_.zeros));
        continue;
      }
      // A scan along the tile carries one value from chunk to chunk.
      const std::string first = at_.place == Place::RowChunk ? literal(c.identity[v])
                                : at_.place == Place::ColumnChunk
                                    ? full(c.identity[v], at_.point_zeros)
                                    : full(c.identity[v], at_.zeros);
      out_.line("carry{}_{} = {}", i.inst.results[0].index, v, first);
    }
  }
}

/// The elements as tiles, with the identity where the row has ended.
std::vector<std::string> InstPrinter::masked(const ops::Combine& c,
                                             const std::vector<std::string>& elements,
                                             const std::string& prefix) {
  std::vector<std::string> out;
  for (std::size_t v = 0; v < elements.size(); ++v) {
    out.push_back(str("{}_{}", prefix, v));
    out_.line("{} = {}", out[v], tile_of(elements[v], literal(c.identity[v])));
  }
  return out;
}

Status InstPrinter::accumulate(const KernelInst& k) {
  const ops::Combine& c = kernel_.combines[k.inst.combine];
  slots_[k.accumulator] = {at_, false};
  if (at_.place == Place::RowTile && c.name == "welford" && is_float(c.values[0]))
    return two_passes(k, value_name(k.inst.operands[0]));
  const std::vector<std::string> elements = COIL_TRY(lift(k.inst));
  const std::string prefix = str("a{}", k.accumulator);
  if (at_.place == Place::RowTile) {
    masked(c, elements, prefix);
    return Ok{};
  }
  const std::string function = COIL_TRY(combine_function(k.inst.combine));
  std::vector<std::string> slots, next, arguments;
  for (std::size_t v = 0; v < c.values.size(); ++v) {
    slots.push_back(str("{}_{}", prefix, v));
    next.push_back(in_chunk() && !all_inside().empty() ? str("next{}_{}", k.accumulator, v)
                                                       : slots[v]);
  }
  arguments = slots;
  arguments.insert(arguments.end(), elements.begin(), elements.end());
  out_.line("{} = {}({})", comma(next), function, comma(arguments));
  // Lanes past the end of the row leave their slot as it is.
  if (next[0] != slots[0])
    for (std::size_t v = 0; v < slots.size(); ++v)
      out_.line("{} = {}", slots[v], tile_of(next[v], slots[v]));
  return Ok{};
}

/// A row that is one tile has its mean first, and then the squares of distances from it: two sums,
/// where the combine divides for every pair.
Status InstPrinter::two_passes(const KernelInst& k, const std::string& element) {
  const ops::Combine& c = kernel_.combines[k.inst.combine];
  const std::optional<ops::Combine> sum = ops::named_combine("sum", c.values[0]);
  const std::string function = name_ + "_sum_" + std::string(name(c.values[0]));
  if (folds_.insert(function).second) COIL_TRY(function_of(*sum, function));
  const std::string fold = fold_function(function, 1);
  const std::string a = str("a{}", k.accumulator), zero = literal(c.identity[0]);
  out_.line("{}_2 = tl.cast({}, {})", a, at_.extent, value_type(c.values[0]));
  out_.line("{0}_0 = divide({1}({2}), tl.maximum({0}_2, 1.0))", a, fold, tile_of(element, zero));
  out_.line("{0}_1 = {1} - {0}_0", a, element);
  out_.line("{0}_1 = {1}({2})", a, fold, tile_of(str("{0}_1 * {0}_1", a), zero));
  slots_[k.accumulator].folded = true;
  return Ok{};
}

/// Slots along the loop in a stated order: the same bits whatever the layout of the tile. First
/// what a thread or a warp holds: neighbours along a row, halves of columns. The name of a function
/// of as many tiles.
std::string InstPrinter::fold_function(const std::string& combine, std::size_t values) {
  const std::string function = str("{}_fold{}", combine, at_.rows);
  if (!folds_.insert(function).second) return function;
  std::vector<std::string> tiles, pairs;
  const bool halves = at_.columns > 0;
  const std::string across = halves ? str(", {}", at_.columns) : "";
  for (std::size_t v = 0; v < values; ++v) {
    tiles.push_back(str("a{}", v));
    pairs.push_back(halves ? str("tl.reshape(a{}, [2, {} >> step{}])", v, at_.rows / 2, across)
                           : str("tl.reshape(a{}, [{} >> step, 2])", v, at_.rows / 2));
  }
  const auto tuple = [&](const std::vector<std::string>& all) {
    return all.size() == 1 ? all[0] : str("({})", comma(all));
  };
  int steps = 0;
  while ((at_.rows >> (steps + 1)) > 1) ++steps;
  functions_.raw_line("@triton.jit");
  functions_.line("def {}({}):", function, comma(tiles));
  functions_.indent();
  if (steps > 0) {
    functions_.line("for step in tl.static_range({}):", steps);
    functions_.indent();
    functions_.line("{} = tl.reduce({}, {}, {})", comma(tiles), tuple(pairs), halves ? 0 : 1,
                    combine);
    functions_.dedent();
  }
  if (at_.columns == 0 || at_.rows > 1)
    functions_.line("{} = tl.reduce({}, 0, {})", comma(tiles), tuple(tiles), combine);
  std::vector<std::string> results = tiles;
  if (at_.columns > 0)
    for (std::string& r : results) r = str("tl.reshape({}, [1{}])", r, across);
  functions_.line("return {}", comma(results));
  functions_.dedent();
  functions_.raw_line("\n");
  return function;
}

/// One value from the slots along the loop. Where the order cannot be seen Triton's own is taken.
Result<std::vector<std::string>> InstPrinter::reduced(u32 combine,
                                                      const std::vector<std::string>& tiles) {
  const ops::Combine& c = kernel_.combines[combine];
  const DType dtype = c.values[0];
  const auto whole = [&](const std::string& value) {
    return at_.columns > 0 ? str("tl.reshape({}, [1, {}])", value, at_.columns) : value;
  };
  const bool extreme = c.name == "max" || c.name == "min";
  if (is_bool(dtype) && tiles.size() == 1 && (extreme || c.name == "any" || c.name == "all")) {
    const char* function = c.name == "max" || c.name == "any" ? "max" : "min";
    return std::vector<std::string>{
        whole(str("tl.{}(tl.cast({}, tl.int32), axis=0)", function, tiles[0])) + " != 0"};
  }
  if ((extreme || c.name == "sum") && is_int(dtype))
    return std::vector<std::string>{
        whole(str("tl.cast(tl.{}({}, axis=0), {})", c.name, tiles[0], value_type(dtype)))};
  const std::string function = COIL_TRY(combine_function(combine));
  const std::string fold = fold_function(function, tiles.size());
  const std::string call = str("{}({})", fold, comma(tiles));
  if (tiles.size() == 1) return std::vector<std::string>{call};
  std::vector<std::string> out;
  const u32 number = temporaries_++;
  for (std::size_t v = 0; v < tiles.size(); ++v) out.push_back(str("t{}_{}", number, v));
  out_.line("{} = {}", comma(out), call);
  return out;
}

Status InstPrinter::finish(const KernelInst& k) {
  std::vector<std::string> values;
  for (std::size_t v = 0; v < k.inst.results.size(); ++v)
    values.push_back(str("a{}_{}", k.accumulator, v));
  // Slots of a grid's points, and of a single point, are the results.
  const Slots& slots = slots_.at(k.accumulator);
  const Lanes here = at_;
  const Place from = slots.lanes.place;
  if (!slots.folded && from != Place::GridTile && from != Place::Scalar) {
    at_ = slots.lanes;
    Result<std::vector<std::string>> folded = reduced(k.inst.combine, values);
    at_ = here;
    if (!folded.ok()) return folded.error();
    values = std::move(*folded);
  }
  for (std::size_t v = 0; v < values.size(); ++v) define(k.inst.results[v], values[v], in_tile());
  return Ok{};
}

Status InstPrinter::scan(const KernelInst& k) {
  const ops::Combine& c = kernel_.combines[k.inst.combine];
  const std::vector<std::string> elements = COIL_TRY(lift(k.inst));
  const std::string function = COIL_TRY(combine_function(k.inst.combine));
  const u32 number = k.inst.results[0].index;
  std::vector<std::string> results, carry;
  for (std::size_t v = 0; v < c.values.size(); ++v) {
    results.push_back(value_name(k.inst.results[v]));
    carry.push_back(str("carry{}_{}", number, v));
    lanes_[k.inst.results[v].index] = in_tile();
  }
  const auto call = [&](const std::vector<std::string>& right) {
    std::vector<std::string> all = carry;
    all.insert(all.end(), right.begin(), right.end());
    return str("{}({})", function, comma(all));
  };
  if (!along_loop()) {
    out_.line("{} = {}", comma(carry), call(elements));
    for (std::size_t v = 0; v < results.size(); ++v) out_.line("{} = {}", results[v], carry[v]);
    return Ok{};
  }
  const std::vector<std::string> tiles = masked(c, elements, str("e{}", number));
  const std::string tuple = tiles.size() == 1 ? tiles[0] : str("({})", comma(tiles));
  out_.line("{} = tl.associative_scan({}, 0, {})", comma(results), tuple, function);
  if (at_.place == Place::RowTile) return Ok{};
  out_.line("{} = {}", comma(results), call(results));
  const std::vector<std::string> totals = COIL_TRY(reduced(k.inst.combine, tiles));
  out_.line("{} = {}", comma(carry), call(totals));
  return Ok{};
}

}  // namespace coil::triton
