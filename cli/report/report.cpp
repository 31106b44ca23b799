#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/headerless.h"
#include "cli/inspect/compare.h"
#include "cli/inspect/diff_text.h"
#include "cli/inspect/file_pairs.h"
#include "cli/json/json.h"
#include "cli/option.h"
#include "cli/report/file_report.h"
#include "cli/report/page.h"
#include "cli/report/trace_report.h"
#include "cli/tensor_files.h"
#include "cli/terminal/terminal.h"
#include "core/shown_url.h"
#include "penstock/error.h"
#include "penstock/load.h"

namespace penstock::cli {
namespace {

struct ReportOptions {
  std::vector<std::string> words;
  std::vector<std::string> exclude;
  Headerless headerless;
  archive::CompareOptions how;
  bool only_headers = false;
  PageFile page;
};

Json side_of(const Archive& archive) {
  std::uint64_t bytes = 0;
  for (const TensorEntry& entry : archive.entries()) bytes += entry.nbytes();
  return Json{
      {"path", archive.path()}, {"format", archive.format()}, {"tensors", archive.entries().size()}, {"bytes", bytes}};
}

/// How values are compared, into the object that is open.
void write_how(JsonWriter& out, const archive::CompareOptions& how) {
  write_members(
      out, Json{{"rtol", how.tolerance.rtol}, {"atol", how.tolerance.atol}, {"nan_equal", how.tolerance.nan_equal}});
}

/// What a page shows of two files, into the object that is open.
void write_diff(JsonWriter& out, const Archive& a, const Archive& b, const archive::Comparison& comparison) {
  write_members(out, Json{{"a", side_of(a)},
                          {"b", side_of(b)},
                          {"equal", comparison.is_equal()},
                          {"equal_tensors", comparison.equal_tensors},
                          {"equal_values", comparison.equal_leaves},
                          {"different_metadata", different_metadata(a, b)}});
  out.write_key("differences");
  out.begin_array();
  for (const archive::Mismatch& place : comparison.places) write_json(out, to_json({a, b, comparison}, place));
  out.end();
}

/// What is told on standard error and in the page, which then goes on.
Json told(const Error& refused, const std::string& path) {
  const std::string error = refused.within({.path = path}).what();
  print_error(error);
  return Json{{"path", core::shown_path(path)}, {"error", error}};
}

int report_trace(const std::string& path, const ReportOptions& options) {
  if (options.only_headers || options.headerless.is_said()) {
    throw Error(ErrorCode::kInvalidArgument,
                "this is a trace, which has no tensors: leave out --no-values, --dtype and what goes with it",
                {.path = path});
  }
  options.page.require_free(path);
  const TraceReport report(path);
  options.page.write([&](JsonWriter& out) {
    write_kind(out, "trace", path);
    report.write(out);
  });
  return 0;
}

int report_file(const std::string& path, const ReportOptions& options) {
  const Archive archive = options.headerless.open(path);
  options.page.require_free(archive);
  const FileReport report(archive, !options.only_headers);
  options.page.write([&](JsonWriter& out) {
    write_kind(out, "file", archive.path());
    report.write(out);
  });
  return 0;
}

/// Files one after the other, of which no more than one is held.
class FilesReport {
 public:
  explicit FilesReport(const ReportOptions& options) : options_(options) {}

  int run(const ChosenFiles& chosen) {
    if (chosen.paths.empty()) return 1;
    options_.page.require_free(chosen.paths.front());
    options_.page.write([&](JsonWriter& out) {
      const bool is_one = options_.words.size() == 1;
      write_kind(out, "files", is_one ? options_.words.front() : counted(chosen.paths.size(), "file"));
      out.write_key("files");
      out.begin_array();
      for (const std::string& path : chosen.paths) write(out, path);
      out.end();
    });
    return failed_ || !chosen.refused.empty() ? 1 : 0;
  }

 private:
  void write(JsonWriter& out, const std::string& path) {
    std::optional<Archive> archive;
    std::optional<FileReport> report;
    try {
      archive = options_.headerless.open(path);
      report.emplace(*archive, !options_.only_headers, leaves_);
    } catch (const Error& refused) {
      write_json(out, told(refused, path));
      failed_ = true;
      return;
    }
    options_.page.require_other(*archive);
    leaves_ -= report->leaves_shown();
    out.begin_object();
    write_members(out, Json{{"path", core::shown_path(path)}});
    report->write(out);
    out.end();
  }

