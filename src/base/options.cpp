#include "base/options.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace coil {
namespace {

enum class OptionType : u8 { Text, Int, Bool };

struct Row {
  std::string key;
  OptionType type;
  std::string fallback;
  bool affects_code;
  std::string_view allowed;
  std::string_view help;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
#define O(key, type, fallback, affects_code, allowed, help) \
  {#key, OptionType::type, fallback, affects_code, allowed, help},
#include "base/options.def"
#undef O
  };
  return table;
}

const Row* find(std::string_view key) {
  for (const Row& r : rows())
    if (r.key == key) return &r;
  return nullptr;
}

bool is_allowed(std::string_view allowed, std::string_view value) {
  const std::string padded = str(" {} ", allowed);
  if (value.find(' ') != value.npos) return false;
  return padded.find(str(" {} ", value)) != padded.npos;
}

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = word.size() / 2 + 2;
  for (const std::string& c : candidates) {
    const std::size_t d = distance(word, c);
    if (d < best_distance) {
      best = c;
      best_distance = d;
    }
  }
  return best;
}

Status Options::set(std::string_view key, std::string_view value) {
  const Row* row = find(key);
  if (!row) {
    std::vector<std::string> keys;
    for (const Row& r : rows()) keys.push_back(r.key);
    const std::string near = nearest(key, keys);
    return error("unknown option '{}'{}", key,
                 near.empty() ? std::string() : str("; did you mean '{}'?", near));
  }
  if (row->type == OptionType::Text && !row->allowed.empty() && !is_allowed(row->allowed, value))
    return error("option {} cannot be '{}'; it is one of: {}", key, value, row->allowed);
  if (row->type == OptionType::Bool && value != "on" && value != "off")
    return error("option {} cannot be '{}'; it is on or off", key, value);
  if (row->type == OptionType::Int) {
    i64 parsed = 0;
    auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (problem != std::errc{} || end != value.data() + value.size() || parsed < 0)
      return error("option {} cannot be '{}'; it is a whole number, 0 or more", key, value);
  }
  set_.insert_or_assign(std::string(key), std::string(value));
  return Ok{};
}

const std::string& Options::text(std::string_view key) const {
  if (auto it = set_.find(key); it != set_.end()) return it->second;
  const Row* row = find(key);
  COIL_CHECK(row, "no option {}", key);
  return row->fallback;
}

i64 Options::integer(std::string_view key) const {
  const std::string& value = text(key);
  i64 parsed = 0;
  std::from_chars(value.data(), value.data() + value.size(), parsed);
  return parsed;
}

bool Options::flag(std::string_view key) const { return text(key) == "on"; }

std::string Options::code_key() const {
  std::string out;
  for (const Row& r : rows())
    if (r.affects_code) out += str("{}={}\n", r.key, text(r.key));
  return out;
}

std::string Options::help() {
  std::string out;
  for (const Row& r : rows()) {
    std::string values(r.allowed);
    std::replace(values.begin(), values.end(), ' ', '|');
    if (values.empty())
      values = r.type == OptionType::Bool ? "on|off" : r.type == OptionType::Int ? "N" : "TEXT";
    out += str("  {:34} {} (default {})\n", str("{}={}", r.key, values), r.help,
               r.fallback.empty() ? "empty" : r.fallback);
  }
  return out;
}

}  // namespace coil
