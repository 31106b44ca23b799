#pragma once

#include <cstddef>

namespace penstock::io {

/// One of several rows of equal size that are copied at once.
struct GatherRow {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
};

}  // namespace penstock::io
