#include "penstock/buffer.h"

#include <algorithm>
#include <utility>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "device/backend.h"
#include "device/buffer_access.h"
#include "device/queue_uses.h"
#include "penstock/error.h"

namespace penstock {

Buffer Buffer::allocate(std::size_t bytes, Device device) {
  device::require_device(device);
  return device::backend_for(device.type).allocate(device.index, bytes, device::Purpose::kTensor);
}

Buffer Buffer::wrap(void* data, std::size_t bytes, std::shared_ptr<const void> owner, Flag read_only) {
  if (data == nullptr && bytes > 0) {
    throw Error(ErrorCode::kInvalidArgument, core::format("found null, expected the address of {} bytes", bytes));
  }
  static constexpr std::byte kNothing{};
  // A handle whose owner points nowhere would look undefined.
  if (!owner) owner = std::shared_ptr<const void>(owner, data != nullptr ? data : &kNothing);
  return BufferAccess::make(std::move(owner), static_cast<std::byte*>(data), bytes, Device{}, read_only);
}

Buffer Buffer::wrap(void* data, std::size_t bytes, Device device, std::shared_ptr<const void> owner, Flag read_only) {
  if (device.type == DeviceType::kCpu) return wrap(data, bytes, std::move(owner), read_only);
  device::require_device(device);
  return device::backend_for(device.type).wrap(device.index, data, bytes, std::move(owner), read_only);
}

Buffer Buffer::allocate_pinned(std::size_t bytes) { return device::require_pinning_backend().allocate_pinned(bytes); }

bool Buffer::is_pinned() const noexcept {
  if (device_.type != DeviceType::kCpu || data_ == nullptr) return false;
  const auto pins = [this](const device::Backend* backend) { return backend->is_pinned(data_); };
  const auto table = device::backends();
  return std::any_of(table.begin(), table.end(), pins);
}

void Buffer::record_use(const Stream& stream, Access access) const {
  if (uses_ != nullptr) uses_->add(StreamAccess::queue(stream), access == Access::kWrite);
}

void Buffer::record_use(const Stream& stream, Access access, const Event& event) const {
  if (uses_ != nullptr) uses_->add(StreamAccess::queue(stream), access == Access::kWrite, StreamAccess::mark(event));
}

void Buffer::order_after_writes(const Stream& stream) const {
  if (uses_ != nullptr) uses_->order_after_writes(*StreamAccess::queue(stream));
}

void Buffer::order_after_uses(const Stream& stream) const {
  if (uses_ != nullptr) uses_->order_after_uses(*StreamAccess::queue(stream));
}

void Buffer::wait_for_writes() const {
  if (uses_ != nullptr) uses_->wait_for_writes();
}

Buffer Buffer::part(std::size_t offset, std::size_t bytes) const {
  if (!core::range_fits(offset, bytes, size_)) {
    throw Error(ErrorCode::kIndexOutOfRange,
                core::format("{} outside a buffer of {}",
                             core::counted(bytes, core::format("byte from byte {} lies", offset),
                                           core::format("bytes from byte {} lie", offset)),
                             core::counted(size_, "byte")));
  }
  Buffer out = *this;
  // Of a buffer without memory only the empty part exists, and null has no arithmetic.
  if (data_ != nullptr) out.data_ = data_ + offset;
  out.size_ = bytes;
  return out;
}

}  // namespace penstock
