#pragma once

// The records of a zip archive as they lie in the file, little-endian; PKWARE APPNOTE.TXT 4.3. For the zip reader and
// writer alone.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace penstock::format::zip {

static_assert(std::endian::native == std::endian::little);

inline constexpr std::uint32_t kLocalSignature = 0x04034b50;
inline constexpr std::uint32_t kDescriptorSignature = 0x08074b50;
inline constexpr std::uint32_t kCentralSignature = 0x02014b50;
inline constexpr std::uint32_t kEndSignature = 0x06054b50;
inline constexpr std::uint32_t kEnd64Signature = 0x06064b50;
inline constexpr std::uint32_t kLocatorSignature = 0x07064b50;

inline constexpr std::size_t kLocalBytes = 30;
inline constexpr std::size_t kCentralBytes = 46;
inline constexpr std::size_t kEndBytes = 22;
inline constexpr std::size_t kEnd64Bytes = 56;
inline constexpr std::size_t kLocatorBytes = 20;
inline constexpr std::size_t kSignatureBytes = 4;
inline constexpr std::size_t kShortDescriptor = 16;
inline constexpr std::size_t kLongDescriptor = 24;

inline constexpr std::uint16_t kEncryptedFlag = 1 << 0;
inline constexpr std::uint16_t kDescriptorFlag = 1 << 3;
inline constexpr std::uint16_t kPatchFlag = 1 << 5;
inline constexpr std::uint16_t kStrongEncryptionFlag = 1 << 6;
inline constexpr std::uint16_t kUtf8Flag = 1 << 11;
inline constexpr std::uint16_t kMaskedFlag = 1 << 13;

inline constexpr std::uint16_t kZip64Extra = 0x0001;
inline constexpr std::uint16_t kUnicodePathExtra = 0x7075;
inline constexpr std::uint16_t kPaddingExtra = 0x4246;  ///< "FB": torch's alignment

/// In a 32-bit field: the value is in the zip64 extra field.
inline constexpr std::uint32_t kSentinel32 = 0xFFFFFFFF;
inline constexpr std::uint16_t kSentinel16 = 0xFFFF;

template <class T>
T load(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
inline std::uint16_t u16(const std::byte* from) noexcept { return load<std::uint16_t>(from); }
inline std::uint32_t u32(const std::byte* from) noexcept { return load<std::uint32_t>(from); }
inline std::uint64_t u64(const std::byte* from) noexcept { return load<std::uint64_t>(from); }

}  // namespace penstock::format::zip
