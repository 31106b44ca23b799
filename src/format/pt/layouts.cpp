// What of a `.pt` decides its layout: the pickle, and the small records that say in which version and byte order the
// archive is written. They are kept whole.

#include "format/check_index.h"
#include "format/pt/pt.h"
#include "format/pt/zip.h"

namespace penstock::format {

namespace {

ZipParsed parse(std::span<const std::byte> file, std::string_view path, std::span<const ZipEntry> entries,
                const OpenOptions& options) {
  ZipParsed parsed = read_pt_zip(FileBytes(file, path), entries, options);
  write_encodings(parsed.index);
  const PtRecords special = find_pt_records(entries, path);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool is_fixed = i == special.pickle || i == special.byteorder || i == special.version ||
                          i == special.format_version || i == special.storage_alignment;
    parsed.fixed_bytes.push_back(is_fixed ? entries[i].size : 0);
  }
  return parsed;
}

constexpr ZipRules kRules{.has_folder = true, .recorded_crc = recorded_crc, .parse = parse};

}  // namespace

PtLayouts::PtLayouts() : ZipLayouts(kRules) {}

}  // namespace penstock::format
