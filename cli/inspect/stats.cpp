#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "archive/inspect/statistics.h"
#include "cli/command.h"
#include "cli/inspect/look_at.h"
#include "cli/inspect/numbers_json.h"
#include "cli/json/json.h"
#include "cli/json/json_of_files.h"
#include "cli/option.h"
#include "cli/tensor_files.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "penstock/error.h"
#include "penstock/load.h"

namespace penstock::cli {
namespace {

using archive::Histogram;
using archive::Statistics;

constexpr std::size_t kBins = 16;

struct StatsOptions {
  std::vector<std::string> words;
  std::vector<std::string> only;
  std::vector<std::string> exclude;
  Headerless headerless;
  bool only_ill = false;
  bool json = false;
};

struct StatsFile {
  std::string path;
  std::optional<Archive> archive = {};  ///< empty where it cannot be read
  std::vector<Statistics> statistics = {};
  std::vector<bool> wanted = {};  ///< of each tensor, whether it was asked for
  Json refused = {};

  bool has_wanted() const { return std::find(wanted.begin(), wanted.end(), true) != wanted.end(); }
  bool is_shown(std::size_t tensor, const StatsOptions& options) const {
    return wanted[tensor] && (!options.only_ill || statistics[tensor].is_ill());
  }
};

std::string rounded(const Statistics& of, double value) {
  return of.finite() == 0 ? "-" : core::format("{:.6g}", value);
}

std::string rounded_bound(const Statistics& of, bool least) {
  const bool is_whole = of.dtype().is_integer() || of.dtype() == DType::boolean;
  return of.finite() != 0 && is_whole ? bound_text(of, least) : rounded(of, least ? of.min() : of.max());
}

/// A column for each interval. A number of the fullest one that is not zero is never drawn as nothing.
std::string drawn(const Histogram& histogram) {
  static const std::vector<std::string> kBars =
      speaks_utf8() ? std::vector<std::string>{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}
                    : std::vector<std::string>{" ", ".", ":", "-", "=", "+", "*", "%", "#"};
  const Histogram::Bins bins = histogram.bins(kBins);
  std::uint64_t most = 0;
  for (const std::uint64_t count : bins.counts) most = std::max(most, count);
  std::string out = "|";
  for (const std::uint64_t count : bins.counts) {
    const double share = most == 0 ? 0 : static_cast<double>(count) / static_cast<double>(most);
    out += kBars[count == 0 ? 0 : 1 + static_cast<std::size_t>(share * 7)];
  }
  return out + "|";
}

void print_human(const StatsFile& file, const StatsOptions& options, bool with_title) {
  std::vector<std::vector<std::string>> rows;
  const auto entries = file.archive->entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Statistics& of = file.statistics[i];
    if (!file.is_shown(i, options)) continue;
    std::vector<std::string> row{printable(entries[i].name), printable(entries[i].dtype.name()),
                                 entries[i].shape.to_string()};
    if (has_numbers(entries[i])) {
      row.insert(row.end(), {rounded_bound(of, true), rounded_bound(of, false), rounded(of, of.mean()),
                             rounded(of, of.deviation()), human_count(static_cast<std::uint64_t>(of.zeros())),
                             human_count(static_cast<std::uint64_t>(of.nans())),
                             human_count(static_cast<std::uint64_t>(of.positive_infinities())),
                             human_count(static_cast<std::uint64_t>(of.negative_infinities())),
                             of.finite() == 0 ? "" : drawn(of.histogram())});
    } else {
      row.resize(12);
    }
    rows.push_back(std::move(row));
  }
  if (with_title) core::print("{}:\n", printable(file.path));
  if (options.only_ill && rows.empty()) {
    const auto read = static_cast<std::uint64_t>(std::count(file.wanted.begin(), file.wanted.end(), true));
    core::print("no NaN and no infinity in {}\n", counted(read, "tensor"));
    return;
  }
  print_table({"NAME", "DTYPE", "SHAPE", "MIN", "MAX", "MEAN", "STD", "ZEROS", "NAN", "+INF", "-INF", "HISTOGRAM"},
              rows, {3, 4, 5, 6, 7, 8, 9, 10});
}

void write_file(JsonWriter& out, const StatsFile& file, const StatsOptions& options) {
  if (!file.archive) return write_json(out, file.refused);
  out.begin_object();
  out.write_key("path");
  out.write_string(file.path);
  out.write_key("tensors");
  out.begin_array();
  const auto entries = file.archive->entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Statistics& of = file.statistics[i];
    if (!file.is_shown(i, options)) continue;
    out.begin_object();
    write_members(out, Json{{"name", entries[i].name},
                            {"dtype", entries[i].dtype.name()},
                            {"shape", std::vector(entries[i].shape.begin(), entries[i].shape.end())},
                            {"elements", entries[i].shape.numel()}});
    if (has_numbers(entries[i])) write_numbers(out, of, kBins);
    out.end();
  }
  out.end();
  out.end();
}

bool has_ill(const StatsFile& file) {
  return std::any_of(file.statistics.begin(), file.statistics.end(), [](const Statistics& of) { return of.is_ill(); });
}

int run(const StatsOptions& options) {
  const FilesAndNames words = files_and_names(options.words, options.only);
  WantedTensors names(words.names);
  const ChosenFiles chosen = choose_files(words.files, options.exclude);
  const bool several = !chosen.is_single;
  int code = chosen.refused.empty() ? 0 : 1;
  JsonOfFiles out(options.json, chosen);
  bool first = true;
  for (const std::string& path : chosen.paths) {
    const auto file = look_at<StatsFile>(path, options.headerless, [&](const Archive& archive, StatsFile& found) {
      found.wanted = names.of(archive);
      found.statistics = summarise_shown(archive, found.wanted);
    });
    if (!file.archive || (options.only_ill && has_ill(file))) code = 1;
    if (out) {
      write_file(*out, file, options);
    } else if (file.archive && (names.are_all() || file.has_wanted())) {
      if (!first) core::print("\n");
      first = false;
      print_human(file, options, several);
    }
  }
  out.finish();
  names.require_used();
  return code;
}

std::function<int()> attach_stats(Arguments& arguments) {
  auto options = std::make_shared<StatsOptions>();
  take_files_and_names(arguments, options->words, options->only, options->exclude);
  options->headerless.take(arguments);
  arguments.add("--nan", &options->only_ill, "List only tensors with NaN or infinite elements; exit with 1 for any");
  arguments.add("--json", &options->json, "Print JSON: an object; of several files, a list of objects");
  return [options] { return run(*options); };
}

}  // namespace

const Command kStats{
    "stats",
    "Say what numbers the tensors of a file hold",
    "Reads each tensor once, in less than 100 MB of memory, by all processors. Minimum, maximum, mean, standard "
    "deviation (of the population, as NumPy's) and histogram are those of the finite elements; of complex ones, of "
    "their absolute values. NaN, infinities and zeros are counted. The intervals of the histogram are equally wide, "
    "and their width is a power of two. Words behind the files are names or patterns of tensors, as for ls, and only "
    "those are read. - is standard input. An index of shards stands for its shards. Recorded checksums are verified. A "
    "file that cannot be read is told on standard error, and the others are read; the exit status is then 1.",
    {"penstock stats model.pt '*.weight'", "penstock stats images.npy --json", "penstock stats --nan digits/*.pt"},
    attach_stats};

}  // namespace penstock::cli
