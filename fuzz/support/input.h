#pragma once

// What a fuzzer makes of its bytes: a file, and choices that say what is done with it. The choices lie behind the file,
// so that any file is an input too, and an archive stays one: `file choices count "CHOICES"`.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace penstock::fuzz {

inline constexpr std::string_view kChoicesMark = "CHOICES";
inline constexpr std::size_t kMostChoices = 255;

/// Numbers, one byte each, from first to last. What is asked for behind the last one is 0.
class Choices {
 public:
  explicit Choices(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool any() const noexcept { return !bytes_.empty(); }
  std::uint8_t byte() noexcept;
  bool flag() noexcept { return (byte() & 1) != 0; }
  std::size_t below(std::size_t bound) noexcept { return bound == 0 ? 0 : byte() % bound; }
  /// Of two bytes, little-endian.
  std::uint16_t word() noexcept;

 private:
  std::span<const std::byte> bytes_;
};

struct Input {
  std::span<const std::byte> file;
  std::span<const std::byte> choices;
};

Input split_input(std::span<const std::byte> bytes) noexcept;
inline Input split_input(const std::uint8_t* data, std::size_t size) noexcept {
  return split_input(std::as_bytes(std::span(data, size)));
}

}  // namespace penstock::fuzz
