// A file by its path or by a "file:" URL. Its descriptor stays open, so that a path that names another file later
// changes nothing. The size and the other marks of the version are those of the moment when it was opened.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>

#include "core/counted.h"
#include "core/format.h"
#include "core/system_error.h"
#include "core/text.h"
#include "io/file/file_descriptor.h"
#include "io/file/file_url.h"
#include "io/file/file_version.h"
#include "io/file/open_path.h"
#include "io/source/source.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

class FileSource final : public ByteSource {
 public:
  FileSource(std::string name, FileDescriptor fd, const FileVersion& version)
      : name_(std::move(name)), fd_(std::move(fd)), version_(version) {}

  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return version_.size; }
  int descriptor() const noexcept override { return fd_.get(); }
  std::optional<FileVersion> version() const noexcept override { return version_; }

  void read(std::uint64_t offset, std::span<std::byte> into) const override {
    require_inside(*this, offset, into.size());
    for (std::size_t done = 0; done < into.size();) {
      const ssize_t got = ::pread(fd_.get(), into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
      if (got > 0) {
        done += static_cast<std::size_t>(got);
      } else if (got == 0) {
        throw_cut(*this, offset, into.size(), done);
      } else if (errno != EINTR) {
        core::throw_errno(errno, core::format("cannot read {}", core::counted(into.size(), "byte")),
                          {.path = name_, .offset = offset});
      }
    }
  }

 private:
  std::string name_;
  FileDescriptor fd_;
  FileVersion version_;
};

std::string_view kind_of(mode_t mode) noexcept {
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "no regular file";
}

[[noreturn]] void throw_not_regular(mode_t mode, const std::string& path) {
  if (S_ISDIR(mode)) {
    throw Error(ErrorCode::kIsDirectory, "this is a folder where a file was expected; name a file in it",
                {.path = path});
  }
  throw Error(
      ErrorCode::kUnsupported,
      core::format("this is {}, which cannot be read at any offset; copy its content into a file first", kind_of(mode)),
      {.path = path});
}

}  // namespace

Source open_file(std::string_view path) {
  std::string name(path);
  require_no_nul(name);
  if (name.empty()) throw Error(ErrorCode::kNotFound, "the path is empty; name a file");
  // O_NONBLOCK: opening a FIFO returns at once, to be refused below; reads of a regular file do not know it.
  FileDescriptor fd = open_path(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  struct stat status {};
  if (!fd) {
    const int error = errno;
    // A socket, or a device with nothing behind it, cannot even be opened.
    if (error == ENXIO && ::stat(name.c_str(), &status) == 0) throw_not_regular(status.st_mode, name);
    core::throw_errno(error, "cannot open the file", {.path = name});
  }
  if (::fstat(fd.get(), &status) != 0) core::throw_errno(errno, "cannot tell the size of the file", {.path = name});
  return file_source(std::move(fd), status, std::move(name));
}

Source file_source(FileDescriptor fd, const struct stat& status, std::string path) {
  if (!S_ISREG(status.st_mode)) throw_not_regular(status.st_mode, path);
  return std::make_shared<FileSource>(std::move(path), std::move(fd), version_of(status));
}

bool is_file(const ByteSource& source) noexcept { return dynamic_cast<const FileSource*>(&source) != nullptr; }

Source open_file_url(std::string_view url) { return open_file(local_path(url)); }

}  // namespace penstock::io
