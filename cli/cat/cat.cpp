#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/headerless.h"
#include "cli/info/json_content.h"
#include "cli/info/tree.h"
#include "cli/json/element_text.h"
#include "cli/json/json.h"
#include "cli/name_patterns.h"
#include "cli/option.h"
#include "cli/slice_text.h"
#include "cli/tensor_files.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/shown_url.h"
#include "penstock/error.h"
#include "penstock/load.h"

namespace penstock::cli {
namespace {

struct CatOptions {
  std::string path;
  std::optional<std::string> name;  ///< which may be empty
  std::vector<SlicePart> slice;
  Headerless headerless;
  bool json = false;
};

/// What a key leads to that is no tensor of this name: a number or text, or a part with all that lies below it.
std::optional<Archive> part_of(const Archive& archive, const std::string& name) {
  try {
    return archive.part(name);
  } catch (const Error& error) {
    // The error of a tensor's name knows more names that could have been meant.
    if (error.code() != ErrorCode::kKeyNotFound) throw;
    return std::nullopt;
  }
}

std::optional<Archive> part_of(const Archive& archive, CatOptions& options) {
  if (!options.name || archive.contains(*options.name)) return std::nullopt;
  if (std::optional<Archive> part = part_of(archive, *options.name)) return part;
  options.name = name_meant(archive, *options.name);
  return archive.contains(*options.name) ? std::nullopt : part_of(archive, *options.name);
}

/// Whether it holds something, and none of it is a tensor that could be named.
bool has_values_alone(const Archive& archive) {
  const Value& value = archive.structure();
  return archive.entries().empty() && (!is_container(value) || value.size() > 0);
}

LazyTensor choose(const Archive& archive, const CatOptions& options) {
  if (options.name) return archive[*options.name];
  if (archive.entries().size() == 1) return archive.entry(0);
  if (archive.entries().empty()) {
    throw Error(ErrorCode::kInvalidArgument, "the file holds nothing, so there is nothing to print",
                {.path = archive.path()});
  }
  throw Error(
      ErrorCode::kInvalidArgument,
      core::format("holds {}; name one of those that `penstock ls` shows", counted(archive.entries().size(), "tensor")),
      {.path = archive.path()});
}

/// A few bytes, or none, can be a tensor of any size that repeats them, of which printing has no end.
void require_printable(const Archive& archive, const Tensor& tensor) {
  constexpr std::int64_t kMostRepeated = std::int64_t{1} << 30;
  std::uint64_t stored = 0;
  for (const StorageEntry& storage : archive.storages()) stored = std::max(stored, storage.nbytes);
  if (tensor.numel() <= kMostRepeated || (tensor.nbytes() > 0 && tensor.nbytes() <= stored)) return;
  throw Error(ErrorCode::kLimit,
              core::format("the tensor repeats {} as {}; choose some of them with --slice", counted(stored, "byte"),
                           counted(static_cast<std::uint64_t>(tensor.numel()), "element")),
              {.path = archive.path()});
}

/// An innermost row a line, an empty line between planes.
void print_rows(const Tensor& tensor) {
  ElementText elements(tensor);
  const std::size_t rank = tensor.rank();
  const auto columns = static_cast<std::size_t>(rank > 0 ? tensor.shape()[rank - 1] : 1);
  const auto rows_in_plane = static_cast<std::size_t>(rank > 1 ? tensor.shape()[rank - 2] : 1);
  const auto count = static_cast<std::size_t>(tensor.numel());
  for (std::size_t index = 0; index < count; ++index) {
    const std::size_t row = index / columns;
    const bool row_begins = index % columns == 0;
    if (row_begins && row > 0 && row % rows_in_plane == 0) core::print("\n");
    core::print("{}{}", row_begins ? "" : " ", elements.text(index));
    if ((index + 1) % columns == 0) core::print("\n");
  }
}

void print_part(const Archive& part, const CatOptions& options) {
  if (!options.slice.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "this is not a tensor, so it has no slices",
                {.path = part.path(), .tensor = options.name.value_or("")});
  }
  const Value& value = part.structure();
  if (options.json) {
    JsonWriter out;
    out.begin_object();
    write_members(out, Json{{"name", options.name.value_or("")}});
    write_content(out, part);
    out.end();
    out.finish();
  } else if (value.is(Value::Kind::kString)) {
    core::print("{}\n", printable(value.as_string()));
  } else if (is_container(value)) {
    print_tree(part, std::numeric_limits<std::int32_t>::max());
  } else {
    core::print("{}\n", printable(value.to_string()));
  }
}

/// Below `title`, which is printed once there is something to print.
void print(const Archive& archive, CatOptions options, const std::string& title = {}) {
  const std::optional<Archive> part = part_of(archive, options);
  if ((part && !part->structure().is(Value::Kind::kTensor)) || (!options.name && has_values_alone(archive))) {
    core::print("{}", title);
    return print_part(part.value_or(archive), options);
  }
  LazyTensor lazy = part ? part->entry(0) : choose(archive, options);
  if (!options.slice.empty()) lazy = apply_slice(lazy, options.slice);
  const Tensor tensor = lazy.load();
  require_printable(archive, tensor);
  core::print("{}", title);
  if (options.json) {
    print_json(Json{{"name", lazy.name()},
                    {"dtype", tensor.dtype().name()},
                    {"shape", std::vector(tensor.shape().begin(), tensor.shape().end())}},
               "values", tensor);
  } else {
    print_rows(tensor);
  }
}

int run(const CatOptions& options) {
  const TensorFiles files = tensor_files(options.path);
  int code = 0;
  for (const Error& refused : files.refused) {
    print_error(refused.what());
    code = 1;
  }
  if (files.is_single) {
    print(options.headerless.open(options.path), options);
    return code;
  }
  if (options.json) {
    throw Error(ErrorCode::kInvalidArgument, "--json prints one tensor; name one file", {.path = options.path});
  }
  bool is_first = true;
  for (const std::string& path : files.paths) {
    try {
      const std::string title = core::format("{}{}:\n", is_first ? "" : "\n", printable(core::shown_path(path)));
      print(options.headerless.open(path), options, title);
      is_first = false;
    } catch (const Error& error) {
      print_error(error.what());
      code = 1;
    }
  }
  return code;
}

std::function<int()> attach_cat(Arguments& arguments) {
  auto options = std::make_shared<CatOptions>();
  arguments.add("FILE", &options->path, "A tensor file, a folder of them or a pattern").required().takes("PATH");
  arguments
      .add("NAME", &options->name,
           "The tensor, or a key that leads to other content; may be left out when the file holds one tensor")
      .takes("NAME");
  take_slice(arguments, options->slice);
  options->headerless.take(arguments);
  arguments.add("--json", &options->json, "Print JSON");
  return [options] { return run(*options); };
}

}  // namespace

const Command kCat{
    "cat",
    "Print a tensor, a slice of one, or other content",
    "Reads only the bytes of the slice. Prints one innermost row a line, an empty line between planes. Of a key that "
    "leads to a number or text, it prints that; of one that leads to a dict or list, all that lies below as a tree, "
    "and so it does of a file without tensors. - is standard input.",
    {"penstock cat labels.npy", "penstock cat model.pt encoder", "penstock cat images.npy --slice 0,:,2:6"},
    attach_cat};

}  // namespace penstock::cli
