// An index from its bytes alone, and in a folder beside two shards. Both shards have "both", and the tensors tell where
// they lie, so whatever is loaded by the index is what one of its shards holds under that name.

#include <filesystem>
#include <fstream>

#include "penstock/load.h"
#include "penstock/save.h"
#include "support/fuzz_format.h"
#include "support/outcome.h"
#include "support/same_value.h"
#include "support/scratch_folder.h"

namespace penstock::fuzz {
namespace {

/// One folder for the whole run.
struct Shards {
  Shards() {
    save(first, folder.path() / "model-00001-of-00002.safetensors", {.sync = false});
    save(second, folder.path() / "model-00002-of-00002.safetensors", {.sync = false});
  }

  ScratchFolder folder;
  Value first{{"a", Tensor::of<float>({1, 2})}, {"both", Tensor::of<std::int32_t>({3})}};
  Value second{{"b", Tensor::of<std::int16_t>({4, 5, 6})}, {"both", Tensor::of<std::int32_t>({7, 8})}};
};

bool is_of(const Value& shard, const std::string& name, const Tensor& found) {
  const auto held = shard.find(name);
  return held && difference_of(held->as_tensor(), found).empty();
}

bool read(const Shards& shards, const std::filesystem::path& index) {
  const Archive archive = open(index);
  for (const TensorEntry& entry : archive.entries()) {
    const Tensor found = archive[entry.name].load({.threads = 1});
    require(is_of(shards.first, entry.name, found) || is_of(shards.second, entry.name, found),
            "a tensor is in neither shard");
  }
  const Value whole = archive.load({.threads = 1});
  for (const TensorEntry& entry : archive.entries()) {
    require(difference_of(whole[entry.name].as_tensor(), archive[entry.name].load()).empty(),
            "a tensor differs in the whole");
  }
  return true;
}

}  // namespace
}  // namespace penstock::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock::fuzz;
  static const Shards shards;
  const std::filesystem::path index = shards.folder.path() / "model.safetensors.index.json";
  std::ofstream(index, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  attempt([&] { return read(shards, index); });
  return fuzz_format(penstock::format::kShardIndexFormat, data, size);
}
