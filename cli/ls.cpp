#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/json/json.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "io/source/composed_source.h"
#include "penstock/error.h"
#include "penstock/load.h"

namespace penstock::cli {
namespace {

struct Options {
  std::vector<std::string> paths;
  bool json = false;
};

std::vector<std::string> row_of(const Archive& archive, const TensorEntry& entry) {
  const StorageEntry& storage = archive.storages()[entry.storage];
  return {printable(entry.name), printable(entry.dtype.name()), entry.shape.to_string(), human_count(entry.nbytes()),
          storage.is_deflated()                                ? "deflated"
          : io::as_composed(archive.sources()[storage.source]) ? "in chunks"
                                                               : human_count(storage.offset + entry.byte_offset)};
}

void print_human(const Archive& archive, bool with_title) {
  std::vector<std::vector<std::string>> rows;
  for (const TensorEntry& entry : archive.entries()) rows.push_back(row_of(archive, entry));
  if (with_title) core::print("{}:\n", printable(archive.path()));
  print_table({"NAME", "DTYPE", "SHAPE", "BYTES", "OFFSET"}, rows, {3, 4});
}

void write_listing(JsonWriter& out, const Archive& archive) {
  out.begin_object();
  write_members(out, Json{{"path", archive.path()}, {"format", archive.format()}});
  write_entries(out, archive);
  out.end();
}

/// The archive; nothing where the file cannot be read, which is then told.
std::optional<Archive> open_or_tell(const std::string& path, std::string& error) {
  try {
    return open(path);
  } catch (const Error& refused) {
    error = refused.what();
    print_error(error);
    return std::nullopt;
  }
}

int list_json(const Options& options) {
  JsonWriter out;
  int code = 0;
  const bool several = options.paths.size() > 1;
  if (several) out.begin_array();
  for (const std::string& path : options.paths) {
    std::string error;
    if (const std::optional<Archive> archive = open_or_tell(path, error)) {
      write_listing(out, *archive);
    } else {
      write_json(out, Json{{"path", path}, {"error", error}});
      code = 1;
    }
  }
  if (several) out.end();
  out.finish();
  return code;
}

int list(const Options& options) {
  int code = 0;
  bool first = true;
  for (const std::string& path : options.paths) {
    std::string error;
    const std::optional<Archive> archive = open_or_tell(path, error);
    if (!archive) {
      code = 1;
      continue;
    }
    if (!first) core::print("\n");
    first = false;
    print_human(*archive, options.paths.size() > 1);
  }
  return code;
}

int run(const Options& options) { return options.json ? list_json(options) : list(options); }

std::function<int()> attach(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("file", options->paths, "Tensor files")->required()->type_name("FILE");
  app.add_flag("--json", options->json, "Print JSON: an object; of several files, a list of objects");
  return [options] { return run(*options); };
}

}  // namespace

const Command kLs{
    "ls",
    "List the tensors of a file",
    "Reads headers only: name, type, shape, size in bytes and offset in the file of each tensor. A file that "
    "cannot be read is told on standard error, and the others are listed; with --json its object has "
    "\"error\" in place of \"tensors\".",
    {"penstock ls model.pt", "penstock ls digits/0000.pt digits/0001.pt", "penstock ls model.pt --json"},
    attach};

}  // namespace penstock::cli
