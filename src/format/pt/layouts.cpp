// A `.pt` is recognised by its zip directory and the few small records that say what the others mean. Those records are
// kept with their bytes, and compared; of all other records only name, size and place in the order count. So the files
// of one program share an index, and what differs between them (offsets, CRCs) is told apart from it.

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/check_index.h"
#include "format/pt/pt.h"
#include "format/pt/zip.h"

namespace penstock::format {

namespace {

/// Ragged samples have a layout for each length, labelled ones for each label. Beyond this all are forgotten and learnt
/// anew.
constexpr std::size_t kKeptLayouts = 4096;
constexpr std::size_t kKeptBytes = std::size_t{16} << 20;

bool looks_like_zip(std::span<const std::byte> file) noexcept {
  return file.size() >= 4 && std::memcmp(file.data(), "PK", 2) == 0;
}

/// A record as it must be again in a file of the same layout.
struct Record {
  std::string name;  ///< without the prefix
  std::uint64_t size = 0;
  std::uint32_t crc32 = 0;              ///< of `content`
  bool is_fixed = false;                ///< its content decides what the others mean
  std::vector<std::byte> content = {};  ///< when fixed
};

struct Layout {
  std::shared_ptr<const Index> index;
  std::vector<Record> records;
  std::vector<std::size_t> storage_records;
  bool verified = false;

  bool matches(std::span<const ZipEntry> entries, std::span<const std::byte> file, bool verify) const noexcept;
};

std::string_view prefix_of(std::span<const ZipEntry> entries) noexcept {
  return entries.empty() ? std::string_view() : entries.front().name.substr(0, entries.front().name.find('/') + 1);
}

/// The same records, in the same order, of the same sizes, and the fixed ones with the same bytes: then reading the
/// file anew would give the same index but for offsets and CRCs.
bool Layout::matches(std::span<const ZipEntry> entries, std::span<const std::byte> file, bool verify) const noexcept {
  if (entries.size() != records.size() || verified != verify) return false;
  const std::string_view prefix = prefix_of(entries);
  if (prefix.empty()) return false;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const ZipEntry& entry = entries[i];
    const Record& record = records[i];
    if (entry.size != record.size || entry.method != kZipStored) return false;
    if (entry.name.size() != prefix.size() + record.name.size() || !entry.name.starts_with(prefix) ||
        entry.name.substr(prefix.size()) != record.name) {
      return false;
    }
    if (!record.is_fixed) continue;
    if (verify && entry.crc32 != record.crc32) return false;
    const std::vector<std::byte>& content = record.content;
    const std::byte* const own = file.data() + entry.data_offset;
    if (!content.empty() && std::memcmp(content.data(), own, content.size()) != 0) return false;
  }
  return true;
}

Layout make_layout(std::span<const ZipEntry> entries, std::span<const std::byte> file, std::string_view path,
                   bool verify, PtParsed parsed) {
  const PtRecords special = find_pt_records(entries, path);
  Layout layout;
  layout.storage_records = std::move(parsed.storage_records);
  layout.verified = verify;
  layout.index = std::make_shared<const Index>(std::move(parsed.index));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const ZipEntry& entry = entries[i];
    Record record{
        .name = std::string(entry.name.substr(special.prefix.size())), .size = entry.size, .crc32 = entry.crc32};
    record.is_fixed = i == special.pickle || i == special.byteorder || i == special.version ||
                      i == special.format_version || i == special.storage_alignment;
    if (record.is_fixed) {
      const auto content = file.subspan(entry.data_offset, entry.size);
      record.content.assign(content.begin(), content.end());
    }
    layout.records.push_back(std::move(record));
  }
  return layout;
}

}  // namespace

struct PtLayouts::State {
  std::vector<ZipEntry> entries;
  std::unordered_multimap<std::uint64_t, Layout> kept;  ///< by key()
  std::size_t kept_bytes = 0;

  /// Equal for files of one layout: of what they share, sizes are the cheapest to compare. Files with a label in their
  /// pickle have equal sizes, and are told apart by its CRC: else each would be compared with all that went before.
  std::uint64_t key() const noexcept {
    std::uint64_t key = entries.size();
    if (!entries.empty() && entries.front().name.ends_with("data.pkl")) {
      key |= std::uint64_t{entries.front().crc32} << 32;
    }
    for (const ZipEntry& entry : entries) key = (key ^ entry.size) * 0x9E3779B97F4A7C15;
    return key;
  }

  const Layout* find(std::span<const std::byte> file, bool verify) const {
    const auto [first, last] = kept.equal_range(key());
    const auto same =
        std::find_if(first, last, [&](const auto& known) { return known.second.matches(entries, file, verify); });
    return same == last ? nullptr : &same->second;
  }

  const Layout& keep(Layout layout) {
    std::size_t bytes = sizeof(Layout) + sizeof(Index);
    for (const Record& record : layout.records) bytes += sizeof(Record) + record.content.size();
    if (kept.size() >= kKeptLayouts || kept_bytes + bytes > kKeptBytes) {
      kept.clear();
      kept_bytes = 0;
    }
    kept_bytes += bytes;
    return kept.emplace(key(), std::move(layout))->second;
  }
};

PtLayouts::PtLayouts() : state_(std::make_unique<State>()) {}
PtLayouts::~PtLayouts() = default;

std::shared_ptr<const Index> PtLayouts::find(std::span<const std::byte> file, std::string_view path, bool verify,
                                             std::vector<StorageLocation>& locations) {
  if (!looks_like_zip(file)) return nullptr;
  auto& entries = state_->entries;
  read_zip_directory(file, path, entries);
  const Layout* const layout = state_->find(file, verify);
  if (layout == nullptr) return nullptr;
  locations.assign(layout->storage_records.size(), {});
  for (std::size_t i = 0; i < locations.size(); ++i) {
    const std::size_t record = layout->storage_records[i];
    if (record == kNoRecord) continue;
    locations[i] = {entries[record].data_offset, recorded_crc(entries[record], verify)};
  }
  return layout->index;
}

std::shared_ptr<const Index> PtLayouts::locate(std::span<const std::byte> file, std::string_view path,
                                               const OpenOptions& options, std::vector<StorageLocation>& locations) {
  if (!looks_like_zip(file)) return nullptr;
  const bool verify = options.verify;
  if (auto known = find(file, path, verify, locations)) return known;
  auto& entries = state_->entries;
  PtParsed parsed = read_pt_zip(FileBytes(file, path), entries, options);
  write_encodings(parsed.index);
  locations.clear();
  for (const StorageEntry& storage : parsed.index.storages) locations.push_back({storage.offset, storage.crc32});
  const bool reusable =
      std::all_of(entries.begin(), entries.end(), [](const ZipEntry& entry) { return entry.method == kZipStored; });
  if (!reusable) return std::make_shared<const Index>(std::move(parsed.index));
  return state_->keep(make_layout(entries, file, path, verify, std::move(parsed))).index;
}

}  // namespace penstock::format
