#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cli/bench/bench_floor.h"
#include "cli/command.h"
#include "cli/headerless.h"
#include "cli/json/json.h"
#include "cli/option.h"
#include "cli/output_file.h"
#include "cli/report/page.h"
#include "cli/report/trace_report.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/shown_url.h"
#include "core/text.h"
#include "io/file/url.h"
#include "penstock/error.h"
#include "penstock/load.h"
#include "penstock/loader.h"

namespace penstock::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kStack = "stack";
constexpr const char* kPad = "pad";
constexpr const char* kRagged = "ragged";
/// So that the count of batches fits.
constexpr std::int64_t kMostEpochs = 1'000'000;

struct BenchOptions {
  std::string path;
  std::string key;
  std::int64_t batch_size = 32;
  std::int64_t workers = LoaderOptions::kAutoWorkers;
  std::optional<std::int64_t> epochs;
  std::vector<std::string> exclude;
  std::optional<std::string> collate;
  std::optional<std::int64_t> pad_to;
  std::string trace;
  PageFile page;  ///< with an empty path where none is asked for
  bool in_order = false;
  bool as_rows = false;
  Headerless headerless;
  bool json = false;
};

struct Result {
  std::string samples;  ///< what a sample is
  double samples_per_second = 0;
  double bytes_per_second = 0;
  double wall_seconds = 0;
  std::int64_t epochs = 0;
  LoaderStats stats;
  Floor floor;
};

/// Where the number of epochs is left to the command: three, and more until the loader has run this long.
constexpr std::int64_t kLeastEpochs = 3;
constexpr double kEnoughSeconds = 1.5;
/// What took less says little: threads that start and the tuning of workers are much of it.
constexpr double kTooShortSeconds = 0.5;

/// Reads, each of some events, that the time line of a page may show.
constexpr std::int64_t kMostOnPage = 50'000;

/// `reads` are those of an epoch.
bool is_enough(const Result& result, const BenchOptions& options, std::int64_t reads) {
  if (options.epochs) return result.epochs >= *options.epochs;
  if (result.epochs < kLeastEpochs) return false;
  if (options.page.path.empty() && !options.trace.empty()) return true;
  if (!options.page.path.empty() && result.epochs >= kMostOnPage / reads) return true;
  return result.wall_seconds >= kEnoughSeconds || result.epochs >= kMostEpochs;
}

Collate collate_of(const BenchOptions& options) {
  const std::string rule = options.collate.value_or(kStack);
  if (options.pad_to) return collate::pad_to(*options.pad_to);
  if (rule == kPad) return collate::pad();
  if (rule == kRagged) return collate::ragged();
  return collate::stack();
}

/// A single array is measured by its rows; everything else by its files.
bool samples_are_rows(const BenchOptions& options) {
  if (options.as_rows || !options.key.empty()) return true;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(options.path, ignored)) return false;
  const Archive archive = open(options.path);
  return archive.entries().size() == 1 && archive.entry(0).shape().rank() > 0 && archive.entry(0).shape()[0] > 1;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void require_samples(const Dataset& dataset, const BenchOptions& options) {
  if (dataset.size() > 0) return;
  throw Error(ErrorCode::kInvalidArgument, "holds no samples, so there is nothing to measure", {.path = options.path});
}

/// An epoch of the loader, in seconds. `done` are the batches so far.
double run_epoch(DataLoader& loader, std::int64_t epoch, std::int64_t& done) {
  const auto started = Clock::now();
  while (loader.next()) {
    if (++done % 64 == 0) show_progress(core::format("epoch {}, {} batches ", epoch, done));
  }
  return std::chrono::duration<double>(Clock::now() - started).count();
}

