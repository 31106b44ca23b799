#pragma once

// Files in which something found out is kept for the next run. They may be deleted at any time.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace penstock::data {

/// Writes the content of such a file: numbers as they lie in memory, and a text with its length before it. What
/// core::Cursor reads.
class KeptContent {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void add_number(T value) { out_.append(reinterpret_cast<const char*>(&value), sizeof(value)); }
  void add_text(std::string_view text) {
    add_number<std::uint64_t>(text.size());
    out_.append(text);
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(out_)); }

 private:
  std::string out_;
};

/// One such file: a magic, the number of bytes behind this head and their CRC-32, then the content. What is not a
/// whole, undamaged file of this magic counts as none.
class KeptFile {
 public:
  /// `magic` has eight bytes, of which the last is the version. `path` empty: a file of the user's cache
  /// ($XDG_CACHE_HOME/penstock or ~/.cache/penstock), "KIND-<hash of key>.index"; without a home it is kept nowhere.
  KeptFile(std::string path, std::string_view magic, std::string_view kind, std::string_view key);

  /// Empty where it is kept nowhere.
  const std::string& path() const noexcept { return path_; }
  /// The content; empty where there is none. It still is to be checked: anybody may have written it.
  std::vector<std::byte> read() const;
  /// Replaces the file as a whole. Without it the work can go on: it is left out where the disk takes no more (kIo),
  /// and in the user's cache where it cannot be written at all; else throws what AtomicFile does. kInvalidArgument for
  /// a file that is there and was never one of this magic, in any version.
  void write(std::span<const std::byte> content) const;

 private:
  bool may_be_own() const;

  std::string path_;
  std::string_view magic_;
  bool is_cache_;
};

}  // namespace penstock::data
