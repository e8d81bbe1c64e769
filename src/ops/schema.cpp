#include "ops/schema.h"

#include <algorithm>
#include <charconv>

namespace coil::ops {
namespace {

constexpr std::string_view kSchemas[] = {
#define R(text) std::string_view(text),
#include "ops/aten_schemas.inc"
#undef R
};
constexpr std::string_view kOwnSchemas[] = {
#define R(text) std::string_view(text),
#include "ops/own_schemas.inc"
#undef R
};
constexpr std::string_view kRandomOps[] = {
#define RANDOM(op) std::string_view(op),
#include "ops/random.def"
#undef RANDOM
};
static_assert(std::ranges::is_sorted(kRandomOps));

constexpr std::string_view full_name_of(std::string_view line) {
  return line.substr(0, line.find('('));
}

/// The first row whose full name is not below `full_name`.
const std::string_view* first_from(std::string_view full_name) {
  return std::ranges::lower_bound(kSchemas, full_name, {}, full_name_of);
}

bool is_identifier_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

ArgType arg_type(std::string_view base) {
  struct Row {
    std::string_view name;
    ArgType type;
  };
  static constexpr Row kRows[] = {
      {"Tensor", ArgType::Tensor},
      {"Scalar", ArgType::Scalar},
      {"int", ArgType::Int},
      {"SymInt", ArgType::SymInt},
      {"float", ArgType::Float},
      {"bool", ArgType::Bool},
      {"str", ArgType::String},
      {"ScalarType", ArgType::DType},
      {"Layout", ArgType::Layout},
      {"Device", ArgType::Device},
      {"MemoryFormat", ArgType::MemoryFormat},
      {"Generator", ArgType::Generator},
      {"DeviceIndex", ArgType::Int},
  };
  for (const Row& row : kRows)
    if (row.name == base) return row.type;
  return ArgType::Other;
}

/// A cursor over a schema line. Its functions return false where the text is not as expected.
class SchemaReader {
 public:
  explicit SchemaReader(std::string_view text) : rest_(text) {}

  bool schema(Schema& out) {
    if (!qualified(out.name)) return false;
    if (accept(".") && !identifier(out.overload)) return false;
    if (!accept("(") || !arguments(out.args)) return false;
    skip_spaces();
    if (!accept("->")) return false;
    skip_spaces();
    if (!results(out.results)) return false;
    skip_spaces();
    return rest_.empty();
  }

