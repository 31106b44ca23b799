#pragma once

// Which files `diff` compares with which.

#include <string>
#include <vector>

#include "penstock/error.h"

namespace penstock::cli {

struct FilePair {
  std::string name;  ///< below the folders that were named; empty where two files were
  std::string a;
  std::string b;
};

/// Which files are compared with which.
struct FilePairs {
  std::vector<FilePair> pairs;
  std::vector<std::string> only_in_a;
  std::vector<std::string> only_in_b;
  std::vector<Error> refused;  ///< folders that cannot be listed
  bool is_single = false;      ///< two files
};

/// Two files are one pair. Files of folders and patterns are paired by their names below them, and those that only one
/// has by their names without the extension. A file and a folder: the only file in it, or the one of the file's name.
/// kNotFound where there is none.
FilePairs pair_files(const std::string& a, const std::string& b, const std::vector<std::string>& exclude);

}  // namespace penstock::cli
