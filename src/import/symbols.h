#pragma once
// The symbols of an exported program: s77 is a size known at entry, u0 is known only during a run.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "import/host_number.h"

namespace coil {

class SymbolTable {
 public:
  explicit SymbolTable(sym::Arena& syms) : syms_(syms) {}

  /// Bounds that the file states for a symbol, before it is first used. A lower bound up to 2 is
  /// what the exporter assumed, not what a call must meet.
  void set_range(const std::string& name, std::optional<i64> min, std::optional<i64> max);
  /// The variable of this name, made when it is first asked for. `is_size`: never negative.
  enum class Sign : u8 { Any, Size };
  Result<sym::Expr> get(const std::string& name, Sign sign);
  /// The variable, if the program uses it.
  std::optional<sym::Expr> find(const std::string& name) const;
  void set_hint(sym::Expr var, i64 hint);

  /// A size or an int argument, in order of first use.
  const std::vector<SizeVar>& sizes() const { return sizes_; }
  /// Symbols that the exporter took to be at least 1 or 2, though calls need not meet that, each
  /// with a variable that does.
  const std::vector<std::pair<sym::Expr, sym::Expr>>& assumed() const { return assumed_; }
  sym::Arena& syms() const { return syms_; }

 private:
  sym::Arena& syms_;
  std::map<std::string, sym::Range> ranges_;
  std::map<std::string, sym::Expr> variables_;
  std::vector<SizeVar> sizes_;
  std::map<std::string, i64> stated_min_;
  std::vector<std::pair<sym::Expr, sym::Expr>> assumed_;
};

/// An expression as sympy.srepr writes it: "Add(Symbol('s77', positive=True, integer=True),
/// Integer(1))". Relations give 0 or 1. Nothing where coil has no such number; an Error where the
/// text is broken.
Result<std::optional<HostNumber>> parse_srepr(SymbolTable& symbols, std::string_view text);

}  // namespace coil
