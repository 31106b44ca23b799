// An archive is recognised by its zip directory and by the few bytes that say what the others mean: a whole record (the
// pickle of a `.pt`) or the beginning of one (the header of an array in an `.npz`). Those bytes are kept and compared;
// of all others only name, size and place in the order count. So the files of one program share an index, and what
// differs between them (offsets, CRCs, the name of their folder) is told apart from it.

#include "format/zip/layouts.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>

namespace penstock::format {

namespace {

/// Ragged samples have a layout for each length, and labelled ones have one for each label. When there are more than
/// this, all are forgotten and learnt again.
constexpr std::size_t kKeptLayouts = 4096;
constexpr std::size_t kKeptBytes = std::size_t{16} << 20;

bool begins_like_zip(std::span<const std::byte> file) noexcept {
  return file.size() >= 4 && std::memcmp(file.data(), "PK", 2) == 0;
}

/// What a member of the archive must be in another file of the same layout.
struct ExpectedMember {
  std::string name;  ///< without the folder
  std::uint64_t size = 0;
  std::uint32_t crc32 = 0;              ///< compared only if `is_fixed`
  std::uint16_t flags = 0;              ///< they say, for example, how the name is encoded
  std::vector<std::byte> content = {};  ///< its first bytes that decide what the rest of the file means; may be none
  bool is_fixed = false;                ///< `content` is all of the member
};

std::string_view folder_of(std::span<const ZipEntry> entries) noexcept {
  return entries.empty() ? std::string_view() : entries.front().name.substr(0, entries.front().name.find('/') + 1);
}

class ZipLayout final : public DirectoryLayout {
 public:
  ZipLayout(const ZipRules& rules, std::span<const ZipEntry> entries, std::span<const std::byte> file, bool verify,
            ZipParsed parsed);

  bool matches(std::span<const std::byte> file, std::string_view path, bool verify,
               std::vector<StorageLocation>& locations) const override;
  /// Whether a file of these entries has the same records, in the same order, of the same sizes, and the same bytes
  /// where they decide: then reading it anew would give the same index but for offsets and CRCs.
  bool same(std::span<const ZipEntry> entries, std::span<const std::byte> file, bool verify) const noexcept;
  void locate(std::span<const ZipEntry> entries, std::vector<StorageLocation>& locations) const;

  bool reusable() const noexcept { return reusable_; }
  std::size_t memory() const noexcept { return memory_; }

 private:
  const ZipRules& rules_;
  std::vector<ExpectedMember> members_;
  std::vector<std::size_t> storage_records_;
  bool verified_;
  bool reusable_;
  std::size_t memory_ = sizeof(ZipLayout);
};

ZipLayout::ZipLayout(const ZipRules& rules, std::span<const ZipEntry> entries, std::span<const std::byte> file,
                     bool verify, ZipParsed parsed)
    : DirectoryLayout(std::move(parsed.index)),
      rules_(rules),
      storage_records_(std::move(parsed.storage_records)),
      verified_(verify),
      reusable_(parsed.reusable && std::all_of(entries.begin(), entries.end(),
                                               [](const ZipEntry& entry) { return entry.method == kZipStored; })) {
  if (!reusable_) return;
  const std::string_view folder = rules.has_folder ? folder_of(entries) : std::string_view();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const ZipEntry& entry = entries[i];
    const auto content = file.subspan(entry.data_offset, parsed.fixed_bytes[i]);
    members_.push_back({.name = std::string(entry.name.substr(folder.size())),
                        .size = entry.size,
                        .crc32 = entry.crc32,
                        .flags = entry.flags,
                        .content = {content.begin(), content.end()},
                        .is_fixed = content.size() == entry.size});
    memory_ += sizeof(ExpectedMember) + content.size();
  }
}

bool ZipLayout::same(std::span<const ZipEntry> entries, std::span<const std::byte> file, bool verify) const noexcept {
  if (!reusable_ || entries.size() != members_.size() || verified_ != verify) return false;
  const std::string_view folder = rules_.has_folder ? folder_of(entries) : std::string_view();
  if (rules_.has_folder && folder.empty()) return false;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const ZipEntry& entry = entries[i];
    const ExpectedMember& expected = members_[i];
    if (entry.size != expected.size || entry.method != kZipStored || entry.flags != expected.flags) return false;
    if (entry.name.size() != folder.size() + expected.name.size() || !entry.name.starts_with(folder) ||
        entry.name.substr(folder.size()) != expected.name) {
      return false;
    }
    if (verify && expected.is_fixed && entry.crc32 != expected.crc32) return false;
    if (expected.content.empty()) continue;
    const std::byte* const own = file.data() + entry.data_offset;
    if (std::memcmp(expected.content.data(), own, expected.content.size()) != 0) return false;
  }
  return true;
}

