#include "support/require.h"

#include <cstdio>
#include <cstdlib>

namespace penstock::fuzz {

void fail(const std::string& what) {
  std::fprintf(stderr, "the fuzzer found: %s\n", what.c_str());
  std::abort();
}

}  // namespace penstock::fuzz
