#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench_floor.h"
#include "command.h"
#include "core/format.h"
#include "json.h"
#include "penstock/error.h"
#include "penstock/load.h"
#include "penstock/loader.h"
#include "terminal.h"

namespace penstock::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string path;
  std::string key;
  std::int64_t batch_size = 32;
  std::size_t workers = LoaderOptions::kAutoWorkers;
  std::int64_t epochs = 3;
  std::string collate = "stack";
  std::optional<std::int64_t> pad_to;
  std::string trace;
  bool in_order = false;
  bool as_rows = false;
  bool json = false;
};

struct Result {
  std::string samples;  ///< what a sample is
  double samples_per_second = 0;
  double bytes_per_second = 0;
  double wall_seconds = 0;
  LoaderStats stats;
  Floor floor;
};

Collate collate_of(const Options& options) {
  if (options.pad_to) return pad_to(*options.pad_to);
  if (options.collate == "pad") return pad();
  if (options.collate == "ragged") return ragged();
  return stack();
}

/// A single array is measured by its rows; everything else by its files.
bool samples_are_rows(const Options& options) {
  if (options.as_rows || !options.key.empty()) return true;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(options.path, ignored)) return false;
  const Archive archive = open(options.path);
  return archive.entries().size() == 1 && archive.entry(0).shape().rank() > 0 && archive.entry(0).shape()[0] > 1;
}

void show_progress(std::int64_t done, std::int64_t all) {
  if (is_terminal(stderr)) core::print(stderr, "\r{} / {} batches ", done, all);
}

