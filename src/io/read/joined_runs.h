#pragma once

// Reads of one source that are asked for together: those that lie close to each other become one request.

#include <cstdint>
#include <span>
#include <vector>

#include "io/copy/scatter.h"
#include "io/read/read_costs.h"
#include "io/read/reader.h"

namespace penstock::io {

/// One request: the places of its bytes from `offset` on, gaps without a place.
struct JoinedRun {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::vector<Scatter> parts = {};
};

/// The runs in the order of the source, joined over gaps that cost less than a request, to `most` bytes where that is
/// not the length of a single run. kTruncated where one ends behind the source.
std::vector<JoinedRun> joined_runs(const ByteSource& source, std::span<const SourceRun> runs, const ReadCosts& costs,
                                   std::uint64_t most);

}  // namespace penstock::io
