#pragma once
// Index expressions in generated Triton source, and whether 32 bits hold them.

#include <map>
#include <optional>
#include <span>
#include <string>

#include "kernel/kernel.h"

namespace coil::triton {

/// How an expression over symbols is spelled: inside of a kernel, or as plain Python for the
/// launch.
enum class Spell { Device, Host };

class IndexPrinter {
 public:
  explicit IndexPrinter(sym::Arena& syms) : syms_(syms) {}

  void name(sym::Expr var, std::string text) { names_[var] = std::move(text); }
  std::string print(sym::Expr e, Spell spell = Spell::Device) const;

  /// The type that holds every index of the kernel: "tl.int32" where extents prove it, else
  /// "tl.int64".
  void set_type(std::string type) { type_ = std::move(type); }
  const std::string& type() const { return type_; }

 private:
  std::string compare(const char* op, sym::Expr e, Spell spell) const;

  sym::Arena& syms_;
  std::map<sym::Expr, std::string> names_;
  std::string type_ = "tl.int64";
};

/// Whether `e` and all that it is computed from lie within 32 bits, by the ranges of its variables.
bool fits_in_32_bits(const sym::Arena& syms, sym::Expr e);

/// An extent that is no smaller, and simple: of a minimum, the operand that is no expression.
sym::Expr extent_at_most(const sym::Arena& syms, sym::Expr extent);

/// What none of the expressions, nor what they are computed from, exceeds in magnitude, in terms of
/// the kernel's sizes; nothing where a variable has no bound.
std::optional<sym::Expr> largest_at_launch(const Kernel& kernel, std::span<const sym::Expr> all);

}  // namespace coil::triton
