// A zip archive says everything twice: in the directory at its end and in a header in front of each member. Readers
// differ in which one they believe, and a file could show each something else. So both are read and compared, members
// must lie back to back, and what is ambiguous is refused.

#include "format/zip/reader.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "format/text/utf8.h"
#include "format/zip/end.h"
#include "format/zip/layout.h"
#include "io/read/read_ahead.h"
#include "io/source/own_read.h"
#include "penstock/error.h"

namespace penstock::format {

namespace {

/// As zip's specification (APPNOTE 4.4.5) numbers them.
std::string method_name(std::uint16_t method) {
  switch (method) {
    case 9:
      return "deflate64";
    case 12:
      return "bzip2";
    case 14:
      return "lzma";
    case 93:
      return "zstd";
    case 95:
      return "xz";
    default:
      return core::format("method {}", method);
  }
}

using namespace zip;  // NOLINT(google-build-using-namespace): the records' own names, in this file alone
using core::range_fits;

/// Headers nearer to each other than this are read together ...
constexpr std::uint64_t kNearBytes = 8 * 1024;
/// ... up to this much at a time.
constexpr std::uint64_t kWindowBytes = 256 * 1024;
/// Guess of a local header's extra field, so that one read usually covers it.
constexpr std::uint64_t kExtraGuess = 128;
constexpr std::size_t kSmallArchive = 32;
/// The most that one byte of a deflate stream can become.
constexpr std::uint64_t kDeflateRatio = 1032;

/// 64-bit values of the zip64 extra field, for the header fields that hold the sentinel.
struct Wide {
  std::uint64_t size = 0;
  std::uint64_t compressed_size = 0;
  std::uint64_t header_offset = 0;
};

class Parser {
 public:
  Parser(ZipBytes& bytes, const ZipLimits& limits, std::vector<ZipEntry>& entries)
      : bytes_(bytes), limits_(limits), entries_(entries) {
    entries_.clear();
  }

  void list_members(std::span<const std::byte> directory, const ZipPlace& where);
  void check_names() const;
  void check_members(const ZipPlace& where);

 private:
  [[noreturn]] void fail(ErrorCode code, std::string message, std::uint64_t offset,
                         std::string_view member = {}) const {
    bytes_.fail(code, std::move(message), offset, member);
  }

  ZipEntry read_central(const std::byte* header, std::string_view name, std::span<const std::byte> extra,
                        std::uint64_t offset) const;
  void check_features(const ZipEntry& entry, std::uint64_t offset) const;
  void check_extra(std::string_view name, std::span<const std::byte> extra, std::uint64_t offset) const;
  /// Fills the members of `wide` that are sentinels; false when the extra field does not hold them.
  static bool widen(std::span<const std::byte> extra, Wide& wide) noexcept;

  std::uint64_t check_local(ZipEntry& entry, std::uint64_t limit, std::uint64_t ahead);
  void check_local_sizes(const ZipEntry& entry, const std::byte* header, std::uint64_t extra_offset,
                         std::size_t extra_bytes);
  void check_descriptor(const ZipEntry& entry, std::uint64_t offset, std::uint64_t length, std::uint64_t ahead);
  bool read_ahead(std::uint64_t limit);
  std::uint64_t ahead_of(std::size_t first, std::uint64_t offset) const noexcept;
  ZipEntry& member(std::size_t position) const noexcept {
    return entries_[order_.empty() ? position : order_[position]];
  }

