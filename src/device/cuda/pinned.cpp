// Locking pages is slow, so blocks of locked memory are kept and used again. A block may have been given to queues of
// several devices, so it is used or unlocked only after the marks of all of them. After a device has failed, its marks
// say nothing more; such memory stays locked, because the device might still write to it.

#include "device/cuda/pinned.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <iterator>
#include <optional>
#include <utility>

#include "core/format.h"
#include "core/round.h"
#include "core/text.h"
#include "device/buffer_access.h"
#include "device/queue_uses.h"
#include "device/rounded.h"
#include "penstock/error.h"

namespace penstock::device::cuda {
namespace {

constexpr std::byte kNoPinnedBytes{};
constexpr std::size_t kPage = 4096;

/// Where nobody is there to hear of an error: a device that failed does nothing more.
void wait_quietly(const Mark& mark) noexcept {
  try {
    mark.synchronize();
  } catch (const Error&) {
    return;
  }
}

[[noreturn]] void throw_cannot_lock(std::size_t bytes) {
  throw Error(ErrorCode::kOutOfMemory,
              core::format("{} of page-locked host memory requested, more than the driver can lock: pin less",
                           core::format_bytes(bytes)));
}

/// Weights of a model are pinned once and kept, so that an eighth more would be lost on them; batches, which vary, are
/// smaller.
std::size_t block_size(std::size_t bytes) {
  constexpr std::size_t kExact = std::size_t{1} << 30;
  return bytes < kExact ? rounded_to_eighth(bytes, kPage) : core::round_up(bytes, kPage);
}

bool passed(const std::vector<MarkPtr>& uses) {
  return std::all_of(uses.begin(), uses.end(), [](const MarkPtr& mark) { return mark->done(); });
}

}  // namespace

struct PinnedMemory::Idle {
  void* data = nullptr;
  std::size_t bytes = 0;
  std::vector<MarkPtr> uses;
};

class PinnedMemory::Block {
 public:
  Block(std::shared_ptr<PinnedMemory> memory, std::size_t bytes)
      : memory_(std::move(memory)), data_(memory_->take(bytes)), bytes_(bytes) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    if (!usable()) return;
    try {
      memory_->give_back({data_, bytes_, uses_.take()});
    } catch (const std::exception&) {
      // Nothing says when a device that failed is done with it; without memory for the list, it stays locked.
      return;
    }
  }
  std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }
  QueueUses& uses() noexcept { return uses_; }

 private:
  std::shared_ptr<PinnedMemory> memory_;
  void* data_;
  std::size_t bytes_;
  QueueUses uses_;
};

PinnedMemory::PinnedMemory(ContextPtr context) : context_(std::move(context)) {}

/// A driver frees page-locked memory only when nothing uses it; blocks may have been used on other devices too.
void PinnedMemory::free_quietly(const Context& context, std::span<const Idle> blocks) noexcept {
  quietly_in(context, [blocks](const Driver& d) {
    for (const Idle& block : blocks) {
      for (const MarkPtr& mark : block.uses) wait_quietly(*mark);
      d.host_free(block.data);
    }
  });
}

PinnedMemory::~PinnedMemory() { free_quietly(*context_, idle_); }

Buffer PinnedMemory::allocate(std::size_t bytes) {
  const auto self = shared_from_this();
  if (bytes == 0) return BufferAccess::make(std::shared_ptr<const void>(self, &kNoPinnedBytes), nullptr, 0, Device{});
  const auto block = std::make_shared<Block>(self, block_size(bytes));
  return BufferAccess::make(block, block->data(), bytes, Device{}, false, &block->uses());
}

void* PinnedMemory::take(std::size_t bytes) {
  {
    const std::scoped_lock lock(mutex_);
    const IdleBlock found = take_idle(bytes);
    in_use_ += bytes;
    // Without the blocks that copies still use, a loader whose copies take long would lock new blocks and unlock
    // surplus ones for ever.
    peak_ = std::max(peak_, in_use_ + found.busy_bytes);
    if (found.data != nullptr) return found.data;
  }
  try {
    return lock_new(bytes);
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    in_use_ -= bytes;
    throw;
  }
}

PinnedMemory::IdleBlock PinnedMemory::take_idle(std::size_t bytes) {
  // Each block is asked once: a copy may end between two questions, and a block that was passed over as busy but not
  // counted as such would be locked anew every time. Blocks of other sizes are asked where none fits.
  std::size_t busy_bytes = 0;
  for (auto block = idle_.rbegin(); block != idle_.rend(); ++block) {
    if (block->bytes != bytes) continue;
    if (!passed(block->uses)) {
      busy_bytes += bytes;
      continue;
    }
    void* const data = block->data;
    idle_bytes_ -= bytes;
    idle_.erase(std::next(block).base());
    return {data, 0};
  }
  for (const Idle& block : idle_) {
    if (block.bytes != bytes && !passed(block.uses)) busy_bytes += block.bytes;
  }
  return {nullptr, busy_bytes};
}

