// The two rows of `.pt` and how they are recognised: a zip archive of torch since 1.6, and pickles back to back before
// that.

#include "format/pt/pt.h"

#include <algorithm>
#include <string>

#include "core/text.h"
#include "format/file_bytes.h"
#include "format/pt/legacy.h"
#include "format/pt/stream.h"
#include "format/pt/write.h"
#include "format/pt/zip.h"
#include "format/rows.h"
#include "format/tar/header.h"
#include "format/zip/index_bytes.h"
#include "format/zip/kind.h"
#include "format/zip/layout.h"
#include "penstock/error.h"

namespace penstock::format {

namespace {

constexpr std::string_view kExtensions[] = {".pt", ".pth"};
/// What caffe2 wrote for a few months before the zip container.
constexpr std::string_view kOldContainer = "PYTORCH1";

using core::text_of;

/// The first member's name, from its local header; empty when this is no zip archive or too short.
std::string first_name(std::span<const std::byte> head, const ByteSource& source) {
  if (head.size() < zip::kLocalBytes || zip::u32(head.data()) != zip::kLocalSignature) return {};
  const std::size_t length = zip::u16(head.data() + 26);
  if (source.size() - zip::kLocalBytes < length) return {};
  if (head.size() - zip::kLocalBytes >= length) return std::string(text_of(head.subspan(zip::kLocalBytes, length)));
  std::string name(length, '\0');
  source.read(zip::kLocalBytes, std::as_writable_bytes(std::span(name)));
  return name;
}

/// Archives of torch keep everything in one folder and mostly begin with its pickle; those of NumPy hold `.npy` files,
/// mostly in no folder. Of others all names are looked at, so that what torch wrote and its reader refuses is refused
/// by name here too.
bool sniff_pt(std::span<const std::byte> head, const ByteSource& source) {
  const std::string name = first_name(head, source);
  const std::size_t slash = name.find('/');
  if (name.empty() || (slash == name.npos && name.ends_with(".npy"))) return false;
  if (slash != name.npos && std::string_view(name).substr(slash + 1) == "data.pkl") return true;
  return sniff_zip(head, source) == ZipKind::kTorch;
}

Index read_pt(const Source& source, const OpenOptions& options) {
  const ZipDirectory directory = read_zip_directory(*source);
  Index index = read_pt_zip(FileBytes(*source), directory.entries, options).index;
  index.sources.push_back(source);
  return index;
}

bool sniff_legacy(std::span<const std::byte> head, const ByteSource& source) {
  if (is_pt_legacy(head) || text_of(head).starts_with(kOldContainer)) return true;
  return is_pt_tar(FileBytes(source));
}

Index read_not_zip(const FileBytes& file, const OpenOptions& options) {
  std::vector<std::byte> store;
  const auto head = file.at(0, std::min<std::uint64_t>(file.size(), kTarBlock), store);
  if (text_of(head).starts_with(kOldContainer)) {
    throw Error(ErrorCode::kUnsupported,
                "the file has the container PYTORCH1 that preceded zip archives, which is not read; load it with torch "
                "and save it again",
                {.path = file.path(), .offset = 0});
  }
  return is_pt_tar(file) ? read_pt_tar(file, options) : read_pt_legacy(file, options);
}

Index read_legacy(const Source& source, const OpenOptions& options) {
  Index index = read_not_zip(FileBytes(*source), options);
  index.sources.push_back(source);
  return index;
}

}  // namespace

Index read_pt_index(std::span<const std::byte> file, std::string_view path, const OpenOptions& options) {
  const FileBytes bytes(file, path);
  if (!text_of(file).starts_with("PK")) return read_not_zip(bytes, options);
  std::vector<ZipEntry> entries;
  read_zip_directory(file, path, entries);
  return read_pt_zip(bytes, entries, options).index;
}

const Format kPtFormat{.name = "pt",
                       .extensions = kExtensions,
                       .sniff = sniff_pt,
                       .read_index = read_pt,
                       .write = write_pt,
                       .stream = stream_pt,
                       .index_bytes = [](const ByteSource& source) { return zip_index_bytes(source, ".pkl"); },
                       .directory_cache = [] { return std::unique_ptr<DirectoryCache>(new PtLayouts); },
                       .metadata_is_own = true,
                       .write_unloaded = write_unloaded_pt,
                       .has_storages = true};
const Format kPtLegacyFormat{.name = "pt",
                             .extensions = kExtensions,
                             .sniff = sniff_legacy,
                             .read_index = read_legacy,
                             .write = nullptr,
                             .metadata_is_own = true};

}  // namespace penstock::format
