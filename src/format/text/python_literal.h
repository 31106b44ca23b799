#pragma once

// The literals of Python in headers of `.npy`. Not eval: nothing that a file says runs.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace penstock::format {

/// A strict scanner for the Python literals in `.npy` headers: what ast.literal_eval reads of them, less the notations
/// that no writer uses (triple quotes, raw strings, hexadecimal, underscores, concatenation, comments), and NumPy's own
/// scalars as their repr() writes them, `np.int64(3)`, `np.True_` and `np.str_('<f4')`, which writers of headers by
/// hand put there. Errors are kCorrupt and carry the message and `base` + position. The text must outlive the scanner.
class LiteralScanner {
 public:
  enum class Encoding : std::uint8_t { kLatin1, kUtf8 };

  LiteralScanner(std::string_view text, Encoding encoding, std::uint64_t base) noexcept
      : text_(text), encoding_(encoding), base_(base) {}

  /// The next character that is not white space, not consumed; '\0' at the end.
  char peek() noexcept;
  /// Consumes `c` when it comes next.
  bool accept(char c) noexcept;
  /// Consumes `c`, or says that it is missing.
  void expect(char c);
  /// Nothing but white space may be left.
  void expect_end();
  /// After an item of a bracketed list: consumes a comma, and says whether another item follows before `close`, which
  /// is consumed otherwise.
  bool more_items(char close);
  /// A string in either quotes, escapes decoded, as UTF-8. Valid until the next call.
  std::string_view string();
  /// "True" or "False".
  bool boolean();
  /// A decimal integer >= 0, with Python 2's 'L' behind it or not. Booleans and signs are refused.
  std::int64_t size();
  /// Whether an 'L' stood behind an integer, which only Python 2 reads.
  bool is_python2() const noexcept { return python2_; }

  std::uint64_t offset() const noexcept { return base_ + at_; }
  [[noreturn]] void fail(const std::string& message) const;

 private:
  bool at_end() const noexcept { return at_ == text_.size(); }
  /// Consumes the name of one of these classes and the bracket behind it, when that comes next.
  bool accept_call(std::span<const std::string_view> names) noexcept;
  std::string_view word() const noexcept;
  std::string_view plain_string();
  bool plain_boolean();
  std::int64_t plain_size();
  std::string_view decode(char quote, std::size_t begin);
  void append_plain(char c);
  void append_escape();
  void append_code(char32_t code_point);
  char32_t digits(std::size_t most, std::size_t least, unsigned radix);

  std::string_view text_;
  Encoding encoding_;
  std::uint64_t base_;
  std::size_t at_ = 0;
  bool python2_ = false;
  std::string decoded_;
};

/// `text` (UTF-8) as Python's repr writes a string: single quotes unless it has some and no double ones.
std::string python_repr(std::string_view text);

}  // namespace penstock::format
