#include <functional>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/inspect/compare.h"
#include "cli/report/diff_report.h"
#include "cli/report/file_report.h"
#include "cli/report/page_file.h"
#include "cli/report/trace_report.h"
#include "cli/standard_input.h"
#include "penstock/load.h"

namespace penstock::cli {
namespace {

struct Options {
  std::string file;
  std::string other;  ///< what it is compared with, if anything
  archive::CompareOptions how;
  bool only_headers = false;
  PageFile page;
};

void report_trace(const Options& options) {
  options.page.require_free(options.file);
  const TraceReport report(options.file);
  options.page.write([&](JsonWriter& out) { report.write(out); });
}

void report_file(const Options& options) {
  const Archive archive = open_input(options.file);
  options.page.require_free(archive);
  const FileReport report(archive, !options.only_headers);
  options.page.write([&](JsonWriter& out) { report.write(out); });
}

void report_difference(const Options& options) {
  const Archive a = open_input(options.file);
  const Archive b = open_input(options.other);
  options.page.require_free(a);
  options.page.require_free(b);
  const archive::Comparison comparison = compare_shown(a, b, options.how);
  options.page.write([&](JsonWriter& out) { write_diff(out, a, b, options.how, comparison); });
}

int run(const Options& options) {
  if (!options.other.empty()) {
    report_difference(options);
  } else if (is_trace(options.file)) {
    report_trace(options);
  } else {
    report_file(options);
  }
  return 0;
}

std::function<int()> attach(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("file", options->file, "A tensor file, an index of shards, or a trace that bench or a loader wrote")
      ->required()
      ->type_name("FILE");
  CLI::Option* const other = app.add_option("other", options->other, "A tensor file to compare it with");
  other->type_name("FILE");
  app.add_option("-o,--output", options->page.path, "The page to write; - for standard output")
      ->required()
      ->type_name("FILE");
  app.add_flag("--no-values", options->only_headers, "Read headers only: no histograms and no marks")->excludes(other);
  take_comparison(app, options->how);
  for (const char* const name : {"--rtol", "--atol", "--nan-differs", "--any-dtype"}) {
    app.get_option(name)->needs(other);
  }
  app.add_flag("--force", options->page.force, "Replace a file that exists");
  return [options] { return run(*options); };
}

}  // namespace

const Command kReport{
    "report",
    "Write a page for the browser about a tensor file, two of them, or a trace",
    "One page that loads nothing else. Of a file: bytes by layer as a map, and a table of all tensors with their "
    "statistics and histograms, to sort and to search; tensors with NaN or infinities, with nothing but zeros or one "
    "value, and with denormals are marked. Of two files: what diff says, whose options count there. Of a trace, which "
    "bench --trace or trace= of a loader wrote: what each thread did and when. Names from files run nothing in the "
    "browser. Each tensor is read once, in less than 100 MB of memory beside the page's data, by all processors. The "
    "page appears whole or not at all.",
    {"penstock report model.pt -o model.html", "penstock report model.pt --no-values -o - > headers.html",
     "penstock report digits/0000.pt digits/0001.pt -o diff.html"},
    attach};

}  // namespace penstock::cli
