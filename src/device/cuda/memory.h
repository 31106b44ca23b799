#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "device/cuda/queue.h"
#include "penstock/buffer.h"

namespace penstock::device::cuda {

/// The memory of one device that Penstock holds: a pool of the driver's where it has pools, a store of used blocks
/// elsewhere. Both work in the order of queues, so that neither taking nor giving back waits. Thread-safe.
class Memory : public std::enable_shared_from_this<Memory> {
 public:
  explicit Memory(ContextPtr context);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Uninitialised, ready for later work of `queue`. Retries once with the cache emptied; then kOutOfMemory.
  Buffer allocate(std::size_t bytes, const QueuePtr& queue);
  Buffer wrap(void* data, std::size_t bytes, std::shared_ptr<const void> owner, bool read_only);
  MemoryStats stats() const;
  void set_cap(std::optional<std::uint64_t> bytes);
  void empty_cache();

 private:
  class Block;
  struct Idle {
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    std::vector<MarkPtr> uses;
  };

  /// What reserve() granted; when the driver has none, or fails, it is no longer reserved.
  std::optional<CUdeviceptr> take_reserved(std::size_t bytes, CudaQueue& queue);
  std::optional<CUdeviceptr> try_take(std::size_t bytes, CudaQueue& queue);
  std::optional<CUdeviceptr> try_reuse(std::size_t bytes, CudaQueue& queue);
  /// Whether what is held, in use and cached, is more than the cap with `more`, which were reserved and are not held.
  bool caches_too_much(std::size_t more);
  void give_back(CUdeviceptr address, std::size_t bytes, CudaQueue& queue, std::vector<MarkPtr> uses);
  /// Of a block that could not be given back in queue order.
  void free_now(CUdeviceptr address) noexcept;
  bool reserve(std::size_t bytes);
  void unreserve(std::size_t bytes) noexcept;
  /// What was reserved is a block now.
  void note_taken() noexcept;
  [[noreturn]] void throw_out_of_memory(std::size_t bytes) const;

  const ContextPtr context_;
  const std::shared_ptr<CudaQueue> default_queue_;
  CUmemoryPool pool_ = nullptr;  ///< null where the driver or the device has none

  mutable std::mutex mutex_;
  std::uint64_t in_use_ = 0;
  std::uint64_t peak_ = 0;
  std::uint64_t allocations_ = 0;
  std::uint64_t idle_bytes_ = 0;
  std::optional<std::uint64_t> cap_;
  std::vector<Idle> idle_;
};

}  // namespace penstock::device::cuda
