// Reads the index of a zipped `.pt`: finds the records that say what the others mean, checks them, runs the pickle, and
// gives each storage that it names the place of its record.

#include "format/pt/zip.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <utility>

#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "format/pt/pickle/read_pickle.h"
#include "format/pt/pickle/scalars.h"
#include "format/text/utf8.h"
#include "format/zip/inflate.h"
#include "format/zip/kind.h"
#include "format/zip/layout.h"
#include "io/copy/record_check.h"
#include "penstock/error.h"

namespace penstock::format {

namespace {

/// Of the records of a word or a number.
constexpr std::uint64_t kMaxFactBytes = 4096;
constexpr std::int64_t kOldestVersion = 1;
constexpr std::int64_t kNewestVersion = 10;

using core::text_of;

[[noreturn]] void fail(ErrorCode code, std::string message, std::string_view path, std::uint64_t offset,
                       std::string_view record) {
  throw Error(code, std::move(message), {std::string(path), offset, core::escaped(record)});
}

/// The storages of an archive: records `data/KEY`.
class ZipStorages final : public pickle::Outside {
 public:
  ZipStorages(std::span<const ZipEntry> entries, const PtRecords& records, ZipParsed& parsed, std::string_view path)
      : entries_(entries), prefix_(records.prefix), path_(path), any_case_(records.other_case), parsed_(parsed) {}

  std::uint32_t storage(std::string_view key, std::uint64_t nbytes, std::uint64_t itemsize) override;

 private:
  std::size_t find(std::string_view name);

  std::span<const ZipEntry> entries_;
  std::string_view prefix_;
  std::string_view path_;
  bool any_case_;
  ZipParsed& parsed_;
  std::vector<std::int64_t> storages_;  ///< of each record, -1: not asked for yet
  std::vector<std::size_t> by_name_;    ///< records sorted, made when the order of keys is another than the file's
  std::size_t guess_ = 0;
};

std::uint32_t ZipStorages::storage(std::string_view key, std::uint64_t nbytes, std::uint64_t /*itemsize*/) {
  std::string name(prefix_);
  name.append("data/").append(key);
  const std::size_t record = find(name);
  if (record == kNoRecord) {
    fail(ErrorCode::kCorrupt, "the pickle refers to a storage whose record is not in the archive", path_, 0, name);
  }
  const ZipEntry& entry = entries_[record];
  if (entry.size != nbytes) {
    fail(ErrorCode::kCorrupt,
         core::format("the pickle declares a storage of {}, but its record has {}", core::counted(nbytes, "byte"),
                      entry.size),
         path_, entry.data_offset, name);
  }
  if (storages_.empty()) storages_.assign(entries_.size(), -1);
  if (storages_[record] < 0) {
    auto& storages = parsed_.index.storages;
    storages_[record] = static_cast<std::int64_t>(storages.size());
    const bool stored = entry.method == kZipStored;
    storages.push_back({.name = name,
                        .offset = entry.data_offset,
                        .stored_bytes = entry.compressed_size,
                        .nbytes = entry.size,
                        .compression = stored ? Compression::kNone : Compression::kDeflate,
                        .crc32 = recorded_crc(entry),
                        .resident = {}});
    parsed_.storage_records.resize(storages.size(), kNoRecord);
    parsed_.storage_records.back() = record;
  }
  return static_cast<std::uint32_t>(storages_[record]);
}

std::size_t ZipStorages::find(std::string_view name) {
  // Storages usually come in the order of their records.
  for (const std::size_t record : {guess_, guess_ + 1}) {
    if (record < entries_.size() && entries_[record].name == name) return guess_ = record;
  }
  const auto compare = [this](std::string_view a, std::string_view b) {
    return any_case_ ? compare_in_any_case(a, b) : a.compare(b);
  };
  if (by_name_.empty()) {
    by_name_.resize(entries_.size());
    std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
    std::sort(by_name_.begin(), by_name_.end(),
              [&](std::size_t a, std::size_t b) { return compare(entries_[a].name, entries_[b].name) < 0; });
  }
  const auto at = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [&](std::size_t record, std::string_view wanted) { return compare(entries_[record].name, wanted) < 0; });
  if (at == by_name_.end() || compare(entries_[*at].name, name) != 0) return kNoRecord;
  return guess_ = *at;
}

std::string_view read_text(const FileBytes& file, const ZipEntry& entry, bool verify, std::vector<std::byte>& store) {
  if (entry.size > kMaxFactBytes) {
    fail(ErrorCode::kLimit,
         core::format("the record has {}, where a word or a number was expected", core::counted(entry.size, "byte")),
         file.path(), entry.data_offset, entry.name);
  }
  return text_of(read_pt_record(file, entry, verify, store));
}

/// "3\n": the version of the archive's layout.
std::string read_version(const FileBytes& file, const ZipEntry& entry, bool verify) {
  std::vector<std::byte> store;
  std::string_view text = read_text(file, entry, verify, store);
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  const auto version = pickle::parse_int64(text);
  if (!version) {
    fail(ErrorCode::kCorrupt,
         core::format("the version of the archive is {}, which is not a number", core::quoted(text)), file.path(),
         entry.data_offset, entry.name);
  }
  if (*version < kOldestVersion || *version > kNewestVersion) {
    fail(ErrorCode::kUnsupported,
         core::format("the archive has version {}; Penstock reads {} to {}", *version, kOldestVersion, kNewestVersion),
         file.path(), entry.data_offset, entry.name);
  }
  return std::string(text);
}

std::string read_fact(const FileBytes& file, std::span<const ZipEntry> entries, std::optional<std::size_t> record,
                      bool verify) {
  if (!record) return {};
  std::vector<std::byte> store;
  return core::escaped(read_text(file, entries[*record], verify, store));
}

/// Whether tensors have the other byte order than this machine.
bool read_byteorder(const FileBytes& file, std::span<const ZipEntry> entries, const PtRecords& records,
                    const OpenOptions& options, Index& index) {
  const std::string order = records.byteorder    ? read_fact(file, entries, records.byteorder, options.verify)
                            : options.big_endian ? "big"
                                                 : "little";
  if (order != "little" && order != "big") {
    const ZipEntry& entry = entries[*records.byteorder];
    fail(ErrorCode::kCorrupt,
         core::format("the byte order is {}, where 'little' or 'big' was expected", core::quoted(order)), file.path(),
         entry.data_offset, entry.name);
  }
  index.metadata.emplace("byteorder", order);
  return (order == "little") != (std::endian::native == std::endian::little);
}

class RecordFinder {
 public:
  RecordFinder(std::string_view prefix, std::string_view path) : path_(path) { out_.prefix = prefix; }

