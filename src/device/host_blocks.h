#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "penstock/buffer.h"

namespace penstock::device {

/// Blocks of this size and more are mapped on their own, aligned to it, and ask for huge pages.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Large blocks of host memory, each a mapping of its own. Programs that load again and again get the memory of their
/// last load back: to zero fresh pages costs the kernel about as much as the read that fills them. What is given back
/// is kept as far as memory that was given back before was asked for again, so a single load keeps nothing; and no more
/// than `max_idle_bytes`. The kernel may take kept pages whenever memory is short (MADV_FREE), so they count as
/// resident but not as needed. Buffers may outlive the object. Thread-safe, and safe in a child of fork().
class HostBlocks {
 public:
  /// Without a number: a quarter of the memory that this process may use.
  explicit HostBlocks(std::optional<std::size_t> max_idle_bytes = std::nullopt);
  ~HostBlocks();
  HostBlocks(const HostBlocks&) = delete;
  HostBlocks& operator=(const HostBlocks&) = delete;

  /// At least kHugePage bytes of undefined content, aligned to kHugePage; nothing when there is no memory.
  Buffer take(std::size_t bytes) const;
  /// Unmaps everything that is kept, and forgets what was asked for again.
  void release_idle() const;
  /// Bytes that are kept now.
  std::size_t idle_bytes() const;

 private:
  struct State;
  class Lease;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::device
