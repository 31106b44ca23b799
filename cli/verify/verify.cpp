#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "archive/archive_state.h"
#include "cli/command.h"
#include "cli/content_check.h"
#include "cli/headerless.h"
#include "cli/json/json.h"
#include "cli/option.h"
#include "cli/standard_input.h"
#include "cli/tensor_files.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "core/checked.h"
#include "core/format.h"
#include "core/shown_url.h"
#include "core/task_pool.h"
#include "core/text.h"
#include "data/pack/shard_number.h"
#include "data/scan/folder_list.h"
#include "data/scan/glob.h"
#include "format/folder.h"
#include "format/format.h"
#include "format/part_names.h"
#include "io/file/folder_names.h"
#include "io/source/composed_source.h"
#include "io/source/window_source.h"
#include "penstock/error.h"
#include "penstock/load.h"

namespace penstock::cli {
namespace {

constexpr std::size_t kNamedInErrors = 5;

struct VerifyOptions {
  std::vector<std::string> paths;
  std::vector<std::string> exclude;
  Headerless headerless;
  bool json = false;
  bool quiet = false;
};

/// Nothing wrong, but not what it may be taken for.
struct Note {
  std::string path;
  std::vector<std::string> unknown_globals;
  std::vector<std::string> object_arrays;
  std::uint64_t trailing_bytes = 0;  ///< behind the end of a zip archive
};

struct Bad {
  std::string path;
  Error error;
};

struct Result {
  std::uint64_t files = 0;
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;  ///< of the files
  std::vector<Bad> bad;
  std::vector<Note> notes;
};

struct File {
  std::string path;
  bool named = false;       ///< by the user, so that it has to hold tensors; else found in a folder
  std::string folder = {};  ///< where it was found
};

class Verifier {
 public:
  explicit Verifier(const VerifyOptions& options) : exclude_(options.exclude), headerless_(options.headerless) {}

  void verify(const std::vector<std::string>& paths) {
    std::vector<File> files;
    for (const std::string& path : paths) find(path, files);
    progress_.emplace("verified", is_terminal(stderr) ? bytes_of(files) : 0);
    core::parallel_for(files.size(), core::usable_cpus(), [&](std::size_t i) { verify(files[i]); });
    progress_.reset();
    for (const std::string& folder : empty_folders_) {
      add_bad(folder, Error(ErrorCode::kNotFound, "there are no tensor files in it or below", {.path = folder}));
    }
    // Who names one file wants that one.
    const bool is_one = files.size() == 1 && files.front().named;
    if (is_one) return;
    for (const Error& fault : shards_.faults()) add_bad(fault.path(), fault);
  }

  Result take() {
    const auto by_path = [](const auto& a, const auto& b) { return a.path < b.path; };
    std::stable_sort(result_.bad.begin(), result_.bad.end(), by_path);
    std::stable_sort(result_.notes.begin(), result_.notes.end(), by_path);
    return std::move(result_);
  }

 private:
  void find(const std::string& path, std::vector<File>& files) {
    if (path == kStandardInput) return files.push_back({path, true});
    if (is_local_pattern(path) || is_several_objects(path)) {
      try {
        const TensorFiles found = tensor_files(path, exclude_);
        for (const std::string& file : found.paths) files.push_back({file, true});
        for (const Error& refused : found.refused) add_bad(refused.path(), refused);
      } catch (const Error& error) {
        add_bad(path, error);
      }
      return;
    }
    const data::FileKind kind = data::kind_of(path);
    const bool is_folder = kind == data::FileKind::kFolder || kind == data::FileKind::kLinkToFolder;
    if (!is_folder || is_checkpoint(path)) {
      files.push_back({path, true});
      return;
    }
    const data::FilesBelow found = data::files_below(path, exclude_);
    std::set<std::string> checkpoints;
    for (std::int64_t i = 0; i < found.files.size(); ++i) {
      const std::filesystem::path file = found.files.path(i);
      if (file.extension() != format::kCheckpointExtension) {
        files.push_back({file.string(), false, path});
      } else if (checkpoints.insert(file.parent_path().string()).second) {
        files.push_back({file.parent_path().string(), true, path});
      }
    }
    for (const Error& refused : found.refused) add_bad(refused.path(), refused);
    require_all_parts(found.files, path);
    if (found.refused.empty()) empty_folders_.insert(path);
  }

