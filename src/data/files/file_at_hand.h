#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "data/sample/scratch.h"
#include "io/file/file_descriptor.h"
#include "penstock/source.h"

namespace penstock::data {

/// A file of the batch at hand, however it was opened: by its path, behind a URL, or by a function of the program. Not
/// thread-safe.
class FileAtHand {
 public:
  /// A descriptor of the file `path`, which outlives this.
  FileAtHand(io::FileDescriptor fd, const std::string& path) noexcept : fd_(std::move(fd)), path_(path) {}
  /// `is_own`: opened by the program, whose reads cost what it knows, and not by Penstock.
  FileAtHand(penstock::Source source, const std::string& path, bool is_own)
      : path_(path), is_own_(is_own), source_(std::move(source)) {}

  /// The descriptor, or -1 where there is none any more.
  int fd() const noexcept { return fd_.get(); }
  /// Bytes of the file. Asking the system for them takes a call, the first time.
  std::uint64_t size();
  /// Reads a file of up to `most` bytes whole, into memory that stays until the Scratch is reset. More bytes than
  /// `most` where it has more; none where it cannot be read, and where reading it whole is not worth it: `source` then
  /// says why.
  std::span<const std::byte> whole(std::size_t most, Scratch& scratch);
  /// Whether nothing follows what `whole` read: one read gives all of a regular file, but no system promises that.
  bool is_complete() const;
  /// The file for reading later. Takes the descriptor.
  const penstock::Source& source();

 private:
  const struct stat& status();
  std::span<const std::byte> whole_source(std::size_t most, Scratch& scratch);

  io::FileDescriptor fd_;
  const std::string& path_;
  bool is_own_ = false;
  std::optional<penstock::Source> source_;
  std::optional<struct stat> status_;
};

}  // namespace penstock::data
