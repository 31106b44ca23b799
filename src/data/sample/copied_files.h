#pragma once

// Files may be written to while a batch is copied out of them. So each is noted, and looked at once after all copies.

#include <cstddef>
#include <utility>
#include <vector>

namespace penstock::data {

class HeldFile;

/// The files that one batch was copied or read from, and the position of the first sample of each. Not thread-safe.
class CopiedFiles {
 public:
  void clear() noexcept { files_.clear(); }
  void add(const HeldFile* file, std::size_t position);
  /// Throws SampleError for a file that changed.
  void require_unchanged();

 private:
  std::vector<std::pair<const HeldFile*, std::size_t>> files_;
};

}  // namespace penstock::data
