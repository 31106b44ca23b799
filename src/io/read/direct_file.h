#pragma once

// Reads past the page cache (O_DIRECT). A cold file comes faster so, and drives nothing else out of memory. Routes
// (io/move/routes.h) decides where it is worth it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "io/copy/scatter.h"
#include "io/file/file_descriptor.h"
#include "penstock/buffer.h"
#include "penstock/source.h"

namespace penstock::io {

/// Whether direct reads may go to any memory on the Linux of this release ("6.1.0-13-amd64"). They may from 6.5 on. On
/// older kernels a read can get lost: when the process forks during the read and a thread writes to the same page, only
/// the child's copy of the page may get the bytes; and before 5.18, bytes read into a page that was marked by MADV_FREE
/// may be dropped.
bool direct_reads_in_place(std::string_view release) noexcept;

/// Memory for the blocks of direct reads that cannot go straight to their place. Each thread has one. It shares no page
/// with other memory and has been written once, so that no read gets lost in it (direct_reads_in_place).
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
  /// Null when the source has no file, or its file system offers no direct reads; `why_not` is then the reason, as part
  /// of a sentence. `source` must outlive the result. `in_place`: whether reads may go straight to their place; unset:
  /// where direct_reads_in_place says so.
  static std::unique_ptr<DirectFile> open(const ByteSource& source, std::string& why_not,
                                          std::optional<bool> in_place = {});

  /// As pread_read. When something goes wrong (an error, a file that ends early), the bytes are read again by
  /// pread_read, so that both routes give the same errors.
  void read(std::uint64_t offset, std::span<const Scatter> parts, DirectScratch& scratch);

  /// What offsets and lengths of direct reads are multiples of, and the addresses they go to; powers of two, the second
  /// no larger than the first.
  struct Alignment {
    std::size_t block = 0;
    std::size_t memory = 0;
  };
  const Alignment& alignment() const noexcept { return alignment_; }
  /// The descriptor for direct reads. It belongs to this object.
  int descriptor() const noexcept { return fd_.get(); }
  /// Why the file system refused a direct read, as part of a sentence; empty when it never did. After a refusal no
  /// other direct read is tried.
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