  /// An index of shards names what is missing by itself.
  void require_all_parts(const data::PathTable& files, const std::string& folder) {
    std::vector<std::string> names;
    for (std::int64_t i = 0; i < files.size(); ++i) {
      std::string name = files.path(i).substr(folder.size() + (folder.ends_with('/') ? 0 : 1));
      if (name.ends_with(".index.json")) return;
      names.push_back(std::move(name));
    }
    try {
      format::require_all_parts(names, folder);
    } catch (const Error& error) {
      add_bad(folder, error);
    }
  }

  /// What a person waits for; files that turn out to be no tensors are among them.
  static std::uint64_t bytes_of(const std::vector<File>& files) {
    std::atomic<std::uint64_t> bytes = 0;
    core::parallel_for(files.size(), core::usable_cpus(), [&](std::size_t i) {
      struct stat status {};
      if (::stat(files[i].path.c_str(), &status) != 0) return;
      if (!S_ISDIR(status.st_mode)) {
        bytes += static_cast<std::uint64_t>(status.st_size);
        return;
      }
      std::error_code ignored;  // a checkpoint may be replaced meanwhile
      for (const std::string& name : io::folder_names(files[i].path, ignored)) {
        const std::string path = core::format("{}/{}", files[i].path, name);
        if (::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
          bytes += static_cast<std::uint64_t>(status.st_size);
        }
      }
    });
    return bytes;
  }

  void verify(const File& file) {
    bool counted = false;
    try {
      const Source source = file.named ? input_source(file.path) : open_source(file.path);
      const bool is_ours = file.named || has_tensor_extension(file.path) || format::find_format(*source) != nullptr;
      if (is_ours) add_found(file.folder);
      if (!is_ours || !is_new(*source)) return add_seen(source.size());
      counted = true;
      add_file(source.size());
      check(source);
    } catch (const Error& error) {
      if (!counted) add_file(0);
      add_found(file.folder);
      add_bad(file.path, error);
    }
  }

  /// Nothing where it is a single array of Python objects: the file is as it was written, and no tensor.
  std::optional<Archive> open_unless_objects(const Source& source) {
    try {
      return headerless_.open(source);
    } catch (const Error& error) {
      const format::Format* const found = format::find_format(*source);
      const bool is_objects = error.code() == ErrorCode::kUnsafe && found != nullptr && found->is_one_tensor;
      if (!is_objects) throw;
      return std::nullopt;
    }
  }

  void check(const Source& source) {
    const std::optional<Archive> archive = open_unless_objects(source);
    if (archive && detail::ArchiveState::of(*archive).format->is_index) {
      if (detail::ArchiveState::of(*archive).format->documents != nullptr) return check_documents(*archive);
      if (const auto contents = format::contents_of(archive->sources())) return check_contents(*archive, *contents);
      for (const Source& shard : archive->sources().subspan(1)) {
        if (io::as_composed(shard) == nullptr) verify({shard.name(), true});
      }
      if (detail::ArchiveState::of(*archive).format->lists_names) require_all_listed(*archive);
      return;
    }
    // What is inflated counts as what the file has.
    const std::uint64_t size = source.size();
    std::atomic<std::uint64_t> done = 0;
    const std::uint64_t trailing = check_content(*source, core::usable_cpus(), [&](std::uint64_t bytes) {
      const std::uint64_t before = std::min(size, done.fetch_add(bytes));
      add_seen(std::min(size - before, bytes));
    });
    add_seen(size - std::min<std::uint64_t>(size, done));
    if (archive) {
      add_good(*archive, trailing);
    } else {
      add_note({source.name(), {}, {std::filesystem::path(source.name()).filename()}, trailing});
    }
  }

  /// An index of tokens, which have no header themselves: what it says of them.
  void check_documents(const Archive& archive) {
    const detail::ArchiveState& state = detail::ArchiveState::of(archive);
    state.format->documents(state.index, format::DocumentUnit::kDocument);
    for (const Source& file : archive.sources()) {
      if (&file != &archive.sources().front()) add_file(file.size());
      add_seen(file.size());
    }
    add_good(archive, 0);
  }

