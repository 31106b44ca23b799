#include "data/pack/new_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "core/format.h"
#include "core/system_error.h"
#include "penstock/error.h"
#include "penstock/save.h"
#include "penstock/source.h"

namespace penstock::data {
namespace {

namespace fs = std::filesystem;

constexpr int kTries = 100;

[[noreturn]] void fail(const std::string& path, int error) {
  core::throw_errno(error, "cannot make the folder", {.path = path});
}

[[noreturn]] void refuse(const std::string& path) {
  throw Error(ErrorCode::kInvalidArgument,
              "the path exists and is not an empty folder; name a new folder or an empty one", {.path = path});
}

/// Without slashes at its end, which would put the temporary folder inside.
std::string trimmed(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

void require_new_folder(const std::string& path) {
  std::error_code ignored;
  const fs::file_status found = fs::symlink_status(path, ignored);
  if (fs::exists(found) && (!fs::is_directory(found) || !fs::is_empty(path, ignored))) refuse(path);
}

NewFolder::NewFolder(std::string path) : path_(trimmed(std::move(path))) {
  require_new_folder(path_);
  std::random_device random;
  for (int i = 0; i < kTries; ++i) {
    std::string name = core::format("{}.{:08x}.tmp", path_, random());
    if (::mkdir(name.c_str(), 0777) == 0) {
      temporary_ = std::move(name);
      return;
    }
    if (errno != EEXIST) fail(path_, errno);
  }
  fail(path_, EEXIST);
}

NewFolder::~NewFolder() {
  if (!temporary_.empty() && core::forks() == forks_) remove();
}

std::uint64_t NewFolder::save(const Value& value, const std::string& name, const SaveOptions& options) {
  const std::string path = core::format("{}/{}", temporary_, names_.emplace_back(name));
  try {
    penstock::save(value, path, options);
    return open_source(path).size();
  } catch (const Error& error) {
    // The temporary folder is gone by the time that somebody looks for it.
    if (error.path() != path) throw;
    throw error.at({core::format("{}/{}", path_, name), error.offset(), error.tensor()});
  }
}

/// By the names of its files: where no descriptor can be had, which may be why it is removed, it cannot be listed.
void NewFolder::remove() noexcept {
  for (const std::string& name : names_) {
    try {
      ::unlink(core::format("{}/{}", temporary_, name).c_str());
    } catch (const std::exception&) {
      // Without memory for the path the folder stays.
    }
  }
  std::error_code ignored;
  if (::rmdir(temporary_.c_str()) != 0) fs::remove_all(temporary_, ignored);
}

void NewFolder::commit() {
  // In place of an empty folder, as rename(2) of one does.
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) refuse(path_);
    fail(path_, errno);
  }
  temporary_.clear();
}

}  // namespace penstock::data
