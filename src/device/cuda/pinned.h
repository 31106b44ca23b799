#pragma once

// Host memory that a device can read by itself. Buffers that users pin come from here, and so do the slots of the ring
// (device/pinned_ring.h).

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "device/cuda/context.h"
#include "penstock/buffer.h"

namespace penstock::device::cuda {

/// Page-locked host memory of all devices, recycled, because pinning runs at 1 to 2 GB/s. A block is reused when the
/// queues that it was used with are past it. Thread-safe.
class PinnedMemory : public std::enable_shared_from_this<PinnedMemory> {
 public:
  /// Bytes of unused blocks that are kept: as many as were ever in use at once since the cache was last emptied, by the
  /// program or by copies under way, so that what is used in turn is pinned once. At least kLeastIdle, and otherwise at
  /// most a quarter of the machine's memory.
  static constexpr std::size_t kLeastIdle = std::size_t{256} << 20;

  explicit PinnedMemory(ContextPtr context);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  Buffer allocate(std::size_t bytes);
  void empty_cache();

 private:
  class Block;
  struct Idle;
  /// An unused block, or, where none fits, the bytes of those that copies still use.
  struct IdleBlock {
    void* data = nullptr;
    std::size_t busy_bytes = 0;
  };

  void* take(std::size_t bytes);
  IdleBlock take_idle(std::size_t bytes);  ///< with mutex_ held
  void* lock_new(std::size_t bytes);
  void give_back(Idle block);
  std::size_t most_idle() const noexcept;
  static void free_quietly(const Context& context, std::span<const Idle> blocks) noexcept;

  const ContextPtr context_;
  std::mutex mutex_;
  std::vector<Idle> idle_;
  std::size_t idle_bytes_ = 0;
  std::size_t in_use_ = 0;
  std::size_t peak_ = 0;  ///< of in_use_ and of the unused blocks that copies still used then
};

/// Page-locks memory that exists; unlocked with the handle. kInvalidArgument where it is locked already.
std::shared_ptr<const void> register_host(const ContextPtr& context, void* data, std::size_t bytes);
/// Whether the driver, if it runs already, knows the address as page-locked host memory.
bool is_pinned(const void* address) noexcept;
/// The device whose memory `address` is, whoever took it; nothing for other addresses, and before the driver is used.
std::optional<int> device_of(const void* address) noexcept;

}  // namespace penstock::device::cuda
