#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "penstock/buffer.h"

namespace penstock {

/// How backends and pools make Buffers of memory that they own.
class BufferAccess {
 public:
  static Buffer make(std::shared_ptr<const void> owner, std::byte* data, std::size_t size, Device device,
                     bool read_only = false) {
    Buffer out;
    out.owner_ = std::move(owner);
    out.data_ = data;
    out.size_ = size;
    out.device_ = device;
    out.read_only_ = read_only;
    return out;
  }
};

}  // namespace penstock
