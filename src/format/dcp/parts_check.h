#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

namespace penstock::format::dcp {

/// Finds out whether the CRC-32 of a record is the recorded one from parts of it that are read in any order, some of
/// them more than once. Thread-safe.
class PartsCheck {
 public:
  PartsCheck(std::uint64_t bytes, std::uint32_t crc32) noexcept : bytes_(bytes), crc32_(crc32) {}

  /// Whether all bytes have been seen, and were right.
  bool passed() const noexcept { return passed_.load(std::memory_order_acquire); }
  void pass() noexcept { passed_.store(true, std::memory_order_release); }
  /// Bytes [begin, end) of the record were read, and have this CRC. What was known of parts that overlap them is
  /// forgotten.
  void add(std::uint64_t begin, std::uint64_t end, std::uint32_t crc);

 private:
  struct SeenPart {
    std::uint64_t end;
    std::uint32_t crc;
  };

  std::uint64_t bytes_;
  std::uint32_t crc32_;
  std::atomic<bool> passed_ = false;
  std::mutex mutex_;
  std::map<std::uint64_t, SeenPart> parts_;  ///< by begin; no two of them touch
};

}  // namespace penstock::format::dcp
