#include "cli/convert/shards.h"

#include <filesystem>
#include <optional>

#include "archive/composition.h"
#include "archive/unloaded.h"
#include "cli/json/json_type.h"
#include "core/format.h"
#include "core/utf8.h"
#include "format/flat_tensors.h"
#include "io/file/output.h"
#include "io/locations.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

constexpr std::string_view kExtension = ".safetensors";

constexpr std::size_t kDigits = 5;

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

void name_shards(std::vector<Shard>& shards, const std::string& to, std::size_t digits) {
  const std::string stem = to.substr(0, to.size() - kExtension.size());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    shards[i].path = core::format("{}-{:0{}}-of-{:0{}}{}", stem, i + 1, digits, shards.size(), digits, kExtension);
  }
}

/// A folder is none: to write a file in its place is an error.
std::vector<std::string> files_in_places_of(const std::vector<Shard>& shards) {
  std::vector<std::string> found;
  for (const Shard& shard : shards) {
    if (io::output_exists(shard.path) && !io::is_local_folder(shard.path)) found.push_back(shard.path);
  }
  return found;
}

}  // namespace

std::vector<Shard> shards_of(const Archive& archive, std::span<const TensorEntry> entries, std::uint64_t most,
                             const std::string& to) {
  if (!to.ends_with(kExtension)) {
    throw Error(ErrorCode::kInvalidArgument, "shards are files of safetensors; name the whole *.safetensors",
                {.path = to});
  }
  if (!core::is_utf8(file_name(to))) {
    throw Error(
        ErrorCode::kInvalidArgument,
        "the index of the shards is JSON and names them as text, which this name is not (UTF-8): choose another",
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
  name_shards(shards, to, kDigits);
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

std::string shard_index(const std::vector<Shard>& shards, std::uint64_t bytes) {
  Json files = Json::object();
  for (const Shard& shard : shards) {
    for (const auto& [name, entry] : shard.tensors) add_member(files, name, file_name(shard.path));
  }
  return Json{{"metadata", {{"total_size", bytes}}}, {"weight_map", std::move(files)}}.dump(2) + "\n";
}

std::vector<std::string> take_free_names(std::vector<Shard>& shards, const std::string& to) {
  std::vector<std::string> replaced;
  std::optional<std::size_t> unused;
  // The names that come next in turn are looked at too: files that were written so before have them.
  for (std::size_t digits = kDigits; digits <= kDigits + 1 || !unused; ++digits) {
    name_shards(shards, to, digits);
    const std::vector<std::string> there = files_in_places_of(shards);
    if (there.empty() && !unused) unused = digits;
    replaced.insert(replaced.end(), there.begin(), there.end());
  }
  name_shards(shards, to, *unused);
  return replaced;
}

}  // namespace penstock::cli
