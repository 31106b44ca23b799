#pragma once

#include <cstddef>
#include <cstdint>

#include "io/copy/record_check.h"
#include "io/move/ring_decode.h"
#include "penstock/load.h"

namespace penstock::archive {

/// A storage that goes to a device and has to be inflated or swapped on its way.
struct RingStorage {
  const StorageEntry* storage = nullptr;  ///< stored or deflated; not resident
  const ByteSource* source = nullptr;
  io::RecordCheck check = {};  ///< of the storage
  /// Bytes of each unit whose order is reversed, 1 for none, and how many bytes there are before the first whole unit.
  std::size_t swap_width = 1;
  std::uint64_t swap_phase = 0;
};

/// The job that decodes it in io's ring into [offset, + nbytes) of a buffer: a stage that inflates, verifies and swaps
/// (io/move/ring_decode.h). The storage and its source must outlive the job.
io::DecodeJob decode_job(const RingStorage& storage, std::uint32_t buffer, std::uint64_t offset);

}  // namespace penstock::archive
