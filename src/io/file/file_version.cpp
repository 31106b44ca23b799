// Device, inode, size and time of the last write tell one version of a file from another. They are taken when the file
// is opened and compared after its bytes have been read (docs/design/reads.md).

#include "io/file/file_version.h"

#include <cerrno>
#include <optional>

#include "core/system_error.h"

namespace penstock::io {

FileVersion version_of(const struct stat& status) noexcept {
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = static_cast<std::uint64_t>(status.st_size),
          .modified = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

FileState look_at(const ByteSource& source) {
  const std::optional<FileVersion> opened = source.version();
  if (!opened || source.descriptor() < 0) return FileState::kAsOpened;
  struct stat status {};
  if (::fstat(source.descriptor(), &status) != 0) {
    core::throw_errno(errno, "cannot tell whether the file changed", {.path = source.name()});
  }
  const FileVersion now = version_of(status);
  if (now == *opened) return FileState::kAsOpened;
  return now.size < opened->size ? FileState::kCut : FileState::kChanged;
}

}  // namespace penstock::io