/// Rounds of the loader and measurements of the floor, with as many threads, take turns, so that a slow moment of the
/// machine hits both. A round is an epoch, or as many short ones as take as long as the floor is measured, because
/// the median of shorter ones would leave out the moments in which other programs had the processors. `reads` are those
/// of an epoch.
Result run_loader(const Dataset& dataset, const BenchOptions& options, std::int64_t reads,
                  const std::function<Floor(std::size_t threads)>& floor) {
  DataLoader loader(dataset, {.batch_size = options.batch_size,
                              .shuffle = !options.in_order,
                              .num_workers = options.workers,
                              .collate = collate_of(options),
                              .trace = options.trace});
  Result result;
  std::vector<double> epoch_seconds;  ///< the mean of each round
  std::vector<double> floors;
  std::int64_t done = 0;
  while (!is_enough(result, options, reads)) {
    const std::int64_t before = result.epochs;
    double seconds = 0;
    do {
      seconds += run_epoch(loader, ++result.epochs, done);
    } while (seconds < kLeastFloorSeconds && !is_enough(result, options, reads));
    result.wall_seconds += seconds;
    epoch_seconds.push_back(seconds / static_cast<double>(result.epochs - before));
    result.floor = floor(std::max<std::size_t>(loader.stats().workers, 1));
    floors.push_back(result.floor.samples_per_second);
  }
  show_progress({});
  if (!options.trace.empty()) loader.write_trace();
  result.stats = loader.stats();
  const auto runs = static_cast<double>(result.epochs);
  result.samples_per_second = static_cast<double>(result.stats.samples) / runs / median(epoch_seconds);
  result.bytes_per_second = static_cast<double>(result.stats.payload_bytes) / runs / median(epoch_seconds);
  result.floor.bytes_per_second *= median(floors) / result.floor.samples_per_second;
  result.floor.samples_per_second = median(floors);
  return result;
}

std::vector<std::int64_t> visiting_order(const Dataset& dataset, const BenchOptions& options) {
  return (options.in_order ? sampler::sequential(dataset.size()) : sampler::random(dataset.size()))
      .order(0, 0)
      .to_vector();
}

Result measure_rows(const BenchOptions& options) {
  const bool is_headerless = options.headerless.is_said();
  const Archive archive = is_headerless ? options.headerless.open(options.path) : open(options.path);
  const Dataset dataset = is_headerless ? rows(archive.entry(0)) : rows(options.path, options.key);
  require_samples(dataset, options);
  const LazyTensor lazy = options.key.empty() ? archive.entry(0) : archive[options.key];
  const Tensor in_memory = lazy.load().contiguous();
  const auto order = visiting_order(dataset, options);
  // A batch of rows is read at once, and has the events of two files.
  const std::int64_t reads = 2 * ((dataset.size() - 1) / options.batch_size + 1);
  Result result =
      run_loader(dataset, options, reads, [&](std::size_t threads) { return row_floor({in_memory}, order, threads); });
  result.samples = "rows";
  return result;
}

/// `all` are the files, one for each sample.
Result measure_files(const Dataset& dataset, const std::vector<std::string>& all, const BenchOptions& options) {
  require_samples(dataset, options);
  std::vector<std::string> paths;
  for (const std::int64_t index : visiting_order(dataset, options)) {
    paths.push_back(all[static_cast<std::size_t>(index)]);
  }
  const bool are_here = std::none_of(paths.begin(), paths.end(), [](const auto& path) { return io::is_url(path); });
  Result result = run_loader(dataset, options, dataset.size(),
                             [&](std::size_t threads) { return are_here ? file_floor(paths, threads) : Floor{}; });
  result.samples = "files";
  return result;
}

Result measure(const BenchOptions& options) {
  if (options.headerless.is_said()) {
    const TensorFiles all = tensor_files(options.path, options.exclude);
    if (all.is_single || options.as_rows) return measure_rows(options);
    return measure_files(headerless_samples(all, options.headerless), all.paths, options);
  }
  if (samples_are_rows(options)) return measure_rows(options);
  const Dataset dataset = files(options.path, {.exclude = options.exclude});
  return measure_files(dataset, dataset.paths(), options);
}

bool is_too_short(const Result& result) { return result.wall_seconds < kTooShortSeconds; }

double ratio_to_floor(const Result& result) { return result.samples_per_second / result.floor.samples_per_second; }

/// The measured floor, and what the loader says of itself.
std::string limit(const Result& result) {
  if (!result.floor.is_measured()) return result.stats.limit();
  return core::format("{:.0f} % of what {} can do here; {}", 100 * ratio_to_floor(result), result.floor.what,
                      result.stats.limit());
}