  ZipBytes& bytes_;
  const ZipLimits& limits_;
  std::vector<ZipEntry>& entries_;
  std::vector<std::size_t> order_;  ///< entries by file position, when the directory is in another order
};

void Parser::list_members(std::span<const std::byte> directory, const ZipPlace& where) {
  entries_.reserve(where.count);
  std::uint64_t inflated = 0;
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < where.count; ++i) {
    const std::byte* const header = directory.data() + at;
    const std::uint64_t offset = where.offset + at;
    if (directory.size() - at < kCentralBytes || u32(header) != kCentralSignature) {
      fail(ErrorCode::kCorrupt, core::format("the zip directory has {} of {}", i, core::counted(where.count, "member")),
           offset);
    }
    const std::size_t name_bytes = u16(header + 28);
    const std::size_t extra_bytes = u16(header + 30);
    const std::size_t length = kCentralBytes + name_bytes + extra_bytes + u16(header + 32);
    if (directory.size() - at < length) {
      fail(ErrorCode::kCorrupt, "a member's entry runs past the end of the zip directory", offset);
    }
    const std::string_view name(reinterpret_cast<const char*>(header) + kCentralBytes, name_bytes);
    entries_.push_back(read_central(header, name, {header + kCentralBytes + name_bytes, extra_bytes}, offset));
    const ZipEntry& entry = entries_.back();
    if (entry.method == kZipDeflate && entry.size > limits_.max_inflated_bytes - inflated) {
      fail(ErrorCode::kLimit, core::format("the members inflate to more than {} bytes", limits_.max_inflated_bytes),
           offset, name);
    }
    if (entry.method == kZipDeflate) inflated += entry.size;
    at += length;
  }
  if (at != directory.size()) {
    fail(ErrorCode::kCorrupt,
         core::format("{} the members in the zip directory",
                      core::counted(directory.size() - at, "byte follows", "bytes follow")),
         where.offset + at);
  }
}

ZipEntry Parser::read_central(const std::byte* header, std::string_view name, std::span<const std::byte> extra,
                              std::uint64_t offset) const {
  try {
    check_zip_name(name, (u16(header + 8) & kUtf8Flag) != 0);
  } catch (const Error& error) {
    fail(error.code(), error.message(), offset, name);
  }
  Wide wide{u32(header + 24), u32(header + 20), u32(header + 42)};
  if (!extra.empty()) check_extra(name, extra, offset);
  if (wide.size == kSentinel32 || wide.compressed_size == kSentinel32 || wide.header_offset == kSentinel32) {
    if (!widen(extra, wide)) fail(ErrorCode::kCorrupt, "the member's zip64 sizes are missing", offset, name);
  }
  const std::uint16_t disk = u16(header + 34);
  if (disk != 0 && disk != kSentinel16) {
    fail(ErrorCode::kUnsupported, "the member lies on another disk, which is not read", offset, name);
  }
  const ZipEntry entry{.name = name,
                       .header_offset = wide.header_offset,
                       .compressed_size = wide.compressed_size,
                       .size = wide.size,
                       .crc32 = u32(header + 16),
                       .method = u16(header + 10),
                       .flags = u16(header + 8)};
  check_features(entry, offset);
  return entry;
}

void Parser::check_features(const ZipEntry& entry, std::uint64_t offset) const {
  if ((entry.flags & (kEncryptedFlag | kStrongEncryptionFlag | kMaskedFlag)) != 0) {
    fail(ErrorCode::kUnsupported, "the member is encrypted; decrypt the archive first", offset, entry.name);
  }
  if ((entry.flags & kPatchFlag) != 0) {
    fail(ErrorCode::kUnsupported, "the member is a patch of another file, which is not read", offset, entry.name);
  }
  if (entry.method == kZipStored) {
    if (entry.size == entry.compressed_size) return;
    fail(ErrorCode::kCorrupt,
         core::format("the stored member has {} but is listed with {}", core::counted(entry.compressed_size, "byte"),
                      entry.size),
         offset, entry.name);
  }
  if (entry.method != kZipDeflate) {
    fail(
        ErrorCode::kUnsupported,
        core::format("the member is compressed by {}; 'stored' and 'deflate' are read: write the archive anew with one "
                     "of these",
                     method_name(entry.method)),
        offset, entry.name);
  }
  if (entry.size / kDeflateRatio > entry.compressed_size) {
    fail(ErrorCode::kCorrupt,
         core::format("{} cannot inflate to the {} that the member is listed with",
                      core::counted(entry.compressed_size, "byte"), entry.size),
         offset, entry.name);
  }
}

void Parser::check_extra(std::string_view name, std::span<const std::byte> extra, std::uint64_t offset) const {
  bool seen_zip64 = false;
  while (extra.size() >= 4) {
    const std::uint16_t id = u16(extra.data());
    const std::size_t length = u16(extra.data() + 2);
    if (length > extra.size() - 4) fail(ErrorCode::kCorrupt, "an extra field runs past its end", offset, name);
    const std::span<const std::byte> data = extra.subspan(4, length);
    if (id == kZip64Extra && std::exchange(seen_zip64, true)) {
      fail(ErrorCode::kCorrupt, "the member has two zip64 fields", offset, name);
    }
    // Readers differ in which of the two names they believe.
    if (id == kUnicodePathExtra &&
        (length < 5 || std::string_view(reinterpret_cast<const char*>(data.data()) + 5, length - 5) != name)) {
      fail(ErrorCode::kUnsupported, "the member has a second name that differs from its first", offset, name);
    }
    extra = extra.subspan(4 + length);
  }
}

bool Parser::widen(std::span<const std::byte> extra, Wide& wide) noexcept {
  while (extra.size() >= 4) {
    const std::size_t length = u16(extra.data() + 2);
    if (length > extra.size() - 4) return false;
    if (u16(extra.data()) == kZip64Extra) {
      std::span<const std::byte> values = extra.subspan(4, length);
      for (std::uint64_t* value : {&wide.size, &wide.compressed_size, &wide.header_offset}) {
        if (*value != kSentinel32) continue;
        if (values.size() < 8) return false;
        *value = u64(values.data());
        values = values.subspan(8);
      }
      return true;
    }
    extra = extra.subspan(4 + length);
  }
  return false;
}

void Parser::check_names() const {
  const auto refuse = [this](const ZipEntry& entry) {
    fail(ErrorCode::kCorrupt, "two members of the zip archive have this name", entry.header_offset, entry.name);
  };
  if (entries_.size() <= kSmallArchive) {
    for (std::size_t i = 1; i < entries_.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (entries_[i].name == entries_[k].name) refuse(entries_[i]);
      }
    }
    return;
  }
  // Sorted, not hashed: no choice of names makes it slow.
  std::vector<std::pair<std::size_t, const ZipEntry*>> names;
  names.reserve(entries_.size());
  for (const ZipEntry& entry : entries_) names.emplace_back(std::hash<std::string_view>()(entry.name), &entry);
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second->name < b.second->name;
  });
  const auto twin = std::adjacent_find(names.begin(), names.end(),
                                       [](const auto& a, const auto& b) { return a.second->name == b.second->name; });
  if (twin != names.end()) refuse(*twin->second);
}

