// A dataset may have millions of files, so a path takes eight bytes beside its bare name: a number of its folder and an
// offset into the names of that folder. The folders stay open, as far as the limit of descriptors allows, because
// opening a file relative to its folder spares the kernel the walk along the path.

#include "data/scan/path_table.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "core/task_pool.h"
#include "data/sample/held_descriptors.h"
#include "io/file/open_path.h"
#include "io/file/url.h"
#include "penstock/error.h"

namespace penstock::data {

/// Descriptors, -1 where a folder could not be opened.
struct PathTable::OpenFolders {
  explicit OpenFolders(std::size_t wanted) : held(wanted) {}

  HeldDescriptors held;
  std::vector<io::FileDescriptor> descriptors;
};

std::uint32_t PathTable::folder(std::string_view folder) {
  std::string path(folder);
  if (!path.empty() && path.back() != '/') path += '/';
  const auto [known, added] = numbers_.try_emplace(path, static_cast<std::uint32_t>(folders_.size()));
  if (added) {
    if (folders_.size() >= std::size_t{1} << (64 - kNameBits)) {
      throw Error(ErrorCode::kLimit, "a dataset of files takes no more than 16777216 folders; concat several of them");
    }
    const bool is_url = io::is_url(path);
    has_urls_ = has_urls_ || is_url;
    folders_.push_back({std::move(path), {}, is_url});
  }
  return known->second;
}

void PathTable::add(std::uint32_t folder, std::string_view name) {
  std::string& names = folders_[folder].names;
  entries_.push_back(Entry{folder} << kNameBits | names.size());
  names.append(name).push_back('\0');
}

void PathTable::add(std::vector<FolderNames> listed) {
  std::vector<NameRun> runs;
  runs.reserve(listed.size());
  for (FolderNames& own : listed) {
    std::string& names = folders_[own.folder].names;
    runs.push_back({own.folder, names.size(), own.names.size(), 0});
    if (names.empty()) {
      names = std::move(own.names);
    } else {
      names.append(own.names);
    }
  }
  const std::size_t threads = runs.size() > 1 ? core::usable_cpus() : 1;
  core::parallel_for(runs.size(), threads, [&](std::size_t i) {
    const std::string_view names = names_of(runs[i]);
    runs[i].entry = static_cast<std::size_t>(std::count(names.begin(), names.end(), '\0'));
  });
  std::size_t entries = entries_.size();
  for (NameRun& run : runs) entries += std::exchange(run.entry, entries);
  entries_.resize(entries);
  core::parallel_for(runs.size(), threads, [&](std::size_t i) { fill(runs[i]); });
}

std::string_view PathTable::names_of(const NameRun& run) const noexcept {
  return std::string_view(folders_[run.folder].names).substr(run.begin, run.bytes);
}

void PathTable::fill(const NameRun& run) noexcept {
  const std::string_view names = names_of(run);
  std::size_t entry = run.entry;
  for (std::size_t at = 0; at < names.size(); at = names.find('\0', at) + 1) {
    entries_[entry++] = Entry{run.folder} << kNameBits | (run.begin + at);
  }
}

void PathTable::add(std::string_view path) {
  io::require_no_nul(path);
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == std::string_view::npos ? 0 : slash + 1;
  add(folder(path.substr(0, name)), path.substr(name));
}

void PathTable::add(std::string_view url, std::uint64_t bytes) {
  add(url);
  sizes_.push_back(bytes);
}

bool PathTable::is_url(std::int64_t index) const noexcept {
  return folder_of(entries_[static_cast<std::size_t>(index)]).is_url;
}

bool PathTable::before(Entry a, Entry b) const noexcept {
  const Folder& folder_a = folder_of(a);
  const Folder& folder_b = folder_of(b);
  if (&folder_a == &folder_b) return std::strcmp(name_of(a), name_of(b)) < 0;
  // The paths differ at the latest where one folder's text ends and the other goes on.
  const std::size_t common = std::min(folder_a.path.size(), folder_b.path.size());
  if (const int order = std::memcmp(folder_a.path.data(), folder_b.path.data(), common)) return order < 0;
  return folder_a.path.substr(common) + name_of(a) < folder_b.path.substr(common) + name_of(b);
}

void PathTable::sort() {
  std::sort(entries_.begin(), entries_.end(), [this](Entry a, Entry b) { return before(a, b); });
  const auto same = [this](Entry a, Entry b) {
    return &folder_of(a) == &folder_of(b) && std::strcmp(name_of(a), name_of(b)) == 0;
  };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same), entries_.end());
}

void PathTable::seal(Folders folders) {
  entries_.shrink_to_fit();
  for (Folder& folder : folders_) folder.names.shrink_to_fit();
  numbers_ = {};
  if (folders == Folders::kNone) return;
  const auto opened = std::make_shared<OpenFolders>(std::min(folders_.size(), kMaxOpenFolders));
  // So that no descriptor is open that memory for its owner could still be missing for.
  opened->descriptors.reserve(opened->held.count());
  for (std::size_t i = 0; i < opened->held.count(); ++i) {
    const std::string& path = folders_[i].path;
    if (folders_[i].is_url) {
      opened->descriptors.emplace_back();
      continue;
    }
    opened->descriptors.push_back(io::open_path(path.empty() ? "." : path, O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  open_folders_ = opened;
}

std::string PathTable::path(std::int64_t index) const {
  const Entry entry = entries_[static_cast<std::size_t>(index)];
  return folder_of(entry).path + name_of(entry);
}

void PathTable::path(std::int64_t index, std::string& out) const {
  const Entry entry = entries_[static_cast<std::size_t>(index)];
  out.assign(folder_of(entry).path);
  out.append(name_of(entry));
}

std::uint64_t PathTable::bytes_on_disk(std::int64_t index) const {
  if (!sizes_.empty()) return sizes_[static_cast<std::size_t>(index)];
  if (is_url(index)) return std::numeric_limits<std::uint64_t>::max();
  struct stat status {};
  const bool known = ::stat(path(index).c_str(), &status) == 0 && S_ISREG(status.st_mode);
  return known ? static_cast<std::uint64_t>(status.st_size) : std::numeric_limits<std::uint64_t>::max();
}

io::FileDescriptor PathTable::open(std::int64_t index) const {
  // O_NONBLOCK: a FIFO in a file's place must not block; regular files do not know it.
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  const Entry entry = entries_[static_cast<std::size_t>(index)];
  const auto folder = static_cast<std::size_t>(entry >> kNameBits);
  if (open_folders_ && folder < open_folders_->held.count() && open_folders_->descriptors[folder]) {
    io::FileDescriptor fd = io::open_at(open_folders_->descriptors[folder].get(), name_of(entry), kFlags);
    // A folder that was removed and made again is another one under the same name.
    if (fd || errno != ENOENT) return fd;
  }
  return io::open_path(path(index), kFlags);
}

std::size_t PathTable::memory() const noexcept {
  std::size_t folders = 0;
  for (const Folder& one : folders_) folders += sizeof(Folder) + one.path.capacity() + one.names.capacity();
  return entries_.capacity() * sizeof(Entry) + sizes_.capacity() * sizeof(std::uint64_t) + folders;
}

}  // namespace penstock::data