Json floor_json(const Floor& floor) {
  if (!floor.is_measured()) return {};
  return Json{{"what", floor.what},
              {"samples_per_second", floor.samples_per_second},
              {"bytes_per_second", floor.bytes_per_second}};
}

Json result_json(const Result& result, const BenchOptions& options) {
  const LoaderStats& stats = result.stats;
  return Json{{"path", core::shown_path(options.path)},
              {"samples", result.samples},
              {"batch_size", options.batch_size},
              {"num_workers", stats.workers},
              {"samples_per_second", result.samples_per_second},
              {"bytes_per_second", result.bytes_per_second},
              {"first_batch_seconds", stats.first_batch_seconds},
              {"floor", floor_json(result.floor)},
              {"ratio_to_floor", result.floor.is_measured() ? Json(ratio_to_floor(result)) : Json()},
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
              {"epochs", result.epochs},
              {"too_short", is_too_short(result)},
              {"bottleneck", stats.bottleneck()},
              {"workers_because", stats.workers_because()},
              {"limit", limit(result)}};
}

/// "1,234 files/s, 1.5 MB/s", in the units of LoaderStats::to_string.
std::string rates(double samples_per_second, std::string_view samples, double bytes_per_second) {
  return core::format("{} {}/s, {}/s", human_count(static_cast<std::uint64_t>(samples_per_second)), samples,
                      core::format_bytes(static_cast<std::uint64_t>(bytes_per_second)));
}

/// Each part of a sentence on a line of its own.
std::string on_lines(std::string text) {
  for (std::size_t at = 0; (at = text.find("; ", at)) != std::string::npos;) text.replace(at, 2, ";\n       ");
  return text;
}

void print_human(const Result& result, const BenchOptions& options) {
  core::print("loader       {} of payload (batches of {}, {}, {})\n",
              rates(result.samples_per_second, result.samples, result.bytes_per_second), options.batch_size,
              counted(result.stats.workers, "worker"), counted(static_cast<std::uint64_t>(result.epochs), "epoch"));
  core::print("first batch  {:.2f} ms\n", result.stats.first_batch_seconds * 1e3);
  if (result.floor.is_measured()) {
    core::print("floor        {} of {} ({})\n",
                rates(result.floor.samples_per_second, result.samples, result.floor.bytes_per_second), result.samples,
                result.floor.what);
    core::print("ratio        {:.2f} of the floor\n", ratio_to_floor(result));
  } else {
    core::print("floor        none, because files are read by URL\n");
  }
  if (is_too_short(result)) {
    core::print("too short    the loader ran for {:.0f} ms, which says little: leave --epochs out, or give more\n",
                result.wall_seconds * 1e3);
    return;
  }
  const std::string told = result.stats.to_string();
  core::print("{}limit: {}\n", told.substr(0, told.rfind('\n') + 1), on_lines(limit(result)));
}