/// How much to read at `offset` when the descriptor there, or the header of member `first`, is needed: on through the
/// headers that follow closely.
std::uint64_t Parser::ahead_of(std::size_t first, std::uint64_t offset) const noexcept {
  std::uint64_t stop = offset + kLongDescriptor;
  for (std::size_t i = first; i < entries_.size(); ++i) {
    const ZipEntry& next = member(i);
    if (next.header_offset < offset || next.header_offset > stop + kNearBytes) break;
    if (next.header_offset - offset > kWindowBytes) break;
    stop = next.header_offset + kLocalBytes + next.name.size() + kExtraGuess;
  }
  return stop - offset;
}

/// All headers, and descriptors in front of them, at once; whether that was worth it.
bool Parser::read_ahead(std::uint64_t limit) {
  if (!bytes_.waits()) return false;
  std::vector<io::Extent> pieces;
  pieces.reserve(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const ZipEntry& entry = member(i);
    const std::uint64_t begin = entry.header_offset - std::min(entry.header_offset, kLongDescriptor);
    const std::uint64_t front = std::min(limits_.front_bytes, entry.compressed_size);
    const std::uint64_t bytes = kLongDescriptor + kLocalBytes + entry.name.size() + kExtraGuess + front;
    if (begin >= limit) break;  // whoever checks it says what is wrong
    pieces.push_back({begin, begin + std::min(bytes, limit - begin)});
  }
  return bytes_.read_ahead(pieces);
}

