#include "penstock/buffer.h"

#include <fmt/format.h>

#include "core/checked.h"
#include "device/backend.h"
#include "device/buffer_access.h"
#include "penstock/error.h"

namespace penstock {

Buffer Buffer::allocate(std::size_t bytes, Device device) {
  device::require_device(device);
  return device::backend_for(device.type).allocate(device.index, bytes, device::Purpose::kTensor);
}

Buffer Buffer::wrap(void* data, std::size_t bytes, std::shared_ptr<const void> owner, bool read_only) {
  static constexpr std::byte kNothing{};
  // A handle whose owner points nowhere would look undefined.
  if (!owner) owner = std::shared_ptr<const void>(owner, data != nullptr ? data : &kNothing);
  return BufferAccess::make(std::move(owner), static_cast<std::byte*>(data), bytes, Device{}, read_only);
}

Buffer Buffer::part(std::size_t offset, std::size_t bytes) const {
  if (!core::range_fits(offset, bytes, size_)) {
    throw Error(ErrorCode::kIndexOutOfRange,
                fmt::format("{} bytes from byte {} lie outside a buffer of {} bytes", bytes, offset, size_));
  }
  Buffer out = *this;
  // Of a buffer without memory only the empty part exists, and null has no arithmetic.
  if (data_ != nullptr) out.data_ = data_ + offset;
  out.size_ = bytes;
  return out;
}

}  // namespace penstock
