#pragma once
// ATen schemas: names, argument types and defaults, from a table that scripts/make_schemas.py
// generates out of torch's own schema file. One row of text an overload, parsed when asked for.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace coil::ops {

/// The type of an argument or result, as far as coil tells them apart.
enum class ArgType : u8 {
  Tensor,
  Scalar,
  Int,
  SymInt,
  Float,
  Bool,
  String,
  DType,
  Layout,
  Device,
  MemoryFormat,
  Generator,
  Other
};

struct SchemaArg {
  std::string name;
  ArgType type = ArgType::Tensor;
  bool optional = false;        // T?
  bool list = false;            // T[]
  bool optional_items = false;  // Tensor?[]
  int list_size = 0;            // int[2]: 2; a single number stands for that many equal ones
  /// The default as the schema writes it: None, 1, [], Mean, or a string with its quotes.
  std::optional<std::string> fallback;
  bool keyword_only = false;
  bool written = false;  // Tensor(a!): the op writes it
  char alias = 0;        // Tensor(a): the letter, or 0
};

struct Schema {
  std::string name;      // "add"
  std::string overload;  // "Tensor"; "" for default
  std::vector<SchemaArg> args;
  std::vector<SchemaArg> results;

  /// "add.Tensor", or "relu" when the overload is default.
  std::string full_name() const { return overload.empty() ? name : name + "." + overload; }
  int arg_index(std::string_view arg_name) const;  // -1 if there is none
};

/// The schema of "add.Tensor" or "relu" in namespace aten, or of an op of own_schemas.inc; nothing
/// if there is none by that name. `.out` overloads are not in the table. An op that draws random
/// numbers has two arguments more than torch's: kRandomKey and kRandomOp (random.def).
std::optional<Schema> find_schema(std::string_view full_name);
/// Whether the op has a row in random.def.
bool is_random(std::string_view full_name);
inline constexpr std::string_view kRandomKey = "random_key", kRandomOp = "random_op";
/// Streams of 64-bit draws that each op of a program may use.
inline constexpr int kStreamsPerOp = 4;
/// All overloads of a name: "add" gives add.Tensor, add.Scalar.
std::vector<std::string> overloads(std::string_view name);
/// The whole table, sorted by full name.
std::span<const std::string_view> schema_lines();
/// Parses one schema line: "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor".
std::optional<Schema> parse_schema(std::string_view line);

}  // namespace coil::ops
