// The skeleton of a kernel's function: arguments, a program's place in the grid, its tile, loops of
// stages.

#include "target/triton/print.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "kernel/mapping_gpu.h"
#include "target/triton/prelude_files.h"
#include "target/triton/print_inst.h"
#include "target/triton/spelling.h"

namespace coil::triton {
namespace {

constexpr std::size_t kMostTileRank = 2;

std::string python_name(const std::string& name) {
  std::string out;
  for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) ? "k" + out : out;
}

/// Python's four spaces a level, where the writer has two.
std::string with_python_indent(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::size_t spaces = std::min(text.find_first_not_of(' ', at), end) - at;
    out += std::string(spaces, ' ') + text.substr(at, end - at);
    at = end;
  }
  return out;
}

class KernelPrinter {
 public:
  KernelPrinter(const Kernel& kernel, std::string name)
      : kernel_(kernel),
        mapping_(kernel.mapping),
        syms_(*kernel.syms),
        name_(std::move(name)),
        index_(syms_),
        insts_(kernel, index_, name_, functions_, body_) {}

  Result<std::string> run() {
    COIL_TRY(check_mapping());
    choose_index_type();
    body_.indent();
    for (std::size_t i = 0; i < kernel_.symbols.size(); ++i) {
      index_.name(kernel_.symbols[i], str("s{}", i));
      body_.line("s{0} = tl.cast(s{0}, {1})", i, index_.type());
    }
    COIL_TRY(program());
    return with_python_indent(functions_.text() + head() + body_.text());
  }

  /// One entry of LAUNCHES.
  std::string launch() {
    const auto list = [](const std::vector<std::string>& items) {
      return join(items, ", ", [](const std::string& s) { return s; });
    };
    std::vector<std::string> buffers, kept, symbols, scalars;
    for (const KernelBuffer& b : kernel_.buffers)
      if (!b.kept)
        buffers.push_back(
            str("({}, \"{}\", {})", quoted(b.name), name(b.dtype), b.written ? "True" : "False"));
      else if (!keeps_in_registers())
        kept.push_back(str("(\"{}\", {})", name(b.dtype), kept_elements(b)));
    for (std::size_t i = 0; i < kernel_.symbols.size(); ++i) symbols.push_back(str("s{}", i));
    TextWriter out;
    out.indent();
    out.line("{}: dict(", quoted(kernel_.name));
    out.indent();
    out.line("function={},", name_);
    out.line("buffers=[{}],", list(buffers));
    std::vector<std::string> names;
    for (sym::Expr s : kernel_.symbols) names.push_back(quoted(syms_.var(s).name));
    out.line("symbols=[{}],", list(names));
    for (u32 s : kernel_.scalars) scalars.push_back(str("{}", s));
    out.line("scalars=[{}],", list(scalars));
    out.line("kept=[{}],  # elements of each program", list(kept));
    out.line("sites={}, warps={},", insts_.sites(), gpu_warps(mapping_));
    out.line("programs=lambda {}: {}),", list(symbols), index_.print(mapping_.units, Spell::Host));
    return with_python_indent(out.text());
  }

 private:
  bool rows() const {
    return !mapping_.tile.empty() && grid_axis(mapping_.tile[0].axis) == nullptr;
  }
  bool keeps_in_registers() const { return rows() && mapping_.chunk == 0; }
  const Axis* grid_axis(sym::Expr var) const {
    for (const Axis& a : kernel_.grid)
      if (a.var == var) return &a;
    return nullptr;
  }

  /// What map_to_gpu promises; a mapping for another machine is refused.
  Status check_mapping() const {
    if (!mapping_.units.valid()) return error("the kernel is not mapped");
    const auto foreign = [] { return error("the mapping is not one to a GPU"); };
    if (mapping_.serial != mapping_.tile.empty() || mapping_.tile.size() > kMostTileRank)
      return foreign();
    for (const TileDim& t : mapping_.tile) {
      if ((t.extent & (t.extent - 1)) != 0)
        return error("a tile of {} is no power of two", t.extent);
      if ((grid_axis(t.axis) == nullptr) != rows()) return foreign();
      if (mapping_.chunk != t.extent && !(rows() && mapping_.chunk == 0)) return foreign();
    }
    if (!rows()) return Ok{};
    for (const Stage& s : kernel_.stages) {
      if (s.loop.empty()) continue;
      if (s.loop.size() != 1 || s.loop[0].var != mapping_.tile[0].axis) return foreign();
      if (mapping_.chunk == 0 && syms_.range(s.loop[0].extent).hi > mapping_.tile[0].extent)
        return error("a tile of {} does not hold the row", mapping_.tile[0].extent);
    }
    return Ok{};
  }