  void look_at(const ZipEntry& entry, std::size_t position);
  const PtRecords& records() const noexcept { return out_; }
  PtRecords finish(std::span<const ZipEntry> entries);

 private:
  bool is(std::string_view name, std::string_view wanted) noexcept {
    if (!is_record_name(name, wanted)) return false;
    out_.other_case |= name != wanted;
    return true;
  }
  [[noreturn]] void fail_without_pickle(std::span<const ZipEntry> entries) const;

  PtRecords out_;
  std::string_view path_;
  std::size_t pickle_ = kNoRecord;
  std::optional<std::size_t> dot_version_;
  bool exported_ = false;
  bool packaged_ = false;
};

void RecordFinder::look_at(const ZipEntry& entry, std::size_t position) {
  std::string_view name = entry.name;
  if (!name.starts_with(out_.prefix)) {
    fail(ErrorCode::kCorrupt,
         core::format("the record is not in the folder {} of the first one", core::quoted(out_.prefix)), path_,
         entry.header_offset, name);
  }
  // torch takes names as they are and writes UTF-8.
  if ((entry.flags & zip::kUtf8Flag) == 0 && !is_utf8(name)) {
    fail(ErrorCode::kUnsupported, "the record's name is not UTF-8; write the archive anew with UTF-8 names", path_,
         entry.header_offset, name);
  }
  name.remove_prefix(out_.prefix.size());
  constexpr std::string_view kStorages = "data/";
  if (name.size() > kStorages.size() && is(name.substr(0, kStorages.size()), kStorages)) return;
  if (is(name, "data.pkl")) pickle_ = position;
  if (is(name, "byteorder")) out_.byteorder = position;
  if (is(name, "version")) out_.version = position;
  if (is(name, ".data/version")) dot_version_ = position;
  if (is(name, ".format_version")) out_.format_version = position;
  if (is(name, ".storage_alignment")) out_.storage_alignment = position;
  out_.torchscript |= name == "constants.pkl" || name.starts_with("code/");
  exported_ |= name == "archive_format" || name == "models/model.json";
  packaged_ |= name == ".data/extern_modules";
}

PtRecords RecordFinder::finish(std::span<const ZipEntry> entries) {
  if (dot_version_) out_.version = dot_version_;
  if (pickle_ == kNoRecord) fail_without_pickle(entries);
  out_.pickle = pickle_;
  return out_;
}

void RecordFinder::fail_without_pickle(std::span<const ZipEntry> entries) const {
  const std::string_view first = entries.front().name;
  if (exported_) {
    fail(ErrorCode::kUnsupported,
         "the file is a program that torch.export saved (.pt2), which is not read; save its state_dict with torch.save",
         path_, 0, first);
  }
  if (packaged_) {
    fail(ErrorCode::kUnsupported,
         "the file is a package of code and data that torch.package wrote, which is not read; import from it with "
         "torch.package.PackageImporter and save the tensors with torch.save",
         path_, 0, first);
  }
  const auto deeper = std::find_if(entries.begin(), entries.end(), [](const ZipEntry& entry) {
    return is_record_name(base_of(entry.name), "data.pkl");
  });
  if (deeper != entries.end()) {
    const std::string_view folder = deeper->name.substr(0, deeper->name.size() - base_of(deeper->name).size());
    fail(ErrorCode::kCorrupt,
         core::format("the archive's 'data.pkl' is in the folder {}, where torch does not look for it either: it was "
                      "packed again with a folder around it; unpack it and pack it from inside the outermost folder",
                      core::quoted(folder)),
         path_, deeper->header_offset, deeper->name);
  }
  fail(ErrorCode::kCorrupt, "the archive has no record 'data.pkl' in its folder; torch.save did not write it", path_, 0,
       first);
}

/// Refuses records whose names differ only in the case of letters: which one torch finds depends on their order.
void require_no_case_twins(std::span<const ZipEntry> entries, std::string_view path) {
  std::vector<const ZipEntry*> order;
  for (const ZipEntry& entry : entries) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(),
                   [](const ZipEntry* a, const ZipEntry* b) { return compare_in_any_case(a->name, b->name) < 0; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const ZipEntry& twin = *order[i];
    if (compare_in_any_case(order[i - 1]->name, twin.name) != 0) continue;
    fail(ErrorCode::kCorrupt,
         "two records of the archive differ in nothing but the case of letters, which torch ignores", path,
         twin.header_offset, twin.name);
  }
}

}  // namespace

