#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "data/scan/folder_scan.h"

namespace penstock::data {

/// The listings of one pattern, kept in a file between runs. It may be deleted at any time, and what is not a whole,
/// undamaged index of this pattern counts as none: then everything is listed anew.
class ScanIndex {
 public:
  /// `path` empty: in the user's cache. The pattern is kept with the working folder, which relative ones begin at.
  ScanIndex(std::string path, std::string_view pattern);

  const std::string& path() const noexcept { return path_; }
  /// What was kept, for a pattern of `parts` parts; nothing when there is none.
  std::vector<Listing> read(std::size_t parts) const;
  /// Replaces the file as a whole. Without it the work can go on: it is left out where the disk takes no more (kIo),
  /// and in the user's cache where it cannot be written at all; else throws what AtomicFile does. kInvalidArgument for
  /// a file that is there and was never an index.
  void write(const std::vector<Listing>& listings) const;

 private:
  void require_own() const;

  std::string key_;
  std::string path_;
  bool cache_;
};

}  // namespace penstock::data
