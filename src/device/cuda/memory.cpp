// A block is taken and given back in the order of a queue: the next user on that queue waits for nothing, and another
// queue waits for the marks of the block's uses. Newer drivers do this in a memory pool; for older ones used blocks are
// kept here. Bytes are reserved before a block is taken, because the limit must hold while several threads allocate.

#include "device/cuda/memory.h"

#include <algorithm>
#include <utility>

#include "core/format.h"
#include "core/text.h"
#include "device/buffer_access.h"
#include "device/queue_uses.h"
#include "device/rounded.h"
#include "penstock/error.h"

namespace penstock::device::cuda {
namespace {

constexpr std::byte kNoDeviceBytes{};
constexpr std::size_t kGranule = 512;  ///< of blocks without a pool; the driver's own allocations are aligned to it

CUmemoryPool make_pool(const Context& context) {
  const Driver& d = driver();
  int supported = 0;
  if (!d.has_pools() || d.device_attribute(&supported, kAttributeMemoryPools, context.handle()) != kSuccess ||
      supported == 0) {
    return nullptr;
  }
  const Current current(context);
  CUmemPoolProps properties;
  properties.location.id = context.index();
  CUmemoryPool pool = nullptr;
  if (d.pool_create(&pool, &properties) != kSuccess) return nullptr;
  // Memory stays in the pool until empty_cache(): giving it to the driver at each synchronisation makes steps slow.
  std::uint64_t keep = UINT64_MAX;
  context.check(d.pool_set(pool, kPoolReleaseThreshold, &keep), "cuMemPoolSetAttribute");
  return pool;
}

}  // namespace

/// A block in use; given back in queue order when its last handle goes.
class Memory::Block {
 public:
  /// Given back to `home`, which may not be somebody else's: that could be gone by then.
  Block(std::shared_ptr<Memory> memory, const QueuePtr& queue, std::shared_ptr<CudaQueue> home, CUdeviceptr address,
        std::size_t bytes)
      : memory_(std::move(memory)), home_(std::move(home)), address_(address), bytes_(bytes) {
    // Other queues may use it after what made it.
    uses_.add(queue, true);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    if (!usable()) return;
    memory_->unreserve(bytes_);
    try {
      memory_->give_back(address_, bytes_, *home_, uses_.take(home_.get()));
    } catch (const std::exception&) {
      memory_->free_now(address_);
    }
  }
  QueueUses& uses() noexcept { return uses_; }

