// An `.npz` is a zip archive whose members are `.npy` files. The index needs the header of each member, which is read
// from the start of the member, inflated if need be.

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/text.h"
#include "format/check_index.h"
#include "format/flat_tensors.h"
#include "format/numpy/npy_array.h"
#include "format/numpy/npy_objects.h"
#include "format/numpy/npy_stream.h"
#include "format/pt/pickle/read_pickle.h"
#include "format/rows.h"
#include "format/zip/index_bytes.h"
#include "format/zip/inflate.h"
#include "format/zip/kind.h"
#include "format/zip/layouts.h"
#include "format/zip/reader.h"
#include "format/zip/writer.h"
#include "io/copy/record_check.h"
#include "penstock/error.h"

namespace penstock::format {

namespace {

constexpr std::string_view kSuffix = ".npy";

bool sniff_npz(std::span<const std::byte> head, const ByteSource& source) {
  return sniff_zip(head, source) == ZipKind::kPlain;
}

std::string_view key_of(std::string_view member) noexcept {
  return member.ends_with(kSuffix) ? member.substr(0, member.size() - kSuffix.size()) : member;
}

/// Folders, which archives packed by other tools list as members of their own.
bool is_folder(const ZipEntry& member) noexcept { return member.size == 0 && member.name.ends_with('/'); }

/// What is not an array is raw bytes, as with NumPy.
TensorEntry raw_entry(const ZipEntry& member) {
  return {.dtype = DType::uint8, .shape = Shape{static_cast<std::int64_t>(member.size)}, .strides = Strides{1}};
}

struct MemberEntry {
  TensorEntry tensor;
  std::optional<NpyHeader> header;  ///< none of what is no array
};

MemberEntry read_entry(const ByteSource& source, const ZipEntry& member) {
  const NpyHead head = [&](std::span<std::byte> out) {
    if (member.method == kZipDeflate) {
      return inflate_prefix(source, member.data_offset, member.compressed_size, out, member.name);
    }
    source.read(member.data_offset, out);
    return out.size();
  };
  std::array<std::byte, kUsualNpyHeader> usual;
  const std::size_t count = head(std::span(usual).first(std::min<std::uint64_t>(member.size, usual.size())));
  const auto start = std::span<const std::byte>(usual).first(count);
  if (!is_npy(start)) return {raw_entry(member), std::nullopt};
  NpyHeader header = read_npy_header(start, head, member.size, source.name(), member.name, member.data_offset);
  MemberEntry entry{npy_entry(header), std::move(header)};
  entry.tensor.byte_offset = entry.header->size;
  return entry;
}

/// Positions in an inflated member are none in the file: errors say where the member begins.
MemberEntry read_entry_of(const ByteSource& source, const ZipEntry& member) {
  if (member.method != kZipDeflate) return read_entry(source, member);
  try {
    return read_entry(source, member);
  } catch (const Error& error) {
    throw error.at({source.name(), member.data_offset, std::string(member.name)});
  }
}

/// All of a member, compared with its CRC.
std::vector<std::byte> read_member(const ByteSource& source, const ZipEntry& member, bool verify) {
  std::vector<std::byte> bytes(member.size);
  if (member.method == kZipDeflate) {
    bytes.resize(inflate_prefix(source, member.data_offset, member.compressed_size, bytes, member.name));
  } else {
    source.read(member.data_offset, bytes);
  }
  const io::Record record{.crc32 = member.crc32,
                          .bytes = bytes.size(),
                          .path = source.name(),
                          .offset = member.data_offset,
                          .name = member.name};
  io::RecordCheck(record, verify).check(bytes);
  return bytes;
}

/// What reads the array alone checks no more than its bytes, and those only when they end with the member: a damaged
/// header could have told it to have fewer elements, or none. Large members are not read through for that.
void check_shortened(const ByteSource& source, const ZipEntry& member) {
  if (member.size <= kMaxNpyHeader + kNpyPrefix) read_member(source, member, true);
}

bool ends_member(const TensorEntry& array, const ZipEntry& member) {
  return array.nbytes() != 0 && array.byte_offset + array.nbytes() == member.size;
}

/// What an archive holds, and where in the directory each part of it comes from.
struct Contents {
  Index index;
  std::vector<std::pair<std::string, Value>> items;  ///< by key
  std::vector<std::size_t> records;                  ///< of each storage, the member; kNoRecord: in memory
  std::vector<std::size_t> arrays;                   ///< of each member, the entry; kNoRecord: it is none
  bool has_objects = false;                          ///< of a member that is no entry
};

/// The objects of a member's array; nothing where its pickle cannot be read, so that only the member cannot be loaded.
std::optional<Value> objects_of(const ByteSource& source, const ZipEntry& member, const NpyHeader& header,
                                std::string_view key, const OpenOptions& options, Index& index) {
  try {
    const pickle::Limits limits = pickle::limits_of(member, source.name());
    const std::vector<std::byte> bytes = read_member(source, member, options.verify);
    if (bytes.size() < header.size) return std::nullopt;
    return read_objects(std::span<const std::byte>(bytes).subspan(header.size), member.data_offset, header, key, limits,
                        options, index);
  } catch (const Error& error) {
    const bool is_of_machine = error.code() == ErrorCode::kIo || error.code() == ErrorCode::kOutOfMemory ||
                               error.code() == ErrorCode::kCancelled;
    if (is_of_machine) throw;
    return std::nullopt;
  }
}

void add_member(const ByteSource& source, const ZipEntry& member, const OpenOptions& options, std::size_t record,
                Contents& out) {
  auto [entry, header] = read_entry_of(source, member);
  if (options.verify && !entry.pickled && !ends_member(entry, member)) check_shortened(source, member);
  const std::string name = member_name(member);
  const std::string key(key_of(name));
  Index& index = out.index;
  if (entry.pickled) {
    if (auto objects = objects_of(source, member, *header, key, options, index)) {
      out.has_objects = true;
      out.items.emplace_back(key, *std::move(objects));
      out.records.resize(index.storages.size(), kNoRecord);
      return;
    }
  }
  entry.name = key;
  entry.storage = index.storages.size();
  if (header && header->python2) index.numpy.python2_headers.push_back(index.entries.size());
  out.arrays[record] = index.entries.size();
  out.items.emplace_back(key, Value::entry(index.entries.size()));
  out.records.push_back(record);
  index.entries.push_back(std::move(entry));
  index.storages.push_back({.name = name,
                            .offset = member.data_offset,
                            .stored_bytes = member.compressed_size,
                            .nbytes = member.size,
                            .compression = member.method == kZipDeflate ? Compression::kDeflate : Compression::kNone,
                            .crc32 = member.crc32});
}

/// `a` and `a.npy` are two members but one key.
void check_keys(const std::string& path, const Contents& contents) {
  std::vector<std::string_view> keys;
  keys.reserve(contents.items.size());
  for (const auto& [key, value] : contents.items) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  const auto twin = std::adjacent_find(keys.begin(), keys.end());
  if (twin == keys.end()) return;
  throw Error(ErrorCode::kCorrupt, "two members of the archive have this key: rename one and pack it again",
              {path, std::nullopt, std::string(*twin)});
}

/// Arrays within objects are named by the way to them, which may be another member's key: they get "#2", "#3" ...
void name_apart(Contents& contents) {
  auto& entries = contents.index.entries;
  if (!contents.has_objects) return;
  std::vector<bool> is_member(entries.size());
  std::set<std::string, std::less<>> taken;
  for (const std::size_t entry : contents.arrays) {
    if (entry == kNoRecord) continue;
    is_member[entry] = true;
    taken.insert(entries[entry].name);
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (is_member[i]) continue;
    const std::string name = entries[i].name;
    for (std::size_t number = 2; !taken.insert(entries[i].name).second; ++number) {
      entries[i].name = core::format("{}#{}", name, number);
    }
  }
}

Contents read_contents(const Source& source, std::span<const ZipEntry> members, const OpenOptions& options) {
  Contents out;
  Index& index = out.index;
  index.sources = {source};
  index.entries.reserve(members.size());
  index.storages.reserve(members.size());
  out.arrays.assign(members.size(), kNoRecord);
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (is_folder(members[i])) {
      index.numpy.folders.emplace_back(out.items.size(), member_name(members[i]));
    } else {
      add_member(*source, members[i], options, i, out);
    }
  }
  check_keys(source.name(), out);
  name_apart(out);
  index.structure = Value::dict(std::exchange(out.items, {}));
  return out;
}

Index read_npz(const Source& source, const OpenOptions& options) {
  const ZipDirectory directory = read_zip_directory(*source, {.front_bytes = kInflatedFront});
  return read_contents(source, directory.entries, options).index;
}

std::optional<std::uint32_t> recorded_crc(const ZipEntry& member) noexcept { return member.crc32; }

/// The header of an array decides what its member means. A member that is no array, holds objects or ends behind an
/// array, is looked at more closely each time.
ZipParsed parse(std::span<const std::byte> file, std::string_view path, std::span<const ZipEntry> entries,
                const OpenOptions& options) {
  static const auto kNobody = std::make_shared<const int>(0);
  auto* const bytes = const_cast<std::byte*>(file.data());  // read-only memory is never written to
  const Source source = memory_source(Buffer::wrap(bytes, file.size(), kNobody, true), std::string(path));
  Contents contents = read_contents(source, entries, options);
  ZipParsed out{.index = std::move(contents.index), .storage_records = std::move(contents.records), .fixed_bytes = {}};
  check_index(out.index);
  out.index.sources.clear();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    out.fixed_bytes.push_back(0);
    if (is_folder(entries[i])) continue;
    if (contents.arrays[i] == kNoRecord) {
      out.reusable = false;
      continue;
    }
    const TensorEntry& array = out.index.entries[contents.arrays[i]];
    out.reusable = out.reusable && array.byte_offset != 0 && !array.pickled && ends_member(array, entries[i]);
    out.fixed_bytes.back() = array.byte_offset;
  }
  return out;
}

