// A folder of torch_checkpointing: its `metadata.pkl`, and the one file of one rank.

#include "support/fuzz_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return penstock::fuzz::fuzz_folder("metadata.pkl", "m_0.pt", data, size);
}
