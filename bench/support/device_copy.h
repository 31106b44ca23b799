#pragma once

// Pinned memory to a device, as fast as its driver does it: what loads to devices are compared with.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <stdexcept>

#include "device/backend.h"
#include "penstock/buffer.h"
#include "penstock/stream.h"

namespace penstock::bench {

/// Seconds of copying `bytes` bytes from one block of pinned memory, piece by piece, to as much memory of `device`.
inline double device_copy(Device device, std::size_t bytes) {
  constexpr std::size_t kPinned = std::size_t{256} << 20;
  constexpr std::size_t kPiece = std::size_t{16} << 20;
  if (bytes == 0) throw std::runtime_error("no bytes to copy");
  const Buffer pinned = Buffer::allocate_pinned(std::min(kPinned, bytes));
  const Buffer target = Buffer::allocate(bytes, device);
  std::fill_n(pinned.data(), pinned.size(), std::byte{1});
  const device::QueuePtr queue = device::current_queue(device);
  queue->synchronize();
  const auto started = std::chrono::steady_clock::now();
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    const std::size_t from = at % pinned.size();
    const std::size_t piece = std::min({kPiece, bytes - at, pinned.size() - from});
    const device::CopyRange range = {target.data() + at, pinned.data() + from, piece};
    queue->copy({&range, 1}, device::Direction::kHostToDevice);
  }
  queue->synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

}  // namespace penstock::bench
