#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "data/scan/folder_scan.h"
#include "data/scan/kept_file.h"

namespace penstock::data {

/// The listings of one pattern, kept in a file between runs. It may be deleted at any time, and what is not a whole,
/// undamaged index of this pattern counts as none: then everything is listed anew.
class ScanIndex {
 public:
  /// `path` empty: in the user's cache. The pattern is kept with the working folder, which relative ones begin at.
  ScanIndex(std::string path, std::string_view pattern);

  const std::string& path() const noexcept { return file_.path(); }
  /// What was kept, for a pattern of `parts` parts; nothing when there is none.
  std::vector<Listing> read(std::size_t parts) const;
  /// As KeptFile::write.
  void write(const std::vector<Listing>& listings) const;

 private:
  std::string key_;
  KeptFile file_;
};

}  // namespace penstock::data
