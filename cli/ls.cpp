#include <memory>
#include <string>
#include <vector>

#include "command.h"
#include "core/format.h"
#include "json.h"
#include "penstock/load.h"
#include "terminal.h"

namespace penstock::cli {
namespace {

struct Options {
  std::vector<std::string> paths;
  bool json = false;
};

std::vector<std::string> row_of(const Archive& archive, const TensorEntry& entry) {
  const StorageEntry& storage = archive.storages()[entry.storage];
  return {printable(entry.name), printable(entry.dtype.name()), entry.shape.to_string(), human_count(entry.nbytes()),
          storage.compression == Compression::kNone ? human_count(storage.offset + entry.byte_offset) : "deflated"};
}

void print_human(const Archive& archive, bool with_title) {
  std::vector<std::vector<std::string>> rows;
  for (const TensorEntry& entry : archive.entries()) rows.push_back(row_of(archive, entry));
  if (with_title) core::print("{}:\n", printable(archive.path()));
  print_table({"NAME", "DTYPE", "SHAPE", "BYTES", "OFFSET"}, rows, {3, 4});
}

Json entries_json(const Archive& archive) {
  Json entries = Json::array();
  for (const TensorEntry& entry : archive.entries()) entries.push_back(to_json(archive, entry));
  return Json{{"path", archive.path()}, {"format", archive.format()}, {"tensors", entries}};
}

int run(const Options& options) {
  Json all = Json::array();
  for (const std::string& path : options.paths) {
    const Archive archive = open(path);
    if (options.json) {
      all.push_back(entries_json(archive));
    } else {
      if (&path != &options.paths.front()) core::print("\n");
      print_human(archive, options.paths.size() > 1);
    }
  }
  if (options.json) print_json(all.size() == 1 ? all[0] : all);
  return 0;
}

std::function<int()> attach(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("file", options->paths, "Tensor files")->required()->type_name("FILE");
  app.add_flag("--json", options->json, "Print JSON");
  return [options] { return run(*options); };
}

}  // namespace

const Command kLs{"ls", "List the tensors of a file",
                  "Reads headers only: name, type, shape, size in bytes and offset in the file of each tensor.",
                  attach};

}  // namespace penstock::cli
