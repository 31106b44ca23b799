#pragma once

#include <cstddef>
#include <memory>

#include "penstock/device.h"

namespace penstock {

/// Memory on one device, reference-counted: copies of a Buffer are the same memory, which is released with the last
/// one. The handle is thread-safe like a shared_ptr; the bytes are the callers' to synchronise.
class Buffer {
 public:
  /// No memory: data() is null, size() 0.
  Buffer() noexcept = default;

  /// `bytes` uninitialised bytes on `device`, aligned to 64 (large blocks: to huge pages). Zero bytes are legal.
  /// kOutOfMemory says what was asked; kNoDevice when the device is not there.
  static Buffer allocate(std::size_t bytes, Device device = {});
  /// Host memory of somebody else's that stays valid while `owner` lives. Read-only memory is never handed out for
  /// writing by Penstock.
  static Buffer wrap(void* data, std::size_t bytes, std::shared_ptr<const void> owner, bool read_only = false);

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  Device device() const noexcept { return device_; }
  bool read_only() const noexcept { return read_only_; }
  explicit operator bool() const noexcept { return owner_ != nullptr; }

  /// The bytes [offset, offset + bytes) of this buffer, keeping all of it alive. kIndexOutOfRange outside it.
  Buffer part(std::size_t offset, std::size_t bytes) const;
  /// True when both keep the same allocation alive.
  bool shares_memory_with(const Buffer& other) const noexcept { return owner_ == other.owner_; }
  /// What keeps the memory alive; for handing it to other libraries.
  const std::shared_ptr<const void>& owner() const noexcept { return owner_; }

 private:
  std::shared_ptr<const void> owner_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  Device device_;
  bool read_only_ = false;

  friend class BufferAccess;
};

}  // namespace penstock
