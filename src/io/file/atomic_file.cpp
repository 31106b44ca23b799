// A file appears under its name whole or not at all. It is written without a name where the file system has such files
// (O_TMPFILE), so that nothing is left of a process that is killed. On commit it is linked to its name. Where that name
// exists it gets a temporary name beside the target and is renamed over it, because Linux cannot give an unnamed file a
// name that exists. Other file systems get the temporary name from the start.

#include "io/file/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include "core/checked.h"
#include "core/format.h"
#include "core/system_error.h"
#include "core/text.h"
#include "io/file/open_path.h"
#include "io/file/url.h"
#include "io/file/write_at.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

// Writes of less are collected.
constexpr std::size_t kBufferBytes = 256 * 1024;
constexpr int kMaxLinks = 40;      // as the kernel follows
constexpr int kMaxAttempts = 100;  // at a name that nobody has
constexpr std::size_t kMaxName = 255;
constexpr std::size_t kMostValue = 64 * 1024;  // of an attribute: XATTR_SIZE_MAX
constexpr const char* kAccessList = "system.posix_acl_access";

struct Location {
  std::string folder;
  std::string name;
};

Location split(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

/// The path that `path` leads to through symbolic links. Unlike realpath it needs nothing at the end.
std::string followed(const std::string& path) {
  std::string at = path;
  std::array<char, PATH_MAX> target;
  for (int links = 0; links < kMaxLinks; ++links) {
    const ssize_t length = ::readlink(at.c_str(), target.data(), target.size());
    if (length < 0) return at;
    const std::string_view to(target.data(), static_cast<std::size_t>(length));
    at = to.starts_with('/') ? std::string(to) : core::format("{}/{}", split(at).folder, to);
  }
  core::throw_errno(ELOOP, "cannot follow the symbolic link", {.path = path});
}

std::string random_letters() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz234567";
  // Five bits a letter: each call of the device takes longer than a system call.
  std::random_device random;
  std::uint64_t bits = (std::uint64_t{random()} << 32) | random();
  std::string out;
  for (; out.size() < 8; bits >>= 5) out += kLetters[bits % kLetters.size()];
  return out;
}

std::string path_of(const FileDescriptor& file) { return core::format("/proc/self/fd/{}", file.get()); }

FileDescriptor open_folder(const std::string& folder, const std::string& path) {
  FileDescriptor fd = open_path(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // A folder that may be written in and not listed: it cannot be flushed either.
  if (!fd && errno == EACCES) fd = open_path(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (!fd) core::throw_errno(errno, "cannot write in the folder " + core::quoted(folder), {.path = path});
  return fd;
}

/// Whether the system takes long to give back the blocks of a file, and not very long.
bool is_slow_to_drop(const struct stat& file) {
  constexpr off_t kSlow = off_t{128} << 10;
  constexpr off_t kTooSlow = off_t{256} << 20;
  return file.st_nlink == 1 && file.st_size >= kSlow && file.st_size <= kTooSlow;
}

void close_later(FileDescriptor file) noexcept {
  if (!file) return;
  try {
    std::thread([held = std::move(file)] {}).detach();
  } catch (const std::system_error&) {  // no thread is to be had: here, then, as `file` ends
  }
}

}  // namespace

void require_replaceable(const struct stat& found, const std::string& path) {
  if (S_ISDIR(found.st_mode)) {
    throw Error(ErrorCode::kIsDirectory, "this is a folder where a file is to be written; name a file in it",
                {.path = path});
  }
  if (!S_ISREG(found.st_mode)) {
    throw Error(ErrorCode::kUnsupported,
                "this is a device, FIFO or socket, which a file cannot replace; name another path", {.path = path});
  }
}

AtomicFile::AtomicFile(std::string path, bool sync) : path_(std::move(path)), sync_(sync) {
  require_no_nul(path_);
  require_no_url(path_);
  std::optional<struct stat> target = find_target(path_);
  if (target && S_ISLNK(target->st_mode)) target = find_target(followed(path_));
  if (target) {
    require_replaceable(*target, path_);
    if (::faccessat(folder_.get(), name_.c_str(), W_OK, AT_EACCESS) != 0) fail(errno, "cannot replace the file");
    is_slow_to_drop_ = is_slow_to_drop(*target);
  }
  replaces_ = target.has_value();
  create(target);
  try {
    if (target) resemble(*target);
  } catch (...) {
    if (!temporary_.empty()) ::unlinkat(folder_.get(), temporary_.c_str(), 0);
    throw;
  }
  pending_.reserve(kBufferBytes);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty() && core::forks() == forks_) ::unlinkat(folder_.get(), temporary_.c_str(), 0);
}

