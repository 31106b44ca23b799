#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cli/command.h"
#include "cli/headerless.h"
#include "cli/json/json.h"
#include "cli/ls/listing.h"
#include "cli/ls/objects.h"
#include "cli/name_patterns.h"
#include "cli/option.h"
#include "cli/tensor_files.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/shown_url.h"
#include "data/scan/name_match.h"
#include "penstock/error.h"
#include "penstock/load.h"

namespace penstock::cli {
namespace {

struct LsOptions {
  std::vector<std::string> words;
  std::vector<std::string> only;
  std::vector<std::string> exclude;
  Headerless headerless;
  Order order;
  bool exact_bytes = false;
  bool only_names = false;
  bool json = false;
};

/// What a path names: an archive, or what is in a bucket. Nothing where it cannot be read, which is then told.
using Lookup = std::variant<std::monostate, Archive, io::remote::Objects>;

bool is_folder_of_objects(const std::string& word) { return is_several_objects(word) && !data::is_magic(word); }

Lookup look(const std::string& path, const Headerless& headerless) {
  if (!is_folder_of_objects(path)) {
    try {
      return headerless.open(path);
    } catch (const Error& refused) {
      if (refused.code() != ErrorCode::kNotFound) throw;
      if (std::optional<io::remote::Objects> found = objects_in(path)) return *std::move(found);
      throw;
    }
  }
  std::optional<io::remote::Objects> found = objects_in(path);
  if (found && (!found->objects.empty() || !found->folders.empty())) return *std::move(found);
  throw Error(ErrorCode::kNotFound, "there is nothing in it; check the name", {.path = path});
}

class Lister {
 public:
  Lister(const LsOptions& options, const std::vector<std::string>& names) : options_(options), patterns_(names) {}

  int run(const std::vector<std::string>& words) {
    // A word that names a folder or a pattern gives one table of all files.
    std::vector<std::string> paths;
    bool are_named = true;
    for (const std::string& word : words) {
      if (is_folder_of_objects(word)) {
        paths.push_back(word);
        continue;
      }
      const ChosenFiles chosen = choose_files({word}, options_.exclude);
      paths.insert(paths.end(), chosen.paths.begin(), chosen.paths.end());
      are_named = are_named && chosen.are_named;
      refused_.insert(refused_.end(), chosen.refused.begin(), chosen.refused.end());
      if (!chosen.refused.empty()) code_ = 1;
    }
    const bool several = words.size() > 1 || !are_named;
    if (options_.json) {
      list_json(paths, several);
    } else if (options_.only_names) {
      list_names(paths);
    } else if (are_named && options_.order.is_none()) {
      list_each(paths, several);
    } else {
      list_together(paths, several);
    }
    require_used();
    return code_;
  }

 private:
  Lookup look_or_tell(const std::string& path, Json* error = nullptr) {
    try {
      Lookup found = look(path, options_.headerless);
      if (std::holds_alternative<io::remote::Objects>(found)) require_plain(path);
      return found;
    } catch (const Error& refused) {
      print_error(refused.what());
      if (error != nullptr) *error = error_json(refused, path);
      code_ = 1;
      return {};
    }
  }

  void require_plain(const std::string& path) const {
    if (options_.order.is_none() && !options_.exact_bytes && options_.exclude.empty()) return;
    throw Error(
        ErrorCode::kInvalidArgument,
        "--sort, --reverse, --bytes and --exclude are for tensors, and what lies there are objects; leave them out",
        {.path = path});
  }

  /// The entries that are listed, in their order.
  std::vector<std::size_t> chosen(const Archive& archive) {
    std::vector<std::size_t> entries(archive.entries().size());
    std::iota(entries.begin(), entries.end(), std::size_t{0});
    if (!patterns_.empty()) {
      std::erase_if(entries, [&](std::size_t number) { return !patterns_.match(archive.entries()[number].name); });
      for (const TensorEntry& entry : archive.entries()) remember(entry.name);
    }
    sort_entries(entries, archive, options_.order);
    return entries;
  }

  /// For the error of a pattern that nothing matches.
  void remember(const std::string& name) {
    constexpr std::size_t kMost = 10'000;
    if (names_.size() < kMost) names_.push_back(name);
  }

  void require_used() {
    try {
      patterns_.require_used(names_);
    } catch (const Error& error) {
      print_error(error.what());
      code_ = 1;
    }
  }

