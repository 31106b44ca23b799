#pragma once

#include <cstddef>

namespace penstock::data {

/// Leave to keep descriptors open for speed: all who ask get no more than a quarter of what the process may have.
class HeldDescriptors {
 public:
  HeldDescriptors() noexcept = default;
  explicit HeldDescriptors(std::size_t wanted) noexcept;
  ~HeldDescriptors();
  HeldDescriptors(const HeldDescriptors&) = delete;
  HeldDescriptors& operator=(const HeldDescriptors&) = delete;

  /// How many of those that were wanted may be held open.
  std::size_t count() const noexcept { return count_; }

 private:
  std::size_t count_ = 0;
};

}  // namespace penstock::data
