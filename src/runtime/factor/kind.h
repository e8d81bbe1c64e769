#pragma once
// The kinds of the node Factor: which factorisations and solvers there are, and their operands.

#include <optional>
#include <span>
#include <string_view>

#include "base/ids.h"

namespace coil {

enum class FactorKind : u8 {
#define FACTOR(kind, signature) kind,
#include "runtime/factor/kind.def"
#undef FACTOR
};
inline constexpr int kNumFactors = 0
#define FACTOR(kind, signature) +1
#include "runtime/factor/kind.def"
#undef FACTOR
    ;

/// What a kind may be told besides its operands, as bits.
enum FactorFlag : u8 {
  kFactorUpper = 1,        // triangular, eigh: the upper triangle is read
  kFactorUnit = 2,         // triangular: the diagonal counts as ones
  kFactorHermitian = 4,    // ldl, ldl_solve: A = A^H, not A = A^T
  kFactorTransposed = 8,   // lu_solve: with A^T
  kFactorConjugated = 16,  // lu_solve: with the conjugate
};

struct FactorFlagName {
  FactorFlag flag;
  std::string_view name;
};
inline constexpr FactorFlagName kFactorFlags[] = {{kFactorUpper, "upper"},
                                                  {kFactorUnit, "unit"},
                                                  {kFactorHermitian, "hermitian"},
                                                  {kFactorTransposed, "transposed"},
                                                  {kFactorConjugated, "conjugated"}};

std::string_view name(FactorKind kind);
std::optional<FactorKind> find_factor(std::string_view name);
/// The flags that a kind understands.
u8 flags_of(FactorKind kind);

/// An operand or result of a signature (kind.def).
struct FactorOperand {
  char type = 'x';
  std::string_view dims;
};
struct FactorSignature {
  FactorOperand operands[6];
  std::size_t inputs = 0;
  std::size_t least = 0, most = 0;  // operands with results, without and with the optional ones
};
FactorSignature signature_of(FactorKind kind);

}  // namespace coil
