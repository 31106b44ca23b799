#pragma once

#include <string>

namespace penstock::fuzz {

/// Ends the program with what went wrong, which is how a fuzzer reports a finding.
[[noreturn]] void fail(const std::string& what);

inline void require(bool holds, const char* what) {
  if (!holds) fail(what);
}

}  // namespace penstock::fuzz
