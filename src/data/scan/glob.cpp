#include "data/scan/glob.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/text.h"
#include "data/scan/bucket_scan.h"
#include "data/scan/folder_scan.h"
#include "data/scan/name_match.h"
#include "data/scan/sample_extensions.h"
#include "data/scan/scan_index.h"
#include "io/file/file_url.h"
#include "io/file/url.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

[[noreturn]] void throw_nothing(const std::string& pattern, bool folder) {
  const ErrorContext where{.path = pattern};
  if (folder) {
    throw Error(ErrorCode::kNotFound,
                core::format("the folder holds no tensor files ({}); name another folder, or a pattern such as {}",
                             fmt::join(sample_extensions(), " "), core::quoted(join(pattern, "**/*.pt"))),
                where);
  }
  if (is_magic(pattern)) {
    throw Error(ErrorCode::kNotFound, "no file matches the pattern; check the folder and the extension in it", where);
  }
  if (std::error_code ignored; std::filesystem::exists(pattern, ignored)) {
    throw Error(ErrorCode::kUnsupported,
                "this is no regular file but a FIFO, a socket or a device; copy its content into a file first", where);
  }
  throw Error(ErrorCode::kNotFound, "there is no file or folder of this name; check the path", where);
}

PathTable table_of(std::vector<Listing> listings) {
  const auto folder = [](const Listing& listing) {
    const std::string& text = listing.visit.folder;
    return text.empty() || text.back() == '/' ? text : text + '/';
  };
  std::erase_if(listings, [](const Listing& listing) { return listing.names.empty(); });
  std::sort(listings.begin(), listings.end(),
            [&](const Listing& a, const Listing& b) { return folder(a) < folder(b); });
  PathTable out;
  std::vector<FolderNames> listed;
  listed.reserve(listings.size());
  bool apart = true;
  std::optional<std::string> last;
  for (Listing& listing : listings) {
    // Files of a folder and of one below it are to be merged; all others follow one another as their folders do.
    apart = apart && !(last && folder(listing).starts_with(*last));
    last = folder(listing);
    listed.push_back({out.folder(listing.visit.folder), std::move(listing.names)});
  }
  out.add(std::move(listed));
  if (!apart) out.sort();
  return out;
}

std::vector<Listing> find_files(const std::string& pattern, const std::string& folder,
                                const std::vector<PatternPart>& parts, const FilesOptions& options) {
  Exclusion exclude(options.exclude);
  if (!options.index) return scan_folders(folder, parts, {.exclude = std::move(exclude)}).listings;
  // What is left out belongs to the pattern: no path has a NUL in it.
  std::string key = pattern;
  for (const std::string& left_out : options.exclude) key.append(1, '\0').append(left_out);
  const ScanIndex kept(options.index_path, key);
  Scan scan = scan_folders(folder, parts, {.known = kept.read(parts.size()), .exclude = std::move(exclude)});
  if (scan.fresh > 0) kept.write(scan.listings);
  return std::move(scan.listings);
}

}  // namespace

PathTable expand(std::string_view pattern, const FilesOptions& options) {
  const std::string text = io::local_path(pattern);
  if (io::is_url(text)) return expand_url(text, options);
  PathTable out;
  // A name that exists as it is written is taken so. A file whose name has '*' or '?' and no brackets is among those
  // that it stands for, who are what is meant.
  const FileKind kind = kind_of(text);
  const bool folder = kind == FileKind::kFolder || kind == FileKind::kLinkToFolder;
  const bool stands_for_itself = text.find_first_of("*?") != std::string::npos && text.find('[') == std::string::npos;
  if (kind == FileKind::kFile && !stands_for_itself) {
    out.add(text);
  } else if (folder) {
    out = table_of(find_files(text, text, {{PatternPart::Kind::kTensorFile, {}}}, options));
  } else if (is_magic(text)) {
    out = table_of(find_files(text, text[0] == '/' ? "/" : "", split_pattern(text), options));
  }
  if (out.size() == 0) throw_nothing(text, folder);
  out.seal();
  return out;
}

FilesBelow files_below(const std::string& folder, const std::vector<std::string>& exclude) {
  const std::vector<PatternPart> parts = {{PatternPart::Kind::kAnyDepth, {}}};
  Scan scan = scan_folders(folder, parts, {.exclude = Exclusion(exclude), .keep_going = true});
  return {table_of(std::move(scan.listings)), std::move(scan.refused)};
}

}  // namespace penstock::data