 private:
  std::shared_ptr<Memory> memory_;
  std::shared_ptr<CudaQueue> home_;
  CUdeviceptr address_;
  std::size_t bytes_;
  QueueUses uses_;
};

namespace {

/// Memory of somebody else's, released after its uses.
struct Wrapped {
  ~Wrapped() {
    if (!usable()) return;
    try {
      for (const MarkPtr& mark : uses.take()) mark->synchronize();
    } catch (const Error&) {
      // Work on a device that failed is over.
      return;
    }
  }
  std::shared_ptr<const void> owner;
  QueueUses uses;
};

}  // namespace

Memory::Memory(ContextPtr context)
    : context_(std::move(context)),
      default_queue_(std::make_shared<CudaQueue>(context_, nullptr, CudaQueue::Kind::kDefault)),
      pool_(make_pool(*context_)) {}

Memory::~Memory() {
  quietly_in(*context_, [this](const Driver& d) {
    // Blocks that were given back in queue order are in use until the queues have come so far.
    d.context_synchronize();
    for (const Idle& block : idle_) d.mem_free(block.address);
    if (pool_ != nullptr) d.pool_destroy(pool_);
  });
}

Buffer Memory::allocate(std::size_t bytes, const QueuePtr& queue) {
  const auto cuda_queue = std::dynamic_pointer_cast<CudaQueue>(queue);
  const auto home = queue->is_foreign() ? default_queue_ : cuda_queue;
  if (bytes == 0) {
    return BufferAccess::make(std::shared_ptr<const void>(queue, &kNoDeviceBytes), nullptr, 0, context_->device());
  }
  if (!reserve(bytes)) throw_out_of_memory(bytes);
  const std::optional<CUdeviceptr> address = take_reserved(bytes, *cuda_queue);
  if (!address) throw_out_of_memory(bytes);
  std::shared_ptr<Block> block;
  try {
    block = std::make_shared<Block>(shared_from_this(), queue, home, *address, bytes);
  } catch (...) {
    unreserve(bytes);
    give_back(*address, bytes, *cuda_queue, {});
    throw;
  }
  note_taken();
  QueueUses* const uses = &block->uses();
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are numbers
  return BufferAccess::make(std::move(block), reinterpret_cast<std::byte*>(*address), bytes, context_->device(), false,
                            uses);
}

Buffer Memory::wrap(void* data, std::size_t bytes, std::shared_ptr<const void> owner, bool read_only) {
  auto wrapped = std::make_shared<Wrapped>();
  wrapped->owner = std::move(owner);
  QueueUses* const uses = &wrapped->uses;
  return BufferAccess::make(std::move(wrapped), static_cast<std::byte*>(data), bytes, context_->device(), read_only,
                            uses);
}

bool Memory::reserve(std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  if (cap_ && (bytes > *cap_ || in_use_ > *cap_ - bytes)) return false;
  in_use_ += bytes;
  return true;
}

void Memory::unreserve(std::size_t bytes) noexcept {
  const std::scoped_lock lock(mutex_);
  in_use_ -= bytes;
}

void Memory::note_taken() noexcept {
  const std::scoped_lock lock(mutex_);
  peak_ = std::max(peak_, in_use_);
  ++allocations_;
}

std::optional<CUdeviceptr> Memory::take_reserved(std::size_t bytes, CudaQueue& queue) {
  try {
    const std::optional<CUdeviceptr> address = try_take(bytes, queue);
    if (!address) unreserve(bytes);
    return address;
  } catch (...) {
    unreserve(bytes);
    throw;
  }
}

std::optional<CUdeviceptr> Memory::try_take(std::size_t bytes, CudaQueue& queue) {
  const Current current(*context_);
  const Driver& d = driver();
  for (const bool last : {false, true}) {
    if (const auto reused = try_reuse(bytes, queue)) return reused;
    // What a pool has in store is its own affair until it grows.
    if (pool_ == nullptr && caches_too_much(bytes)) empty_cache();
    CUdeviceptr address = 0;
    const auto stream = static_cast<CUstream>(queue.native());
    const CUresult result = pool_ != nullptr ? d.pool_alloc(&address, bytes, pool_, stream)
                                             : d.mem_alloc(&address, rounded_to_eighth(bytes, kGranule));
    if (result == kSuccess && pool_ != nullptr && caches_too_much(0)) empty_cache();
    if (result == kSuccess) return address;
    if (result != kOutOfMemory)
      throw_result(result, pool_ != nullptr ? "cuMemAllocFromPoolAsync" : "cuMemAlloc", context_->index());
    if (!last) empty_cache();
  }
  return std::nullopt;
}

bool Memory::caches_too_much(std::size_t more) {
  const std::scoped_lock lock(mutex_);
  if (!cap_) return false;
  std::uint64_t pooled = 0;
  if (pool_ != nullptr && driver().pool_get(pool_, kPoolReservedNow, &pooled) != kSuccess) return false;
  const std::uint64_t held = pool_ != nullptr ? pooled : in_use_ + idle_bytes_ - more;
  return held > *cap_ - std::min<std::uint64_t>(more, *cap_);
}

std::optional<CUdeviceptr> Memory::try_reuse(std::size_t bytes, CudaQueue& queue) {
  Idle block;
  {
    const std::scoped_lock lock(mutex_);
    auto best = idle_.end();
    for (auto it = idle_.begin(); it != idle_.end(); ++it) {
      const bool fits = it->bytes >= bytes && it->bytes / 2 <= rounded_to_eighth(bytes, kGranule);
      if (fits && (best == idle_.end() || it->bytes <= best->bytes)) best = it;
    }
    if (best == idle_.end()) return std::nullopt;
    block = std::move(*best);
    idle_.erase(best);
    idle_bytes_ -= block.bytes;
  }
  try {
    for (const MarkPtr& mark : block.uses) queue.wait(*mark);
  } catch (const Error&) {
    free_now(block.address);
    throw;
  }
  return block.address;
}

void Memory::give_back(CUdeviceptr address, std::size_t bytes, CudaQueue& queue, std::vector<MarkPtr> uses) {
  if (pool_ != nullptr) {
    for (const MarkPtr& mark : uses) queue.wait(*mark);
    const Current current(*context_);
    context_->check(driver().pool_free(address, static_cast<CUstream>(queue.native())), "cuMemFreeAsync");
    return;
  }
  uses.push_back(queue.record());
  const std::scoped_lock lock(mutex_);
  idle_bytes_ += rounded_to_eighth(bytes, kGranule);
  idle_.push_back({address, rounded_to_eighth(bytes, kGranule), std::move(uses)});
}

void Memory::free_now(CUdeviceptr address) noexcept {
  quietly_in(*context_, [address](const Driver& d) {
    // A device that failed does nothing more; one that goes on is waited for.
    d.context_synchronize();
    d.mem_free(address);
  });
}

MemoryStats Memory::stats() const {
  const Current current(*context_);
  MemoryStats out;
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  context_->check(driver().mem_info(&free_bytes, &total_bytes), "cuMemGetInfo");
  out.free_bytes = free_bytes;
  out.total_bytes = total_bytes;
  std::uint64_t pooled = 0;
  // Drivers before 11.3 have pools without this attribute.
  if (pool_ != nullptr && driver().pool_get(pool_, kPoolReservedNow, &pooled) != kSuccess) pooled = 0;
  const std::scoped_lock lock(mutex_);
  out.in_use_bytes = in_use_;
  out.peak_bytes = peak_;
  out.allocations = allocations_;
  out.reserved_bytes = pool_ != nullptr ? std::max(pooled, in_use_) : in_use_ + idle_bytes_;
  out.cap_bytes = cap_;
  return out;
}

void Memory::set_cap(std::optional<std::uint64_t> bytes) {
  const std::scoped_lock lock(mutex_);
  cap_ = bytes;
}

void Memory::empty_cache() {
  const Current current(*context_);
  // What was given back in queue order is free only when the queues have come so far.
  context_->check(driver().context_synchronize(), "cuCtxSynchronize");
  if (pool_ != nullptr) {
    context_->check(driver().pool_trim(pool_, 0), "cuMemPoolTrimTo");
    return;
  }
  std::vector<Idle> idle;
  {
    const std::scoped_lock lock(mutex_);
    idle.swap(idle_);
    idle_bytes_ = 0;
  }
  for (const Idle& block : idle) context_->check(driver().mem_free(block.address), "cuMemFree");
}

void Memory::throw_out_of_memory(std::size_t bytes) const {
  const MemoryStats now = stats();
  const std::string cap = now.cap_bytes ? core::format(", capped at {}", core::format_bytes(*now.cap_bytes)) : "";
  throw Error(
      ErrorCode::kOutOfMemory,
      core::format("{} requested on {}, where {} of {} are free and this process holds {}{}: load less at a "
                   "time, release tensors or use another device",
                   core::format_bytes(bytes), context_->device().to_string(), core::format_bytes(now.free_bytes),
                   core::format_bytes(now.total_bytes), core::format_bytes(now.in_use_bytes), cap));
}

}  // namespace penstock::device::cuda