/// Members must lie back to back: nothing overlaps, nothing is hidden between them.
void Parser::check_members(const ZipPlace& where) {
  const auto by_offset = [this](std::size_t a, std::size_t b) {
    return entries_[a].header_offset < entries_[b].header_offset;
  };
  if (!std::is_sorted(entries_.begin(), entries_.end(),
                      [](const ZipEntry& a, const ZipEntry& b) { return a.header_offset < b.header_offset; })) {
    order_.resize(entries_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::sort(order_.begin(), order_.end(), by_offset);
  }
  const bool is_ahead = read_ahead(where.offset);
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    ZipEntry& entry = member(i);
    if (entry.header_offset != at) {
      fail(ErrorCode::kCorrupt,
           entry.header_offset < at
               ? "the member overlaps the one before it"
               : core::format("{} to nothing", core::counted(entry.header_offset - at, "byte before the member belongs",
                                                             "bytes before the member belong")),
           entry.header_offset, entry.name);
    }
    const std::uint64_t next = i + 1 < entries_.size() ? member(i + 1).header_offset : where.offset;
    const std::uint64_t ahead = is_ahead || bytes_.has(at, kLocalBytes) ? 0 : ahead_of(i, at);
    at = check_local(entry, where.offset, ahead);
    if ((entry.flags & kDescriptorFlag) != 0) {
      const std::uint64_t length = next < at ? 0 : next - at;
      check_descriptor(entry, at, length, is_ahead || bytes_.has(at, length) ? 0 : ahead_of(i + 1, at));
      at += length;
    }
  }
  if (at != where.offset) {
    fail(ErrorCode::kCorrupt,
         at > where.offset
             ? "the last member overlaps the zip directory"
             : core::format("{} to nothing", core::counted(where.offset - at, "byte before the zip directory belongs",
                                                           "bytes before the zip directory belong")),
         at);
  }
}

/// Checks the local header, sets data_offset and returns where the data ends; nothing may reach beyond `limit`.
std::uint64_t Parser::check_local(ZipEntry& entry, std::uint64_t limit, std::uint64_t ahead) {
  const std::uint64_t offset = entry.header_offset;
  const std::uint64_t wanted = kLocalBytes + entry.name.size();
  if (!range_fits(offset, wanted, limit)) {
    fail(ErrorCode::kCorrupt, "the member's header overlaps the zip directory", offset, entry.name);
  }
  const std::byte* const header = bytes_.at(offset, wanted, ahead);
  const std::string_view name(reinterpret_cast<const char*>(header) + kLocalBytes, entry.name.size());
  if (u32(header) != kLocalSignature || u16(header + 26) != entry.name.size() || name != entry.name) {
    fail(ErrorCode::kCorrupt, "the member's own header does not have the name that the zip directory gives it", offset,
         entry.name);
  }
  if (u16(header + 6) != entry.flags || u16(header + 8) != entry.method) {
    fail(ErrorCode::kCorrupt, "flags or method of the member's own header differ from the zip directory's", offset,
         entry.name);
  }
  const std::size_t extra_bytes = u16(header + 28);
  entry.data_offset = offset + wanted + extra_bytes;
  if (!range_fits(entry.data_offset, entry.compressed_size, limit)) {
    fail(ErrorCode::kCorrupt,
         core::format("the member's {} bytes do not fit before the zip directory at byte {}", entry.compressed_size,
                      limit),
         offset, entry.name);
  }
  check_local_sizes(entry, header, offset + wanted, extra_bytes);
  return entry.data_offset + entry.compressed_size;
}

/// Zero means "see the descriptor" (torch writes so), the sentinel "see the zip64 field" (numpy does), which may in
/// turn be zero.
void Parser::check_local_sizes(const ZipEntry& entry, const std::byte* header, std::uint64_t extra_offset,
                               std::size_t extra_bytes) {
  const std::uint32_t crc = u32(header + 14);
  Wide local{u32(header + 22), u32(header + 18), 0};
  bool good = crc == entry.crc32 || crc == 0;
  if (local.size == kSentinel32 || local.compressed_size == kSentinel32) {
    good &= widen({bytes_.at(extra_offset, extra_bytes), extra_bytes}, local);
  }
  good &= local.size == entry.size || local.size == 0;
  good &= local.compressed_size == entry.compressed_size || local.compressed_size == 0;
  if (!good) {
    fail(ErrorCode::kCorrupt, "sizes or CRC of the member's own header differ from the zip directory's",
         entry.header_offset, entry.name);
  }
}

