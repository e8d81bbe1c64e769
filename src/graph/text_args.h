#pragma once
// Arguments in the text of level 0: read without knowing the op, then fitted to its schema.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "graph/graph.h"
#include "ops/schema.h"

namespace coil {

enum class RawKind : u8 { Value, List, Expr, Float, String, Word, Complex };

/// An argument as it stands in the text. A Word is true, None, a dtype, a memory format, or a
/// variable's name alone.
struct RawArg {
  RawKind kind = RawKind::Word;
  int line = 0;
  std::string text;   // String, Word; Value: its name
  ValueId value;      // Value
  sym::Expr expr;     // Expr
  double number = 0;  // Float
  Complex complex;
  std::vector<RawArg> items;  // List
};

struct RawArgs {
  int line = 0;
  std::vector<RawArg> positional;
  std::vector<std::pair<std::string, RawArg>> keywords;
};

/// What names mean where arguments stand.
struct ArgScope {
  const Graph* graph = nullptr;
  std::function<std::optional<ValueId>(std::string_view)> value;
  std::function<std::optional<sym::Expr>(std::string_view)> variable;
};

/// From the opening parenthesis past the closing one.
Result<RawArgs> read_args(TextReader& in, const ArgScope& scope);
/// The arguments in schema order with defaults; `self`, if valid, stands before the positional
/// ones.
Result<std::vector<Arg>> fit_args(const ArgScope& scope, const ops::Schema& schema,
                                  const RawArgs& raw, ValueId self);
/// The full name of the one overload of `op` that takes the arguments, and those.
Result<std::pair<std::string, std::vector<Arg>>> resolve(const ArgScope& scope,
                                                         const std::string& op, const RawArgs& raw,
                                                         ValueId self);
/// An argument of an op without schema, or a constant output.
Result<Arg> plain_arg(const ArgScope& scope, const RawArg& raw);
Result<RawArg> read_arg(TextReader& in, const ArgScope& scope);

}  // namespace coil
