#pragma once

#include <cstdint>
#include <span>

namespace penstock::detail {

/// What an Order is a handle on. All members may be called from any thread.
class OrderImpl {
 public:
  virtual ~OrderImpl() = default;
  virtual std::int64_t size() const noexcept = 0;
  /// position + out.size() is at most size().
  virtual void copy(std::int64_t position, std::span<std::int64_t> out) const noexcept = 0;
};

}  // namespace penstock::detail
