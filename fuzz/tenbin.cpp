#include "support/fuzz_format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return penstock::fuzz::fuzz_format(penstock::format::kTenbinFormat, data, size);
}