  void list_json(const std::vector<std::string>& paths, bool several) {
    JsonWriter out;
    if (several) out.begin_array();
    for (const std::string& path : paths) {
      Json error;
      const Lookup found = look_or_tell(path, &error);
      if (const auto* const archive = std::get_if<Archive>(&found)) {
        out.begin_object();
        write_members(out, Json{{"path", archive->path()}, {"format", archive->format()}});
        write_entries(out, *archive, chosen(*archive));
        out.end();
      } else if (const auto* const objects = std::get_if<io::remote::Objects>(&found)) {
        write_json(out, to_json(path, *objects));
      } else {
        write_json(out, error);
      }
    }
    for (const Refused& refused : refused_) write_json(out, error_json(refused.error, refused.path));
    if (several) out.end();
    out.finish();
  }

  void list_names(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      const Lookup found = look_or_tell(path);
      if (const auto* const archive = std::get_if<Archive>(&found)) {
        for (const std::size_t entry : chosen(*archive)) core::print("{}\n", printable(archive->entries()[entry].name));
      } else if (const auto* const objects = std::get_if<io::remote::Objects>(&found)) {
        print_object_names(path, *objects);
      }
    }
  }

  /// A table for each file.
  void list_each(const std::vector<std::string>& paths, bool with_titles) {
    bool first = true;
    for (const std::string& path : paths) {
      const Lookup found = look_or_tell(path);
      if (std::holds_alternative<std::monostate>(found)) continue;
      const auto begin = [&] {
        if (!std::exchange(first, false)) core::print("\n");
      };
      if (const auto* const objects = std::get_if<io::remote::Objects>(&found)) {
        begin();
        print_objects(path, *objects, with_titles);
        continue;
      }
      std::vector<Line> lines;
      Totals totals;
      add(path, std::get<Archive>(found), lines, totals);
      if (lines.empty() && !patterns_.empty()) continue;
      begin();
      if (with_titles) core::print("{}:\n", printable(core::shown_path(path)));
      const Style style{.exact_bytes = options_.exact_bytes};
      print_lines(lines, style);
      print_totals(totals, style);
    }
  }

  /// A table of all.
  void list_together(const std::vector<std::string>& paths, bool with_files) {
    std::vector<Line> lines;
    Totals totals;
    for (const std::string& path : paths) {
      const Lookup found = look_or_tell(path);
      if (const auto* const archive = std::get_if<Archive>(&found)) add(path, *archive, lines, totals);
      if (const auto* const objects = std::get_if<io::remote::Objects>(&found)) print_objects(path, *objects, true);
    }
    if (totals.files == 0 || (lines.empty() && !patterns_.empty())) return;
    sort_lines(lines, options_.order);
    const Style style{.with_files = with_files, .exact_bytes = options_.exact_bytes};
    print_lines(lines, style);
    print_totals(totals, style);
  }

  void add(const std::string& path, const Archive& archive, std::vector<Line>& lines, Totals& totals) {
    ++totals.files;
    for (const std::size_t entry : chosen(archive)) {
      lines.push_back(line_of(archive, entry));
      lines.back().file = core::shown_path(path);
      totals.add(lines.back());
    }
  }

  const LsOptions& options_;
  NamePatterns patterns_;
  std::vector<Refused> refused_;
  std::vector<std::string> names_;
  int code_ = 0;
};

int run(const LsOptions& options) {
  const FilesAndNames words = files_and_names(options.words, options.only);
  return Lister(options, words.names).run(words.files);
}

std::function<int()> attach_ls(Arguments& arguments) {
  auto options = std::make_shared<LsOptions>();
  take_files_and_names(arguments, options->words, options->only, options->exclude);
  options->headerless.take(arguments);
  arguments.add("--sort", &options->order.by, "Sort tensors by this; the largest come first")
      .takes_word({"name", "size", "shape", "dtype"});
  arguments.add("-r,--reverse", &options->order.reverse, "The other way round");
  arguments.add("--bytes", &options->exact_bytes, "Sizes in bytes, with every digit").excludes("--names");
  arguments.add("--names", &options->only_names, "Names alone, one a line");
  arguments.add("--json", &options->json, "Print JSON: an object; of several files, a list of objects")
      .excludes("--names");
  return [options] { return run(*options); };
}

}  // namespace

const Command kLs{
    "ls",
    "List the tensors of files",
    "Reads headers only: name, type, shape, size and offset in the file of each tensor, and at the end how many "
    "tensors, elements and bytes there are. Files of folders and patterns are listed together; an index of shards "
    "stands for its shards. Words behind the files are names or patterns of tensors, where no file is called so: a "
    "name stands for what lies below it too, and * and ? for any characters, dots too. A file that cannot be read is "
    "told on standard error, and the others are listed; with --json its object has \"error\" in place of \"tensors\". "
    "Of a bucket, or a folder in one (s3://bucket/train/), it lists the objects. - is standard input.",
    {"penstock ls model.pt '*.weight' --sort size", "penstock ls digits", "penstock ls model.pt --json"},
    attach_ls};

}  // namespace penstock::cli
