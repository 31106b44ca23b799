#pragma once

// A file inside of a file, which a format names to whoever checks or lists what a folder holds.

#include <cstdint>
#include <string>

#include "penstock/source.h"

namespace penstock::format {

/// A part of a file that is a file of its own, such as the streams of a distributed checkpoint.
struct Content {
  Source file;
  std::uint64_t offset = 0;  ///< in it, which may end before
  std::uint64_t length = 0;
  std::string name = {};  ///< the item of the state dict that it is of
};

}  // namespace penstock::format
