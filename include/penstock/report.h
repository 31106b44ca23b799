#pragma once

/// How a load was done, and why: set LoadOptions::report to find out which way the bytes went and where time was spent.

#include <cstdint>
#include <string>

#include "penstock/standard.h"

namespace penstock {

/// How a load was done, and why. Seconds are wall time; those of read and decode are added up over all threads.
struct Report {
  /// "map", "read", "direct" (past the page cache with O_DIRECT), "remote" (from a URL) or "memory". To a device:
  /// "ring" (through pinned memory) or "gds" (mostly by cuFile, GPUDirect Storage). `why` says which part went another
  /// way.
  std::string route = {};
  std::string why = {};
  std::uint64_t payload_bytes = 0;  ///< bytes that tensors were made of
  std::uint64_t read_bytes = 0;     ///< bytes that came from files, gaps included
  double open_seconds = 0;
  double read_seconds = 0;
  double decode_seconds = 0;
  double total_seconds = 0;  ///< of the whole call; it includes opening when the call opens the file
};

}  // namespace penstock