/// 0666 and the umask decide the permissions of a new file, as of any other. One that replaces a private file is
/// private from the beginning: nobody else gets at a file without a name.
void AtomicFile::create(const std::optional<struct stat>& target) {
  const unsigned mode = target ? target->st_mode & 0777 : 0666;
  file_ = open_at(folder_.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
  // Old systems name it by its path there; one without /proc has none.
  if (file_ && ::access("/proc/self/fd", F_OK) == 0) return;
  create_named(target ? 0600 : mode);
}

void AtomicFile::create_named(unsigned mode) {
  const int error = with_new_name([this, mode](const char* name) {
    file_ = open_at(folder_.get(), name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    return static_cast<bool>(file_);
  });
  if (error != 0) fail(error, "cannot create a file in its folder");
}

template <class Act>
int AtomicFile::with_new_name(Act act) {
  int error = EEXIST;
  for (int attempt = 0; attempt < kMaxAttempts && error == EEXIST; ++attempt) {
    const std::string suffix = core::format(".{}.tmp", random_letters());
    temporary_ = core::format(".{}{}", name_.substr(0, kMaxName - 1 - suffix.size()), suffix);
    if (act(temporary_.c_str())) return 0;
    error = errno;
  }
  // The answer of a network file system may be lost, and the name be there.
  if (error != EEXIST) ::unlinkat(folder_.get(), temporary_.c_str(), 0);
  temporary_.clear();
  return error;
}

void AtomicFile::name_temporary() {
  const int error = with_new_name([this](const char* name) { return link_as(name); });
  if (error != 0) fail(error, "cannot give the file a name");
}

/// By its descriptor, where the system lets its owner do that; before Linux 6.10 it says ENOENT to all but the
/// administrator, and the path in /proc is walked, which takes longer.
bool AtomicFile::link_as(const char* name) const {
  if (::linkat(file_.get(), "", folder_.get(), name, AT_EMPTY_PATH) == 0) return true;
  if (errno != ENOENT && errno != EINVAL) return false;
  return ::linkat(AT_FDCWD, path_of(file_).c_str(), folder_.get(), name, AT_SYMLINK_FOLLOW) == 0;
}

std::optional<struct stat> AtomicFile::find_target(const std::string& path) {
  Location location = split(path);
  folder_ = open_folder(location.folder, path_);
  name_ = std::move(location.name);
  if (name_.empty() || name_ == "." || name_ == "..") fail(path_.empty() ? ENOENT : EISDIR, "cannot write the file");
  struct stat target {};
  if (::fstatat(folder_.get(), name_.c_str(), &target, AT_SYMLINK_NOFOLLOW) == 0) return target;
  if (errno != ENOENT) fail(errno, "cannot look at the file that is to be replaced");
  return std::nullopt;
}

void AtomicFile::resemble(const struct stat& target) {
  keep_attributes();
  struct stat ours {};
  if (::fstat(file_.get(), &ours) != 0) fail(errno, "cannot look at the new file");
  if (ours.st_uid != target.st_uid || ours.st_gid != target.st_gid) {
    // Only the administrator may give files away. For others the new file is theirs, and of the old group where they
    // are in it: what a group shares stays shared.
    if (::fchown(file_.get(), target.st_uid, target.st_gid) != 0) {
      [[maybe_unused]] const int given = ::fchown(file_.get(), ours.st_uid, target.st_gid);
    }
  }
  const bool has_mode = ((ours.st_mode ^ target.st_mode) & 0777) == 0;
  if (!has_mode && ::fchmod(file_.get(), target.st_mode & 0777) != 0) fail(errno, "cannot set the file's permissions");
}

/// What programs and users have said of the file. Other attributes are the system's, or are about its old content.
/// Where the file system has none, or takes no more, there are none.
void AtomicFile::keep_attributes() {
  const std::string target = core::format("{}/{}", path_of(folder_), name_);
  ::fremovexattr(file_.get(), kAccessList);  // which the folder may have given it
  const ssize_t bytes = ::llistxattr(target.c_str(), nullptr, 0);
  if (bytes <= 0) return;
  std::string names(static_cast<std::size_t>(bytes), '\0');
  if (::llistxattr(target.c_str(), names.data(), names.size()) != bytes) return;
  std::string value(kMostValue, '\0');
  for (std::size_t at = 0; at < names.size(); at += names.find('\0', at) + 1 - at) {
    const std::string name = names.c_str() + at;
    if (!name.starts_with("user.") && name != kAccessList) continue;
    const ssize_t size = ::lgetxattr(target.c_str(), name.c_str(), value.data(), value.size());
    if (size >= 0) ::fsetxattr(file_.get(), name.c_str(), value.data(), static_cast<std::size_t>(size), 0);
  }
}

int AtomicFile::duplicate() {
  const int copy = ::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) fail(errno, "cannot write the file");
  return copy;
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  position_ = core::checked_add<std::uint64_t>(position_, bytes.size(), "the size of the file");
  if (pending_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() >= kBufferBytes) {
    write_out(bytes);
  } else {
    pending_.insert(pending_.end(), bytes.begin(), bytes.end());
  }
}

void AtomicFile::flush() {
  write_out(pending_);
  pending_.clear();
}

void AtomicFile::write_out(std::span<const std::byte> bytes) {
  if (!file_) throw Error(ErrorCode::kInvalidArgument, "the file was committed already", {.path = path_});
  if (bytes.empty()) return;
  const FileSizeSignalHeld held;
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    } else if (written < 0 && errno == EFAULT) {
      throw Error(ErrorCode::kTruncated,
                  "what was to be written is no longer there: it was mapped from a file that was cut meanwhile; "
                  "open that file again when it is whole",
                  {.path = path_});
    } else if (written == 0 || errno != EINTR) {
      fail(written == 0 ? EIO : errno, "cannot write the file");
    }
  }
}

