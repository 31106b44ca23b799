// The file in which a listing of folders is kept for the next run. It holds a magic, the number of bytes after the head
// and their CRC-32; then the key, which says what was listed, and the listings one after the other. Numbers are
// little-endian, as in memory, and a text has its length before it. A damaged or foreign index is ignored, because
// listing the folders again gives the same. A change of this layout, or of what is listed, must change the magic.

#include "data/scan/scan_index.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <new>
#include <optional>
#include <span>
#include <system_error>
#include <type_traits>
#include <utility>

#include "core/cursor.h"
#include "core/environment.h"
#include "core/format.h"
#include "io/copy/crc32.h"
#include "io/file/atomic_file.h"
#include "penstock/error.h"
#include "penstock/source.h"

namespace penstock::data {

namespace {

constexpr std::string_view kMagic = "PSTKIDX3";
constexpr std::string_view kAnyMagic = kMagic.substr(0, 7);  ///< of every version
constexpr std::size_t kHead = kMagic.size() + sizeof(std::uint64_t) + sizeof(std::uint32_t);

class Writer {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void number(T value) { out_.append(reinterpret_cast<const char*>(&value), sizeof(value)); }
  void text(std::string_view text) {
    number<std::uint64_t>(text.size());
    out_.append(text);
  }
  void visit(const Visit& visit) {
    text(visit.folder);
    number<std::uint64_t>(visit.parts.size());
    for (const std::uint32_t part : visit.parts) number(part);
  }
  void listing(const Listing& listing) {
    visit(listing.visit);
    number(listing.identity.device);
    number(listing.identity.inode);
    number(listing.identity.modified);
    number(listing.identity.changed);
    text(listing.names);
    number<std::uint64_t>(listing.next.size());
    for (const Visit& next : listing.next) visit(next);
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(out_)); }

 private:
  std::string out_;
};

/// Throws Error where the bytes are none of Writer's.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::size_t parts) : cursor_(bytes), parts_(parts) {}

  std::string_view text() { return cursor_.take_text(cursor_.u64()); }
  bool at_end() const noexcept { return cursor_.at_end(); }

  Listing listing() {
    Listing out;
    out.visit = visit();
    out.identity.device = cursor_.u64();
    out.identity.inode = cursor_.u64();
    out.identity.modified = cursor_.i64();
    out.identity.changed = cursor_.i64();
    out.names = text();
    require(out.names.empty() || out.names.back() == '\0');
    require(out.names.find('/') == std::string::npos);
    const std::uint64_t next = count();
    for (std::uint64_t i = 0; i < next; ++i) {
      out.next.push_back(visit());
      // Further down, or the listing would come back here for ever.
      const std::string& folder = out.next.back().folder;
      require(folder.size() > out.visit.folder.size() && folder.starts_with(out.visit.folder));
    }
    return out;
  }

 private:
  static void require(bool holds) {
    if (!holds) throw Error(ErrorCode::kCorrupt, "this is not an index of files");
  }
  /// Of things that take bytes: never more than are left.
  std::uint64_t count() {
    const std::uint64_t out = cursor_.u64();
    require(out <= cursor_.remaining());
    return out;
  }
  Visit visit() {
    Visit out;
    out.folder = text();
    require(out.folder.find('\0') == std::string::npos);
    const std::uint64_t parts = count();
    for (std::uint64_t i = 0; i < parts; ++i) {
      out.parts.push_back(cursor_.u32());
      require(out.parts.back() < parts_);
    }
    return out;
  }

  core::Cursor cursor_;
  std::size_t parts_;
};

/// $XDG_CACHE_HOME/penstock, by its specification only when absolute, else ~/.cache/penstock; none without a home.
std::optional<std::filesystem::path> cache_folder() {
  const auto absolute = [](const char* name) -> std::optional<std::filesystem::path> {
    const char* const value = core::environment(name);
    if (value == nullptr || value[0] != '/') return std::nullopt;
    return value;
  };
  if (const auto cache = absolute("XDG_CACHE_HOME")) return *cache / "penstock";
  if (const auto home = absolute("HOME")) return *home / ".cache" / "penstock";
  return std::nullopt;
}

