#pragma once

// Text for messages. Names in files are hostile until shown otherwise: nothing here lets them move a terminal's cursor.

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::core {

/// `text` with control characters, invalid UTF-8, and characters that reorder or hide text or are invisible themselves
/// written as \n, \xNN or \u{NNNN}. Printable UTF-8 stays as it is.
std::string escaped(std::string_view text);
/// `text` in double quotes as JSON has it. What `escaped` writes out is \uNNNN here too, so that no string of a file
/// moves a terminal's cursor. Bytes that are not UTF-8 become lone surrogates, as Python has them: half a pair for a
/// surrogate of its own, \udcNN for any other byte (surrogateescape), so that two texts which differ never look alike.
std::string json_quoted(std::string_view text);
/// `text` escaped and in single quotes; one of more than 80 bytes loses its middle to "...".
std::string quoted(std::string_view text);
/// "1 byte", "512 bytes", "1.5 GB"; decimal units, as disks and buses are measured.
std::string format_bytes(std::uint64_t bytes);
/// Without spaces, tabs and ends of line at both ends.
std::string_view trimmed(std::string_view text) noexcept;
/// Bytes as characters, where they lie.
inline std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
/// "did you mean 'a' or 'b'?", or nothing without names.
std::string did_you_mean(const std::vector<std::string>& names);

/// Collects the names nearest to a key, for "did you mean". Feed it any number of names: it looks at the first
/// kMaxLooked of them and keeps three. An empty name, which nobody can read in a sentence, is near to none.
class NearestNames {
 public:
  static constexpr std::size_t kMaxKept = 3;
  static constexpr std::size_t kMaxLooked = 100'000;

  explicit NearestNames(std::string_view key);
  void add(std::string_view name);
  /// Nearest first; names at equal distance in the order they were added.
  std::vector<std::string> take();

 private:
  std::string key_;
  std::size_t limit_;
  std::size_t looked_ = 0;
  std::vector<std::pair<std::size_t, std::string>> kept_;
};

/// The names of a range (of anything that converts to string_view) that are nearest to `key`, at most three.
template <std::ranges::input_range Names>
std::vector<std::string> nearest_names(std::string_view key, Names&& names) {
  NearestNames nearest(key);
  for (const auto& name : names) nearest.add(std::string_view(name));
  return nearest.take();
}

}  // namespace penstock::core
