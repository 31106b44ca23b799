#pragma once

// Copies between host and device that go by way of the pinned ring, for Tensor::to and the like. Loads fill the ring
// from files themselves (io/move/device_writes.h).

#include <cstddef>
#include <span>

#include "device/queue.h"

namespace penstock::device {

/// Whether so many bytes may be copied faster in the way below than by a driver.
bool worth_staging(std::size_t bytes) noexcept;

/// Copies between pageable host memory and a device by way of the ring of page-locked memory (PinnedRing): several
/// threads put bytes into its slots, or take them out, while others are copied. Of pageable memory a driver does that
/// by itself, with one thread.
///
/// `ranges` all have the same kinds of ends, as `direction` says, which is one between host and device. The host's ends
/// are read, or written, when this returns; copies to the device are in `queue` then, whose later work follows them.
/// Returns false, having done nothing, where there is nothing to gain: fewer bytes than are worth it, no page-locked
/// memory to be had. Errors: those of Queue::copy, with some of the copies done.
bool copy_staged(const QueuePtr& queue, std::span<const CopyRange> ranges, Direction direction);

}  // namespace penstock::device
