#include "cli/convert/shards.h"

#include <filesystem>
#include <memory>

#include "archive/composition.h"
#include "archive/unloaded.h"
#include "cli/json/json.h"
#include "core/format.h"
#include "format/flat_tensors.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

constexpr std::string_view kExtension = ".safetensors";

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

}  // namespace

std::vector<Shard> shards_of(const Archive& archive, std::span<const TensorEntry> entries, std::uint64_t most,
                             const std::string& to) {
  if (!to.ends_with(kExtension)) {
    throw Error(ErrorCode::kInvalidArgument, "shards are files of safetensors; name the whole *.safetensors",
                {.path = to});
  }
  if (!archive::is_apart(archive)) {
    throw Error(ErrorCode::kUnsupported,
                "tensors share memory, which safetensors cannot express: leave one out with --exclude, or write a .pt",
                {.path = archive.path()});
  }
  std::vector<Shard> shards(1);
  std::uint64_t bytes = 0;
  for (auto& [name, value] : format::flat_values(archive.structure(), "safetensors", "tensor")) {
    const std::size_t entry = value.entry_index().value();
    const std::uint64_t more = entries[entry].nbytes();
    if (!shards.back().tensors.empty() && (more > most || bytes > most - more)) {
      shards.emplace_back();
      bytes = 0;
    }
    bytes += more;
    shards.back().tensors.emplace_back(std::move(name), entry);
  }
  const std::string stem = to.substr(0, to.size() - kExtension.size());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    shards[i].path = core::format("{}-{:05}-of-{:05}{}", stem, i + 1, shards.size(), kExtension);
  }
  return shards;
}

Archive archive_of(const Archive& archive, const Shard& shard) {
  archive::Composition composition;
  composition.add_files(archive);
  std::vector<std::pair<std::string, Value>> items;
  for (const auto& [name, entry] : shard.tensors) items.emplace_back(name, composition.add(archive, entry, name));
  return composition.take(Value::dict(std::move(items)));
}

std::string shard_index_path(const std::string& to) { return to + ".index.json"; }

void write_shard_index(const std::string& path, const std::vector<Shard>& shards, std::uint64_t bytes,
                       io::Existing existing) {
  Json files = Json::object();
  for (const Shard& shard : shards) {
    for (const auto& [name, entry] : shard.tensors) files[name] = file_name(shard.path);
  }
  const std::unique_ptr<io::Output> out = io::open_output(path, {.existing = existing});
  out->write_text(Json{{"metadata", {{"total_size", bytes}}}, {"weight_map", std::move(files)}}.dump(2) + "\n");
  out->commit();
}

}  // namespace penstock::cli
