#pragma once

// Where large host Buffers get their memory. Loading again and again would zero the same pages again and again.

#include <cstddef>
#include <memory>
#include <optional>

#include "penstock/buffer.h"

namespace penstock::device {

/// Blocks of this size and more are mapped on their own, aligned to it, and ask for huge pages.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Large blocks of host memory, each a mapping of its own. A program that loads again and again gets the memory of its
/// last load back, because the kernel needs about as long to zero fresh pages as to read a file into them. A freed
/// block is kept only up to the number of bytes that were freed earlier and then needed again, so a single load keeps
/// nothing; never are more than `max_idle_bytes` kept. The kernel may take kept pages whenever memory is short
/// (MADV_FREE), so they count as resident but not as needed. Buffers may outlive the object. Thread-safe, and safe in a
/// child of fork().
class HostBlocks {
 public:
  /// Without a number: a quarter of the memory that this process may use.
  explicit HostBlocks(std::optional<std::size_t> max_idle_bytes = std::nullopt);
  ~HostBlocks();
  HostBlocks(const HostBlocks&) = delete;
  HostBlocks& operator=(const HostBlocks&) = delete;

  /// At least kHugePage bytes of undefined content, aligned to kHugePage; nothing when there is no memory.
  Buffer take(std::size_t bytes) const;
  /// Unmaps everything that is kept, and forgets how much was needed again.
  void release_idle() const;
  /// Bytes that are kept now.
  std::size_t idle_bytes() const;

 private:
  struct State;
  class Lease;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::device
