// Listing a folder costs as much as asking for a few hundred of its files, and a million requests to the kernel cost a
// second, so folders are listed where many of their files are asked for.

#include "data/files/absent.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string_view>

#include "core/system_error.h"
#include "data/files/path_name.h"
#include "io/locations.h"
#include "io/remote/location.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

/// So many files of a folder are looked at one by one.
constexpr std::size_t kFew = 16;

std::vector<std::string> sorted_names(const std::string& folder) {
  std::vector<std::string> out = io::names_in(folder);
  std::sort(out.begin(), out.end());
  return out;
}

bool is_there(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  core::throw_errno(errno, "cannot tell whether the file is there", {.path = path});
}

}  // namespace

bool FolderLists::can_tell(const std::string& path) {
  return !io::waits_for_server(path) || io::remote::parse_in_bucket(path).has_value();
}

const std::vector<std::string>& FolderLists::names_in(const std::string& folder) {
  const auto known = listed_.find(folder);
  return known != listed_.end() ? known->second : listed_.emplace(folder, sorted_names(folder)).first->second;
}

std::vector<bool> FolderLists::absent(const std::vector<std::string>& paths) {
  std::unordered_map<std::string_view, std::size_t> asked;  // how many of each folder
  for (const std::string& path : paths) ++asked[PathName(path).folder];
  std::vector<bool> out(paths.size(), false);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const PathName parts(paths[i]);
    if (!can_tell(paths[i])) continue;
    if (asked[parts.folder] <= kFew && !io::waits_for_server(paths[i])) {
      out[i] = !is_there(paths[i]);
    } else {
      const std::vector<std::string>& names = names_in(std::string(parts.folder));
      out[i] = !std::binary_search(names.begin(), names.end(), parts.name);
    }
  }
  return out;
}

}  // namespace penstock::data