constexpr ZipRules kRules{.has_folder = false, .recorded_crc = recorded_crc, .parse = parse};

void refuse_nested(const Value& value) {
  if (!value.is(Value::Kind::kDict)) return;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const auto [key, item] = value.item(i);
    if (!item.is(Value::Kind::kDict)) continue;
    throw Error(ErrorCode::kUnsupported,
                core::format("{} is a dict; .npz holds one flat dict of tensors: flatten it, or save as .pt",
                             key.is(Value::Kind::kString) ? core::quoted(key.as_string()) : "an item"));
  }
}

void write_npz(const Value& value, io::ByteSink& sink, const SaveOptions& options, std::string_view path) {
  try {
    refuse_nested(value);
    ZipWriter zip(sink, ZipStyle::kNumpy);
    for (const NamedTensor& named : flat_tensors(value, ".npz", "arr_0")) {
      try {
        const NpyImage image(named.tensor);
        const std::array parts{std::as_bytes(std::span(image.header)), image.payload};
        const std::string member = named.name + std::string(kSuffix);
        options.compress ? zip.add_deflated(member, parts) : zip.add(member, parts);
      } catch (const Error& error) {
        throw error.within({{}, std::nullopt, named.name});
      }
    }
    zip.finish();
  } catch (const Error& error) {
    throw error.within({std::string(path)});
  }
}