void clear_progress() {
  if (is_terminal(stderr)) core::print(stderr, "\r\x1B[K");
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void require_samples(const Dataset& dataset, const Options& options) {
  if (dataset.size() > 0) return;
  throw Error(ErrorCode::kInvalidArgument, "holds no samples, so there is nothing to measure", {.path = options.path});
}

/// Epochs of the loader and measurements of the floor, with as many threads, take turns, so that a slow moment of the
/// machine hits both.
Result run_loader(const Dataset& dataset, const Options& options,
                  const std::function<Floor(std::size_t threads)>& floor) {
  DataLoader loader(dataset, {.batch_size = options.batch_size,
                              .shuffle = !options.in_order,
                              .num_workers = options.workers,
                              .collate = collate_of(options),
                              .trace = options.trace});
  Result result;
  std::vector<double> epochs;
  std::vector<double> floors;
  const std::int64_t all = loader.size() * options.epochs;
  std::int64_t done = 0;
  for (std::int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    const auto started = Clock::now();
    while (loader.next()) {
      if (++done % 64 == 0) show_progress(done, all);
    }
    epochs.push_back(std::chrono::duration<double>(Clock::now() - started).count());
    result.wall_seconds += epochs.back();
    result.floor = floor(std::max<std::size_t>(loader.stats().workers, 1));
    floors.push_back(result.floor.samples_per_second);
  }
  clear_progress();
  if (!options.trace.empty()) loader.write_trace();
  result.stats = loader.stats();
  const auto runs = static_cast<double>(options.epochs);
  result.samples_per_second = static_cast<double>(result.stats.samples) / runs / median(epochs);
  result.bytes_per_second = static_cast<double>(result.stats.payload_bytes) / runs / median(epochs);
  result.floor.bytes_per_second *= median(floors) / result.floor.samples_per_second;
  result.floor.samples_per_second = median(floors);
  return result;
}

std::vector<std::int64_t> visiting_order(const Dataset& dataset, const Options& options) {
  return (options.in_order ? sequential(dataset.size()) : random(dataset.size()))->order(0, 0);
}

Result measure_rows(const Options& options) {
  const Dataset dataset = rows(options.path, options.key);
  require_samples(dataset, options);
  const Archive archive = open(options.path);
  const LazyTensor lazy = options.key.empty() ? archive.entry(0) : archive[options.key];
  const Tensor in_memory = lazy.load().contiguous();
  const auto order = visiting_order(dataset, options);
  Result result =
      run_loader(dataset, options, [&](std::size_t threads) { return row_floor({in_memory}, order, threads); });
  result.samples = "rows";
  return result;
}

Result measure_files(const Options& options) {
  const Dataset dataset = files(options.path);
  require_samples(dataset, options);
  std::vector<std::string> paths;
  for (const std::int64_t index : visiting_order(dataset, options)) paths.push_back(dataset.describe(index));
  Result result = run_loader(dataset, options, [&](std::size_t threads) { return file_floor(paths, threads); });
  result.samples = "files";
  return result;
}

Result measure(const Options& options) {
  return samples_are_rows(options) ? measure_rows(options) : measure_files(options);
}

double ratio_to_floor(const Result& result) { return result.samples_per_second / result.floor.samples_per_second; }

/// The measured floor, and what the loader says of itself.
std::string limit(const Result& result) {
  return core::format("{:.0f} % of what {} can do here; {}", 100 * ratio_to_floor(result), result.floor.what,
                      result.stats.limit());
}

Json result_json(const Result& result, const Options& options) {
  const LoaderStats& stats = result.stats;
  return Json{{"path", options.path},
              {"samples", result.samples},
              {"batch_size", options.batch_size},
              {"num_workers", stats.workers},
              {"samples_per_second", result.samples_per_second},
              {"bytes_per_second", result.bytes_per_second},
              {"first_batch_seconds", stats.first_batch_seconds},
              {"floor",
               {{"what", result.floor.what},
                {"samples_per_second", result.floor.samples_per_second},
                {"bytes_per_second", result.floor.bytes_per_second}}},
              {"ratio_to_floor", ratio_to_floor(result)},
              {"open_seconds", stats.open_seconds},
              {"read_seconds", stats.read_seconds},
              {"decode_seconds", stats.decode_seconds},
              {"collate_seconds", stats.collate_seconds},
              {"copy_seconds", stats.copy_seconds},
              {"compute_seconds", stats.compute_seconds},
              {"stall_seconds", stats.stall_seconds},
              {"worker_capacity", stats.worker_capacity},
              {"wait_seconds", stats.wait_seconds},
              {"wall_seconds", result.wall_seconds},
              {"bottleneck", stats.bottleneck()},
              {"workers_because", stats.workers_because()},
              {"limit", limit(result)}};
}

void print_human(const Result& result, const Options& options) {
  const auto rate = [](double per_second) { return human_count(static_cast<std::uint64_t>(per_second)); };
  core::print("loader       {} {}/s, {}/s (batches of {}, {} workers, median of {} epochs)\n",
              rate(result.samples_per_second), result.samples, human_bytes(result.bytes_per_second), options.batch_size,
              result.stats.workers, options.epochs);
  core::print("first batch  {:.2f} ms\n", result.stats.first_batch_seconds * 1e3);
  core::print("floor        {} {}/s, {}/s ({})\n", rate(result.floor.samples_per_second), result.samples,
              human_bytes(result.floor.bytes_per_second), result.floor.what);
  core::print("ratio        {:.2f} of the floor\n", ratio_to_floor(result));
  const std::string told = result.stats.to_string();
  core::print("{}limit: {}\n", told.substr(0, told.rfind('\n') + 1), limit(result));
}

int run(const Options& options) {
  const Result result = measure(options);
  if (options.json) {
    print_json(result_json(result, options));
  } else {
    print_human(result, options);
  }
  return 0;
}

/// A number, or "auto".
std::string workers_from(const std::string& text) {
  if (text == "auto") return std::to_string(LoaderOptions::kAutoWorkers);
  const bool digits = !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits) throw CLI::ValidationError("found '" + text + "', expected a number of threads or 'auto'");
  return text;
}

std::function<int()> attach(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("path", options->path, "A folder, a pattern, or an array file")->required()->type_name("PATH");
  app.add_option("--key", options->key, "Measure the rows of this tensor of the file")->type_name("NAME");
  app.add_option("--batch-size", options->batch_size, "Samples in a batch")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--workers", options->workers, "Threads that prepare batches")
      ->transform(workers_from)
      ->default_str("auto")
      ->type_name("N|auto");
  app.add_option("--epochs", options->epochs, "Passes over the data; the median is reported")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--collate", options->collate, "How samples become a batch: stack, pad or ragged")
      ->check(CLI::IsMember({"stack", "pad", "ragged"}))
      ->capture_default_str()
      ->type_name("RULE");
  app.add_option("--pad-to", options->pad_to, "Pad or cut dimension 0 to this length")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  app.add_option("--trace", options->trace, "Write what each thread did and when, as a Chrome trace (ui.perfetto.dev)")
      ->type_name("FILE");
  app.add_flag("--rows", options->as_rows, "Measure rows also where the file would be one sample");
  app.add_flag("--in-order", options->in_order, "Do not shuffle");
  app.add_flag("--json", options->json, "Print JSON");
  return [options] { return run(*options); };
}

}  // namespace

const Command kBench{
    "bench", "Measure a folder or file through the loader",
    "Prints samples and bytes a second, the time to the first batch, what the machine does with the same "
    "bytes and no library in between (the floor), and the stage where the time goes.",
    attach};

}  // namespace penstock::cli
