#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/copy/guarded.h"
#include "io/file/file_descriptor.h"
#include "penstock/buffer.h"
#include "penstock/source.h"

namespace penstock::io {

/// Whether the Linux of that release ("6.1.0-13-amd64") lets direct reads go to any memory (6.5). Before, one that is
/// under way while the process forks may arrive in the child's copy of a page alone, when a thread here writes to the
/// same page meanwhile; and before 5.18 it may get lost in a page that was marked by MADV_FREE.
bool direct_reads_in_place(std::string_view release) noexcept;

/// Memory for the blocks of direct reads that cannot go straight to their place. One for each thread. It shares no page
/// with other memory, and all of it has been written.
class DirectScratch {
 public:
  /// `bytes` bytes aligned to `alignment`, a power of two; valid until the next call. kOutOfMemory.
  std::byte* of(std::size_t bytes, std::size_t alignment);
  /// Bytes it keeps by now.
  std::size_t capacity() const noexcept { return memory_.size(); }

 private:
  Buffer memory_;
};

/// A source's file, opened once more to be read past the page cache (O_DIRECT, open(2)). Reads whole blocks: those that
/// lie in one part and are aligned in memory go straight to their place, the others through a scratch. Thread-safe.
class DirectFile {
 public:
  /// Null, and the reason as part of a sentence in `why_not`, where the source has no file or its file system offers no
  /// direct reads. `source` must outlive the result. Not `in_place`: everything goes through the scratch; by default
  /// where the running system wants that.
  static std::unique_ptr<DirectFile> open(const ByteSource& source, std::string& why_not,
                                          std::optional<bool> in_place = {});

  /// As pread_read. Whatever does not go as expected (an error, a file that ends early) is read again by pread_read,
  /// whose word counts, so that errors are the same on both ways.
  void read(std::uint64_t offset, std::span<const Scatter> parts, DirectScratch& scratch);

  /// What offsets and lengths of direct reads are multiples of, and the addresses they go to; powers of two, the second
  /// no larger than the first.
  struct Alignment {
    std::size_t block = 0;
    std::size_t memory = 0;
  };
  const Alignment& alignment() const noexcept { return alignment_; }
  /// Open for direct reads; the file's for as long as it lives.
  int descriptor() const noexcept { return fd_.get(); }
  /// Why the file system turned down a direct read, as part of a sentence; empty when it never did. After that no
  /// other is tried.
  std::string refusal() const;

 private:
  DirectFile(const ByteSource& source, FileDescriptor fd, Alignment alignment, bool in_place)
      : source_(source), fd_(std::move(fd)), alignment_(alignment), in_place_(in_place) {}

  struct Window;
  void read_window(const Window& window, DirectScratch& scratch);
  bool read_blocks(const Window& window, DirectScratch& scratch);

  const ByteSource& source_;
  FileDescriptor fd_;
  Alignment alignment_;
  bool in_place_;
  std::atomic<int> refused_{0};  ///< the system's error number
};

}  // namespace penstock::io
