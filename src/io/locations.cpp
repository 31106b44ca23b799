#include "io/locations.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/format.h"
#include "core/text.h"
#include "core/url_scheme.h"
#include "io/file/file_url.h"
#include "io/file/folder_names.h"
#include "io/file/url.h"
#include "io/remote/list.h"
#include "io/remote/location.h"

namespace penstock::io {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

std::vector<std::string> names_of_objects(const std::string& folder) {
  const remote::Location location = remote::parse(folder);
  const remote::Objects listed = remote::list_objects(location, location.key, false);
  std::vector<std::string> out;
  for (const remote::Object& object : listed.objects) out.push_back(object.key.substr(location.key.size()));
  for (const std::string& inner : listed.folders) out.push_back(inner.substr(location.key.size()));
  std::erase(out, "");
  return out;
}

}  // namespace

std::size_t query_begin(std::string_view location) noexcept {
  const bool has_query = location.starts_with("http://") || location.starts_with("https://");
  return has_query ? std::min(location.find_first_of("?#"), location.size()) : location.size();
}

std::string_view path_part(std::string_view location) noexcept { return location.substr(0, query_begin(location)); }

std::size_t root_size(std::string_view location) noexcept {
  if (!is_url(location)) return location.starts_with('/') ? 1 : 0;
  return std::min(location.find('/', location.find("://") + 3), location.size() - 1) + 1;
}

std::string beside(std::string_view location, std::string_view name) {
  return is_url(location) ? remote::sibling(location, name) : fs::path(location).replace_filename(name).string();
}

std::string beside_inside(std::string_view location, std::string_view name) {
  std::string joined = beside(location, name);
  if (waits_for_server(location)) return joined;
  std::error_code error;
  const fs::path real = fs::canonical(joined, error);
  if (error == std::errc::no_such_file_or_directory) return {};
  if (error) return joined;  // permission, a loop of links: opening the file says it best
  // The file that names it may be a link itself, into the folder where both lie.
  const fs::path folder = real.parent_path();
  if (folder == fs::canonical(folder_of(location), error)) return joined;
  if (folder == fs::canonical(location, error).parent_path()) return joined;
  throw Error(
      ErrorCode::kUnsafe,
      core::format("the shard {} is a link to {}, outside the index's folder: copy the file there if you trust it",
                   core::quoted(name), core::quoted(real.string())),
      {std::string(location)});
}

void require_inside_folder(std::string_view location, std::string_view name, const ByteSource& opened) {
  const auto version = opened.version();
  if (is_url(location) || !version) return;
  const std::string path = beside_inside(location, name);
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  // Which file was opened tells its inode; a path would be looked up once more.
  struct stat there {};
  const bool is_same =
      !error && ::lstat(real.c_str(), &there) == 0 && there.st_dev == version->device && there.st_ino == version->inode;
  if (is_same) return;
  throw Error(ErrorCode::kChanged,
              core::format("the shard {} was replaced by another file while it was opened; open the index again",
                           core::quoted(name)),
              {std::string(location)});
}

std::string in_folder(std::string_view folder, std::string_view name) {
  return is_url(folder) ? remote::in_folder(folder, name) : (fs::path(folder) / name).string();
}

std::vector<std::string> names_in(const std::string& folder) {
  return is_url(folder) ? names_of_objects(folder) : folder_names(folder);
}

bool is_local_folder(std::string_view location) {
  std::error_code ignored;
  return !waits_for_server(location) && fs::is_directory(location, ignored);
}

std::string absolute(std::string_view location) {
  const std::string_view scheme = core::scheme_of(location);
  if (!scheme.empty() && scheme != "file") return std::string(location);
  try {
    std::error_code error;
    std::string out = fs::absolute(local_path(location), error).string();
    return error ? std::string() : out;
  } catch (const Error&) {  // whoever opens it says what is wrong
    return std::string(location);
  }
}

std::string absolute_or_same(std::string_view location) {
  std::string out = absolute(location);
  return out.empty() ? std::string(location) : out;
}

bool tells_absence(const Error& error, std::string_view location) noexcept {
  return error.code() == ErrorCode::kNotFound || (error.code() == ErrorCode::kPermission && waits_for_server(location));
}

std::optional<Source> open_if_there(const std::string& location) {
  try {
    return open_source(location);
  } catch (const Error& error) {
    if (!tells_absence(error, location)) throw;
    return std::nullopt;
  }
}

bool waits_for_server(std::string_view location) noexcept { return is_url(location); }

}  // namespace penstock::io
