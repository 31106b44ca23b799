#pragma once

// Bytes that are read for nothing but their checksum: records of which a load brings a part alone.

#include <cstdint>
#include <span>
#include <vector>

#include "penstock/source.h"

namespace penstock::io {

/// A run of a source.
struct CrcRun {
  Source source;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// The CRC-32 of each run. Servers are asked for many pieces of all runs at once, in 32 MiB of memory at most; others
/// are read piece by piece. kCancelled after a stop (core::StopScope), and what reading gives.
std::vector<std::uint32_t> read_for_crc(std::span<const CrcRun> runs);

}  // namespace penstock::io
