// A folder of a distributed checkpoint: its `.metadata`, and its one file of streams.

#include "support/fuzz_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return penstock::fuzz::fuzz_folder(".metadata", "__0_0.distcp", data, size);
}
