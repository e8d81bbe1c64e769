#pragma once
// Reading and writing of coil's text forms. All levels share these tokens: words, %names, numbers,
// "strings", and single punctuation characters. `#` starts a comment.

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace coil {

/// Text with indentation by nesting.
class TextWriter {
 public:
  template <class... Args>
  void line(fmt::format_string<Args...> text, Args&&... args) {
    raw_line(str(text, std::forward<Args>(args)...));
  }
  /// A line as it is.
  void raw_line(std::string_view text);
  void indent() { ++depth_; }
  void dedent() { --depth_; }
  const std::string& text() const { return out_; }

 private:
  std::string out_;
  int depth_ = 0;
};

/// `"text"` with \n, \t, \", \\ and \xNN escapes; the reader's string() takes it back.
std::string quoted(std::string_view text);
/// The shortest decimal that reads back as the same double: 0.1, 1e-05, inf, -inf, nan. Always
/// holds one of ".einf" so that it cannot be taken for an integer.
std::string float_text(double value);

enum class TokenKind : u8 { Word, Name, Integer, Float, String, Punct, End };

struct Token {
  TokenKind kind = TokenKind::End;
  std::string_view text;  // Name: without the %; String: still quoted
  int line = 1;
};

/// A cursor over tokens. `expect_*` and `take_*` functions return an Error that names file and
/// line.
class TextReader {
 public:
  /// `text` must outlive the reader. `file` is for messages only.
  TextReader(std::string_view text, std::string file);

  const Token& peek(int ahead = 0) const;
  bool at_end() const { return peek().kind == TokenKind::End; }
  bool at(std::string_view text) const;  // a Word or Punct with exactly this text
  bool accept(std::string_view text);    // takes it if it is there
  Status expect(std::string_view text);
  Result<std::string> word();  // letters, digits, _, inner dots and ::  (add.Tensor, f32, lib::op)
  Result<std::string> name();  // %name
  Result<i64> integer();       // with sign
  Result<double> number();     // integer or float, with sign; inf and nan
  Result<std::string> string();
  int line() const { return peek().line; }
  /// Error at the present token: "file:12: expected ',', found 'x'".
  Error error_here(std::string_view message) const;
  Error error_at(int line, std::string_view message) const;
  /// What the present token looks like in a message.
  std::string found() const;

 private:
  std::string file_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace coil
