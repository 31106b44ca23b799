// The file in which a listing of folders is kept for the next run. It holds the key, which says what was listed, and
// the listings one after the other. Numbers are little-endian, as in memory, and a text has its length before it. A
// damaged or foreign index is ignored, because listing the folders again gives the same. A change of this layout, or of
// what is listed, must change the magic.

#include "data/scan/scan_index.h"

#include <filesystem>
#include <new>
#include <span>
#include <system_error>
#include <utility>

#include "core/cursor.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

constexpr std::string_view kMagic = "PSTKIDX3";

void write_visit(KeptContent& out, const Visit& visit) {
  out.add_text(visit.folder);
  out.add_number<std::uint64_t>(visit.parts.size());
  for (const std::uint32_t part : visit.parts) out.add_number(part);
}

void write_listing(KeptContent& out, const Listing& listing) {
  write_visit(out, listing.visit);
  out.add_number(listing.identity.device);
  out.add_number(listing.identity.inode);
  out.add_number(listing.identity.modified);
  out.add_number(listing.identity.changed);
  out.add_text(listing.names);
  out.add_number<std::uint64_t>(listing.next.size());
  for (const Visit& next : listing.next) write_visit(out, next);
}

/// Throws Error where the bytes were not written by those two.
class ListingReader {
 public:
  ListingReader(std::span<const std::byte> bytes, std::size_t parts) : cursor_(bytes), parts_(parts) {}

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

/// A relative pattern is another in another folder.
std::string key_of(std::string_view pattern) {
  std::error_code ignored;
  std::string out;
  if (!pattern.starts_with('/')) out = std::filesystem::current_path(ignored).string();
  return out.append("\n").append(pattern);
}

}  // namespace

ScanIndex::ScanIndex(std::string path, std::string_view pattern)
    : key_(key_of(pattern)), file_(std::move(path), kMagic, "files", key_) {}

std::vector<Listing> ScanIndex::read(std::size_t parts) const {
  std::vector<Listing> out;
  const std::vector<std::byte> content = file_.read();
  if (content.empty()) return out;
  try {
    ListingReader reader(content, parts);
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

void ScanIndex::write(const std::vector<Listing>& listings) const {
  KeptContent content;
  content.add_text(key_);
  for (const Listing& listing : listings) write_listing(content, listing);
  file_.write(content.bytes());
}

}  // namespace penstock::data