  const ReportOptions& options_;
  std::size_t leaves_ = kMostLeaves;  ///< that may still be shown
  bool failed_ = false;
};

int report_pair(const FilePair& pair, const ReportOptions& options) {
  const Archive a = options.headerless.open_either(pair.a);
  const Archive b = options.headerless.open_either(pair.b);
  options.page.require_free(a);
  options.page.require_free(b);
  const archive::Comparison comparison = compare_shown(a, b, options.how);
  options.page.write([&](JsonWriter& out) {
    write_kind(out, "diff", a.path());
    write_how(out, options.how);
    write_diff(out, a, b, comparison);
  });
  return 0;
}

/// Whether both could be compared.
bool write_pair(JsonWriter& out, const FilePair& pair, const ReportOptions& options) {
  Json error;
  try {
    const Archive a = options.headerless.open_either(pair.a);
    const Archive b = options.headerless.open_either(pair.b);
    const archive::Comparison comparison = compare_shown(a, b, options.how);
    out.begin_object();
    write_members(out, Json{{"name", pair.name}});
    write_diff(out, a, b, comparison);
    out.end();
    return true;
  } catch (const Error& refused) {
    error = told(refused, pair.a);
  }
  error["name"] = pair.name;
  write_json(out, error);
  return false;
}

int report_differences(const ReportOptions& options) {
  const FilePairs files = pair_files(options.words[0], options.words[1], options.exclude);
  for (const Error& refused : files.refused) print_error(refused.what());
  if (files.is_single) return report_pair(files.pairs.front(), options);
  options.page.require_free(options.words[0]);
  for (const FilePair& pair : files.pairs) {
    options.page.require_free(pair.a);
    options.page.require_free(pair.b);
  }
  bool all_read = files.refused.empty();
  options.page.write([&](JsonWriter& out) {
    write_kind(out, "diffs", options.words[0]);
    write_how(out, options.how);
    write_members(out, Json{{"other", core::shown_path(options.words[1])},
                            {"only_in_a", files.only_in_a},
                            {"only_in_b", files.only_in_b}});
    out.write_key("pairs");
    out.begin_array();
    for (const FilePair& pair : files.pairs) all_read = write_pair(out, pair, options) && all_read;
    out.end();
  });
  return all_read ? 0 : 1;
}

int run(const ReportOptions& options) {
  if (options.words.size() == 2) return report_differences(options);
  const std::string& first = options.words.front();
  if (options.words.size() == 1 && is_trace(first)) return report_trace(first, options);
  const ChosenFiles chosen = choose_files(options.words, options.exclude);
  return chosen.is_single ? report_file(first, options) : FilesReport(options).run(chosen);
}

/// Two files are compared, and one or several are not.
void refuse_contradiction(const Arguments& arguments, const ReportOptions& options) {
  const bool compares = options.words.size() == 2;
  if (compares && options.only_headers) {
    throw WrongUsage("--no-values: is for a page without a comparison; two files are compared");
  }
  for (const char* const name : {"--rtol", "--atol", "--nan-differs", "--any-dtype"}) {
    if (!compares && arguments.has(name)) throw WrongUsage(std::string(name) + ": compares two files; name both");
  }
}

std::function<int()> attach_report(Arguments& arguments) {
  auto options = std::make_shared<ReportOptions>();
  arguments
      .add("PATH", &options->words,
           "A tensor file, a folder, a pattern in quotes, or a trace that a loader wrote; two are compared")
      .required()
      .takes("PATH");
  arguments.add("-o,--output", &options->page.path, "The page to write; - for standard output")
      .required()
      .takes("FILE");
  arguments.add("--no-values", &options->only_headers, "Read headers only: no histograms and no marks");
  take_comparison(arguments, options->how);
  take_excluded(arguments, options->exclude);
  arguments.add("--force", &options->page.force, "Replace a file that exists");
  arguments.refuse = [options](const Arguments& given) { refuse_contradiction(given, *options); };
  options->headerless.take(arguments);
  return [options] { return run(*options); };
}

}  // namespace

const Command kReport{
    "report",
    "Write a page for the browser about tensor files, a comparison, or a trace",
    "One page that loads nothing else. Of a file: bytes by layer as a map, and a table of all tensors with their "
    "statistics and histograms, to sort and to search; tensors with NaN or infinities, with nothing but zeros or one "
    "value, and with denormals are marked. The files of a folder or a pattern are on one page. Of two files or "
    "folders: what diff says, whose options count there. Of a trace, which bench --trace or trace= of a loader wrote: "
    "what each thread did and when; bench --html writes such a page at once. Names from files run nothing in the "
    "browser. Each tensor is read once, in less than 100 MB of memory beside the page's data, by all processors. The "
    "page appears whole or not at all. A file among several that cannot be read is told on standard error and in the "
    "page, and the exit status is then 1. - is standard input.",
    {"penstock report model.pt -o model.html", "penstock report digits --no-values -o - > headers.html",
     "penstock report digits/0000.pt digits/0001.pt -o diff.html"},
    attach_report};

}  // namespace penstock::cli
