#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "archive/inspect/comparison.h"
#include "cli/command.h"
#include "cli/headerless.h"
#include "cli/inspect/compare.h"
#include "cli/inspect/diff_text.h"
#include "cli/inspect/file_pairs.h"
#include "cli/json/json.h"
#include "cli/option.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/shown_url.h"
#include "penstock/error.h"
#include "penstock/load.h"

namespace penstock::cli {
namespace {

using archive::CompareOptions;
using archive::Comparison;
using archive::Mismatch;

constexpr int kDifferent = 1;
constexpr int kTrouble = 2;

struct DiffOptions {
  std::string a;
  std::string b;
  std::vector<std::string> exclude;
  Headerless headerless;
  CompareOptions how;
  bool json = false;
  bool quiet = false;
};

std::string summary(const Comparison& of) {
  const auto count = [&](Mismatch::Kind kind) {
    return static_cast<std::uint64_t>(std::count_if(of.places.begin(), of.places.end(),
                                                    [kind](const Mismatch& place) { return place.kind == kind; }));
  };
  std::string text = counted(of.equal_tensors, "tensor");
  if (of.equal_leaves > 0) text += " and " + counted(of.equal_leaves, "other value");
  text = of.equal_tensors + of.equal_leaves == 1 ? text + " is equal" : text + " are equal";
  if (of.is_equal()) return text;
  const std::uint64_t only_a = count(Mismatch::Kind::kOnlyInA);
  const std::uint64_t only_b = count(Mismatch::Kind::kOnlyInB);
  const std::uint64_t differ = of.places.size() - only_a - only_b;
  text += core::format(", {} {}", human_count(differ), differ == 1 ? "differs" : "differ");
  if (only_a > 0) text += core::format(", {} only in A", human_count(only_a));
  if (only_b > 0) text += core::format(", {} only in B", human_count(only_b));
  return text;
}

class Differ {
 public:
  explicit Differ(const DiffOptions& options) : options_(options) {}

  int run() {
    const FilePairs files = pair_files(options_.a, options_.b, options_.exclude);
    for (const Error& refused : files.refused) trouble(refused);
    Json pairs = Json::array();
    for (const FilePair& pair : files.pairs) pairs.push_back(compare_pair(pair));
    if (!files.only_in_a.empty() || !files.only_in_b.empty()) different_ = true;
    for (const Error& refused : files.refused) pairs.push_back(error_json(refused));
    if (options_.json) {
      print_json(files.is_single ? std::move(pairs[0]) : folder_json(files, std::move(pairs)));
    } else if (!options_.quiet) {
      for (const std::string& name : files.only_in_a) only("A", "31", name);
      for (const std::string& name : files.only_in_b) only("B", "32", name);
    }
    if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
    return trouble_ ? kTrouble : different_ ? kDifferent : 0;
  }

 private:
  void trouble(const Error& error) {
    print_error(error.what());
    trouble_ = true;
  }

  static void only(std::string_view side, std::string_view colour, const std::string& name) {
    core::print("{} {}\n", paint(stdout, colour, core::format("file only in {}:", side)), printable(name));
  }

  Json compare_pair(const FilePair& pair) {
    Json out{{"a", core::shown_path(pair.a)}, {"b", core::shown_path(pair.b)}};
    try {
      const Archive a = options_.headerless.open_either(pair.a);
      const Archive b = options_.headerless.open_either(pair.b);
      const Comparison comparison = compare_shown(a, b, options_.how);
      different_ = different_ || !comparison.is_equal();
      if (options_.json) {
        add_json({a, b, comparison}, out);
      } else if (!options_.quiet) {
        print(pair, {a, b, comparison});
      }
    } catch (const Error& error) {
      trouble(error);
      out.update(error_json(error));
    }
    return out;
  }

  void print(const FilePair& pair, const Compared& compared) const {
    if (!pair.name.empty()) core::print("{}:\n", paint(stdout, "1", printable(pair.name)));
    print_places(compared);
    core::print("{}\n", summary(compared.comparison));
    const std::vector<std::string> keys = different_metadata(compared.a, compared.b);
    if (keys.empty()) return;
    core::print("note: metadata is not compared, and differs: {}\n",
                printable(core::format("{}", fmt::join(keys, ", "))));
  }

  void add_json(const Compared& compared, Json& out) const {
    out["equal"] = compared.comparison.is_equal();
    out["rtol"] = options_.how.tolerance.rtol;
    out["atol"] = options_.how.tolerance.atol;
    out["nan_equal"] = options_.how.tolerance.nan_equal;
    out["equal_tensors"] = compared.comparison.equal_tensors;
    out["equal_values"] = compared.comparison.equal_leaves;
    Json& places = out["differences"] = Json::array();
    for (const Mismatch& place : compared.comparison.places) places.push_back(to_json(compared, place));
    out["different_metadata"] = different_metadata(compared.a, compared.b);
  }

  Json folder_json(const FilePairs& files, Json pairs) const {
    return Json{{"a", core::shown_path(options_.a)}, {"b", core::shown_path(options_.b)},
                {"equal", !different_ && !trouble_}, {"files", std::move(pairs)},
                {"only_in_a", files.only_in_a},      {"only_in_b", files.only_in_b}};
  }

  const DiffOptions& options_;
  bool different_ = false;
  bool trouble_ = false;
};

std::function<int()> attach_diff(Arguments& arguments) {
  auto options = std::make_shared<DiffOptions>();
  arguments.add("A", &options->a, "A tensor file, a folder or a pattern").required().takes("PATH");
  arguments.add("B", &options->b, "What it is compared with").required().takes("PATH");
  take_comparison(arguments, options->how);
  take_excluded(arguments, options->exclude);
  options->headerless.take(arguments);
  arguments.add("--json", &options->json, "Print JSON");
  arguments.add("--quiet", &options->quiet, "Print nothing; the exit status tells").excludes("--json");
  return [options] { return Differ(*options).run(); };
}

}  // namespace

const Command kDiff{
    "diff",
    "Compare what two tensor files hold, whatever their formats",
    "Tensors, numbers, text and all else are paired by the keys that lead to them; in .safetensors and .npz those are "
    "the names, in a .pt the keys joined with dots. Their order, containers, layout, byte order, compression and "
    "metadata do not matter. Values are compared exactly unless --rtol or --atol tolerate more, by NumPy's isclose, "
    "where B is the reference. Relative differences are to B, where B is not 0. A single array is compared with the "
    "only tensor of another file whatever its name. Files of two folders are paired by their path, or by their path "
    "without the extension; an index of shards stands for its shards. Takes less than 100 MB of memory, and all "
    "processors. penstock report A B -o FILE writes what it finds as a page for the browser. The exit status is 0 "
    "where both are equal, 1 where they differ, and 2 for wrong usage and where a file could not be read.",
    {"penstock diff digits/0000.pt digits/0001.pt", "penstock diff model.pt model.pt --rtol 1e-5 --atol 1e-8",
     "penstock diff model.pt images.npy --json"},
    attach_diff,
    kTrouble};

}  // namespace penstock::cli
