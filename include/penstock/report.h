#pragma once

/// How a load was done, and why: set LoadOptions::report to find out which route the bytes took and where time went.

#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/standard.h"

namespace penstock {

/// What reading by URL took: the requests that were made, and what the disk cache gave in their place (docs/remote.md).
/// All zero where nothing was read by URL. Seconds are added up over requests, which run side by side.
struct RemoteTraffic {
  std::uint64_t requests = 0;        ///< each try counts
  std::uint64_t retries = 0;         ///< of them, tries after the first
  std::uint64_t hedges = 0;          ///< of them, second ones for bytes whose first request was answered late
  std::uint64_t throttled = 0;       ///< answers 429 and 503, by which a store says that it is asked too much
  std::uint64_t received_bytes = 0;  ///< of bodies
  std::uint64_t cached_bytes = 0;    ///< that came from the disk cache
  double first_byte_seconds = 0;     ///< from the beginning of each request to the first byte of its answer
  double transfer_seconds = 0;       ///< from there to its last byte
  double paused_seconds = 0;         ///< between two tries
  std::uint64_t at_once = 0;         ///< requests in flight together, at most

  RemoteTraffic& operator+=(const RemoteTraffic& other) noexcept;
  /// What limits the requests: "throttled" (the store sends them away), "latency" (they mostly wait for the first
  /// byte), "bandwidth" (they mostly wait for the bytes behind it), or "nothing" where there were none.
  const std::string_view limit() const noexcept;
  /// The figures and the limit as one sentence; empty where nothing was read by URL.
  std::string to_string() const;
};

/// How a load was done, and why. Seconds are wall time; those of read and decode are added up over all threads.
struct Report {
  /// "map", "read", "direct" (past the page cache with O_DIRECT), "remote" (from a URL) or "memory". To a device:
  /// "ring" (through pinned memory) or "gds" (mostly by cuFile, GPUDirect Storage). `why` says which part took
  /// another route.
  std::string route = {};
  std::string why = {};
  std::uint64_t payload_bytes = 0;  ///< bytes that tensors were made of
  std::uint64_t read_bytes = 0;     ///< bytes that came from files, gaps included
  /// Requests in flight at once, where reads waited for a disk, a network or a source that says so (as many as were
  /// found to be enough); 0 where they did not wait.
  std::uint64_t depth = 0;
  /// What kept it from being more: "bandwidth" (more requests brought no more bytes), "latency" (as many as may be were
  /// waited for), "memory" (as many as there is room for), "plan" (there was no more to ask for, or the load was over
  /// while the number still grew), "threads" (as asked, or the system gave no more), "throttled" (the store sends
  /// requests away).
  std::string_view depth_limit = {};
  double open_seconds = 0;
  double read_seconds = 0;
  double decode_seconds = 0;
  double total_seconds = 0;  ///< of the whole call; it includes opening when the call opens the file
  /// Of what was read by URL, the opening of the file included.
  RemoteTraffic remote = {};
};

}  // namespace penstock
