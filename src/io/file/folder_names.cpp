#include "io/file/folder_names.h"

#include <filesystem>

#include "core/system_error.h"

namespace penstock::io {

namespace fs = std::filesystem;

std::vector<std::string> folder_names(const std::string& folder, std::error_code& error) {
  std::vector<std::string> names;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  return names;
}

std::vector<std::string> folder_names(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names = folder_names(folder, error);
  if (error) core::throw_errno(error.value(), "cannot list the folder", {.path = folder});
  return names;
}

}  // namespace penstock::io