void write_unloaded_npz(const Unloaded& content, io::ByteSink& sink, const SaveOptions& options,
                        std::string_view path) {
  try {
    refuse_nested(content.structure);
    ZipWriter zip(sink, ZipStyle::kNumpy);
    for (const auto& [name, tensor] : flat_values(content.structure, ".npz", "arr_0")) {
      const TensorEntry& entry = content.entries[tensor.entry_index().value()];
      try {
        const std::string header = npy_header_of(entry);
        zip.begin(name + std::string(kSuffix), header.size() + entry.nbytes(), options.compress);
        ZipMemberSink member(zip);
        member.write(std::as_bytes(std::span(header)));
        content.payload(entry.storage, member);
        zip.end();
      } catch (const Error& error) {
        throw error.within({{}, std::nullopt, name});
      }
    }
    zip.finish();
  } catch (const Error& error) {
    throw error.within({std::string(path)});
  }
}

constexpr auto kNpzExtensions = std::to_array<std::string_view>({".npz"});

}  // namespace

const Format kNpzFormat{.name = "npz",
                        .extensions = kNpzExtensions,
                        .sniff = sniff_npz,
                        .read_index = read_npz,
                        .write = write_npz,
                        .stream = stream_npz,
                        .index_bytes = [](const ByteSource& source) { return zip_index_bytes(source, {}); },
                        .directory_cache = [] { return std::unique_ptr<DirectoryCache>(new ZipLayouts(kRules)); },
                        .name_suffix = kSuffix,
                        .can_compress = true,
                        .write_unloaded = write_unloaded_npz,
                        .keeps_order = true};

}  // namespace penstock::format
