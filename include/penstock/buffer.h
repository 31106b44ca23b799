#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "penstock/device.h"

namespace penstock {

class Event;
class Stream;
namespace device {
class QueueUses;
}

/// Memory on one device, reference-counted: copies of a Buffer are the same memory, which is released with the last
/// one. The handle is thread-safe like a shared_ptr; the bytes are the callers' to synchronise. Device and pinned
/// memory know the streams that work with them and are not reused before that work is done. Moved from, it is no
/// memory.
class Buffer {
 public:
  /// No memory: data() is null, size() 0.
  Buffer() noexcept = default;
  Buffer(const Buffer&) = default;
  Buffer& operator=(const Buffer&) = default;
  Buffer(Buffer&& other) noexcept
      : owner_(std::move(other.owner_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        uses_(std::exchange(other.uses_, nullptr)),
        device_(other.device_),
        read_only_(other.read_only_) {}
  Buffer& operator=(Buffer&& other) noexcept {
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
  /// kOutOfMemory says what was asked; kNoDevice when the device is not there.
  static Buffer allocate(std::size_t bytes, Device device = {});
  /// Page-locked host memory, which devices copy from and to without the processor. kNoDevice without such a device.
  static Buffer allocate_pinned(std::size_t bytes);
  /// Host memory of somebody else's that stays valid while `owner` lives. Penstock writes nothing to read-only memory
  /// and refuses to make tensors' values() of it that could be written; data() is an address, and its user's care.
  static Buffer wrap(void* data, std::size_t bytes, std::shared_ptr<const void> owner, bool read_only = false);
  /// Device memory of somebody else's, under the same terms; `owner` is released when recorded uses are over.
  static Buffer wrap(void* data, std::size_t bytes, Device device, std::shared_ptr<const void> owner,
                     bool read_only = false);

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  Device device() const noexcept { return device_; }
  bool read_only() const noexcept { return read_only_; }
  /// Whether devices copy from and to it without staging. Never touches a device that was not used yet.
  bool is_pinned() const noexcept;
  explicit operator bool() const noexcept { return owner_ != nullptr; }

  /// The bytes [offset, offset + bytes) of this buffer, keeping all of it alive. kIndexOutOfRange outside it.
  Buffer part(std::size_t offset, std::size_t bytes) const;
  /// True when both keep the same allocation alive.
  bool shares_memory_with(const Buffer& other) const noexcept { return owner_ == other.owner_; }
  /// What keeps the memory alive; for handing it to other libraries.
  const std::shared_ptr<const void>& owner() const noexcept { return owner_; }

  enum class Access : std::uint8_t { kRead, kWrite };
  /// Says that work just submitted to `stream` uses this memory: the memory is not reused before that work is done, and
  /// after kWrite other streams that order_after_writes() wait for it. Of memory that needs no such care: nothing.
  void record_use(const Stream& stream, Access access) const;
  /// The same of work that is over at `event`, recorded behind it: whoever waits does not wait for what follows there.
  void record_use(const Stream& stream, Access access, const Event& event) const;
  /// Work submitted to `stream` from now on runs after the last recorded write.
  void order_after_writes(const Stream& stream) const;
  /// Work submitted to `stream` from now on runs after every recorded use: before it writes over what others read.
  void order_after_uses(const Stream& stream) const;
  /// Blocks until the last recorded write is done; before the host reads memory that a stream writes.
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
