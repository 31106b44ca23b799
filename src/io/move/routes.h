#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/move/plan.h"
#include "io/read/direct_file.h"
#include "penstock/source.h"

namespace penstock::io {

/// Which ranges of a plan are read past the page cache, decided from what is in it: a cached range is copied from
/// there, by the system or out of a mapping, one that is not goes from the disk to its place without a copy. Immutable;
/// thread-safe.
class Routes {
 public:
  /// `direct`: true or false for all ranges whatever is cached, where files allow it; unset: chosen. Small plans are
  /// read through the cache unseen. `mapped`: true or false for all ranges that are not read directly; unset: chosen.
  /// All must outlive this.
  Routes(const Plan& plan, std::span<const SourcePtr> sources, std::optional<bool> direct,
         std::optional<bool> mapped = {});

  /// What range `range` is to be read with, or null: as any other.
  DirectFile* direct(std::size_t range) const noexcept { return ways_.empty() ? nullptr : ways_[range].file; }
  /// Whether most of range `range` has to come from the disk.
  bool cold(std::size_t range) const noexcept { return !ways_.empty() && ways_[range].cold; }

  /// Whether range `range` may be copied out of a mapping, if that is faster.
  bool mappable(std::size_t range) const noexcept { return !ways_.empty() && ways_[range].mappable; }

  std::uint64_t direct_bytes() const noexcept { return direct_bytes_; }
  /// Whether threads will spend their time waiting: half or more comes from the disk.
  bool waits_for_disk() const noexcept {
    const std::uint64_t waits = std::max(cold_bytes_, direct_bytes_);
    return waits > 0 && waits >= read_bytes_ - waits;
  }
  /// What was found and chosen, to end a sentence with; empty when nothing was looked at.
  std::string why() const;

 private:
  struct Way {
    DirectFile* file = nullptr;
    bool cold = false;
    bool mappable = false;
  };

  void look(const Plan& plan, std::span<const SourcePtr> sources);
  void open(const Plan& plan, std::span<const SourcePtr> sources);
  void allow_mapping(const Plan& plan, std::span<const SourcePtr> sources, bool asked);
  DirectFile* file_of(std::uint32_t source, std::span<const SourcePtr> sources);

  std::optional<bool> asked_;
  std::vector<Way> ways_;
  std::vector<std::unique_ptr<DirectFile>> files_;  ///< of each source
  std::vector<bool> tried_;
  std::uint64_t read_bytes_;
  std::uint64_t cold_bytes_ = 0;
  std::uint64_t direct_bytes_ = 0;
  std::string why_not_;  ///< the first file that is not read directly
};

}  // namespace penstock::io