  /// Every index, extent and count of points in 32 bits, or all in 64.
  void choose_index_type() {
    std::vector<sym::Expr> all = {mapping_.units};
    for (sym::Expr s : kernel_.symbols) all.push_back(s);
    const auto axes = [&](const std::vector<Axis>& items) {
      sym::Expr points = syms_.constant(kSlack);
      for (const Axis& a : items) points = syms_.mul(points, a.extent);
      all.push_back(points);
    };
    axes(kernel_.grid);
    std::vector<Axis> everything = kernel_.grid;
    for (const Stage& s : kernel_.stages) {
      everything = kernel_.grid;
      everything.insert(everything.end(), s.loop.begin(), s.loop.end());
      axes(everything);
      for (const KernelInst& i : s.insts) {
        if (i.kind == KernelOp::Load || i.kind == KernelOp::Store)
          all.push_back(address(syms_, kernel_.buffers[i.buffer].layout, i.inst.index));
        if (i.kind == KernelOp::Value) all.push_back(i.inst.expr);
        if (i.kind == KernelOp::Index) all.push_back(i.inst.extent);
      }
    }
    const bool narrow =
        std::all_of(all.begin(), all.end(), [&](sym::Expr e) { return fits_in_32_bits(syms_, e); });
    index_.set_type(narrow ? "tl.int32" : "tl.int64");
  }

