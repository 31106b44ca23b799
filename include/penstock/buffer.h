#pragma once

/// Reference-counted memory on a device, which tensors lie in. Most programs use Tensor (tensor.h) and need a Buffer
/// only to hand over memory of their own.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "penstock/device.h"
#include "penstock/flag.h"

namespace penstock {

class Event;
class Stream;
namespace device {
class QueueUses;
}

/// Memory on one device, reference-counted: copies of a Buffer are the same memory, which is released with the last
/// copy. The handle is thread-safe like a shared_ptr; callers synchronise access to the bytes. Device and pinned memory
/// remembers the streams that use it and is not reused before their work is done. A buffer that was moved from holds no
/// memory.
class Buffer {
 public:
  /// No memory: data() is null, size() 0.
  Buffer() noexcept = default;
  Buffer(const Buffer&) = default;
  /// Not to a temporary, where it would change nothing.
  Buffer& operator=(const Buffer&) & = default;
  Buffer(Buffer&& other) noexcept
      : owner_(std::move(other.owner_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        uses_(std::exchange(other.uses_, nullptr)),
        device_(other.device_),
        read_only_(other.read_only_) {}
  Buffer& operator=(Buffer&& other) & noexcept {
    // By way of a handle of its own, so that assigning a buffer to itself keeps it.
    Buffer taken(std::move(other));
    owner_.swap(taken.owner_);
    data_ = taken.data_;
    size_ = taken.size_;
    uses_ = taken.uses_;
    device_ = taken.device_;
    read_only_ = taken.read_only_;
    return *this;
  }
  ~Buffer() = default;

  /// `bytes` uninitialised bytes on `device`, aligned to 64 (large blocks: to huge pages). Zero bytes are legal.
  /// kOutOfMemory says how much was asked for; kNoDevice when there is no such device.
  static Buffer allocate(std::size_t bytes, Device device = {});
  /// Page-locked host memory, which devices copy from and to without the processor. kNoDevice when there is no device.
  static Buffer allocate_pinned(std::size_t bytes);
  /// Host memory of another owner, which stays valid while `owner` lives; kInvalidArgument for null. Read-only memory
  /// is not written to, and Tensor::values() refuses to give it as writable; who has its data() must not write there.
  static Buffer wrap(void* data, std::size_t bytes, std::shared_ptr<const void> owner, Flag read_only = false);
  /// Device memory of another owner, under the same terms; `owner` is released when all recorded uses are done.
  static Buffer wrap(void* data, std::size_t bytes, Device device, std::shared_ptr<const void> owner,
                     Flag read_only = false);

  /// Valid while a handle on the memory lives; so a temporary refuses to give it.
  std::byte* data() const& noexcept { return data_; }
  std::byte* data() const&& = delete;
  std::size_t size() const noexcept { return size_; }
  const Device device() const noexcept { return device_; }
  bool read_only() const noexcept { return read_only_; }
  /// Whether devices copy from and to it without staging. Asking does not initialise a device.
  bool is_pinned() const noexcept;
  explicit operator bool() const noexcept { return owner_ != nullptr; }

  /// The bytes [offset, offset + bytes) of this buffer, keeping all of it alive. kIndexOutOfRange outside it.
  Buffer part(std::size_t offset, std::size_t bytes) const;
  /// True when both keep the same allocation alive.
  bool shares_memory_with(const Buffer& other) const noexcept { return owner_ == other.owner_; }
  /// What keeps the memory alive, for other libraries that take the memory.
  const std::shared_ptr<const void>& owner() const& noexcept { return owner_; }
  const std::shared_ptr<const void> owner() const&& noexcept { return owner_; }

  enum class Access : std::uint8_t { kRead, kWrite };
  /// Records that work just submitted to `stream` uses this memory. The memory is not reused before that work is done,
  /// and order_after_writes() waits for it after kWrite. Does nothing for memory that no stream can use.
  void record_use(const Stream& stream, Access access) const;
  /// The same for work that is done at `event`, so that nobody waits for later work of the stream.
  void record_use(const Stream& stream, Access access, const Event& event) const;
  /// Work submitted to `stream` from now on runs after the last recorded write.
  void order_after_writes(const Stream& stream) const;
  /// Work submitted to `stream` from now on runs after every recorded use. Call it before work that overwrites the
  /// memory.
  void order_after_uses(const Stream& stream) const;
  /// Blocks until the last recorded write is done. Call it before the host reads memory that a stream writes.
  void wait_for_writes() const;

 private:
  std::shared_ptr<const void> owner_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  device::QueueUses* uses_ = nullptr;  ///< lives as long as the owner; null: no stream can be using it
  Device device_;
  bool read_only_ = false;

  friend class BufferAccess;
};

}  // namespace penstock
