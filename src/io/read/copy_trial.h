#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace penstock::io {

/// Finds out, while ranges are read, whether the system's copy or a copy out of a mapping is faster for cached bytes.
/// That depends on the size of the cache's pages, which the system does not tell, on checksums and on the processor.
/// Thread-safe.
class CopyTrial {
 public:
  /// When both are about equally fast, bytes with checksums are mapped and others are not.
  explicit CopyTrial(bool checksums) noexcept : checksums_(checksums) {}

  /// Whether the next range is to be mapped. Both routes take turns until each has been measured a few times; then the
  /// faster one is taken, and once in a while the other, in case that has changed.
  bool map_next();
  /// A range was copied at this speed. The time of unmapping it is not counted.
  void done(bool mapped, double bytes_per_second);
  /// Unmapping so many bytes took so long. Every mapped range is charged its share.
  void unmapped(std::uint64_t bytes, double seconds);
  /// Whether `unmapped` has been called.
  bool knows_unmapping();

 private:
  static constexpr std::size_t kKept = 3;
  struct Route {
    std::size_t done = 0;
    std::array<double, kKept> latest{};
    void add(double value) { latest[done++ % kKept] = value; }
  };

  /// How many times as fast a mapping is.
  double gain_by_mapping() const;

  bool checksums_;
  std::mutex mutex_;
  std::array<Route, 2> routes_;  ///< [mapped]
  Route unmapping_;              ///< its latest in seconds a byte
  std::size_t handed_out_ = 0;
};

}  // namespace penstock::io
