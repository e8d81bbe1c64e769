// The skeleton of a kernel's function: arguments, a program's place in the grid, its tile, loops of
// stages.

#include "target/triton/print.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "kernel/mapping_gpu.h"
#include "target/triton/prelude_files.h"
#include "target/triton/print_inst.h"
#include "target/triton/spelling.h"

namespace coil::triton {
namespace {

constexpr std::size_t kMostGridTileRank = 2;

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

std::string list(const std::vector<std::string>& items) {
  return join(items, ", ", [](const std::string& s) { return s; });
}

/// The parameters of functions of the sizes.
std::string symbol_list(const Kernel& kernel) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < kernel.symbols.size(); ++i) out.push_back(str("s{}", i));
  return list(out);
}

std::string symbol_names(const Kernel& kernel) {
  std::vector<std::string> out;
  for (sym::Expr s : kernel.symbols) out.push_back(quoted(kernel.syms->var(s).name));
  return list(out);
}

class KernelPrinter {
 public:
  KernelPrinter(const Kernel& kernel, std::string name, u32 sites_before)
      : kernel_(kernel),
        mapping_(kernel.mapping),
        kind_(tile_kind(kernel)),
        syms_(*kernel.syms),
        name_(std::move(name)),
        index_(syms_),
        insts_(kernel, index_, name_, functions_, body_, sites_before),
        sites_before_(sites_before) {}

  Result<std::string> run() {
    COIL_TRY(check_mapping());
    for (std::size_t i = 0; i < kernel_.symbols.size(); ++i)
      index_.name(kernel_.symbols[i], str("s{}", i));
    choose_index_type();
    body_.indent();
    for (std::size_t i = 0; i < kernel_.symbols.size(); ++i)
      body_.line("s{0} = tl.cast(s{0}, {1})", i, index_.type());
    COIL_TRY(program());
    return with_python_indent(functions_.text() + head() + body_.text());
  }

  u32 sites() const { return insts_.sites(); }

  /// One entry of the launches of a kernel.
  std::string launch() {
    std::vector<std::string> buffers, kept;
    for (const KernelBuffer& b : kernel_.buffers)
      if (!b.kept)
        buffers.push_back(quoted(b.name));
      else if (!keeps_in_registers())
        kept.push_back(str("(\"{}\", {})", name(b.dtype), kept_elements(b)));
    const std::string lambda = "lambda " + symbol_list(kernel_);
    std::string out = str("            dict(function={}, buffers=[{}], symbols=[{}], kept=[{}],\n",
                          name_, list(buffers), symbol_names(kernel_), list(kept));
    out += str("                 faults={}, warps={},\n", takes_faults() ? "True" : "False",
               gpu_warps(kernel_));
    if (narrow_if_.empty())
      out += "                 constants=None,\n";
    else
      out += str("                 constants={}: dict(index_t=tl.int32 if {} else tl.int64),\n",
                 lambda, narrow_if_);
    return out + str("                 programs={}: {}),\n", lambda,
                     index_.print(mapping_.units, Spell::Host));
  }