/// Its length is what lies before the next member: 4 bytes more with a signature, which many writers leave out, and 8
/// more where its sizes have 64 bits.
void Parser::check_descriptor(const ZipEntry& entry, std::uint64_t offset, std::uint64_t length, std::uint64_t ahead) {
  const bool is_signed = length == kShortDescriptor || length == kLongDescriptor;
  if (!is_signed && length != kShortDescriptor - kSignatureBytes && length != kLongDescriptor - kSignatureBytes) {
    fail(ErrorCode::kCorrupt,
         core::format("the member's data descriptor has 12, 16, 20 or 24 bytes, but there are {} before what follows",
                      length),
         offset, entry.name);
  }
  const std::byte* bytes = bytes_.at(offset, length, ahead);
  const bool has_signature = !is_signed || u32(bytes) == kDescriptorSignature;
  if (is_signed) bytes += kSignatureBytes;
  const bool is_long = length > kShortDescriptor;
  const std::uint64_t compressed_size = is_long ? u64(bytes + 4) : u32(bytes + 4);
  const std::uint64_t size = is_long ? u64(bytes + 12) : u32(bytes + 8);
  if (!has_signature || u32(bytes) != entry.crc32 || size != entry.size || compressed_size != entry.compressed_size) {
    fail(ErrorCode::kCorrupt, "the member's data descriptor differs from the zip directory", offset, entry.name);
  }
}

/// Whether the name is printable-looking ASCII: no zero byte and no byte beyond ASCII. Eight bytes at a time: a loader
/// asks for each record of each small file.
bool is_plain_name(std::string_view name) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kTops = 0x8080808080808080;
  if (name.size() < sizeof(std::uint64_t)) return false;
  const std::size_t last = name.size() - sizeof(std::uint64_t);
  for (std::size_t at = 0;; at = std::min(at + sizeof(std::uint64_t), last)) {
    const auto word = load<std::uint64_t>(reinterpret_cast<const std::byte*>(name.data()) + at);
    // The top bits of bytes beyond ASCII, of bytes that are zero, and perhaps of bytes above one that is.
    if (((word | (word - kOnes)) & kTops) != 0) return false;
    if (at == last) return true;
  }
}

}  // namespace

void read_zip_directory(std::span<const std::byte> file, std::string_view path, std::vector<ZipEntry>& entries,
                        const ZipLimits& limits) {
  ZipBytes bytes(file, path);
  const ZipPlace where = find_zip_directory(bytes, limits);
  Parser parser(bytes, limits, entries);
  parser.list_members(file.subspan(where.offset, where.bytes), where);
  parser.check_names();
  parser.check_members(where);
}

namespace {

ZipDirectory read_directory(const ByteSource& source, const ZipLimits& limits, bool names_only) {
  ZipDirectory out;
  out.memory = io::memory_of(source);
  const std::span<const std::byte> file(out.memory ? out.memory.data() : nullptr, out.memory ? out.memory.size() : 0);
  ZipBytes bytes = out.memory ? ZipBytes(file, source.name()) : ZipBytes(source);
  const ZipPlace where = find_zip_directory(bytes, limits);
  if (!out.memory) out.bytes = bytes.copy(where.offset, where.bytes);
  out.trailing_bytes = where.trailing_bytes;
  Parser parser(bytes, limits, out.entries);
  parser.list_members(out.memory ? file.subspan(where.offset, where.bytes) : out.bytes, where);
  if (names_only) return out;
  parser.check_names();
  parser.check_members(where);
  return out;
}

}  // namespace

ZipDirectory read_zip_directory(const ByteSource& source, const ZipLimits& limits) {
  return read_directory(source, limits, false);
}

ZipDirectory list_zip_members(const ByteSource& source, const ZipLimits& limits) {
  return read_directory(source, limits, true);
}

std::string member_name(const ZipEntry& entry) {
  return (entry.flags & kUtf8Flag) != 0 ? std::string(entry.name) : from_cp437(entry.name);
}

void check_zip_name(std::string_view name, bool said_to_be_utf8) {
  if (is_plain_name(name)) return;
  if (name.empty()) throw Error(ErrorCode::kCorrupt, "a member of the zip archive has no name");
  if (name.find('\0') != std::string_view::npos) {
    throw Error(ErrorCode::kUnsafe, "a member's name has a zero byte, where some readers end it and others go on");
  }
  if (said_to_be_utf8 && !is_utf8(name)) {
    throw Error(ErrorCode::kUnsupported, "the member's name is not UTF-8; write the archive anew with UTF-8 names");
  }
}

}  // namespace penstock::format
