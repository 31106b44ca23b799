#include "support/fuzz_format.h"
#include "support/mutator.h"

PENSTOCK_FUZZ_MUTATOR(mutate_file)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return penstock::fuzz::fuzz_format(penstock::format::kPtFormat, data, size);
}
