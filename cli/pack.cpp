#include "penstock/pack.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/headerless.h"
#include "cli/json/json.h"
#include "cli/option.h"
#include "cli/output_file.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/text.h"
#include "penstock/shards.h"

namespace penstock::cli {
namespace {

constexpr std::int64_t kMega = 1'000'000;
/// So that bytes fit.
constexpr std::int64_t kMostMegabytes = 1'000'000'000;

struct PackOptions {
  std::string from;
  std::string to;
  std::vector<std::string> keys;
  std::vector<std::string> exclude;
  std::string format = "safetensors";
  std::int64_t shard_megabytes = 256;
  std::int64_t workers = LoaderOptions::kAutoWorkers;
  Headerless headerless;
  bool json = false;
};

/// Samples of tar shards, or files with a sample each; rows of one file without a header.
Dataset samples_of(const PackOptions& options) {
  if (options.headerless.is_said())
    return headerless_samples(tensor_files(options.from, options.exclude), options.headerless);
  if (std::string_view(options.from).ends_with(".tar")) {
    if (options.exclude.empty()) return shards(options.from, {.keys = options.keys});
    throw Error(ErrorCode::kInvalidArgument, "found --exclude beside shards, expected it beside a folder of files",
                {.path = options.from});
  }
  return files(options.from, {.keys = options.keys, .exclude = options.exclude});
}

int run(const PackOptions& options) {
  require_no_stream(options.to);
  const Dataset dataset = samples_of(options);
  penstock::PackOptions how{.shard_bytes = static_cast<std::uint64_t>(options.shard_megabytes * kMega),
                            .format = options.format,
                            .num_workers = options.workers};
  const auto all = static_cast<std::uint64_t>(dataset.size());
  Progress progress("packed " + counted(all, "sample") + ":", all);
  how.progress = [&](std::int64_t samples) { progress.at(static_cast<std::uint64_t>(samples)); };
  PackSummary done;
  Interrupt interrupt;
  how.stop = interrupt.token();
  interrupt.during([&] { done = pack(dataset, options.to, how); });
  if (options.json) {
    print_json(Json{{"path", options.to}, {"samples", done.samples}, {"shards", done.shards}, {"bytes", done.bytes}});
  } else {
    core::print("{}: {} in {}, {}\n", printable(options.to),
                counted(static_cast<std::uint64_t>(done.samples), "sample"),
                counted(static_cast<std::uint64_t>(done.shards), "shard"), core::format_bytes(done.bytes));
  }
  return 0;
}

std::function<int()> attach_pack(Arguments& arguments) {
  auto options = std::make_shared<PackOptions>();
  arguments.add("FROM", &options->from, "A folder of tensor files, a pattern, or tar shards (train-{000..146}.tar)")
      .required()
      .takes("PATH");
  arguments.add("TO", &options->to, "The folder to write: a new one, or an empty one").required().takes("FOLDER");
  arguments.add("--key", &options->keys, "Take only this key of each file's dict; may be given again").takes("NAME");
  arguments.add("--format", &options->format, "What is written: safetensors, for packed(), or tar, for shards()")
      .shows_default(options->format)
      .takes_word({"safetensors", "tar"});
  take_excluded(arguments, options->exclude);
  arguments.add("--shard-mb", &options->shard_megabytes, "About so many megabytes in a shard")
      .shows_default(std::to_string(options->shard_megabytes))
      .takes_number(1, kMostMegabytes);
  arguments.add("--workers", &options->workers, "Threads that read shards ahead")
      .shows_default("auto")
      .takes_number_or_auto(0, LoaderOptions::kMostWorkers, std::to_string(LoaderOptions::kAutoWorkers));
  arguments.add("--json", &options->json, "Print JSON");
  arguments.refuse = [options](const Arguments&) {
    if (options->keys.empty() || !options->headerless.is_said()) return;
    throw WrongUsage("--key: names a part of a file, and a file without a header has none");
  };
  options->headerless.take(arguments);
  return [options] { return run(*options); };
}

}  // namespace

const Command kPack{
    "pack",
    "Put many small tensor files into a few large ones",
    "Each file is a sample. Its tensors and numbers become rows of arrays in FOLDER/00000.safetensors and so on, in "
    "the order of the files' names; where dimension 0 differs from sample to sample, they are laid end to end, with an "
    "array of offsets. packed() of the library gives the samples back, without opening a file for each; any reader of "
    "safetensors finds the arrays. The folder appears with all its files or not at all. Text and other "
    "values that are no numbers are refused: choose others with --key, or write tar shards, which keep them and which "
    "WebDataset reads. A file without a header (--dtype) is a sample for each row; several of them, which a pattern "
    "names, are a sample each. Nothing in the files is run.",
    {"penstock pack digits shards", "penstock pack 'clips/*.pt' clip-shards --shard-mb 64",
     "penstock pack digits tars --format tar"},
    attach_pack};

}  // namespace penstock::cli