  /// Tensors of shards that an index does not list are left out by whoever loads the index.
  static void require_all_listed(const Archive& index) {
    std::set<std::string, std::less<>> listed;
    for (const TensorEntry& entry : index.entries()) listed.insert(entry.name);
    std::vector<std::string> left_out;
    for (const Source& shard : index.sources().subspan(1)) {
      if (io::as_composed(shard) != nullptr) continue;
      const Archive archive = open(shard);
      for (const TensorEntry& entry : archive.entries()) {
        if (listed.insert(entry.name).second) left_out.push_back(core::quoted(entry.name));
      }
    }
    if (left_out.empty()) return;
    const std::size_t count = left_out.size();
    left_out.resize(std::min(count, kNamedInErrors));
    throw Error(ErrorCode::kCorrupt,
                core::format("the index does not say where {} of its shards {}: {}{}; loading it leaves them out, so "
                             "fetch or write the index again",
                             counted(count, "tensor"), count == 1 ? "is" : "are", fmt::join(left_out, ", "),
                             count > kNamedInErrors ? ", ..." : ""),
                {.path = index.path()});
  }

  /// The streams of a checkpoint, of which each that is bad is told.
  void check_contents(const Archive& archive, std::span<const format::Content> contents) {
    for (const Source& file : archive.sources().subspan(1)) {
      if (io::as_composed(file) == nullptr) add_file(file.size());
    }
    core::parallel_for(contents.size(), core::usable_cpus(), [&](std::size_t i) {
      const format::Content& content = contents[i];
      const std::string& path = content.file.name();
      if (!core::range_fits(content.offset, content.length, content.file.size())) {
        return add_bad(path, Error(ErrorCode::kTruncated,
                                   core::format("a stream should take {} here, and the file ends at byte {}: it was "
                                                "cut, so copy it again",
                                                counted(content.length, "byte"), content.file.size()),
                                   {.path = path, .offset = content.offset, .tensor = content.name}));
      }
      try {
        const Source bytes = io::window_of(content.file, content.offset, content.length);
        check_content(*bytes, 1, [this](std::uint64_t seen) { add_seen(seen); });
      } catch (const Error& error) {
        const std::uint64_t offset = content.offset + error.offset().value_or(0);
        add_bad(path, error.at({.path = path, .offset = offset, .tensor = content.name}));
      }
    });
    add_good(archive, 0);
  }

  /// A file may be named twice, by links, and by an index beside it.
  bool is_new(const ByteSource& source) {
    struct stat status {};
    if (source.descriptor() < 0 || ::fstat(source.descriptor(), &status) != 0) return true;
    const std::lock_guard lock(mutex_);
    return seen_.emplace(status.st_dev, status.st_ino).second;
  }

  void add_found(const std::string& folder) {
    const std::lock_guard lock(mutex_);
    empty_folders_.erase(folder);
  }

  void add_file(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    result_.bytes += bytes;
    ++result_.files;
  }

  void add_seen(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    seen_bytes_ += bytes;
    progress_->at(seen_bytes_, core::format("; {}, {} bad", counted(result_.files, "file"), result_.bad.size()));
  }

  void add_good(const Archive& archive, std::uint64_t trailing_bytes) {
    const std::span<const std::string> unknown = archive.unknown_globals();
    Note note{archive.path(), {unknown.begin(), unknown.end()}, {}, trailing_bytes};
    for (const TensorEntry& entry : archive.entries()) {
      if (entry.pickled) note.object_arrays.push_back(entry.name);
    }
    const auto shard = data::shard_number_of(archive.metadata(), archive.path());
    {
      const std::lock_guard lock(mutex_);
      result_.tensors += archive.entries().size();
      if (shard) shards_.add(archive.path(), *shard);
    }
    const bool is_plain = note.unknown_globals.empty() && note.object_arrays.empty() && trailing_bytes == 0;
    if (!is_plain) add_note(std::move(note));
  }

  void add_note(Note note) {
    const std::lock_guard lock(mutex_);
    result_.notes.push_back(std::move(note));
  }

  void add_bad(const std::string& path, const Error& error) {
    const std::lock_guard lock(mutex_);
    result_.bad.push_back({core::shown_path(path), error.within({.path = path})});
  }