/// FNV-1a: the same on every machine and in every version, unlike std::hash. The key itself is in the file.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t out = 0xcbf29ce484222325;
  for (const char c : text) out = (out ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return out;
}

/// The bytes after the head; none if the file is not a whole and undamaged index. The head is checked against the size
/// of the file before anything is read or allocated, so a damaged number cannot ask for any amount of memory.
std::vector<std::byte> read_body(const ByteSource& source) {
  std::array<std::byte, kHead> bytes{};
  source.read(0, bytes);
  core::Cursor head(bytes);
  if (head.take_text(kMagic.size()) != kMagic) return {};
  if (head.u64() != source.size() - kHead) return {};
  std::vector<std::byte> body(static_cast<std::size_t>(source.size() - kHead));
  source.read(kHead, body);
  if (io::crc32(0, body) != head.u32()) return {};
  return body;
}

/// Whether the file may be an index of ours, even a cut one or one with a damaged byte in its magic.
bool may_be_index(const std::string& path) {
  std::string head;
  try {
    const penstock::Source source = open_source(path);
    head.resize(std::min<std::uint64_t>(kAnyMagic.size(), source.size()));
    source.read(0, std::as_writable_bytes(std::span(head)));
  } catch (const Error&) {
    // The file cannot be read now. Writing then replaces it, or fails and says why.
    return true;
  }
  std::size_t other = 0;
  for (std::size_t i = 0; i < head.size(); ++i) other += head[i] != kAnyMagic[i] ? 1 : 0;
  return other == 0 || (other == 1 && head.size() == kAnyMagic.size());
}

}  // namespace

ScanIndex::ScanIndex(std::string path, std::string_view pattern) : path_(std::move(path)), cache_(path_.empty()) {
  std::error_code ignored;
  if (!pattern.starts_with('/')) key_ = std::filesystem::current_path(ignored).string();
  key_.append("\n").append(pattern);
  if (!cache_) return;
  if (const auto folder = cache_folder()) path_ = *folder / core::format("files-{:016x}.index", hash_of(key_));
}

std::vector<Listing> ScanIndex::read(std::size_t parts) const {
  std::vector<Listing> out;
  if (path_.empty()) return out;
  try {
    const Source file = open_source(path_);
    const std::vector<std::byte> body = read_body(*file);
    if (body.empty()) return out;
    Reader reader(body, parts);
    if (reader.text() != key_) return out;
    while (!reader.at_end()) out.push_back(reader.listing());
  } catch (const Error&) {
    out.clear();
  } catch (const std::bad_alloc&) {
    // An index that does not fit into memory was not written by us.
    out.clear();
  }
  return out;
}

void ScanIndex::require_own() const {
  std::error_code error;
  if (cache_ || !std::filesystem::exists(path_, error) || may_be_index(path_)) return;
  throw Error(ErrorCode::kInvalidArgument,
              "this file is not an index of files, and would be written over; name another for the index, or delete it",
              {.path = path_});
}

void ScanIndex::write(const std::vector<Listing>& listings) const {
  if (path_.empty()) return;
  require_own();
  Writer writer;
  writer.text(key_);
  for (const Listing& listing : listings) writer.listing(listing);
  Writer head;
  head.number<std::uint64_t>(writer.bytes().size());
  head.number(io::crc32(0, writer.bytes()));
  try {
    std::error_code ignored;
    if (cache_) std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
    io::AtomicFile file(path_, false);
    file.write_text(kMagic);
    file.write(head.bytes());
    file.write(writer.bytes());
    file.commit();
  } catch (const Error& error) {
    // An index that cannot be written only makes the next listing slower. But a wrong path of the caller is an error.
    if (!cache_ && error.code() != ErrorCode::kIo) throw;
  }
}

}  // namespace penstock::data
