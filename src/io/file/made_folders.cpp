#include "io/file/made_folders.h"

#include <cerrno>
#include <system_error>

#include "core/system_error.h"
#include "io/file/url.h"

namespace penstock::io {

MadeFolders::~MadeFolders() {
  if (core::forks() != forks_) return;
  std::error_code ignored;
  for (; !paths_.empty(); paths_.pop_back()) std::filesystem::remove(paths_.back(), ignored);  // only an empty one goes
}

void MadeFolders::make(const std::string& folder) {
  if (is_url(folder)) return;
  std::error_code error;
  if (std::filesystem::exists(folder, error) && !std::filesystem::is_directory(folder, error)) {
    core::throw_errno(ENOTDIR, "cannot write a checkpoint into it", {.path = folder});
  }
  std::vector<std::filesystem::path> missing;
  for (std::filesystem::path at = folder; !at.empty() && !std::filesystem::exists(at, error); at = at.parent_path()) {
    missing.push_back(at);
  }
  for (; !missing.empty(); missing.pop_back()) {
    if (std::filesystem::create_directory(missing.back(), error)) paths_.push_back(missing.back());
    if (error) core::throw_errno(error.value(), "cannot make the folder of a checkpoint", {.path = folder});
  }
}

}  // namespace penstock::io