void AtomicFile::overwrite(std::uint64_t offset, std::span<const std::byte> bytes) {
  flush();
  if (const int error = write_at(file_.get(), offset, bytes); error != 0) fail(error, "cannot write the file");
}

void AtomicFile::read_back(std::uint64_t offset, std::span<std::byte> out) {
  flush();
  while (!out.empty()) {
    const ssize_t count = ::pread(file_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (count > 0) {
      out = out.subspan(static_cast<std::size_t>(count));
      offset += static_cast<std::uint64_t>(count);
    } else if (count == 0 || errno != EINTR) {
      fail(count == 0 ? EIO : errno, "cannot read back what was written");
    }
  }
}

void AtomicFile::commit() {
  flush();
  if (sync_ && ::fsync(file_.get()) != 0) fail(errno, "cannot flush the file to the disk");
  if (!try_link()) rename_over();
  may_be_there_ = true;
  // Some file systems cannot flush a folder, and say so by EINVAL.
  if (sync_ && ::fsync(folder_.get()) != 0 && errno != EINVAL && errno != EBADF) {
    fail(errno, "the file is written and has its name, but its folder cannot be flushed to the disk");
  }
}

/// Gives an unnamed file its name; false where somebody has that name, because a link replaces nothing.
bool AtomicFile::try_link() {
  if (!temporary_.empty() || replaces_) return false;
  // File systems of user space tell at a close that writes have failed, and the name waits for that.
  if (const int error = FileDescriptor(duplicate()).close(); error != 0) fail(error, "cannot write the file");
  if (link_as(name_.c_str())) {
    [[maybe_unused]] const int told_before = file_.close();
    return true;
  }
  if (errno == EEXIST) return false;
  const int error = errno;
  struct stat there {};
  may_be_there_ = ::fstatat(folder_.get(), name_.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0;
  fail(error, "cannot give the file its name");
}

void AtomicFile::rename_over() {
  if (temporary_.empty()) name_temporary();
  if (const int error = file_.close(); error != 0) fail(error, "cannot write the file");
  // Held, so that the system gives the blocks of the old file back when the handle is closed, and not within the
  // rename: ext4 takes 10 ms there for 16 MB, twice as long as writing them. A child of fork() would hold the blocks
  // for as long as it lives, so this is for those that are gone soon.
  FileDescriptor replaced;
  if (is_slow_to_drop_) replaced = open_at(folder_.get(), name_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
  if (::renameat(folder_.get(), temporary_.c_str(), folder_.get(), name_.c_str()) != 0) {
    const int error = errno;
    struct stat ours {};
    // The answer of a network file system may be lost. What still has its temporary name was not renamed.
    may_be_there_ = ::fstatat(folder_.get(), temporary_.c_str(), &ours, AT_SYMLINK_NOFOLLOW) != 0;
    fail(error, "cannot give the file its name");
  }
  close_later(std::move(replaced));
  temporary_.clear();
}

void AtomicFile::fail(int error, std::string_view what) const { core::throw_errno(error, what, {.path = path_}); }

}  // namespace penstock::io
