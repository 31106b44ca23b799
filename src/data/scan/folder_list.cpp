#include "data/scan/folder_list.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>

#include "core/format.h"
#include "core/system_error.h"

namespace penstock::data {

namespace {

/// File systems count time in steps of up to this (FAT); two changes within one are not told apart.
constexpr std::int64_t kCoarsestClock = 2'000'000'000;

std::int64_t nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

/// Where it really is, with '/' behind; empty when it is not there.
std::string real_folder(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path.empty() ? "." : path, error);
  return error ? "" : (real / "").string();
}

}  // namespace

FileKind kind_of(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return FileKind::kOther;
  const bool link = S_ISLNK(status.st_mode);
  if (link && ::stat(path.c_str(), &status) != 0) return FileKind::kOther;
  if (S_ISREG(status.st_mode)) return FileKind::kFile;
  if (!S_ISDIR(status.st_mode)) return FileKind::kOther;
  return link ? FileKind::kLinkToFolder : FileKind::kFolder;
}

std::string join(const std::string& folder, std::string_view name) {
  if (folder.empty() || folder.back() == '/') return folder + std::string(name);
  return core::format("{}/{}", folder, name);
}

bool WayBack::has(const std::string& link) {
  if (way_.empty()) {
    const std::filesystem::path whole(folder_);
    std::filesystem::path path = whole.root_path();
    way_.push_back(real_folder(path));
    for (const std::filesystem::path& name : whole.relative_path()) way_.push_back(real_folder(path /= name));
  }
  const std::string target = real_folder(link);
  return std::any_of(way_.begin(), way_.end(), [&](const std::string& on_way) { return on_way.starts_with(target); });
}

void list_folder(const std::string& folder, const std::function<void(std::string_view, FileKind)>& see) {
  struct Close {
    void operator()(DIR* d) const { ::closedir(d); }
  };
  const std::unique_ptr<DIR, Close> dir(::opendir(folder.empty() ? "." : folder.c_str()));
  if (!dir) {
    if (errno == ENOENT || errno == ENOTDIR) return;
    core::throw_errno(errno, "cannot list the folder", {.path = folder});
  }
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) {
      if (errno != 0) core::throw_errno(errno, "cannot list the folder", {.path = folder});
      return;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    const FileKind kind = entry->d_type == DT_REG   ? FileKind::kFile
                          : entry->d_type == DT_DIR ? FileKind::kFolder
                                                    : kind_of(join(folder, name));
    see(name, kind);
  }
}

FolderIdentity identity_of(const std::string& folder) {
  struct stat status {};
  if (::stat(folder.empty() ? "." : folder.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

FolderIdentity lasting_identity_of(const std::string& folder) {
  const FolderIdentity identity = identity_of(folder);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t settled = std::chrono::nanoseconds(now).count() - kCoarsestClock;
  return identity.modified < settled && identity.changed < settled ? identity : FolderIdentity{};
}

}  // namespace penstock::data
