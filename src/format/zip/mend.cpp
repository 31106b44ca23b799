// A member's checksum stands in the directory and in the header before the member or, where that says so, in a
// descriptor behind it. The reader gives the members in the directory's order, so both are gone through together.

#include "format/zip/mend.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "format/zip/end.h"
#include "format/zip/layout.h"
#include "format/zip/reader.h"

namespace penstock::format {
namespace {

using namespace zip;  // NOLINT(google-build-using-namespace): the records' own names, in this file alone

constexpr std::size_t kLocalCrc = 14;
constexpr std::size_t kCentralCrc = 16;

void put(std::byte* to, std::uint32_t value) { std::memcpy(to, &value, sizeof value); }

/// Of the entry at `central`, with all that belongs to it.
std::size_t central_bytes(const std::byte* central) {
  return kCentralBytes + u16(central + 28) + u16(central + 30) + u16(central + 32);
}

}  // namespace

void mend_zip_checksums(std::span<std::byte> file, const std::map<std::uint64_t, std::uint32_t>& checksums,
                        std::string_view path) {
  std::vector<ZipEntry> entries;
  read_zip_directory(file, path, entries);
  ZipBytes archive(file, path);
  std::byte* central = file.data() + find_zip_directory(archive, {}).offset;
  for (const ZipEntry& entry : entries) {
    std::byte* const mine = central;
    central += central_bytes(central);
    const auto found = checksums.find(entry.data_offset);
    if (entry.crc32 == 0 || found == checksums.end()) continue;
    const auto data = file.subspan(entry.data_offset, entry.compressed_size);
    const std::uint32_t crc = found->second;
    put(mine + kCentralCrc, crc);
    if ((entry.flags & kDescriptorFlag) == 0) {
      put(file.data() + entry.header_offset + kLocalCrc, crc);
      continue;
    }
    std::byte* const behind = data.data() + data.size();
    const bool has_signature = u32(behind) == kDescriptorSignature;
    put(behind + (has_signature ? kSignatureBytes : 0), crc);
  }
}

}  // namespace penstock::format
