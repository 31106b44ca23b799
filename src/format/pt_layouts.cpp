#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "format/pt.h"
#include "format/pt_legacy.h"
#include "format/pt_zip.h"

namespace penstock::format {

namespace {

/// Datasets whose samples carry a class label in the pickle have one layout a label.
constexpr std::size_t kKeptLayouts = 16;

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
    if (!std::equal(record.content.begin(), record.content.end(), file.data() + entry.data_offset)) return false;
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
  std::vector<Layout> kept;  ///< the one used last first

  const Layout* find(std::span<const std::byte> file, bool verify) {
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (!kept[i].matches(entries, file, verify)) continue;
      std::rotate(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(i),
                  kept.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return &kept.front();
    }
    return nullptr;
  }
};

PtLayouts::PtLayouts() : state_(std::make_unique<State>()) {}
PtLayouts::~PtLayouts() = default;
PtLayouts::PtLayouts(PtLayouts&&) noexcept = default;
PtLayouts& PtLayouts::operator=(PtLayouts&&) noexcept = default;

std::shared_ptr<const Index> PtLayouts::locate(std::span<const std::byte> file, std::string_view path,
                                               const OpenOptions& options, std::vector<StorageLocation>& locations) {
  const bool verify = options.verify_checksums;
  auto& entries = state_->entries;
  if (looks_like_zip(file)) {
    read_zip_directory(file, path, entries);
    if (const Layout* layout = state_->find(file, verify)) {
      locations.resize(layout->storage_records.size());
      for (std::size_t i = 0; i < locations.size(); ++i) {
        const std::size_t record = layout->storage_records[i];
        locations[i] = {};
        if (record == kNoRecord) continue;
        locations[i].offset = entries[record].data_offset;
        if (verify) locations[i].crc32 = entries[record].crc32;
      }
      return layout->index;
    }
  }
  const auto locate_all = [&locations](const Index& index) {
    locations.clear();
    for (const StorageEntry& storage : index.storages) locations.push_back({storage.offset, storage.crc32});
  };
  if (!looks_like_zip(file)) {
    auto index = std::make_shared<const Index>(read_pt_index(file, path, options));
    locate_all(*index);
    return index;
  }
  PtParsed parsed = read_pt_zip(FileBytes(file, path), entries, options);
  locate_all(parsed.index);
  const bool reusable =
      std::all_of(entries.begin(), entries.end(), [](const ZipEntry& entry) { return entry.method == kZipStored; });
  if (!reusable) return std::make_shared<const Index>(std::move(parsed.index));
  if (state_->kept.size() == kKeptLayouts) state_->kept.pop_back();
  state_->kept.insert(state_->kept.begin(), make_layout(entries, file, path, verify, std::move(parsed)));
  return state_->kept.front().index;
}

}  // namespace penstock::format
