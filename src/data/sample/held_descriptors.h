#pragma once

#include <cstddef>

namespace penstock::data {

/// How many descriptors all that ask for them may keep open together: a quarter of what the process may have. Asking
/// the system takes a call, so whoever opens many files asks once for all of them.
class DescriptorLimit {
 public:
  DescriptorLimit() noexcept;
  std::size_t most() const noexcept { return most_; }

 private:
  std::size_t most_ = 0;
};

/// Leave to keep descriptors open for speed.
class HeldDescriptors {
 public:
  HeldDescriptors() noexcept = default;
  explicit HeldDescriptors(std::size_t wanted, const DescriptorLimit& limit = {}) noexcept;
  ~HeldDescriptors();
  HeldDescriptors(const HeldDescriptors&) = delete;
  HeldDescriptors& operator=(const HeldDescriptors&) = delete;

  /// How many of those that were wanted may be held open.
  std::size_t count() const noexcept { return count_; }

 private:
  std::size_t count_ = 0;
};

}  // namespace penstock::data
