#pragma once

// JSON as it is made, on standard output or into a page.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::cli {

/// Whether standard output has some JSON.
bool is_json_printed() noexcept;

/// Writes JSON to stdout, or to `give`, as it comes: nothing of it is kept, however much there is. Containers opened
/// with kLines have an item a line, two spaces a level; those opened with kCompact, and all in them, stay on one line.
/// Strings are core::json_quoted's.
class JsonWriter {
 public:
  enum class Layout : std::uint8_t { kLines, kCompact };
  /// Takes some of the text; no character is cut in two.
  using Give = std::function<void(std::string_view text)>;

  JsonWriter();
  explicit JsonWriter(Give give) : give_(std::move(give)) {}

  void begin_object(Layout layout = Layout::kLines) { begin('{', '}', layout); }
  void begin_array(Layout layout = Layout::kLines) { begin('[', ']', layout); }
  void end();
  /// The name of the member that comes next.
  void write_key(std::string_view name);
  void write_string(std::string_view text);
  /// What is JSON already: a number, true, null.
  void write_raw(std::string_view json);

  /// Call once, last: a newline, and all that is kept back is given away.
  void finish();

 private:
  struct Level {
    char close;
    Layout layout;
    bool empty = true;
  };

  void begin(char open, char close, Layout layout);
  void place();
  void new_line(std::size_t levels);
  void flush_when_full();

  Give give_;
  std::vector<Level> levels_;
  bool after_key_ = false;
  std::string out_;
};

}  // namespace penstock::cli
