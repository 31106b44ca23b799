#pragma once

// The way into Buffer for those who own its memory; the public class has none.

#include <cstddef>
#include <memory>
#include <utility>

#include "penstock/buffer.h"

namespace penstock {

/// How backends and pools make Buffers of memory that they own. `uses` lies inside what `owner` keeps alive.
class BufferAccess {
 public:
  static Buffer make(std::shared_ptr<const void> owner, std::byte* data, std::size_t size, Device device,
                     bool read_only = false, device::QueueUses* uses = nullptr) {
    Buffer out;
    out.owner_ = std::move(owner);
    out.data_ = data;
    out.size_ = size;
    out.device_ = device;
    out.read_only_ = read_only;
    out.uses_ = uses;
    return out;
  }
  /// Null for memory that no queue can be using.
  static device::QueueUses* uses(const Buffer& buffer) noexcept { return buffer.uses_; }
};

}  // namespace penstock
