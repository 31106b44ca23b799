#pragma once

// How many threads a read is worth. One place for it, because loads, slices, decoding and checks must agree. Where
// reads wait, this says between which numbers io/read/depth.h looks for the best.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "io/read/depth.h"
#include "io/read/read_costs.h"

namespace penstock::io {

/// How much there is to do, which decides how many threads are worth starting.
struct Effort {
  /// How many bytes are worth a thread. Inflating is about five times slower than reading.
  static constexpr std::uint64_t kReadBytes = 2 * 1024 * 1024;
  static constexpr std::uint64_t kDecodedBytes = 256 * 1024;

  std::uint64_t parts = 0;  ///< more threads than parts would have nothing to do
  std::uint64_t bytes = 0;
  std::uint64_t bytes_per_thread = kReadBytes;
  std::uint64_t calls = 0;  ///< to the system, where there may be many with few bytes each
  std::size_t slots = 0;    ///< places for what threads read, of which each needs one; 0: any number
  ReadCosts costs = {};     ///< whether threads mostly wait, each for one read
};

struct Threads {
  std::size_t first = 1;
  std::size_t most = 1;         ///< as many as may be started where more bring more
  std::string_view bound = {};  ///< why no more than that: "plan", "memory", "latency", "threads" (Report)
  bool waits = false;           ///< their number is that of the requests in flight

  /// What looks for the best number; nothing where there is no choice.
  std::optional<Depth> depth() const;
};

/// How many threads to start. `asked`: what the user wants; 0 lets this function choose.
Threads threads_for(const Effort& effort, std::size_t asked);

}  // namespace penstock::io
