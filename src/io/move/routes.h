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

/// Which route each range of a plan takes to host memory, decided by what is in the page cache. RangeReader asks it
/// before each range. DeviceRoutes, which decides for devices, asks it which ranges are cold. Immutable; thread-safe.
class Routes {
 public:
  /// `direct`: read all ranges past the page cache where files allow it (true), or none (false); unset: choose by what
  /// is cached. Small plans are then read through the cache without looking. `mapped`: the same choice between copies
  /// out of a mapping and reads, for ranges that are not read directly. All arguments must outlive this.
  Routes(const Plan& plan, std::span<const Source> sources, std::optional<bool> direct,
         std::optional<bool> mapped = {});

  /// What reads range `range` past the page cache; null when it goes through the cache.
  DirectFile* direct(std::size_t range) const noexcept { return routes_.empty() ? nullptr : routes_[range].file; }
  /// Whether most of range `range` has to come from the disk.
  bool cold(std::size_t range) const noexcept { return !routes_.empty() && routes_[range].cold; }

  /// Whether range `range` may be copied out of a mapping, if that is faster.
  bool mappable(std::size_t range) const noexcept { return !routes_.empty() && routes_[range].mappable; }

  std::uint64_t direct_bytes() const noexcept { return direct_bytes_; }
  /// Whether threads will spend their time waiting: half or more comes from the disk.
  bool waits_for_disk() const noexcept {
    const std::uint64_t waits = std::max(cold_bytes_, direct_bytes_);
    return waits > 0 && waits >= read_bytes_ - waits;
  }
  /// What was found in the cache and chosen, as the end of a sentence; empty when the cache was not looked at.
  std::string why() const;

 private:
  struct Route {
    DirectFile* file = nullptr;
    bool cold = false;
    bool mappable = false;
  };

  void look(const Plan& plan, std::span<const Source> sources);
  void open(const Plan& plan, std::span<const Source> sources);
  void allow_mapping(const Plan& plan, std::span<const Source> sources, bool asked);
  DirectFile* file_of(std::uint32_t source, std::span<const Source> sources);

  std::optional<bool> asked_;
  std::vector<Route> routes_;
  std::vector<std::unique_ptr<DirectFile>> files_;  ///< of each source
  std::vector<bool> tried_;
  std::uint64_t read_bytes_;
  std::uint64_t cold_bytes_ = 0;
  std::uint64_t direct_bytes_ = 0;
  std::string why_not_;  ///< the first file that is not read directly
};

}  // namespace penstock::io
