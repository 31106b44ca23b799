// A folder of two shards as torch's HuggingFaceStorageWriter leaves them.

#include "support/fuzz_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return penstock::fuzz::fuzz_folder("shard-00001-model-00001-of-00001.safetensors",
                                     "shard-00002-model-00001-of-00001.safetensors", data, size);
}
