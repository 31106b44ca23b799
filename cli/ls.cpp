#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cli/command.h"
#include "cli/json/json.h"
#include "cli/tensor_files.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "data/scan/name_match.h"
#include "io/file/url.h"
#include "io/remote/list.h"
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

/// What is in a bucket or in a folder of it; nothing for another path, or for a folder that has nothing.
std::optional<io::remote::Objects> objects_in(const std::string& path) {
  if (!io::is_url(path)) return std::nullopt;
  const io::remote::Location location = io::remote::parse(path);
  if (!location.in_bucket()) return std::nullopt;
  const bool is_folder = location.key.empty() || location.key.ends_with('/');
  io::remote::Objects found = io::remote::list_objects(location, location.key + (is_folder ? "" : "/"), false);
  if (!is_folder && found.objects.empty() && found.folders.empty()) return std::nullopt;
  return found;
}

void print_objects(const std::string& path, const io::remote::Objects& found, bool with_title) {
  const std::string key = io::remote::parse(path).key;
  const std::size_t front = key.empty() || key.ends_with('/') ? key.size() : key.size() + 1;
  std::vector<std::vector<std::string>> rows;
  for (const std::string& folder : found.folders) rows.push_back({printable(folder.substr(front)), ""});
  for (const io::remote::Object& object : found.objects) {
    rows.push_back({printable(object.key.substr(front)), human_count(object.size)});
  }
  if (with_title) core::print("{}:\n", printable(path));
  print_table({"NAME", "BYTES"}, rows, {1});
}

Json json_of(const std::string& path, const io::remote::Objects& found) {
  Json objects = Json::array();
  for (const io::remote::Object& object : found.objects) {
    objects.push_back(Json{{"key", object.key}, {"bytes", object.size}});
  }
  return Json{{"path", path}, {"folders", found.folders}, {"objects", std::move(objects)}};
}

/// What a path names: an archive, or what is in a bucket. Nothing where it cannot be read, which is then told.
using Found = std::variant<std::monostate, Archive, io::remote::Objects>;

Found look(const std::string& path) {
  if (!is_several_objects(path)) {
    try {
      return open(path);
    } catch (const Error& refused) {
      if (refused.code() != ErrorCode::kNotFound) throw;
      if (std::optional<io::remote::Objects> found = objects_in(path)) return *std::move(found);
      throw;
    }
  }
  std::optional<io::remote::Objects> found = objects_in(path);
  if (found && (!found->objects.empty() || !found->folders.empty())) return *std::move(found);
  throw Error(ErrorCode::kNotFound, "there is nothing in it; check the name", {.path = path});
}

Found look_or_tell(const std::string& path, std::string& error) {
  try {
    return look(path);
  } catch (const Error& refused) {
    error = refused.what();
    print_error(error);
    return {};
  }
}

int list_json(const Options& options) {
  JsonWriter out;
  int code = 0;
  const bool several = options.paths.size() > 1;
  if (several) out.begin_array();
  for (const std::string& path : options.paths) {
    std::string error;
    const Found found = look_or_tell(path, error);
    if (const auto* const archive = std::get_if<Archive>(&found)) {
      write_listing(out, *archive);
    } else if (const auto* const objects = std::get_if<io::remote::Objects>(&found)) {
      write_json(out, json_of(path, *objects));
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
  const bool with_title = options.paths.size() > 1;
  for (const std::string& path : options.paths) {
    std::string error;
    const Found found = look_or_tell(path, error);
    if (std::holds_alternative<std::monostate>(found)) {
      code = 1;
      continue;
    }
    if (!first) core::print("\n");
    first = false;
    if (const auto* const archive = std::get_if<Archive>(&found)) {
      print_human(*archive, with_title);
    } else {
      print_objects(path, std::get<io::remote::Objects>(found), with_title);
    }
  }
  return code;
}

/// Patterns of a bucket's keys become the objects that match; the shell does that for files.
int run(Options options) {
  std::vector<std::string> paths;
  for (const std::string& path : options.paths) {
    const bool is_pattern = is_several_objects(path) && data::is_magic(path);
    const std::vector<std::string> matching = is_pattern ? tensor_files(path).paths : std::vector<std::string>{path};
    paths.insert(paths.end(), matching.begin(), matching.end());
  }
  options.paths = std::move(paths);
  return options.json ? list_json(options) : list(options);
}

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
    "\"error\" in place of \"tensors\". Of a bucket, or a folder in one (s3://bucket/train/), it lists the objects.",
    {"penstock ls model.pt", "penstock ls digits/0000.pt digits/0001.pt", "penstock ls model.pt --json"},
    attach};

}  // namespace penstock::cli