void ZipLayout::locate(std::span<const ZipEntry> entries, std::vector<StorageLocation>& locations) const {
  locations.assign(storage_records_.size(), {});
  for (std::size_t i = 0; i < locations.size(); ++i) {
    const std::size_t record = storage_records_[i];
    if (record == kNoRecord) continue;
    locations[i] = {entries[record].data_offset, rules_.recorded_crc(entries[record])};
  }
}

bool ZipLayout::matches(std::span<const std::byte> file, std::string_view path, bool verify,
                        std::vector<StorageLocation>& locations) const {
  if (!begins_like_zip(file)) return false;
  std::vector<ZipEntry> entries;
  read_zip_directory(file, path, entries);
  if (!same(entries, file, verify)) return false;
  locate(entries, locations);
  return true;
}

}  // namespace

struct ZipLayouts::State {
  explicit State(const ZipRules& wanted) : rules(wanted) {}

  const ZipRules& rules;
  std::vector<ZipEntry> entries;
  std::unordered_multimap<std::uint64_t, std::shared_ptr<const ZipLayout>> kept;  ///< by key()
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

  std::shared_ptr<const ZipLayout> find(std::span<const std::byte> file, bool verify) const {
    const auto [first, last] = kept.equal_range(key());
    const auto same =
        std::find_if(first, last, [&](const auto& known) { return known.second->same(entries, file, verify); });
    return same == last ? nullptr : same->second;
  }

  void keep(std::shared_ptr<const ZipLayout> layout) {
    if (kept.size() >= kKeptLayouts || kept_bytes + layout->memory() > kKeptBytes) {
      kept.clear();
      kept_bytes = 0;
    }
    kept_bytes += layout->memory();
    kept.emplace(key(), std::move(layout));
  }
};

ZipLayouts::ZipLayouts(const ZipRules& rules) : state_(std::make_unique<State>(rules)) {}
ZipLayouts::~ZipLayouts() = default;

DirectoryLayoutPtr ZipLayouts::find(std::span<const std::byte> file, std::string_view path, bool verify,
                                    std::vector<StorageLocation>& locations) {
  if (!begins_like_zip(file)) return nullptr;
  read_zip_directory(file, path, state_->entries);
  auto layout = state_->find(file, verify);
  if (layout) layout->locate(state_->entries, locations);
  return layout;
}

DirectoryLayoutPtr ZipLayouts::locate(std::span<const std::byte> file, std::string_view path,
                                      const OpenOptions& options, std::vector<StorageLocation>& locations) {
  if (!begins_like_zip(file)) return nullptr;
  if (auto known = find(file, path, options.verify, locations)) return known;
  auto& entries = state_->entries;
  ZipParsed parsed = state_->rules.parse(file, path, entries, options);
  locations.clear();
  for (const StorageEntry& storage : parsed.index.storages) locations.push_back({storage.offset, storage.crc32});
  auto layout = std::make_shared<const ZipLayout>(state_->rules, entries, file, options.verify, std::move(parsed));
  if (layout->reusable()) state_->keep(layout);
  return layout;
}

}  // namespace penstock::format
