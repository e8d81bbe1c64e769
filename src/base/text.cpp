#include "base/text.h"

#include <charconv>
#include <cmath>

namespace coil {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }

/// The end of a word that starts at `at`: a dot or `::` belongs to it when a word character
/// follows.
std::size_t word_end(std::string_view text, std::size_t at) {
  const auto goes_on = [&](std::size_t i) { return i < text.size() && is_word(text[i]); };
  for (;;) {
    if (goes_on(at) || (text.substr(at).starts_with(".") && goes_on(at + 1)))
      at += 1;
    else if (text.substr(at).starts_with("::") && goes_on(at + 2))
      at += 2;
    else
      return at;
  }
}

/// The end of a number without sign, and whether it is a float.
std::pair<std::size_t, bool> number_end(std::string_view text, std::size_t at) {
  bool is_float = false;
  while (at < text.size() && is_digit(text[at])) ++at;
  if (at + 1 < text.size() && text[at] == '.' && is_digit(text[at + 1])) {
    is_float = true;
    ++at;
    while (at < text.size() && is_digit(text[at])) ++at;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    std::size_t digits = at + 1;
    if (digits < text.size() && (text[digits] == '-' || text[digits] == '+')) ++digits;
    if (digits < text.size() && is_digit(text[digits])) {
      is_float = true;
      at = digits;
      while (at < text.size() && is_digit(text[at])) ++at;
    }
  }
  return {at, is_float};
}

std::size_t string_end(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '\n'; ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

}  // namespace

void TextWriter::raw_line(std::string_view text) {
  if (!text.empty()) out_.append(static_cast<std::size_t>(depth_) * 2, ' ');
  out_ += text;
  out_ += '\n';
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += str("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string float_text(double value) {
  if (std::isnan(value)) return std::signbit(value) ? "-nan" : "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = str("{}", value);
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return text;
}

TextReader::TextReader(std::string_view text, std::string file) : file_(std::move(file)) {
  int line = 1;
  std::size_t at = 0;
  auto push = [&](TokenKind kind, std::size_t from, std::size_t to) {
    tokens_.push_back({kind, text.substr(from, to - from), line});
    at = to;
  };
  while (at < text.size()) {
    const char c = text[at];
    if (c == '\n') {
      ++line;
      ++at;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at;
    } else if (c == '#') {
      while (at < text.size() && text[at] != '\n') ++at;
    } else if (is_letter(c)) {
      push(TokenKind::Word, at, word_end(text, at));
    } else if (is_digit(c)) {
      auto [end, is_float] = number_end(text, at);
      push(is_float ? TokenKind::Float : TokenKind::Integer, at, end);
    } else if (c == '%' && at + 1 < text.size() && is_word(text[at + 1])) {
      const std::size_t end = word_end(text, at + 1);
      tokens_.push_back({TokenKind::Name, text.substr(at + 1, end - at - 1), line});
      at = end;
    } else if (std::size_t end; c == '"' && (end = string_end(text, at)) != text.npos) {
      push(TokenKind::String, at, end);
    } else {
      push(TokenKind::Punct, at, at + 1);
    }
  }
  tokens_.push_back({TokenKind::End, "", line});
}

const Token& TextReader::peek(int ahead) const {
  const std::size_t i = at_ + static_cast<std::size_t>(ahead);
  return i < tokens_.size() ? tokens_[i] : tokens_.back();
}

bool TextReader::at(std::string_view text) const {
  const Token& t = peek();
  return (t.kind == TokenKind::Word || t.kind == TokenKind::Punct) && t.text == text;
}

bool TextReader::accept(std::string_view text) {
  if (!at(text)) return false;
  ++at_;
  return true;
}

Status TextReader::expect(std::string_view text) {
  if (accept(text)) return Ok{};
  return error_here(str("expected '{}', found {}", text, found()));
}

Result<std::string> TextReader::word() {
  if (peek().kind != TokenKind::Word) return error_here(str("expected a word, found {}", found()));
  return std::string(tokens_[at_++].text);
}

Result<std::string> TextReader::name() {
  if (peek().kind != TokenKind::Name) return error_here(str("expected a %name, found {}", found()));
  return std::string(tokens_[at_++].text);
}

Result<i64> TextReader::integer() {
  const std::size_t start = at_;
  const bool negative = accept("-");
  if (peek().kind != TokenKind::Integer) {
    at_ = start;
    return error_here(str("expected an integer, found {}", found()));
  }
  const std::string digits = (negative ? "-" : "") + std::string(peek().text);
  i64 value = 0;
  auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (problem != std::errc{}) return error_here(str("the integer {} does not fit 64 bits", digits));
  ++at_;
  return value;
}

Result<double> TextReader::number() {
  const std::size_t start = at_;
  const double sign = accept("-") ? -1.0 : 1.0;
  if (accept("inf")) return sign * HUGE_VAL;
  if (accept("nan")) return std::copysign(std::nan(""), sign);
  const Token& t = peek();
  if (t.kind != TokenKind::Integer && t.kind != TokenKind::Float) {
    at_ = start;
    return error_here(str("expected a number, found {}", found()));
  }
  double value = 0;
  const auto read = std::from_chars(t.text.data(), t.text.data() + t.text.size(), value);
  if (read.ec != std::errc{}) return error_here(str("the number {} does not fit a double", t.text));
  ++at_;
  return sign * value;
}

Result<std::string> TextReader::string() {
  if (peek().kind != TokenKind::String)
    return error_here(str("expected a \"string\", found {}", found()));
  const std::string_view raw = tokens_[at_].text.substr(1, tokens_[at_].text.size() - 2);
  ++at_;
  std::string out;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      out += raw[i];
      continue;
    }
    const char c = raw[++i];
    unsigned code = 0;
    if (c == 'x' && i + 2 < raw.size() &&
        std::from_chars(raw.data() + i + 1, raw.data() + i + 3, code, 16).ptr ==
            raw.data() + i + 3) {
      out += static_cast<char>(code);
      i += 2;
    } else {
      out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
    }
  }
  return out;
}

Error TextReader::error_at(int line, std::string_view message) const {
  return error("{}:{}: {}", file_, line, message);
}
Error TextReader::error_here(std::string_view message) const {
  return error_at(peek().line, message);
}

std::string TextReader::found() const {
  const Token& t = peek();
  if (t.kind == TokenKind::End) return "the end of the file";
  if (t.kind == TokenKind::Name) return str("'%{}'", t.text);
  return str("'{}'", t.text);
}

}  // namespace coil
