#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/headerless.h"
#include "cli/info/json_content.h"
#include "cli/info/tree.h"
#include "cli/json/json.h"
#include "cli/json/json_of_files.h"
#include "cli/option.h"
#include "cli/tensor_files.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/text.h"
#include "io/source/composed_source.h"
#include "penstock/error.h"
#include "penstock/load.h"

namespace penstock::cli {
namespace {

struct InfoOptions {
  std::vector<std::string> paths;
  std::vector<std::string> exclude;
  Headerless headerless;
  std::size_t depth = std::numeric_limits<std::int32_t>::max();
  bool json = false;
};

struct Totals {
  std::uint64_t file_bytes = 0;
  std::uint64_t tensor_bytes = 0;
  std::uint64_t elements = 0;
  std::size_t compressed = 0;
  std::map<std::string, std::size_t> by_dtype;
};

Totals totals_of(const Archive& archive) {
  Totals totals;
  for (const Source& source : archive.sources()) totals.file_bytes += io::as_composed(source) ? 0 : source.size();
  for (const StorageEntry& storage : archive.storages()) {
    totals.compressed += storage.is_deflated() ? 1 : 0;
  }
  for (const TensorEntry& entry : archive.entries()) {
    totals.tensor_bytes += entry.nbytes();
    totals.elements += static_cast<std::uint64_t>(entry.shape.numel());
    ++totals.by_dtype[entry.dtype.name()];
  }
  return totals;
}

void write_info(JsonWriter& out, const Archive& archive) {
  const Totals totals = totals_of(archive);
  out.begin_object();
  write_members(
      out, Json{{"path", archive.path()},
                {"format", archive.format()},
                {"file_bytes", totals.file_bytes},
                {"tensor_count", archive.entries().size()},
                {"storage_count", archive.storages().size()},
                {"tensor_bytes", totals.tensor_bytes},
                {"elements", totals.elements},
                {"dtypes", totals.by_dtype},
                {"metadata", archive.metadata()},
                {"unknown_globals", std::vector(archive.unknown_globals().begin(), archive.unknown_globals().end())}});
  write_content(out, archive);
  write_entries(out, archive);
  out.end();
}

void line(std::string_view label, const std::string& text) {
  core::print("{} {}\n", paint(stdout, "1", core::format("{:<12}", label)), text);
}

void print_human(const Archive& archive, std::size_t depth) {
  const Totals totals = totals_of(archive);
  line("path", printable(archive.path()));
  line("format", std::string(archive.format()));
  line("file size", core::format_bytes(totals.file_bytes));
  line("tensors", core::format("{} in {}, {}, {}", human_count(archive.entries().size()),
                               counted(archive.storages().size(), "storage"), counted(totals.elements, "element"),
                               core::format_bytes(totals.tensor_bytes)));
  for (const auto& [dtype, count] : totals.by_dtype) {
    line("", core::format("{} x {}", human_count(count), printable(dtype)));
  }
  if (totals.compressed > 0) line("compressed", counted(totals.compressed, "storage") + " (deflate)");
  for (const auto& [key, text] : archive.metadata()) {
    line("metadata", core::format("{} = {}", printable(key), printable(text)));
  }
  for (const std::string& name : archive.unknown_globals()) line("unknown", printable(name) + " (kept inert, not run)");
  if (depth == 0) return;
  core::print("\n");
  print_tree(archive, depth);
}

int run(const InfoOptions& options) {
  const ChosenFiles chosen = choose_files(options.paths, options.exclude);
  int code = chosen.refused.empty() ? 0 : 1;
  JsonOfFiles out(options.json, chosen);
  bool is_first = true;
  for (const std::string& path : chosen.paths) {
    try {
      const Archive archive = options.headerless.open(path);
      if (out) {
        write_info(*out, archive);
        continue;
      }
      if (!std::exchange(is_first, false)) core::print("\n");
      print_human(archive, options.depth);
    } catch (const Error& error) {
      print_error(error.what());
      code = 1;
      if (out) write_json(*out, error_json(error, path));
    }
  }
  out.finish();
  return code;
}

std::function<int()> attach_info(Arguments& arguments) {
  auto options = std::make_shared<InfoOptions>();
  arguments.add("PATH", &options->paths, "Tensor files, folders of them and patterns").required().takes("PATH");
  take_excluded(arguments, options->exclude);
  options->headerless.take(arguments);
  arguments.add("--depth", &options->depth, "Levels of the tree that are printed; 0 for none. Without it all")
      .takes_number(0, std::numeric_limits<std::int32_t>::max())
      .excludes("--json");
  arguments.add("--json", &options->json, "Print JSON: an object; of several files, a list of objects");
  return [options] { return run(*options); };
}

}  // namespace

const Command kInfo{
    "info",
    "Describe files: format, sizes, types, metadata, nested content",
    "Reads headers only. Below the totals stands a tree: elements and bytes of each layer, type and shape of each "
    "tensor, the values of numbers and text. Names in a pickle that Penstock does not know are listed; they are never "
    "run. A file that cannot be read is told on standard error, and the others are described. - is standard input.",
    {"penstock info model.pt", "penstock info model.pt --depth 1", "penstock info model.pt --json"},
    attach_info};

}  // namespace penstock::cli
