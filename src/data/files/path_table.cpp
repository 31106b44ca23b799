#include "data/files/path_table.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "penstock/error.h"

namespace penstock::data {

namespace {

/// Folders that all tables hold open.
std::atomic<std::size_t> open_folders = 0;

/// As many of `wanted` as may be opened, which are counted as open.
std::size_t grant_folders(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const auto most = static_cast<std::size_t>(limit.rlim_cur / 4);
  const std::size_t before = open_folders.fetch_add(wanted);
  const std::size_t granted = std::min(wanted, most - std::min(before, most));
  open_folders -= wanted - granted;
  return granted;
}

}  // namespace

/// Descriptors, -1 where a folder could not be opened.
struct PathTable::OpenFolders {
  explicit OpenFolders(std::size_t wanted) : count(grant_folders(wanted)) {}
  ~OpenFolders() { open_folders -= count; }
  OpenFolders(const OpenFolders&) = delete;
  OpenFolders& operator=(const OpenFolders&) = delete;

  std::size_t count;
  std::vector<io::FileDescriptor> descriptors;
};

std::uint32_t PathTable::folder(std::string_view folder) {
  std::string prefix(folder);
  if (!prefix.empty() && prefix.back() != '/') prefix += '/';
  const auto [known, added] = numbers_.try_emplace(prefix, static_cast<std::uint32_t>(folders_.size()));
  if (added) {
    if (folders_.size() >= std::size_t{1} << (64 - kNameBits)) {
      throw Error(ErrorCode::kLimit, "a dataset of files takes no more than 16777216 folders; concat several of them");
    }
    folders_.push_back(std::move(prefix));
  }
  return known->second;
}

void PathTable::add(std::uint32_t folder, std::string_view name) {
  entries_.push_back(Entry{folder} << kNameBits | names_.size());
  names_.insert(names_.end(), name.begin(), name.end());
  names_.push_back('\0');
}

void PathTable::add_names(std::uint32_t folder, std::string_view names) {
  for (std::size_t at = 0; at < names.size(); at = names.find('\0', at) + 1) {
    entries_.push_back(Entry{folder} << kNameBits | (names_.size() + at));
  }
  names_.insert(names_.end(), names.begin(), names.end());
}

void PathTable::add(std::string_view path) {
  if (path.find('\0') != std::string_view::npos) {
    throw Error(ErrorCode::kInvalidArgument, "the path has a NUL character in it; no file can have that name",
                {.path = std::string(path.substr(0, path.find('\0')))});
  }
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == std::string_view::npos ? 0 : slash + 1;
  add(folder(path.substr(0, name)), path.substr(name));
}

bool PathTable::before(Entry a, Entry b) const noexcept {
  const std::size_t folder_a = folder_of(a);
  const std::size_t folder_b = folder_of(b);
  if (folder_a == folder_b) return std::strcmp(name_of(a), name_of(b)) < 0;
  // The paths differ at the latest where one folder's text ends and the other goes on.
  const std::string_view prefix_a = folders_[folder_a];
  const std::string_view prefix_b = folders_[folder_b];
  const std::size_t common = std::min(prefix_a.size(), prefix_b.size());
  if (const int order = std::memcmp(prefix_a.data(), prefix_b.data(), common)) return order < 0;
  const auto tail = [&](std::string_view prefix, const char* name) {
    return std::string(prefix.substr(common)) + name;
  };
  return tail(prefix_a, name_of(a)) < tail(prefix_b, name_of(b));
}

void PathTable::sort() {
  std::sort(entries_.begin(), entries_.end(), [this](Entry a, Entry b) { return before(a, b); });
  const auto same = [this](Entry a, Entry b) {
    return folder_of(a) == folder_of(b) && std::strcmp(name_of(a), name_of(b)) == 0;
  };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same), entries_.end());
}

void PathTable::seal() {
  entries_.shrink_to_fit();
  names_.shrink_to_fit();
  numbers_ = {};
  const auto opened = std::make_shared<OpenFolders>(std::min(folders_.size(), kMaxOpenFolders));
  for (std::size_t i = 0; i < opened->count; ++i) {
    const char* folder = folders_[i].empty() ? "." : folders_[i].c_str();
    opened->descriptors.emplace_back(::open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  open_folders_ = opened;
}

std::string PathTable::path(std::int64_t index) const {
  const Entry entry = entries_[static_cast<std::size_t>(index)];
  return folders_[folder_of(entry)] + name_of(entry);
}

void PathTable::path(std::int64_t index, std::string& out) const {
  const Entry entry = entries_[static_cast<std::size_t>(index)];
  out.assign(folders_[folder_of(entry)]);
  out.append(name_of(entry));
}

io::FileDescriptor PathTable::open(std::int64_t index) const {
  // O_NONBLOCK: a FIFO in a file's place must not block; regular files do not know it.
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  const Entry entry = entries_[static_cast<std::size_t>(index)];
  const std::size_t folder = folder_of(entry);
  if (open_folders_ && folder < open_folders_->count && open_folders_->descriptors[folder]) {
    io::FileDescriptor fd(::openat(open_folders_->descriptors[folder].get(), name_of(entry), kFlags));
    // A folder that was removed and made again is another one under the same name.
    if (fd || errno != ENOENT) return fd;
  }
  return io::FileDescriptor(::open(path(index).c_str(), kFlags));
}

std::size_t PathTable::memory() const noexcept {
  std::size_t folders = 0;
  for (const std::string& folder : folders_) folders += sizeof(std::string) + folder.capacity();
  return entries_.capacity() * sizeof(Entry) + names_.capacity() + folders;
}

}  // namespace penstock::data