PtRecords find_pt_records(std::span<const ZipEntry> entries, std::string_view path) {
  if (entries.empty())
    fail(ErrorCode::kCorrupt, "the archive is empty, where records of a .pt were expected", path, 0, {});
  const std::string_view first = entries.front().name;
  const std::size_t slash = first.find('/');
  if (slash == first.npos) {
    fail(ErrorCode::kCorrupt,
         "the first record is in no folder, where 'NAME/data.pkl' and the like were expected; torch does not read the "
         "archive either: pack it again with all records in one folder",
         path, entries.front().header_offset, first);
  }
  RecordFinder finder(first.substr(0, slash + 1), path);
  for (std::size_t i = 0; i < entries.size(); ++i) finder.look_at(entries[i], i);
  if (finder.records().other_case) require_no_case_twins(entries, path);
  return finder.finish(entries);
}

std::optional<std::uint32_t> recorded_crc(const ZipEntry& entry) noexcept {
  return entry.crc32 != 0 ? std::optional(entry.crc32) : std::nullopt;
}

std::span<const std::byte> read_pt_record(const FileBytes& file, const ZipEntry& entry, bool verify,
                                          std::vector<std::byte>& store) {
  std::span<const std::byte> bytes = file.at(entry.data_offset, entry.compressed_size, store);
  if (entry.method == kZipDeflate) {
    std::vector<std::byte> inflated(entry.size);
    inflate(bytes, inflated, file.path(), entry.name);
    store = std::move(inflated);
    bytes = store;
  }
  const io::Record record{.crc32 = recorded_crc(entry),
                          .bytes = entry.size,
                          .path = file.path(),
                          .offset = entry.data_offset,
                          .name = entry.name};
  io::RecordCheck(record, verify).check(bytes);
  return bytes;
}

ZipParsed read_pt_zip(const FileBytes& file, std::span<const ZipEntry> entries, const OpenOptions& options) {
  const bool verify = options.verify;
  const PtRecords records = find_pt_records(entries, file.path());
  ZipParsed parsed;
  Index& index = parsed.index;
  if (!records.version) {
    fail(ErrorCode::kCorrupt, "the archive has no record 'version'; torch.save did not write it", file.path(), 0,
         entries.front().name);
  }
  index.metadata.emplace("version", read_version(file, entries[*records.version], verify));
  const bool swapped = read_byteorder(file, entries, records, options, index);
  if (records.format_version) {
    index.metadata.emplace("format_version", read_fact(file, entries, records.format_version, verify));
  }
  if (records.storage_alignment) {
    index.metadata.emplace("storage_alignment", read_fact(file, entries, records.storage_alignment, verify));
  }
  if (records.torchscript) index.metadata.emplace("kind", "torchscript");
  const ZipEntry& pickle = entries[records.pickle];
  const pickle::Limits limits = pickle::limits_of(pickle, file.path());
  std::vector<std::byte> store;
  const auto bytes = read_pt_record(file, pickle, verify, store);
  ZipStorages storages(entries, records, parsed, file.path());
  try {
    pickle::read_pickle(bytes, pickle.data_offset, index, storages,
                        {.swapped = swapped, .limits = limits, .decode = options.decode});
  } catch (const Error& error) {
    throw error.within({.path = file.path(), .tensor = core::escaped(pickle.name)});
  }
  parsed.storage_records.resize(index.storages.size(), kNoRecord);
  return parsed;
}

}  // namespace penstock::format
