#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace penstock::core {

/// A bounded little-endian reader over bytes in memory. Every read is checked; running past the end throws kTruncated
/// with the absolute offset (`base` + position). Does not own the bytes: they must outlive the cursor and its views.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes, std::uint64_t base = 0) noexcept : bytes_(bytes), base_(base) {}

  std::size_t position() const noexcept { return position_; }
  std::size_t remaining() const noexcept { return bytes_.size() - position_; }
  bool at_end() const noexcept { return position_ == bytes_.size(); }
  /// Absolute offset of the next byte, for errors.
  std::uint64_t offset() const noexcept { return base_ + position_; }

  /// Moves to `position`, which may be the end; throws kTruncated beyond it.
  void seek(std::size_t position);
  void skip(std::size_t count) { take(count); }
  /// A view of the next `count` bytes.
  std::span<const std::byte> take(std::size_t count) {
    if (count > remaining()) throw_truncated(count);
    auto out = bytes_.subspan(position_, count);
    position_ += count;
    return out;
  }
  std::string_view take_text(std::size_t count) {
    auto bytes = take(count);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// The bytes up to and without the next '\n', which is consumed; kTruncated when there is none.
  std::string_view take_line();

  template <class T>
  requires std::is_trivially_copyable_v<T> T read() {
    T out;
    std::memcpy(&out, take(sizeof(T)).data(), sizeof(T));
    return out;
  }
  std::uint8_t u8() { return read<std::uint8_t>(); }
  std::uint16_t u16() { return read<std::uint16_t>(); }
  std::uint32_t u32() { return read<std::uint32_t>(); }
  std::uint64_t u64() { return read<std::uint64_t>(); }
  std::int32_t i32() { return read<std::int32_t>(); }
  std::int64_t i64() { return read<std::int64_t>(); }

 private:
  [[noreturn]] void throw_truncated(std::size_t wanted) const;

  std::span<const std::byte> bytes_;
  std::uint64_t base_;
  std::size_t position_ = 0;
};

}  // namespace penstock::core
