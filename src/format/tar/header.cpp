// A header is text in fields of fixed width: numbers in octal, with blanks or NULs around them, or (GNU) in base 256
// where the first byte has its high bit. The checksum is all that tells a header from other bytes, so a block without
// it is none, whatever it says.
#include "format/tar/header.h"

#include <algorithm>

#include "core/checked.h"
#include "core/format.h"
#include "core/text.h"
#include "penstock/error.h"

namespace penstock::format {
namespace {

struct Field {
  std::size_t begin;
  std::size_t bytes;
};
constexpr Field kName{0, 100};
constexpr Field kMode{100, 8};
constexpr Field kSize{124, 12};
constexpr Field kTime{136, 12};
constexpr Field kChecksum{148, 8};
constexpr std::size_t kType = 156;
constexpr Field kMagic{257, 6};
constexpr Field kVersion{263, 2};
constexpr Field kPrefix{345, 155};
constexpr std::size_t kGnuIsExtended = 482;

constexpr std::uint64_t kMostSize = std::uint64_t{1} << 62;

std::span<const std::byte> bytes_of(std::span<const std::byte> block, Field field) noexcept {
  return block.subspan(field.begin, field.bytes);
}

/// Text up to the first NUL.
std::string_view text_of(std::span<const std::byte> block, Field field) noexcept {
  const std::string_view text = core::text_of(bytes_of(block, field));
  return text.substr(0, text.find('\0'));
}

/// An octal number with blanks or NULs around it; nothing for other text. Behind its NUL anything may stand, which some
/// writers leave there. An empty field is 0.
std::optional<std::uint64_t> octal(std::string_view text) noexcept {
  constexpr std::string_view kBlank(" \0", 2);
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == text.npos) return 0;
  text = text.substr(begin, text.find('\0', begin) - begin);
  const std::size_t digits = std::min(text.find(' '), text.size());
  if (text.find_first_not_of(' ', digits) != text.npos) return std::nullopt;
  std::uint64_t out = 0;
  for (const char digit : text.substr(0, digits)) {
    if (digit < '0' || digit > '7' || out > kMostSize / 8) return std::nullopt;
    out = out * 8 + static_cast<std::uint64_t>(digit - '0');
  }
  return out;
}

/// GNU's numbers: two's complement, most significant byte first, behind a first byte of 0x80 or 0xFF.
std::optional<std::uint64_t> base_256(std::span<const std::byte> field) noexcept {
  if (field[0] != std::byte{0x80}) return std::nullopt;  // negative, or beyond anything
  std::uint64_t out = 0;
  for (const std::byte byte : field.subspan(1)) {
    if (out > kMostSize / 256) return std::nullopt;
    out = out * 256 + std::to_integer<std::uint64_t>(byte);
  }
  return out;
}

std::optional<std::uint64_t> number(std::span<const std::byte> block, Field field) noexcept {
  const std::span<const std::byte> bytes = bytes_of(block, field);
  const bool is_binary = (bytes[0] & std::byte{0x80}) != std::byte{0};
  const std::optional<std::uint64_t> out = is_binary ? base_256(bytes) : octal(core::text_of(bytes));
  return out && *out <= kMostSize ? out : std::nullopt;
}

/// The sum of all bytes with those of the checksum as blanks.
template <class Byte>
std::int64_t sum(std::span<const std::byte> block) noexcept {
  std::int64_t out = 0;
  for (const std::byte byte : block) out += static_cast<Byte>(byte);
  for (const std::byte byte : bytes_of(block, kChecksum)) out += ' ' - static_cast<Byte>(byte);
  return out;
}

std::string name_of(std::span<const std::byte> block) {
  const std::string_view name = text_of(block, kName);
  const bool is_posix = core::text_of(bytes_of(block, kMagic)) == std::string_view("ustar\0", kMagic.bytes);
  const std::string_view prefix = is_posix ? text_of(block, kPrefix) : std::string_view();
  return prefix.empty() ? std::string(name) : core::format("{}/{}", prefix, name);
}

void put(std::string& block, Field field, std::string_view text) { block.replace(field.begin, text.size(), text); }

}  // namespace

bool is_zero_block(std::span<const std::byte> block) noexcept {
  return std::all_of(block.begin(), block.end(), [](std::byte byte) { return byte == std::byte{0}; });
}

bool has_tar_checksum(std::span<const std::byte> block) noexcept {
  if (block.size() < kTarBlock) return false;
  const std::optional<std::uint64_t> told = number(block.first(kTarBlock), kChecksum);
  if (told.value_or(0) == 0) return false;  // zeros in that place are no number that somebody wrote
  const auto wanted = static_cast<std::int64_t>(*told);
  return sum<unsigned char>(block.first(kTarBlock)) == wanted || sum<signed char>(block.first(kTarBlock)) == wanted;
}

TarHeader read_tar_header(std::span<const std::byte> block, std::uint64_t offset, const std::string& path) {
  if (!has_tar_checksum(block)) {
    throw Error(ErrorCode::kCorrupt,
                "found bytes that are no header of a tar archive, because their checksum is wrong; what lies behind "
                "them cannot be found: make the archive anew",
                {.path = path, .offset = offset});
  }
  TarHeader out;
  out.name = name_of(block);
  const std::optional<std::uint64_t> size = number(block, kSize);
  if (!size) {
    throw Error(ErrorCode::kCorrupt,
                "the size of a member is no number of bytes that a file can have; make the archive anew",
                {.path = path, .offset = offset + kSize.begin, .tensor = core::escaped(out.name)});
  }
  out.size = *size;
  out.type = static_cast<char>(block[kType]);
  if (out.type == '\0') out.type = out.name.ends_with('/') ? '5' : '0';
  out.is_extended = out.type == 'S' && block[kGnuIsExtended] != std::byte{0};
  return out;
}

std::optional<std::uint64_t> tar_padded(std::uint64_t bytes) noexcept {
  if (bytes > kMostSize) return std::nullopt;
  return (bytes + kTarBlock - 1) / kTarBlock * kTarBlock;
}

std::optional<std::string> tar_header_of(std::string_view name, std::uint64_t size, char type) {
  constexpr std::uint64_t kMostOctal = (std::uint64_t{1} << 33) - 1;  // eleven digits
  if (name.empty() || name.size() > kName.bytes || size > kMostOctal) return std::nullopt;
  std::string block(kTarBlock, '\0');
  put(block, kName, name);
  put(block, kMode, "0000644");
  put(block, {108, 8}, "0000000");
  put(block, {116, 8}, "0000000");
  put(block, kSize, core::format("{:011o}", size));
  put(block, kTime, "00000000000");
  put(block, kChecksum, "        ");
  block[kType] = type;
  put(block, kMagic, std::string_view("ustar\0", kMagic.bytes));
  put(block, kVersion, "00");
  const std::int64_t total = sum<unsigned char>(std::as_bytes(std::span(block)));
  put(block, kChecksum, core::format("{:06o}", total) + std::string("\0 ", 2));
  return block;
}

}  // namespace penstock::format
