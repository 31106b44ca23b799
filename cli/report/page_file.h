#pragma once

#include <functional>
#include <string>

#include "cli/json/json_writer.h"
#include "penstock/load.h"

namespace penstock::cli {

/// Where a page is written: a file or an object, which appears whole or not at all, or standard output for "-".
struct PageFile {
  std::string path;
  bool force = false;  ///< replaces a file that exists
  bool quiet = false;  ///< says nothing of what was written

  /// Refuses where it is one of the files that are read, or exists and `force` is not set. kInvalidArgument.
  void require_free(const Archive& from) const;
  void require_free(const std::string& from) const;
  /// The first half of that, for further files.
  void require_other(const Archive& from) const;
  /// Writes the page around the data that `data` writes, and says so on standard output unless `quiet`.
  void write(const std::function<void(JsonWriter&)>& data) const;
};

}  // namespace penstock::cli