/// A trace that is only read for the page, and then removed.
class PassingTrace {
 public:
  PassingTrace() {
    std::random_device random;
    std::error_code error;
    path_ = std::filesystem::temp_directory_path(error);
    if (error) {
      throw Error(ErrorCode::kIo, "there is no folder for temporary files; name one in TMPDIR, or a file by --trace");
    }
    path_ /= core::format("penstock-bench-{:08x}{:08x}.json", random(), random());
  }
  ~PassingTrace() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  PassingTrace(const PassingTrace&) = delete;
  PassingTrace& operator=(const PassingTrace&) = delete;

  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

void print(const Result& result, const BenchOptions& options) {
  if (options.json) {
    print_json(result_json(result, options));
  } else if (options.page.path != kStandardOutput) {
    print_human(result, options);
  }
}

int measure_for_page(BenchOptions options) {
  options.page.require_free(options.path);
  options.page.quiet = options.json;
  std::optional<PassingTrace> passing;
  if (options.trace.empty()) options.trace = passing.emplace().path();
  const Result result = measure(options);
  const TraceReport trace(options.trace);
  print(result, options);
  options.page.write([&](JsonWriter& out) {
    write_kind(out, "trace", options.path);
    write_members(out, Json{{"bench", result_json(result, options)}});
    trace.write(out);
  });
  return 0;
}

int run(const BenchOptions& options) {
  if (!options.trace.empty()) require_free(options.path, options.trace, options.page.force, "measured");
  if (!options.page.path.empty()) return measure_for_page(options);
  print(measure(options), options);
  return 0;
}

void refuse_contradiction(const BenchOptions& options) {
  if (!options.page.path.empty() && io::is_url(options.trace)) {
    throw WrongUsage("--trace: is a file where --html draws it");
  }
  if (!options.trace.empty() && options.trace == options.page.path) {
    throw WrongUsage("--trace: and --html would both be written to one file; name another");
  }
  if (options.json && options.page.path == kStandardOutput) {
    throw WrongUsage("--html: and --json would both be written to standard output");
  }
  if (!options.key.empty() && options.headerless.is_said()) {
    throw WrongUsage("--key: names a tensor of a file, and a file without a header has one alone");
  }
  if (!options.exclude.empty() && (options.as_rows || !options.key.empty())) {
    throw WrongUsage("--exclude: leaves out files, and the rows of one are measured");
  }
  if (!options.pad_to || options.collate.value_or(kPad) == kPad) return;
  throw WrongUsage("--pad-to: pads, which --collate " + *options.collate + " does not; leave one of them out");
}

void attach_numbers(Arguments& arguments, BenchOptions& options) {
  arguments.add("--batch-size", &options.batch_size, "Samples in a batch")
      .shows_default(std::to_string(options.batch_size))
      .takes_number(1);
  arguments.add("--workers", &options.workers, "Threads that prepare batches")
      .shows_default("auto")
      .takes_number_or_auto(0, LoaderOptions::kMostWorkers, std::to_string(LoaderOptions::kAutoWorkers));
  arguments
      .add("--epochs", &options.epochs,
           "Passes over the data; the median is reported. Without it as many as take 1.5 seconds, and at least 3")
      .takes_number(1, kMostEpochs);
}

std::function<int()> attach_bench(Arguments& arguments) {
  auto options = std::make_shared<BenchOptions>();
  arguments.add("PATH", &options->path, "A folder, a pattern, or an array file").required().takes("PATH");
  arguments.add("--key", &options->key, "Measure the rows of this tensor of the file").takes("NAME");
  attach_numbers(arguments, *options);
  take_excluded(arguments, options->exclude);
  arguments.add("--collate", &options->collate, "How samples become a batch")
      .shows_default(kStack)
      .takes_word({kStack, kPad, kRagged});
  arguments.add("--pad-to", &options->pad_to, "Pad or cut dimension 0 to this length").takes_number(0);
  arguments.add("--trace", &options->trace, "Write what each thread did and when, as a Chrome trace (ui.perfetto.dev)")
      .takes("FILE");
  arguments.add("--html", &options->page.path, "Write a page for the browser: where the time went, on a time line")
      .takes("FILE");
  arguments.add("--force", &options->page.force, "Replace a page or trace that exists");
  arguments.add("--rows", &options->as_rows, "Measure rows also where the file would be one sample");
  arguments.add("--in-order", &options->in_order, "Do not shuffle");
  arguments.add("--json", &options->json, "Print JSON");
  arguments.refuse = [options](const Arguments&) { refuse_contradiction(*options); };
  options->headerless.take(arguments);
  return [options] { return run(*options); };
}

}  // namespace

const Command kBench{
    "bench",
    "Measure a folder or file through the loader",
    "Prints samples and bytes a second, the time to the first batch, what the machine does with the same "
    "bytes and no library in between (the floor; not for files by URL), and the stage where the time goes. --html "
    "writes a page with that, "
    "and with what each thread did and when.",
    {"penstock bench digits --html bench.html", "penstock bench 'clips/*.pt' --collate pad",
     "penstock bench images.npy --rows --batch-size 64 --workers 2"},
    attach_bench};

}  // namespace penstock::cli