  std::mutex mutex_;
  Result result_;
  std::vector<std::string> exclude_;
  const Headerless& headerless_;
  std::uint64_t seen_bytes_ = 0;
  std::optional<Progress> progress_;
  std::set<std::pair<dev_t, ino_t>> seen_;
  data::FoundShards shards_;
  std::set<std::string> empty_folders_;  ///< where no tensor file was found so far
};

/// With the file's path in front also where something else is what the error is about, such as a missing shard.
std::string text_of(const Bad& bad) {
  if (bad.error.path() == bad.path) return bad.error.what();
  return core::format("{}: {}", printable(bad.path), bad.error.what());
}

std::string joined(const std::vector<std::string>& names) {
  return printable(core::format("{}", fmt::join(names, ", ")));
}

void print_bad(const Result& result) {
  for (const Bad& bad : result.bad) core::print("{} {}\n", paint(stdout, "31;1", "bad:"), text_of(bad));
}

void print_notes(const Result& result) {
  for (const Note& note : result.notes) {
    const std::string path = printable(note.path);
    if (const auto& names = note.unknown_globals; !names.empty()) {
      core::print("note: {}: unknown names, kept inert and not run: {}\n", path, joined(names));
    }
    if (const auto& names = note.object_arrays; !names.empty()) {
      core::print("note: {}: arrays of Python objects, which are not loaded: {}\n", path, joined(names));
    }
    if (note.trailing_bytes != 0) {
      core::print("note: {}: {} behind the end of the zip archive: something was appended, or the file was padded\n",
                  path, counted(note.trailing_bytes, "byte"));
    }
  }
}

void print_summary(const Result& result) {
  core::print("{}, {}, {}: {}\n", counted(result.files, "file"), counted(result.tensors, "tensor"),
              core::format_bytes(result.bytes),
              result.bad.empty() ? "all good" : core::format("{} bad", result.bad.size()));
}

Json to_json(const Bad& bad) {
  Json out{{"path", bad.path}, {"error", text_of(bad)}, {"code", error_code_info(bad.error.code()).name}};
  if (bad.error.offset()) out["offset"] = *bad.error.offset();
  if (!bad.error.tensor().empty()) out["tensor"] = bad.error.tensor();
  return out;
}

Json to_json(const Result& result) {
  Json bad = Json::array();
  for (const Bad& each : result.bad) bad.push_back(to_json(each));
  Json notes = Json::array();
  for (const Note& note : result.notes) {
    notes.push_back(Json{{"path", note.path},
                         {"unknown_globals", note.unknown_globals},
                         {"object_arrays", note.object_arrays},
                         {"trailing_bytes", note.trailing_bytes}});
  }
  return Json{{"files", result.files},
              {"tensors", result.tensors},
              {"bytes", result.bytes},
              {"bad", std::move(bad)},
              {"notes", std::move(notes)}};
}

int run(const VerifyOptions& options) {
  Verifier verifier(options);
  verifier.verify(options.paths);
  const Result result = verifier.take();
  if (options.json) {
    print_json(to_json(result));
  } else {
    print_bad(result);
    if (!options.quiet) print_notes(result);
    if (!options.quiet) print_summary(result);
  }
  return result.bad.empty() ? 0 : 1;
}

std::function<int()> attach_verify(Arguments& arguments) {
  auto options = std::make_shared<VerifyOptions>();
  arguments.add("PATH", &options->paths, "Tensor files, folders of them and patterns").required().takes("PATH");
  take_excluded(arguments, options->exclude);
  options->headerless.take(arguments);
  arguments.add("--json", &options->json, "Print JSON");
  arguments.add("--quiet", &options->quiet, "Print only what is bad").excludes("--json");
  return [options] { return run(*options); };
}

}  // namespace

const Command kVerify{
    "verify",
    "Read files whole and say which are damaged",
    "Reads every byte of each file in little memory and checks all that loading checks, and the CRC-32 of every member "
    "of an archive. Of shards that pack wrote it says which are missing, or of another packing. Of folders it takes "
    "all files below them that have the extension or the content of a tensor format, but for hidden ones and links "
    "that lead back up; of an index of shards, the shards. - is standard input. A folder that cannot be listed is one "
    "of what is bad, and the others are read. Prints a line for each bad file and how much was read. What loading "
    "keeps inert, such as names that Penstock does not know, is noted and not bad. The exit status is 1 where a file "
    "is bad.",
    {"penstock verify model.pt", "penstock verify digits clips", "penstock verify --quiet --exclude clips ."},
    attach_verify};

}  // namespace penstock::cli
