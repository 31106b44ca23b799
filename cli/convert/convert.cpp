#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "archive/archive_state.h"
#include "archive/raw.h"
#include "archive/unchanged.h"
#include "archive/unloaded.h"
#include "cli/command.h"
#include "cli/content_check.h"
#include "cli/convert/choice.h"
#include "cli/convert/float_cast.h"
#include "cli/convert/renaming.h"
#include "cli/convert/shards.h"
#include "cli/headerless.h"
#include "cli/json/json.h"
#include "cli/name_patterns.h"
#include "cli/option.h"
#include "cli/output_file.h"
#include "cli/standard_input.h"
#include "cli/tensor_files.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/text.h"
#include "data/scan/name_match.h"
#include "format/folder.h"
#include "format/format.h"
#include "format/part_names.h"
#include "format/save_with.h"
#include "io/file/output.h"
#include "io/file/output_set.h"
#include "io/locations.h"
#include "penstock/error.h"
#include "penstock/load.h"
#include "penstock/save.h"
#include "value/graph.h"

namespace penstock::cli {
namespace {

constexpr std::string_view kDone = "converted";

using Metadata = std::map<std::string, std::string>;

struct ConvertOptions {
  std::string from;
  std::string to;
  std::string format;
  std::string part;
  Choice choice;
  std::vector<std::string> merge;
  std::string dtype;
  Headerless headerless;
  std::uint64_t shard_size = 0;  ///< bytes; 0: one file
  std::vector<std::string> metadata;
  bool compress = false;
  bool force = false;
  bool json = false;
};

const format::Format& format_of(const Archive& archive) { return *detail::ArchiveState::of(archive).format; }

/// The metadata that whoever wrote the file gave it. What describes the file itself is left out: it is not true of the
/// file that is written.
std::optional<Metadata> metadata_of(const Archive& archive) {
  if (format_of(archive).metadata_is_own || !archive.has_metadata()) return std::nullopt;
  Metadata metadata = archive.metadata();
  if (archive.sources().size() == 1) return metadata;
  const Archive shard = open(archive.sources()[1]);
  if (!format_of(shard).metadata_is_own) return metadata;
  for (const auto& [key, text] : shard.metadata()) metadata.erase(key);
  return metadata.empty() ? std::nullopt : std::optional(std::move(metadata));
}

/// As verify does it, because mapping checks nothing.
void check(const Archive& archive, const std::stop_token& stop) {
  std::uint64_t all = 0;
  for (const Source& source : archive.sources()) all += source.size();
  Progress progress("checking", all);
  std::uint64_t done = 0;
  for (const Source& source : archive.sources()) {
    check_content(*source, 1, [&](std::uint64_t bytes) {
      progress.at(done += bytes);
      if (stop.stop_requested()) throw Error(ErrorCode::kCancelled, "the conversion was stopped; nothing was written");
    });
  }
}

/// Of a part of a file only what is taken: records of which the file has a checksum. The others have nothing to be
/// checked by.
void check_taken(const Archive& archive, const std::stop_token& stop) {
  const detail::ArchiveState& state = detail::ArchiveState::of(archive);
  std::uint64_t all = 0;
  for (const StorageEntry& storage : archive.storages()) all += storage.nbytes;
  Progress progress("checking", all);
  std::uint64_t done = 0;
  Report unused;
  for (std::size_t i = 0; i < archive.storages().size(); ++i) {
    const StorageEntry& storage = archive.storages()[i];
    if (storage.crc32 && storage.lies_in_file()) state.verify({&i, 1}, {.stop = stop}, unused);
    progress.at(done += storage.nbytes);
  }
}

/// The loaded content converted. Tensors that are the same stay the same.
Value converted(const Value& value, FloatCast& conversion) {
  using Key = std::tuple<const std::byte*, std::string, std::string, std::string>;
  std::map<Key, Tensor> known;
  return map_tensors(value, [&](const Tensor& tensor) {
    const Key key(tensor.data(), tensor.dtype().name(), tensor.shape().to_string(), tensor.strides().to_string());
    const auto found = known.find(key);
    return found != known.end() ? found->second : known.emplace(key, conversion(tensor)).first->second;
  });
}

enum class Mapping : std::uint8_t { kWhereItCan, kNever };

/// What says that there is a checkpoint in a folder.
std::string metadata_path(const std::string& folder) {
  return core::format("{}{}.metadata", folder, folder.ends_with('/') ? "" : "/");
}

/// Of the tensors that are written.
std::uint64_t bytes_of(const Archive& archive, const FloatCast& conversion) {
  std::uint64_t bytes = 0;
  for (const TensorEntry& entry : archive.entries()) {
    bytes += static_cast<std::uint64_t>(entry.shape.numel()) * conversion.type_of(entry.dtype).itemsize();
  }
  return bytes;
}

/// One file, or a checkpoint. `extras`: without the progress.
void write_file(const Archive& archive, const std::string& to, FloatCast& conversion, const SaveOptions& how,
                format::SaveExtras extras, Mapping mapping, bool is_whole) {
  const std::uint64_t bytes = bytes_of(archive, conversion);
  const auto save = [&](const auto& content) {
    Progress progress("writing", bytes);
    extras.progress = [&](std::uint64_t done) { progress.at(std::min(done, bytes)); };
    format::save_with(content, to, how, extras);
  };
  const format::Format& target = format::format_to_write(to, how);
  const bool mapped = archive::can_be_mapped(archive);
  // Elements that change places are sooner found in a map. All others are read: a program that cuts the file would end
  // this one while it reads a map.
  const bool is_mapped = mapped && conversion.is_none() && mapping == Mapping::kWhereItCan && !target.is_folder &&
                         archive::is_reordered(archive, target);
  if (!is_mapped) {
    if (const auto content = archive::unloaded(archive, target, conversion, how.stop)) return save(*content);
  }
  if (mapped) (is_whole ? check : check_taken)(archive, how.stop);
  if (!mapped) show_progress("reading ");
  const Value value = archive.load({.mmap = mapped, .stop = how.stop});
  save(conversion.is_none() ? value : converted(value, conversion));
}

/// Shards, and behind them their index. Files of an earlier index keep their names and contents until the new one has
/// come, so that there are always the old tensors or the new ones. When something fails before, the new shards go.
void write_shards(const Archive& archive, const ConvertOptions& options, FloatCast& conversion,
                  const SaveOptions& how) {
  std::vector<TensorEntry> entries(archive.entries().begin(), archive.entries().end());
  for (TensorEntry& entry : entries) entry.dtype = conversion.type_of(entry.dtype);
  std::vector<Shard> shards = shards_of(archive, entries, options.shard_size, options.to);
  const std::string index = shard_index_path(options.to);
  for (const Shard& shard : shards) require_free(archive.sources(), shard.path, options.force, kDone);
  require_free(archive.sources(), index, options.force, kDone);
  const std::uint64_t bytes = bytes_of(archive, conversion);
  std::vector<std::string> replaced;
  if (options.force && io::output_exists(index)) replaced = take_free_names(shards, options.to);
  for (const std::string& path : replaced) require_other(archive.sources(), path, kDone);
  io::OutputSet all;
  for (const Shard& shard : shards) {
    const auto commit = [&](io::Output& out) { all.commit(shard.path, out); };
    // A map would have the whole file checked for each shard.
    write_file(archive_of(archive, shard), shard.path, conversion, how,
               {.existing = existing(options.force), .commit = commit}, Mapping::kNever, false);
  }
  const std::unique_ptr<io::Output> out = io::open_output(index, {.existing = existing(options.force)});
  out->write_text(shard_index(shards, bytes));
  all.commit_last(*out);
  for (const std::string& path : replaced) io::remove_output(path);
}

void write(const Archive& archive, const ConvertOptions& options, SaveOptions how) {
  Interrupt interrupt;
  how.stop = interrupt.token();
  const bool keeps_types = options.dtype.empty() || options.headerless.is_said();
  FloatCast conversion(keeps_types ? std::nullopt : DType::from_name(options.dtype));
  interrupt.during([&] {
    if (options.shard_size != 0) {
      write_shards(archive, options, conversion, how);
    } else {
      write_file(archive, options.to, conversion, how, {.existing = existing(options.force)}, Mapping::kWhereItCan,
                 options.part.empty() && options.choice.only.empty() && options.choice.exclude.empty());
    }
  });
  if (conversion.overflows() == 0) return;
  print_error(core::format("{}: {} beyond the range of {} became infinite", printable(options.to),
                           counted(static_cast<std::uint64_t>(conversion.overflows()), "value"), options.dtype));
}

/// What was written: one file, or an index of shards.
void report(const ConvertOptions& options, const Metadata& left_out) {
  const Archive written = open(options.shard_size != 0 ? shard_index_path(options.to) : options.to);
  std::vector<std::string> keys;
  for (const auto& [key, text] : left_out) keys.push_back(key);
  std::uint64_t bytes = 0;
  for (const Source& source : written.sources()) bytes += source.size();
  if (options.json) {
    print_json(Json{{"path", written.path()},
                    {"format", written.format()},
                    {"tensors", written.entries().size()},
                    {"bytes", bytes},
                    {"metadata_left_out", keys}});
  } else {
    core::print("{}: {}, {}, {}\n", printable(written.path()), written.format(),
                counted(written.entries().size(), "tensor"), core::format_bytes(bytes));
  }
  if (keys.empty()) return;
  print_error(core::format("{}: {} files have no place for metadata, which is left out: {}", printable(options.to),
                           written.format(), printable(core::format("{}", fmt::join(keys, ", ")))));
}

bool names_folder(const std::string& path) {
  if (path == kStandardInput) return false;
  return io::is_local_folder(path) || (is_several_objects(path) && !data::is_magic(path));
}

/// What `load` reads of a folder that is one thing, whatever else lies in it or below; nothing of any other path.
std::optional<Source> folder_as_one(const std::string& path) {
  return names_folder(path) ? format::open_folder(path) : std::nullopt;
}

/// The path of a file below a folder as a name of keys: "a.b" of "a/b.npy".
std::string name_of_file(std::string path) {
  if (path == kStandardInput) return {};
  if (has_tensor_extension(path)) path = std::filesystem::path(path).replace_extension().string();
  std::replace(path.begin(), path.end(), '/', '.');
  return path;
}

Archive part_of(const Archive& whole, const std::string& key) {
  if (key.empty()) return whole;
  try {
    return whole.part(key);
  } catch (const Error&) {
    const std::string meant = name_meant(whole, key);
    if (meant == key) throw;
    return whole.part(meant);
  }
}

struct Opened {
  std::vector<Archive> archives;
  std::vector<std::string> names;  ///< of what a file holds that has no name in it
  bool is_single = true;           ///< it is one file, and no folder with one in it
};

/// The files that are read, of which the first may be narrowed to a part.
Opened opened(const ConvertOptions& options) {
  Opened out;
  if (std::optional<Source> one = folder_as_one(options.from)) {
    out.archives.push_back(part_of(options.headerless.open(*std::move(one)), options.part));
    out.names.emplace_back();
  } else {
    const TensorFiles from = tensor_files(options.from);
    if (!from.refused.empty()) throw from.refused.front();
    // Who names a folder wants all of it; who names a pattern, what it matches.
    if (names_folder(options.from)) format::require_all_parts(from.names, options.from);
    out.is_single = from.is_single;
    for (std::size_t i = 0; i < from.paths.size(); ++i) {
      out.archives.push_back(part_of(options.headerless.open(from.paths[i]), options.part));
      out.names.push_back(name_of_file(from.names[i]));
    }
  }
  out.is_single = out.is_single && options.merge.empty();
  for (const std::string& path : options.merge) {
    out.archives.push_back(options.headerless.open_either(path));
    out.names.push_back(name_of_file(std::filesystem::path(path).filename().string()));
  }
  return out;
}

/// Their metadata, and the program's. Of a key that several have, the first file's text is kept, which is told.
std::optional<Metadata> metadata_of(const std::vector<Archive>& archives, const ConvertOptions& options) {
  std::optional<Metadata> all;
  for (const Archive& archive : archives) {
    const std::optional<Metadata> metadata = metadata_of(archive);
    if (!metadata) continue;
    if (!all) all.emplace();
    for (const auto& [key, text] : *metadata) {
      if (all->try_emplace(key, text).first->second == text) continue;
      print_error(
          core::format("{}: its metadata {} differs and is left out", printable(archive.path()), printable(key)));
    }
  }
  Metadata own;
  for (const std::string& given : options.metadata) {
    const std::size_t equals = given.find('=');
    const std::string key = given.substr(0, equals);
    if (!own.emplace(key, given.substr(equals + 1)).second) {
      throw WrongUsage(core::format("--metadata: {} is given twice", core::quoted(key)));
    }
  }
  if (all) own.merge(*all);
  if (all || !own.empty()) all = std::move(own);
  return all;
}

int run(const ConvertOptions& options) {
  SaveOptions how{.format = options.format, .compress = options.compress};
  const format::Format& target = format::format_to_write(options.to, how);
  if (!options.metadata.empty() && !target.keeps_metadata) {
    throw Error(ErrorCode::kUnsupported,
                core::format("{} files hold no metadata, and --metadata was given", target.name), {.path = options.to});
  }
  if (options.shard_size != 0 && !target.has_shards) {
    throw Error(ErrorCode::kUnsupported,
                core::format("shards are files of safetensors, and not of {}; --shard-size was given", target.name),
                {.path = options.to});
  }
  const std::string target_file = target.is_folder ? metadata_path(options.to) : options.to;
  const auto [archives, names, is_single] = opened(options);
  const bool has_names = archives.front().structure().is(Value::Kind::kDict);
  const bool as_it_is = archives.size() == 1 && options.choice.is_everything() && (is_single || has_names);
  const Archive archive =
      as_it_is ? archives.front() : chosen(archives, is_single ? std::vector<std::string>{} : names, options.choice);
  require_free(archive.sources(), target_file, options.force, kDone);
  std::optional<Metadata> metadata = metadata_of(archives, options);
  if (target.keeps_metadata) how.metadata = std::exchange(metadata, std::nullopt);
  how.before_commit = [&archive] {
    for (const Source& source : archive.sources()) archive::require_unchanged(*source);
  };
  write(archive, options, how);
  report(options, metadata.value_or(Metadata{}));
  return 0;
}

std::vector<std::string> writable_formats() {
  std::vector<std::string> names;
  for (const format::Format& format : format::formats()) {
    if (format::can_write(format)) names.emplace_back(format.name);
  }
  return names;
}

std::string check_pair(const std::string& text) {
  return text.find('=') == std::string::npos ? "KEY=TEXT" : std::string();
}

/// float16 by any name that DType knows; of files without a header any type.
void require_type(const ConvertOptions& options) {
  if (options.dtype.empty()) return;
  if (options.headerless.is_said()) {
    if (!archive::stored_type(options.dtype)) throw WrongUsage("--dtype: is to be a type such as uint16 or >u2");
    return;
  }
  const auto dtype = DType::from_name(options.dtype);
  const bool is_float =
      dtype == DType::float64 || dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
  if (is_float) return;
  throw WrongUsage(
      core::format("--dtype: found {}, expected one of float64, float32, float16, bfloat16, or bf16 and "
                   "such; a file without a header wants --shape, --offset or --order besides",
                   core::quoted(options.dtype)));
}

std::function<int()> attach_convert(Arguments& arguments) {
  auto options = std::make_shared<ConvertOptions>();
  arguments
      .add("FROM", &options->from,
           "A tensor file, an index of shards, a folder of a distributed checkpoint, or their URL; of other folders "
           "and patterns, all files")
      .required()
      .takes("FILE");
  arguments
      .add("TO", &options->to, "The file to write; FOLDER/ for a distributed checkpoint; s3://, gs:// and az:// too")
      .required()
      .takes("FILE");
  arguments.add("--to", &options->format, "The format to write, in place of the extension's")
      .takes_word(writable_formats());
  arguments.add("--part,--key", &options->part, "Only what this key leads to: model, or model.encoder").takes("KEY");
  arguments.add("--only", &options->choice.only, "Only what has such a name, or lies below it; may be given again")
      .takes("PATTERN");
  arguments.add("--exclude", &options->choice.exclude, "Nothing of such a name, or below it; may be given again")
      .takes("PATTERN");
  arguments
      .add("--rename", &options->choice.rename,
           "Change names as sed does, s/REGEX/TEXT/; may be given again. Dicts in dicts become one")
      .takes_checked("RENAMING", check_rename);
  arguments.add("--text-keys", &options->choice.text_keys,
                "Keys that are integers, as those of an optimizer's state, become text: 0 becomes '0'");
  arguments
      .add("--merge", &options->merge, "Another file whose names come behind those of the first; may be given again")
      .takes("FILE");
  arguments
      .add("--dtype", &options->dtype,
           "The type of all floats in the file that is written: float64, float32, float16, bfloat16. With --shape, "
           "--offset or --order what lies in a file without a header: uint16, >u2")
      .takes("float64|float32|float16|bfloat16|TYPE");
  arguments.refuse = [options](const Arguments&) { require_type(*options); };
  options->headerless.take(arguments, &options->dtype);
  arguments
      .add("--shard-size", &options->shard_size,
           "Several .safetensors of at most this size, and their index: 5GB, 500MB")
      .takes_bytes();
  arguments.add("--metadata", &options->metadata, "Put this into the metadata of the .safetensors; may be given again")
      .takes_checked("KEY=TEXT", check_pair);
  arguments.add("--compress", &options->compress, "Deflate the members of an .npz");
  arguments.add("--force", &options->force, "Replace a file that exists");
  arguments.add("--json", &options->json, "Print JSON");
  return [options] { return run(*options); };
}

}  // namespace

const Command kConvert{
    "convert",
    "Write a tensor file in another format",
    "The extension of the second file says which format: .npy, .npz, .pt, .pth or .safetensors; with / at its end it "
    "is the folder of a distributed checkpoint (torch.distributed.checkpoint). It appears whole or not at all, also as "
    "an object in a store (s3://, gs://, az://). What that format cannot hold is refused, but for metadata, which is "
    "told on standard error when it is left out; dicts in dicts become names joined with dots in a .safetensors, and "
    "in an .npz with --rename. Files of any size take little memory, because they are read and written in pieces. An "
    "index of shards, or a distributed checkpoint, becomes one file. Names are keys joined with dots, as ls prints "
    "them; in a PATTERN * and ? stand for any characters, dots too. Of a choice only what is taken is read and "
    "checked. The files of a folder or pattern are put together. - is standard input. Nothing in the first file is "
    "run.",
    {"penstock convert model.pt model.safetensors --dtype bfloat16",
     "penstock convert model.pt encoder.npz --part encoder --rename 's/^layers/blocks/'",
     "penstock convert model.safetensors ckpt/"},
    attach_convert};

}  // namespace penstock::cli
