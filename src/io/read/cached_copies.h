#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/stopwatch.h"
#include "io/copy/copy.h"
#include "io/read/copy_trial.h"
#include "io/read/mapped_range.h"
#include "io/read/mapping_window.h"
#include "penstock/source.h"

namespace penstock::io {

/// Ranges of files that the page cache holds, copied by the system (a read) or out of a mapping, whichever has been
/// faster so far. All that a mapping needs is behind this: the trial of both ways (copy_trial.h), the address space
/// (mapping_window.h), and the guard against pages that are gone (mapped_range.h). One for a move; thread-safe.
class CachedCopies {
 public:
  explicit CachedCopies(bool checksums) noexcept : trial_(checksums) {}

  /// What a thread keeps from range to range.
  struct Thread {
    MappingWindow window = {};
    bool begun = false;  ///< whether it has copied a range
  };

  /// One range, from its begin to `finish`, which reports to the trial how long it took. Of one thread.
  class Range {
   public:
    /// `bytes` > 0 of `source`. All must outlive this.
    Range(CachedCopies& copies, Thread& thread, const ByteSource& source, std::uint64_t bytes) noexcept
        : copies_(copies), thread_(thread), source_(source), bytes_(bytes), before_(thread.window.unmapped()) {}

    /// Maps the range, which begins at `offset`, if that is possible.
    void map(std::uint64_t offset, Stores stores);
    bool is_mapped() const noexcept { return mapped_.has_value(); }
    /// MappedRange::copy. The range must be mapped.
    [[nodiscard]] bool copy(std::uint64_t offset, std::byte* to, std::size_t bytes,
                            std::uint32_t* crc = nullptr) const {
      return mapped_->copy(offset, to, bytes, crc);
    }
    /// All of it has been copied, either way. kTruncated when it was mapped and the file was cut meanwhile.
    void finish();

   private:
    CachedCopies& copies_;
    Thread& thread_;
    const ByteSource& source_;
    std::uint64_t bytes_;
    MappingWindow::Unmapped before_;
    core::Stopwatch watch_;
    std::optional<MappedRange> mapped_;
  };

  /// Whether the next range is to be mapped.
  bool map_next() { return trial_.map_next(); }

 private:
  CopyTrial trial_;
};

}  // namespace penstock::io
