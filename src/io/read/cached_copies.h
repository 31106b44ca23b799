#pragma once

#include <cstddef>
#include <cstdint>

#include "core/stopwatch.h"
#include "io/copy/copy.h"
#include "io/read/copy_trial.h"
#include "io/read/mapping_window.h"
#include "penstock/source.h"

namespace penstock::io {

/// Ranges of files that the page cache holds, copied by the system (a read) or out of a mapping, whichever has been
/// faster so far. Unlike a read, a copy out of a mapping can compute a checksum in the same pass and bypass the
/// processor's caches. All that it needs is behind this: the trial of both routes (copy_trial.h), the address space
/// (mapping_window.h), and the guard against pages that are gone (copy/guarded.h). One for a move; thread-safe.
class CachedCopies {
 public:
  explicit CachedCopies(bool checksums) noexcept : trial_(checksums) {}

  /// What a thread keeps from range to range.
  struct Thread {
    MappingWindow window = {};
    bool begun = false;  ///< whether it has copied a range
  };

  /// One range. `finish` tells the trial how long it took. Used by one thread.
  class RangeCopy {
   public:
    /// `bytes` > 0 of `source`. All must outlive this.
    RangeCopy(CachedCopies& copies, Thread& thread, const ByteSource& source, std::uint64_t bytes) noexcept
        : copies_(copies), thread_(thread), source_(source), bytes_(bytes), before_(thread.window.unmapped()) {}

    /// Maps the range, which begins at `offset`. Leaves it unmapped when the file cannot be mapped or is shorter now
    /// than when it was opened, or when address space has run out. `stores`: how copies store.
    void map(std::uint64_t offset, Stores stores);
    bool is_mapped() const noexcept { return mapped_ != nullptr; }
    /// Copies [offset, + bytes) of the file, which lies inside the range; the range must be mapped. Continues the
    /// CRC-32 `crc`, if given. False when a page is no longer there or could not be read: `to` and `crc` are then
    /// undefined, and a read gives the error. Only `finish` notices a file that was cut inside its last page.
    [[nodiscard]] bool copy(std::uint64_t offset, std::byte* to, std::size_t bytes, std::uint32_t* crc = nullptr) const;
    /// Call when the range is copied, by either route. kTruncated when it was mapped and the file was cut meanwhile.
    void finish();

   private:
    CachedCopies& copies_;
    Thread& thread_;
    const ByteSource& source_;
    std::uint64_t bytes_;
    MappingWindow::Unmapped before_;
    core::Stopwatch watch_;
    const std::byte* mapped_ = nullptr;
    std::uint64_t offset_ = 0;  ///< of what is mapped
    Stores stores_ = Stores::kStreamed;
  };

  /// Whether the next range is to be mapped.
  bool map_next() { return trial_.map_next(); }

 private:
  CopyTrial trial_;
};

}  // namespace penstock::io
