#pragma once

#include <cstdint>
#include <string>

#include "penstock/standard.h"

namespace penstock {

/// How a load was done, and why. Seconds are wall time except where several threads add up (read, decode).
struct Report {
  /// "map", "read", "direct" (past the page cache), "memory"; to a device "ring" (through pinned memory) or "gds" (most
  /// of it by cuFile, GPUDirect Storage). `why` says which part went another way.
  std::string route = {};
  std::string why = {};
  std::uint64_t payload_bytes = 0;  ///< bytes that tensors were made of
  std::uint64_t read_bytes = 0;     ///< bytes that came from files, gaps included
  double open_seconds = 0;
  double read_seconds = 0;
  double decode_seconds = 0;
  double total_seconds = 0;  ///< of the call: with the opening where the call opens the file
};

}  // namespace penstock
