#include "support/zip_mending.h"

#include <cstring>
#include <string_view>
#include <utility>

#include "core/checked.h"
#include "format/zip/inflate.h"
#include "format/zip/layout.h"
#include "format/zip/reader.h"
#include "format/zip/writer.h"
#include "io/copy/crc32.h"
#include "penstock/error.h"
#include "penstock/source.h"
#include "support/string_sink.h"

namespace penstock::fuzz {

namespace {

namespace zip = format::zip;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;

/// What a member becomes; nothing where it cannot be had.
std::optional<std::vector<std::byte>> content_of(const format::ZipEntry& entry, std::span<const std::byte> file) {
  if (!core::range_fits(entry.header_offset, zip::kLocalBytes, file.size())) return std::nullopt;
  const std::byte* const header = file.data() + entry.header_offset;
  const std::uint64_t begin = entry.header_offset + zip::kLocalBytes + zip::u16(header + 26) + zip::u16(header + 28);
  if (!core::range_fits(begin, entry.compressed_size, file.size()) || entry.size > kMostBytes) return std::nullopt;
  const auto stored = file.subspan(begin, entry.compressed_size);
  if (entry.method == format::kZipStored) return std::vector<std::byte>(stored.begin(), stored.end());
  std::vector<std::byte> out(entry.size);
  try {
    format::inflate(stored, out, "", "");
  } catch (const Error&) {
    return std::nullopt;
  }
  return out;
}

format::ZipDirectory list(std::span<const std::byte> file) {
  const auto nobody = std::make_shared<const int>(0);
  auto* const bytes = const_cast<std::byte*>(file.data());  // read-only memory is never written to
  const Source source = memory_source(Buffer::wrap(bytes, file.size(), nobody, true));
  return format::list_zip_members(*source);
}

void put(std::byte* at, std::uint32_t value) { std::memcpy(at, &value, sizeof value); }

/// In the central header, the local one and the descriptor.
void mend(const format::ZipEntry& entry, std::uint32_t crc, std::span<std::byte> file) {
  const std::byte* const name = reinterpret_cast<const std::byte*>(entry.name.data());
  put(file.data() + (name - file.data() - zip::kCentralBytes) + 16, crc);
  std::byte* const header = file.data() + entry.header_offset;
  if (zip::u32(header + 14) != 0) put(header + 14, crc);
  if ((entry.flags & zip::kDescriptorFlag) == 0) return;
  std::uint64_t at =
      entry.header_offset + zip::kLocalBytes + zip::u16(header + 26) + zip::u16(header + 28) + entry.compressed_size;
  if (!core::range_fits(at, zip::kShortDescriptor, file.size())) return;
  if (zip::u32(file.data() + at) == zip::kDescriptorSignature) at += zip::kSignatureBytes;
  put(file.data() + at, crc);
}

}  // namespace

bool is_zip(std::span<const std::byte> file) noexcept {
  return file.size() >= zip::kEndBytes && file[0] == std::byte{'P'} && file[1] == std::byte{'K'};
}

void mend_checksums(std::span<std::byte> file) {
  if (!is_zip(file)) return;
  try {
    const format::ZipDirectory directory = list(file);
    for (const format::ZipEntry& entry : directory.entries) {
      // What says 0 has no checksum in torch's files, and stays so.
      const auto content = content_of(entry, file);
      if (content && entry.crc32 != 0) mend(entry, io::crc32(0, *content), file);
    }
  } catch (const Error&) {
    // No archive, or none whose directory can be read.
  }
}

std::optional<std::vector<Member>> members_of(std::span<const std::byte> file) {
  if (!is_zip(file)) return std::nullopt;
  try {
    const format::ZipDirectory directory = list(file);
    std::vector<Member> out;
    for (const format::ZipEntry& entry : directory.entries) {
      auto content = content_of(entry, file);
      if (!content) return std::nullopt;
      out.push_back({std::string(entry.name), std::move(*content)});
    }
    return out;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string archive_of(std::span<const Member> members, bool as_torch) {
  StringSink sink;
  try {
    format::ZipWriter writer(sink, as_torch ? format::ZipStyle::kTorch : format::ZipStyle::kNumpy);
    for (const Member& member : members) writer.add(member.name, member.content);
    writer.finish();
  } catch (const Error&) {
    return {};
  }
  return std::move(sink.text);
}

}  // namespace penstock::fuzz