void* PinnedMemory::lock_new(std::size_t bytes) {
  const Current current(*context_);
  void* data = nullptr;
  CUresult result = driver().host_alloc(&data, bytes, kHostPortable);
  if (result == kOutOfMemory) {
    empty_cache();
    result = driver().host_alloc(&data, bytes, kHostPortable);
  }
  if (result == kOutOfMemory) throw_cannot_lock(bytes);
  context_->check(result, "cuMemHostAlloc");
  return data;
}

std::size_t PinnedMemory::most_idle() const noexcept {
  static const std::size_t quarter = [] {
    const long pages = sysconf(_SC_PHYS_PAGES);
    return pages > 0 ? static_cast<std::size_t>(pages) / 4 * core::page_size() : 0;
  }();
  return std::max(kLeastIdle, std::min(peak_, quarter));
}

void PinnedMemory::give_back(Idle block) {
  std::vector<Idle> surplus;
  {
    const std::scoped_lock lock(mutex_);
    idle_bytes_ += block.bytes;
    in_use_ -= block.bytes;
    idle_.push_back(std::move(block));
    auto kept = idle_.begin();
    for (const std::size_t most = most_idle(); idle_bytes_ > most; ++kept) idle_bytes_ -= kept->bytes;
    surplus.assign(std::make_move_iterator(idle_.begin()), std::make_move_iterator(kept));
    idle_.erase(idle_.begin(), kept);
  }
  // Without the lock: others need not wait for what the device still does with these.
  free_quietly(*context_, surplus);
}

void PinnedMemory::empty_cache() {
  std::vector<Idle> idle;
  {
    const std::scoped_lock lock(mutex_);
    idle.swap(idle_);
    idle_bytes_ = 0;
    peak_ = in_use_;
  }
  const Current current(*context_);
  std::exception_ptr failure;
  for (const Idle& block : idle) {
    try {
      for (const MarkPtr& mark : block.uses) mark->synchronize();
      context_->check(driver().host_free(block.data), "cuMemFreeHost");
    } catch (const Error&) {
      // Nothing says when a device that failed is done with it, so that its memory stays locked.
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

namespace {

struct Registration {
  ~Registration() {
    quietly_in(*context, [this](const Driver& d) { d.host_unregister(data); });
  }
  ContextPtr context;
  void* data = nullptr;
};

}  // namespace

std::shared_ptr<const void> register_host(const ContextPtr& context, void* data, std::size_t bytes) {
  const Current current(*context);
  const CUresult result = driver().host_register(data, bytes, kHostPortable);
  if (result == kHostRegistered) {
    throw Error(ErrorCode::kInvalidArgument, "the memory is page-locked already, or a part of it is");
  }
  if (result == kOutOfMemory) throw_cannot_lock(bytes);
  // What the driver gives where it, or the system it runs on, locks no memory that it has not made itself.
  constexpr std::array refusals = {kInvalidValue, kOperatingSystem, kNotPermitted, kNotSupported};
  if (std::ranges::find(refusals, result) != refusals.end()) {
    throw Error(ErrorCode::kUnsupported,
                core::format("the driver does not page-lock this memory (cuMemHostRegister gives {}): take memory of "
                             "pinned tensors",
                             result));
  }
  context->check(result, "cuMemHostRegister");
  auto registration = std::make_shared<Registration>();
  registration->context = context;
  registration->data = data;
  return registration;
}

namespace {

/// An attribute of an address that the driver knows of.
template <class T>
std::optional<T> attribute_of(const void* address, int attribute) noexcept {
  if (!initialised() || forked()) return std::nullopt;
  T value{};
  CUresult result = kDeinitialized;
  const auto ask = [&](const Driver& d) {
    result = d.pointer_attribute(&value, attribute, reinterpret_cast<CUdeviceptr>(address));
  };
  // The driver answers in any context that has not failed; without one of ours, another library's may be current.
  const std::vector<ContextPtr> contexts = Context::all();
  for (const ContextPtr& context : contexts) {
    quietly_in(*context, ask);
    if (result == kSuccess || result == kInvalidValue) break;
  }
  if (contexts.empty()) ask(*find_driver());
  return result == kSuccess ? std::optional<T>(value) : std::nullopt;
}

}  // namespace

bool is_pinned(const void* address) noexcept {
  return attribute_of<unsigned>(address, kPointerMemoryType) == kMemoryTypeHost;
}

std::optional<int> device_of(const void* address) noexcept {
  if (attribute_of<unsigned>(address, kPointerMemoryType) != kMemoryTypeDevice) return std::nullopt;
  return attribute_of<int>(address, kPointerDeviceOrdinal);
}

}  // namespace penstock::device::cuda
