#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "data/sample/user_call.h"
#include "penstock/source.h"

namespace penstock::data {

/// How the program opens files by itself: FilesOptions::source. Empty: Penstock opens them.
using OwnSource = std::function<penstock::Source(const std::string& path)>;

/// What the function gives for `path`; what it throws is an Error whose cause it is.
inline penstock::Source opened_by(const OwnSource& source, const std::string& path) {
  try {
    return source(path);
  } catch (...) {
    rethrow_as_error("the source of files");
  }
}

/// The same for reads, in a class of the program's own.
inline void read_from(const penstock::Source& source, std::span<std::byte> into) {
  try {
    source.read(0, into);
  } catch (...) {
    rethrow_as_error("the source of files");
  }
}

}  // namespace penstock::data