 private:
  bool takes_faults() const { return sites() > sites_before_; }
  bool rows() const { return kind_ == TileKind::Rows; }
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
    if (mapping_.serial != mapping_.tile.empty()) return foreign();
    if (kind_ == TileKind::Grid && mapping_.tile.size() > kMostGridTileRank) return foreign();
    for (std::size_t d = 0; d < mapping_.tile.size(); ++d) {
      const TileDim& t = mapping_.tile[d];
      if ((t.extent & (t.extent - 1)) != 0)
        return error("a tile of {} is no power of two", t.extent);
      const bool of_grid = kind_ == TileKind::Grid || (kind_ == TileKind::Columns && d == 0);
      if ((grid_axis(t.axis) != nullptr) != of_grid) return foreign();
    }
    if (mapping_.chunk !=
        (keeps_in_registers() || mapping_.tile.empty() ? 0 : mapping_.tile[0].extent))
      return foreign();
    if (kind_ != TileKind::Rows && kind_ != TileKind::Columns) return Ok{};
    for (const Stage& s : kernel_.stages) {
      if (s.loop.empty()) continue;
      const std::optional<std::size_t> d = tile_of(s);
      if (!d) return foreign();
      if (mapping_.chunk == 0 && syms_.range(s.loop[0].extent).hi > mapping_.tile[*d].extent)
        return error("a tile of {} does not hold the row", mapping_.tile[*d].extent);
    }
    return Ok{};
  }

  /// Which of the tile's rows a loop goes over.
  std::optional<std::size_t> tile_of(const Stage& s) const {
    for (std::size_t d = rows() ? 0 : 1; d < mapping_.tile.size(); ++d)
      if (s.loop.size() == 1 && s.loop[0].var == mapping_.tile[d].axis) return d;
    return std::nullopt;
  }

  /// Every index, extent and count of points in 32 bits, or all in 64: by proof, or else by the
  /// sizes at the launch.
  void choose_index_type() {
    std::vector<sym::Expr> all = {mapping_.units};
    for (sym::Expr s : kernel_.symbols) all.push_back(s);
    const auto axes = [&](const std::vector<Axis>& items) {
      sym::Expr points = syms_.constant(kSlack);
      for (const Axis& a : items) points = syms_.mul(points, extent_at_most(syms_, a.extent));
      all.push_back(points);
      for (const Axis& a : items) all.push_back(a.extent);
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
    std::erase_if(all, [&](sym::Expr e) { return fits_in_32_bits(syms_, e); });
    index_.set_type(all.empty() ? "tl.int32" : "tl.int64");
    if (all.empty()) return;
    const std::optional<sym::Expr> most = largest_at_launch(kernel_, all);
    if (!most) return;
    narrow_if_ = str("{} < 2**31", index_.print(*most, Spell::Host));
    index_.set_type("index_t");
  }

  std::string head() const {
    std::vector<std::string> arguments;
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i)
      if (!kernel_.buffers[i].kept) arguments.push_back(str("buf{}", i));
    for (std::size_t i = 0; i < kernel_.symbols.size(); ++i) arguments.push_back(str("s{}", i));
    if (!kernel_.scalars.empty()) arguments.push_back("scalars");
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i)
      if (kernel_.buffers[i].kept && !keeps_in_registers()) arguments.push_back(str("buf{}", i));
    if (takes_faults()) arguments.push_back("faults");
    if (!narrow_if_.empty()) arguments.push_back("index_t: tl.constexpr");
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
    switch (kind_) {
      case TileKind::None: break;
      case TileKind::Rows:
        split(kernel_.grid);
        row_lanes();
        break;
      case TileKind::Columns:
        tile_lanes(1);
        column_rows();
        grid_tile(1);
        break;
      case TileKind::Grid:
        tile_lanes(mapping_.tile.size());
        grid_tile(mapping_.tile.size());
        break;
    }
    insts_.stand(outside());
    return stages();
  }

  /// The name of the lanes inside of an axis, "" where the tile has no others.
  std::string mask_of(std::size_t d, sym::Expr extent) const {
    const std::optional<i64> points = syms_.as_const(extent);
    return points && *points > 0 && *points % mapping_.tile[d].extent == 0 ? ""
                                                                           : str("inside{}", d);
  }
  void mask(std::size_t d, const std::string& at, sym::Expr extent) {
    const std::string name = mask_of(d, extent);
    if (!name.empty()) body_.line("{} = {} < {}", name, at, index_.print(extent));
  }

  /// Where straight code stands.
  Lanes outside() const {
    if (kind_ == TileKind::None || kind_ == TileKind::Rows) return {};
    Lanes out;
    out.place = Place::GridTile;
    out.zeros = "tile_zeros";
    const std::size_t dims = kind_ == TileKind::Columns ? 1 : mapping_.tile.size();
    for (std::size_t d = 0; d < dims; ++d) {
      out.axes.push_back(mapping_.tile[d].axis);
      out.masks.push_back(mask_of(d, grid_axis(mapping_.tile[d].axis)->extent));
    }
    return out;
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
    insts_.stand({});
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

  /// Lanes along the grid: rank 2 where there are two dims, or rows of columns.
  void tile_lanes(std::size_t dims) {
    const bool flat = mapping_.tile.size() == 1;
    std::vector<std::string> extents;
    for (std::size_t d = dims; d-- > 0;) extents.push_back(str("{}", mapping_.tile[d].extent));
    if (!flat && dims == 1) extents.insert(extents.begin(), "1");
    for (std::size_t d = 0; d < dims; ++d)
      body_.line("lane{} = tl.cast(tl.arange(0, {}), {}){}", d, mapping_.tile[d].extent,
                 index_.type(),
                 flat     ? ""
                 : d == 0 ? "[None, :]"
                          : "[:, None]");
    body_.line("tile_zeros = tl.zeros([{}], {})", list(extents), index_.type());
  }

  /// Lanes along the loops, for each different row; a row that is one tile is there at once.
  void row_lanes() {
    std::set<std::size_t> known;
    for (const Stage& s : kernel_.stages) {
      if (s.loop.empty() || !known.insert(*tile_of(s)).second) continue;
      const std::size_t d = *tile_of(s);
      body_.line("lane{} = tl.cast(tl.arange(0, {}), {})", d, mapping_.tile[d].extent,
                 index_.type());
      body_.line("zeros{} = tl.zeros([{}], {})", d, mapping_.tile[d].extent, index_.type());
      index_.name(s.loop[0].var, str("r{}", d));
      if (mapping_.chunk > 0) continue;
      const std::string extent = index_.print(s.loop[0].extent);
      if (syms_.range(s.loop[0].extent).lo < 1)
        body_.line("any_inside{} = tl.cast({}, {}) > 0", d, extent, index_.type());
      body_.line("r{0} = lane{0}", d);
      mask(d, str("r{}", d), s.loop[0].extent);
    }
  }

  void column_rows() {
    for (std::size_t d = 1; d < mapping_.tile.size(); ++d) {
      body_.line("lane{} = tl.cast(tl.arange(0, {}), {})[:, None]", d, mapping_.tile[d].extent,
                 index_.type());
      body_.line("zeros{} = tl.zeros([{}, {}], {})", d, mapping_.tile[d].extent,
                 mapping_.tile[0].extent, index_.type());
      index_.name(mapping_.tile[d].axis, str("r{}", d));
    }
  }

  /// The blocks of the tile's first `dims` axes are the fastest coordinates of a program, then the
  /// other axes of the grid.
  void grid_tile(std::size_t dims) {
    for (std::size_t d = 0; d < dims; ++d) {
      const TileDim& t = mapping_.tile[d];
      const std::string extent = index_.print(grid_axis(t.axis)->extent), p = index_.print(t.axis);
      const bool last = d + 1 == dims && kernel_.grid.size() == dims;
      if (last) {
        body_.line("{} = rest * {} + lane{}", p, t.extent, d);
      } else {
        body_.line("blocks{} = ({} + {}) // {}", d, extent, t.extent - 1, t.extent);
        body_.line("{0} = rest % blocks{1} * {2} + lane{1}", p, d, t.extent);
        body_.line("rest = rest // blocks{}", d);
      }
      mask(d, p, grid_axis(t.axis)->extent);
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
    if (const std::optional<std::size_t> d = tile_of(s)) return row_loop(s, number, *d);
    insts_.declare_carried(s);
    sym::Expr points = syms_.constant(1);
    for (const Axis& a : s.loop) points = syms_.mul(points, a.extent);
    const bool unrolled = syms_.as_const(points) && *syms_.as_const(points) <= kMostUnrolled;
    for (std::size_t a = 0; a < s.loop.size(); ++a) {
      const std::string r = str("r{}_{}", number, a);
      index_.name(s.loop[a].var, r);
      // Windows are unrolled, so that their loads are on the way together.
      body_.line("for i_{} in {}range(0, {}):", r, unrolled ? "tl.static_" : "",
                 index_.print(s.loop[a].extent));
      body_.indent();
      body_.line("{0} = tl.cast(i_{0}, {1})", r, index_.type());
    }
    COIL_TRY(instructions(s));
    for (std::size_t a = 0; a < s.loop.size(); ++a) body_.dedent();
    return Ok{};
  }

  /// A loop along rows of the tile.
  Status row_loop(const Stage& s, std::size_t number, std::size_t d) {
    const std::string extent = index_.print(s.loop[0].extent);
    const i64 length = mapping_.tile[d].extent;
    const bool chunks = mapping_.chunk > 0;
    Lanes lanes = outside();
    lanes.place = !rows() ? Place::ColumnChunk : chunks ? Place::RowChunk : Place::RowTile;
    lanes.axes.push_back(s.loop[0].var);
    lanes.masks.push_back(mask_of(d, s.loop[0].extent));
    lanes.extent = extent;
    lanes.point_zeros = lanes.zeros;
    lanes.zeros = str("zeros{}", d);
    lanes.rows = length;
    lanes.columns = rows() ? 0 : mapping_.tile[0].extent;
    lanes.has_elements = syms_.range(s.loop[0].extent).lo >= 1;
    insts_.stand(std::move(lanes));
    insts_.declare_carried(s);
    if (chunks) {
      body_.line("for chunk{} in range(0, {}, {}):", number, extent, length);
      body_.indent();
      body_.line("r{0} = tl.cast(chunk{1}, {2}) + lane{0}", d, number, index_.type());
      mask(d, str("r{}", d), s.loop[0].extent);
    }
    COIL_TRY(instructions(s));
    if (chunks) body_.dedent();
    insts_.stand(outside());
    return Ok{};
  }

  Status instructions(const Stage& s) {
    for (std::size_t i = 0; i < s.insts.size(); ++i)
      if (const Status st = insts_.print(s.insts[i]); !st.ok())
        return in_context(str("instruction {}", i), st.error());
    return Ok{};
  }

  static constexpr i64 kMostUnrolled = 16;  // points of a loop
  static constexpr i64 kSlack =
      4;  // points of tiles that stick out of the grid, and sums of two positions

  const Kernel& kernel_;
  const Mapping& mapping_;
  TileKind kind_;
  sym::Arena& syms_;
  std::string name_;
  TextWriter functions_, body_;
  IndexPrinter index_;
  InstPrinter insts_;
  u32 sites_before_ = 0;
  std::string narrow_if_;  // on the host: indices fit in 32 bits
};

/// One entry of LAUNCHES.
std::string table_entry(const Launches& k, const std::string& launches, u32 sites) {
  const Kernel& whole = k.whole;
  std::vector<std::string> buffers, scalars, sizes, scratch;
  for (const KernelBuffer& b : whole.buffers)
    if (!b.kept)
      buffers.push_back(
          str("({}, \"{}\", {})", quoted(b.name), name(b.dtype), b.written ? "True" : "False"));
  IndexPrinter index(*whole.syms);
  for (std::size_t i = 0; i < whole.symbols.size(); ++i)
    index.name(whole.symbols[i], str("s{}", i));
  std::vector<std::pair<sym::Expr, sym::Expr>> values;
  for (const Launches::Size& s : k.sizes) {
    sizes.push_back(str("({}, lambda {}: {})", quoted(whole.syms->var(s.symbol).name),
                        symbol_list(whole), index.print(s.value, Spell::Host)));
    values.push_back({s.symbol, s.value});
  }
  for (u32 s : whole.scalars) scalars.push_back(str("{}", s));
  for (const KernelBuffer& b : k.scratch) {
    const sym::Expr elements = whole.syms->substitute(whole.syms->product(b.shape), values);
    scratch.push_back(str("({}, \"{}\", lambda {}: {})", quoted(b.name), name(b.dtype),
                          symbol_list(whole), index.print(elements, Spell::Host)));
  }
  std::string out = str("    {}: dict(\n", quoted(whole.name));
  out += str("        buffers=[{}],\n", list(buffers));
  out += str("        symbols=[{}],\n        scalars=[{}],\n", symbol_names(whole), list(scalars));
  if (!sizes.empty()) out += str("        sizes=[{}],\n", list(sizes));
  if (!scratch.empty()) out += str("        scratch=[{}],\n", list(scratch));
  out += str("        sites={},\n        launches=[\n{}        ]),\n", sites, launches);
  return out;
}

}  // namespace

Result<std::string> print_module(std::span<const Launches> kernels) {
  std::string functions, table;
  std::set<std::string> taken;
  for (const Launches& k : kernels) {
    for (const std::string& f : k.whole.from) functions += str("# {}\n", f);
    std::string launches;
    u32 sites = 0;
    for (std::size_t l = 0; l < k.launches.size(); ++l) {
      const Kernel& launch = k.launches[l];
      const std::string plain = python_name(launch.name);
      std::string name = plain;
      for (int other = 0; !taken.insert(name).second; ++other) name = str("{}_{}", plain, other);
      KernelPrinter printer(launch, name, k.sites_before[l]);
      Result<std::string> text = printer.run();
      if (!text.ok()) return in_context(str("kernel {} for triton", k.whole.name), text.error());
      functions += *text + "\n\n";
      launches += printer.launch();
      sites = std::max(sites, printer.sites());
    }
    table += table_entry(k, launches, sites);
  }
  return str("import triton\nimport triton.language as tl\n\n\n{}{}LAUNCHES = {{\n{}}}\n",
             prelude_for(functions), functions, table);
}

}  // namespace coil::triton
