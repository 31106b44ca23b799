#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "archive/archive_state.h"
#include "archive/materialise.h"
#include "archive/unchanged.h"
#include "cli/command.h"
#include "cli/json/json.h"
#include "cli/option.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "cli/verify/content_check.h"
#include "core/format.h"
#include "format/folder.h"
#include "format/format.h"
#include "format/save_told.h"
#include "io/source/composed_source.h"
#include "penstock/error.h"
#include "penstock/load.h"
#include "penstock/save.h"

namespace penstock::cli {
namespace {

/// How much of a tensor is in memory at once where it is written in pieces.
constexpr std::uint64_t kPieceBytes = std::uint64_t{8} << 20;

using Metadata = std::map<std::string, std::string>;

struct Options {
  std::string from;
  std::string to;
  std::string format;
  std::string part;
  bool compress = false;
  bool force = false;
  bool json = false;
};

void require_free(const Archive& from, const Options& options) {
  std::error_code ignored;
  for (const Source& source : from.sources()) {
    if (!std::filesystem::equivalent(source.name(), options.to, ignored)) continue;
    throw Error(ErrorCode::kInvalidArgument, "this is the file that is to be converted; name another one to write",
                {.path = options.to});
  }
  if (options.force || !std::filesystem::exists(options.to, ignored)) return;
  throw Error(ErrorCode::kInvalidArgument, "the file exists; name another one, or replace it with --force",
              {.path = options.to});
}

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

/// Whether views of the mapped file are its tensors as they are: those that the file does not align would each be read
/// alone, and share no storage any more.
bool can_be_mapped(const Archive& archive) {
  if (format_of(archive).is_folder) return false;
  const auto is_there = [](const Source& source) { return source.descriptor() >= 0 || source.memory(); };
  if (!std::ranges::all_of(archive.sources(), is_there)) return false;
  const auto storages = archive.storages();
  const auto entries = archive.entries();
  return std::all_of(entries.begin(), entries.end(), [&](const TensorEntry& entry) {
    const StorageEntry& storage = storages[entry.storage];
    const bool aligned = (storage.offset + entry.byte_offset) % archive::natural_alignment(entry.dtype) == 0;
    return entry.encoding.is_plain() && aligned;
  });
}

/// Whether each tensor is one for itself, so that they can be written one after the other without the others. A file
/// that has tensors share their bytes is loaded, because the writer says what it makes of that.
bool is_apart(const Archive& archive) {
  std::vector<bool> used(archive.storages().size());
  return std::ranges::all_of(archive.entries(), [&](const TensorEntry& entry) {
    if (entry.nbytes() == 0) return true;
    if (entry.pickled || used[entry.storage]) return false;
    used[entry.storage] = true;
    return true;
  });
}

/// As verify does it, because mapping checks nothing.
void check(const Archive& archive, const std::stop_token& stop) {
  std::uint64_t all = 0;
  for (const Source& source : archive.sources()) all += source.size();
  Progress progress("checking", all);
  std::uint64_t done = 0;
  for (const Source& source : archive.sources()) {
    check_content(*source, [&](std::uint64_t bytes) {
      progress.at(done += bytes);
      if (stop.stop_requested()) throw Error(ErrorCode::kCancelled, "the conversion was stopped; nothing was written");
    });
  }
}

/// Reads a tensor in pieces and writes each.
void write_pieces(const LazyTensor& tensor, io::ByteSink& sink, const std::stop_token& stop) {
  const TensorEntry& entry = tensor.entry();
  const bool in_pieces = tensor.storage().lies_in_file() && entry.nbytes() > kPieceBytes &&
                         entry.strides == entry.shape.contiguous_strides();
  if (!in_pieces || entry.shape.rank() == 0) {
    const Tensor loaded = tensor.load({.stop = stop}).contiguous();
    return sink.write({loaded.data(), loaded.nbytes()});
  }
  const std::int64_t rows = entry.shape[0];
  const auto fitting = static_cast<std::int64_t>(kPieceBytes / (entry.nbytes() / static_cast<std::uint64_t>(rows)));
  for (std::int64_t row = 0; row < rows; row += std::max<std::int64_t>(fitting, 1)) {
    write_pieces(fitting > 0 ? tensor.slice(0, row, std::min(row + fitting, rows)) : tensor.select(0, row), sink, stop);
  }
}

/// Writes a tensor in pieces. Those of a large one are no whole record, so that its checksum is compared behind them.
void write_tensor(const Archive& archive, std::size_t number, io::ByteSink& sink, const std::stop_token& stop) {
  const LazyTensor tensor = archive.entry(number);
  write_pieces(tensor, sink, stop);
  if (const io::ComposedSource* const composed = io::as_composed(tensor.source())) return composed->verify(stop);
  const StorageEntry& storage = tensor.storage();
  if (!storage.crc32 || !storage.lies_in_file() || tensor.nbytes() <= kPieceBytes) return;
  Report unused;
  detail::ArchiveState::of(archive).verify(tensor.entry().storage, {.stop = stop}, unused);
}

std::uint64_t tensor_bytes(const Archive& archive) {
  std::uint64_t bytes = 0;
  for (const TensorEntry& entry : archive.entries()) bytes += entry.nbytes();
  return bytes;
}

void write(const Archive& archive, const Options& options, SaveOptions how) {
  Interrupt interrupt;
  how.stop = interrupt.token();
  const bool mapped = can_be_mapped(archive);
  const bool apart = !mapped && format::format_to_write(options.to, how).writes_entries && is_apart(archive);
  interrupt.during([&] {
    if (mapped) check(archive, how.stop);
    if (!mapped && !apart) show_progress("reading ");
    const Value value = apart ? archive.structure() : archive.load({.mmap = mapped, .stop = how.stop});
    Progress progress("writing", tensor_bytes(archive));
    const auto tell = [&](std::uint64_t bytes) { progress.at(bytes); };
    if (!apart) return format::save_told(value, options.to, how, tell);
    const auto payload = [&](std::size_t i, io::ByteSink& sink) { write_tensor(archive, i, sink, how.stop); };
    format::save_told(value, archive.entries(), payload, options.to, how, tell);
  });
}

void report(const Options& options, const Metadata& left_out) {
  const Archive written = open(options.to);
  std::vector<std::string> keys;
  for (const auto& [key, text] : left_out) keys.push_back(key);
  const std::uint64_t bytes = written.sources().front().size();
  if (options.json) {
    print_json(Json{{"path", options.to},
                    {"format", written.format()},
                    {"tensors", written.entries().size()},
                    {"bytes", bytes},
                    {"metadata_left_out", keys}});
  } else {
    core::print("{}: {}, {}, {}\n", printable(options.to), written.format(),
                counted(written.entries().size(), "tensor"), human_bytes(static_cast<double>(bytes)));
  }
  if (keys.empty()) return;
  print_error(core::format("{}: {} files have no place for metadata, which is left out: {}", printable(options.to),
                           written.format(), printable(core::format("{}", fmt::join(keys, ", ")))));
}

int run(const Options& options) {
  SaveOptions how{.format = options.format, .compress = options.compress};
  const format::Format& target = format::format_to_write(options.to, how);
  const Archive whole = open(options.from);
  const Archive archive = options.part.empty() ? whole : whole.part(options.part);
  require_free(archive, options);
  std::optional<Metadata> metadata = metadata_of(archive);
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
    if (format.write != nullptr) names.emplace_back(format.name);
  }
  return names;
}

std::function<int()> attach(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("from", options->from, "A tensor file, an index of shards, or a folder of a distributed checkpoint")
      ->required()
      ->type_name("FILE");
  app.add_option("to", options->to, "The file to write")->required()->type_name("FILE");
  take_word(*app.add_option("--to", options->format, "The format to write, in place of the extension's"),
            writable_formats());
  app.add_option("--part", options->part, "Only what this key leads to: model, or model.encoder")->type_name("KEY");
  app.add_flag("--compress", options->compress, "Deflate the members of an .npz");
  app.add_flag("--force", options->force, "Replace a file that exists");
  app.add_flag("--json", options->json, "Print JSON");
  return [options] { return run(*options); };
}

}  // namespace

const Command kConvert{
    "convert",
    "Write a tensor file in another format",
    "The extension of the second file says which format: .npy, .npz, .pt, .pth or .safetensors. It appears whole or "
    "not at all. What that format cannot hold is refused, but for metadata, which is told on standard error when it "
    "is left out; dicts in dicts become names joined with dots where there is only one level. A file whose bytes are "
    "its values is mapped and takes no memory; to a .safetensors, others are written in pieces where no tensors share "
    "bytes; else they are loaded. An index of shards, or a distributed checkpoint, becomes one file. Nothing in the "
    "first file is run.",
    {"penstock convert model.pt model.safetensors", "penstock convert model.pt encoder.npz --part encoder",
     "penstock convert images.npy images.npz --compress"},
    attach};

}  // namespace penstock::cli