  std::string head() const {
    std::vector<std::string> arguments;
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i)
      if (!kernel_.buffers[i].kept) arguments.push_back(str("buf{}", i));
    for (std::size_t i = 0; i < kernel_.symbols.size(); ++i) arguments.push_back(str("s{}", i));
    if (!kernel_.scalars.empty()) arguments.push_back("scalars");
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i)
      if (kernel_.buffers[i].kept && !keeps_in_registers()) arguments.push_back(str("buf{}", i));
    if (insts_.sites() > 0) arguments.push_back("faults");
    std::string out = "@triton.jit\n";
    out +=
        str("def {}({}):\n", name_, join(arguments, ", ", [](const std::string& s) { return s; }));
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i)
      out += str("  # buf{} = %{}\n", i, kernel_.buffers[i].name);
    for (const std::string& r : mapping_.reasons) out += str("  # {}\n", r);
    return out;
  }

  /// Elements of scratch that a program has for a kept row.
  i64 kept_elements(const KernelBuffer& b) const {
    i64 elements = mapping_.tile.empty() || rows() ? 1 : mapping_.tile[0].extent;
    for (sym::Expr e : b.shape) elements *= *syms_.as_const(e);
    return std::max<i64>(1, elements);
  }

  // ---- a program's place ----

  Status program() {
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i)
      if (kernel_.buffers[i].kept && !keeps_in_registers())
        body_.line("buf{0} += tl.cast(tl.program_id(0), tl.int64) * {1}", i,
                   kept_elements(kernel_.buffers[i]));
    for (std::size_t a = 0; a < kernel_.grid.size(); ++a)
      index_.name(kernel_.grid[a].var, str("p{}", a));
    if (mapping_.serial) return serial();
    if (!kernel_.grid.empty()) body_.line("rest = tl.cast(tl.program_id(0), {})", index_.type());
    if (rows()) {
      split(kernel_.grid);
      row_tile();
    } else {
      grid_tile();
      insts_.set_place(Place::GridTile);
    }
    return stages();
  }

  /// `rest` into coordinates, the last axis fastest.
  void split(const std::vector<Axis>& axes) {
    for (std::size_t a = axes.size(); a-- > 0;) {
      const std::string extent = index_.print(axes[a].extent);
      body_.line("{} = rest % {}", index_.print(axes[a].var), extent);
      if (a > 0) body_.line("rest = rest // {}", extent);
    }
  }

  Status serial() {
    insts_.set_place(Place::Scalar);
    if (kernel_.grid.empty()) return stages();
    sym::Expr points = syms_.constant(1);
    for (const Axis& a : kernel_.grid) points = syms_.mul(points, a.extent);
    body_.line("for point in range(0, {}):", index_.print(points));
    body_.indent();
    body_.line("rest = tl.cast(point, {})", index_.type());
    split(kernel_.grid);
    COIL_TRY(stages());
    body_.dedent();
    return Ok{};
  }

  std::string tile_shape() const {
    std::vector<std::string> extents;
    for (std::size_t d = mapping_.tile.size(); d-- > 0;)
      extents.push_back(str("{}", mapping_.tile[d].extent));
    return "[" + join(extents, ", ", [](const std::string& s) { return s; }) + "]";
  }

  void tile_lanes() {
    for (std::size_t d = 0; d < mapping_.tile.size(); ++d) {
      const char* along = mapping_.tile.size() == 1 ? "" : d == 0 ? "[None, :]" : "[:, None]";
      body_.line("lane{} = tl.cast(tl.arange(0, {}), {}){}", d, mapping_.tile[d].extent,
                 index_.type(), along);
    }
    body_.line("tile_zeros = tl.zeros({}, {})", tile_shape(), index_.type());
  }

  void row_tile() {
    tile_lanes();
    const Axis* row = nullptr;
    for (const Stage& s : kernel_.stages)
      if (!s.loop.empty()) row = &s.loop[0];
    index_.name(row->var, "r0");
    if (mapping_.chunk > 0) return;
    if (syms_.range(row->extent).lo < 1)
      body_.line("any_inside = tl.cast({}, {}) > 0", index_.print(row->extent), index_.type());
    body_.raw_line("r0 = lane0");
    body_.line("{} = r0 < {}", InstPrinter::mask_name(0), index_.print(row->extent));
  }

  /// The tiles' blocks are the fastest coordinates of a program, then the other axes of the grid.
  void grid_tile() {
    tile_lanes();
    for (std::size_t d = 0; d < mapping_.tile.size(); ++d) {
      const TileDim& t = mapping_.tile[d];
      const std::string extent = index_.print(grid_axis(t.axis)->extent), p = index_.print(t.axis);
      const bool last =
          d + 1 == mapping_.tile.size() && kernel_.grid.size() == mapping_.tile.size();
      if (last) {
        body_.line("{} = rest * {} + lane{}", p, t.extent, d);
      } else {
        body_.line("blocks{} = ({} + {}) // {}", d, extent, t.extent - 1, t.extent);
        body_.line("{0} = rest % blocks{1} * {2} + lane{1}", p, d, t.extent);
        body_.line("rest = rest // blocks{}", d);
      }
      body_.line("{} = {} < {}", InstPrinter::mask_name(d), p, extent);
    }
    std::vector<Axis> others;
    for (const Axis& a : kernel_.grid) {
      const auto is_tiled = [&](const TileDim& t) { return t.axis == a.var; };
      if (std::none_of(mapping_.tile.begin(), mapping_.tile.end(), is_tiled)) others.push_back(a);
    }
    split(others);
  }

  // ---- stages ----

  sym::Expr row_major(const std::vector<Axis>& axes) {
    sym::Expr at = syms_.constant(0);
    for (const Axis& a : axes) at = syms_.add(syms_.mul(at, a.extent), a.var);
    return at;
  }

  Status stages() {
    for (std::size_t s = 0; s < kernel_.stages.size(); ++s)
      if (const Status st = stage(kernel_.stages[s], s); !st.ok())
        return in_context(str("stage {}", s), st.error());
    return Ok{};
  }

  Status stage(const Stage& s, std::size_t number) {
    std::vector<Axis> axes = kernel_.grid;
    axes.insert(axes.end(), s.loop.begin(), s.loop.end());
    insts_.set_positions(row_major(s.loop), row_major(axes));
    if (s.loop.empty()) return instructions(s);
    if (rows()) return row_loop(s, number);
    insts_.declare_carried(s);
    for (std::size_t a = 0; a < s.loop.size(); ++a) {
      const std::string r = str("r{}_{}", number, a);
      index_.name(s.loop[a].var, r);
      body_.line("for i_{} in range(0, {}):", r, index_.print(s.loop[a].extent));
      body_.indent();
      body_.line("{0} = tl.cast(i_{0}, {1})", r, index_.type());
    }
    COIL_TRY(instructions(s));
    for (std::size_t a = 0; a < s.loop.size(); ++a) body_.dedent();
    return Ok{};
  }

  Status row_loop(const Stage& s, std::size_t number) {
    const bool chunks = mapping_.chunk > 0;
    insts_.set_place(chunks ? Place::RowChunk : Place::RowTile);
    insts_.declare_carried(s);
    if (chunks) {
      const std::string extent = index_.print(s.loop[0].extent);
      body_.line("for chunk{} in range(0, {}, {}):", number, extent, mapping_.chunk);
      body_.indent();
      body_.line("r0 = tl.cast(chunk{}, {}) + lane0", number, index_.type());
      body_.line("{} = r0 < {}", InstPrinter::mask_name(0), extent);
    }
    COIL_TRY(instructions(s));
    if (chunks) body_.dedent();
    insts_.set_place(Place::Scalar);
    return Ok{};
  }

  Status instructions(const Stage& s) {
    for (std::size_t i = 0; i < s.insts.size(); ++i)
      if (const Status st = insts_.print(s.insts[i]); !st.ok())
        return in_context(str("instruction {}", i), st.error());
    return Ok{};
  }

  static constexpr i64 kSlack =
      4;  // points of tiles that stick out of the grid, and sums of two positions

  const Kernel& kernel_;
  const Mapping& mapping_;
  sym::Arena& syms_;
  std::string name_;
  TextWriter functions_, body_;
  IndexPrinter index_;
  InstPrinter insts_;
};

}  // namespace

Result<std::string> print_module(std::span<const Kernel> kernels) {
  std::string functions, launches;
  std::map<std::string, int> taken;
  for (const Kernel& k : kernels) {
    std::string name = python_name(k.name);
    if (const int before = taken[name]++; before > 0) name += str("_{}", before);
    KernelPrinter printer(k, name);
    Result<std::string> text = printer.run();
    if (!text.ok()) return in_context(str("kernel {} for triton", k.name), text.error());
    for (const std::string& f : k.from) functions += str("# {}\n", f);
    functions += *text + "\n\n";
    launches += printer.launch();
  }
  return str("import triton\nimport triton.language as tl\n\n\n{}{}LAUNCHES = {{\n{}}}\n",
             prelude_for(functions), functions, launches);
}

}  // namespace coil::triton