 private:
  bool at(std::string_view text) const { return rest_.starts_with(text); }
  bool accept(std::string_view text) {
    if (!at(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  void skip_spaces() {
    while (accept(" ")) {
    }
  }
  std::string_view take(std::size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  bool identifier(std::string& out) {
    std::size_t end = 0;
    while (end < rest_.size() && is_identifier_char(rest_[end])) ++end;
    out = take(end);
    return end > 0;
  }

  /// A name, behind its namespace and `::` where that is not aten.
  bool qualified(std::string& out) {
    std::string name;
    if (!identifier(out)) return false;
    if (!accept("::")) return true;
    if (!identifier(name)) return false;
    out += "::" + name;
    return true;
  }

  /// After the opening parenthesis, past the closing one.
  bool arguments(std::vector<SchemaArg>& out) {
    bool keyword_only = false;
    skip_spaces();
    if (accept(")")) return true;
    do {
      skip_spaces();
      if (accept("*")) {
        if (keyword_only) return false;
        keyword_only = true;
        continue;
      }
      SchemaArg arg;
      if (!type(arg)) return false;
      skip_spaces();
      if (!identifier(arg.name)) return false;
      if (accept("=") && !fallback(arg)) return false;
      arg.keyword_only = keyword_only;
      out.push_back(std::move(arg));
    } while (accept(","));
    return accept(")");
  }

  /// One result, or any number in parentheses; each may have a name.
  bool results(std::vector<SchemaArg>& out) {
    if (!accept("(")) return result(out.emplace_back());
    if (accept(")")) return true;
    do {
      skip_spaces();
      if (!result(out.emplace_back())) return false;
    } while (accept(","));
    return accept(")");
  }
  bool result(SchemaArg& out) {
    if (!type(out)) return false;
    skip_spaces();
    if (!rest_.empty() && !at(",") && !at(")")) return identifier(out.name);
    return true;
  }

  /// Base name, alias note in parentheses, then `?` and `[n]` in the order in which they nest.
  bool type(SchemaArg& out) {
    std::string base;
    if (!identifier(base)) return false;
    out.type = arg_type(base);
    if (accept("(") && !alias(out)) return false;
    while (at("?") || at("[")) {
      if (accept("?")) {
        if (out.optional) return false;
        out.optional = true;
        continue;
      }
      if (out.list) return false;
      out.list = true;
      out.optional_items = out.optional;
      out.optional = false;
      if (!list_size(out.list_size)) return false;
    }
    return true;
  }

  bool alias(SchemaArg& out) {
    const std::size_t end = rest_.find(')');
    if (end == std::string_view::npos || end == 0) return false;
    const std::string_view note = take(end);
    out.alias = note[0];
    out.written = note.find('!') != std::string_view::npos;
    return accept(")");
  }

  /// After `[`, past `]`.
  bool list_size(int& out) {
    accept("[");
    if (accept("]")) return true;
    const char* begin = rest_.data();
    const auto [end, failure] = std::from_chars(begin, begin + rest_.size(), out);
    if (failure != std::errc() || out <= 0) return false;
    take(static_cast<std::size_t>(end - begin));
    return accept("]");
  }

  /// Text up to the comma or parenthesis that ends the argument; quotes and brackets may hold both.
  bool fallback(SchemaArg& out) {
    int depth = 0;
    char quote = 0;
    for (std::size_t at = 0; at < rest_.size(); ++at) {
      const char c = rest_[at];
      if (quote != 0) {
        if (c == '\\') ++at;
        if (c == quote) quote = 0;
        continue;
      }
      if (c == '"' || c == '\'') quote = c;
      if (c == '[') ++depth;
      if (c == ']') --depth;
      if (depth == 0 && (c == ',' || c == ')')) {
        out.fallback = take(at);
        return at > 0;
      }
    }
    return false;
  }

  std::string_view rest_;
};

void add_random_args(Schema& schema) {
  SchemaArg key, op;
  key.name = kRandomKey;
  key.optional = true;
  key.fallback = "None";
  op.name = kRandomOp;
  op.type = ArgType::Int;
  op.fallback = "0";
  for (SchemaArg* arg : {&key, &op}) {
    arg->keyword_only = true;
    schema.args.push_back(std::move(*arg));
  }
}

}  // namespace

int Schema::arg_index(std::string_view arg_name) const {
  for (std::size_t i = 0; i < args.size(); ++i)
    if (args[i].name == arg_name) return static_cast<int>(i);
  return -1;
}

bool is_random(std::string_view full_name) {
  return std::ranges::binary_search(kRandomOps, full_name);
}

std::optional<Schema> find_schema(std::string_view full_name) {
  for (std::string_view own : kOwnSchemas)
    if (full_name_of(own) == full_name) return parse_schema(own);
  const std::string_view* row = first_from(full_name);
  if (row == std::end(kSchemas) || full_name_of(*row) != full_name) return std::nullopt;
  std::optional<Schema> schema = parse_schema(*row);
  if (schema && is_random(full_name)) add_random_args(*schema);
  return schema;
}

std::vector<std::string> overloads(std::string_view name) {
  // '.' sorts below every character of a name, so the overloads of a name follow one another.
  std::vector<std::string> found;
  for (const std::string_view* row = first_from(name); row != std::end(kSchemas); ++row) {
    const std::string_view full_name = full_name_of(*row);
    if (full_name.substr(0, full_name.find('.')) != name) break;
    found.emplace_back(full_name);
  }
  return found;
}

std::span<const std::string_view> schema_lines() { return kSchemas; }

std::optional<Schema> parse_schema(std::string_view line) {
  Schema schema;
  if (!SchemaReader(line).schema(schema)) return std::nullopt;
  return schema;
}

}  // namespace coil::ops
