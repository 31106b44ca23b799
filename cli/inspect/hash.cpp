#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "archive/inspect/content_hash.h"
#include "cli/command.h"
#include "cli/inspect/look_at.h"
#include "cli/json/json.h"
#include "cli/json/json_of_files.h"
#include "cli/option.h"
#include "cli/tensor_files.h"
#include "cli/terminal/terminal.h"
#include "core/format.h"
#include "core/text.h"
#include "penstock/load.h"

namespace penstock::cli {
namespace {

using archive::ContentHashes;
using archive::Digest;

struct HashOptions {
  std::vector<std::string> words;
  std::vector<std::string> only;
  std::vector<std::string> exclude;
  Headerless headerless;
  bool only_content = false;
  bool duplicates = false;
  bool json = false;
};

struct HashedFile {
  std::string path;
  std::optional<Archive> archive = {};  ///< empty where it cannot be read
  std::vector<bool> wanted = {};        ///< of each tensor, whether it was asked for
  bool is_whole = true;                 ///< all was asked for, and not some names
  ContentHashes hashes = {};
  Json refused = {};

  /// Names were given, and nothing in it has one of them.
  bool has_none() const { return !is_whole && std::find(wanted.begin(), wanted.end(), true) == wanted.end(); }
};

ContentHashes read(const Archive& archive, const HashedFile& file) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < file.wanted.size(); ++i) all += file.wanted[i] ? archive.entries()[i].nbytes() : 0;
  SharedProgress progress("hashed", all);
  const auto seen = [&](std::uint64_t bytes) { progress.add(bytes); };
  return file.is_whole ? archive::hash_content(archive, seen)
                       : archive::hash_content(archive, seen, asked_of(archive, file.wanted));
}

HashedFile hashed(const std::string& path, const HashOptions& options, WantedTensors& names) {
  return look_at<HashedFile>(path, options.headerless, [&](const Archive& archive, HashedFile& file) {
    file.wanted = names.of(archive);
    file.is_whole = names.are_all();
    file.hashes = read(archive, file);
  });
}

std::string described(const TensorEntry& entry) {
  return core::format("{} {}", printable(entry.dtype.name()), entry.shape.to_string());
}

void print_hashes(const HashedFile& file, const HashOptions& options) {
  core::print("{}  {}\n", paint(stdout, "1", file.hashes.content.hex()), printable(file.path));
  if (options.only_content) return;
  for (std::size_t i = 0; i < file.hashes.tensors.size(); ++i) {
    if (!file.wanted[i]) continue;
    const TensorEntry& entry = file.archive->entries()[i];
    core::print("  {}  {}  {}\n", file.hashes.tensors[i].hex(), printable(entry.name), described(entry));
  }
}

void write_hashes(JsonWriter& out, const HashedFile& file, const HashOptions& options) {
  if (!file.archive) return write_json(out, file.refused);
  out.begin_object();
  out.write_key("path");
  out.write_string(file.path);
  out.write_key("hash");
  out.write_string(file.hashes.content.hex());
  if (!options.only_content) {
    out.write_key("tensors");
    out.begin_array();
    for (std::size_t i = 0; i < file.hashes.tensors.size(); ++i) {
      if (!file.wanted[i]) continue;
      const TensorEntry& entry = file.archive->entries()[i];
      write_json(out, Json{{"name", entry.name},
                           {"dtype", entry.dtype.name()},
                           {"shape", std::vector(entry.shape.begin(), entry.shape.end())},
                           {"hash", file.hashes.tensors[i].hex()}});
    }
    out.end();
  }
  out.end();
}

/// What has one hash, in the order in which it was seen. Tensors without bytes are left out: all are alike.
class Duplicates {
 public:
  void add(const HashedFile& file) {
    if (file.has_none()) return;
    add(files_, file_order_, file.hashes.content, {file.path, {}, {}, 0});
    for (std::size_t i = 0; i < file.hashes.tensors.size(); ++i) {
      const TensorEntry& entry = file.archive->entries()[i];
      if (!file.wanted[i] || entry.nbytes() == 0) continue;
      add(tensors_, tensor_order_, file.hashes.tensors[i], {file.path, entry.name, described(entry), entry.nbytes()});
    }
  }

  void print() const {
    std::uint64_t spare = 0;
    for (const Digest& digest : file_order_) {
      const auto& same = files_.at(digest);
      if (same.size() < 2) continue;
      core::print("{}  {} with the same content\n", digest.hex(), counted(same.size(), "file"));
      for (const Member& member : same) core::print("  {}\n", printable(member.path));
    }
    for (const Digest& digest : tensor_order_) {
      const auto& same = tensors_.at(digest);
      if (same.size() < 2) continue;
      spare += (same.size() - 1) * same.front().bytes;
      core::print("{}  {} of {}\n", digest.hex(), counted(same.size(), "equal tensor"), same.front().what);
      for (const Member& member : same) core::print("  {}: {}\n", printable(member.path), printable(member.name));
    }
    if (spare == 0) return core::print("no tensor is there twice\n");
    core::print("{} in tensors that are there already\n", core::format_bytes(spare));
  }

  Json to_json() const {
    Json files = Json::array();
    for (const Digest& digest : file_order_) {
      const auto& same = files_.at(digest);
      if (same.size() < 2) continue;
      Json paths = Json::array();
      for (const Member& member : same) paths.push_back(member.path);
      files.push_back(Json{{"hash", digest.hex()}, {"paths", std::move(paths)}});
    }
    Json tensors = Json::array();
    for (const Digest& digest : tensor_order_) {
      const auto& same = tensors_.at(digest);
      if (same.size() < 2) continue;
      Json places = Json::array();
      for (const Member& member : same) places.push_back(Json{{"path", member.path}, {"name", member.name}});
      tensors.push_back(Json{{"hash", digest.hex()}, {"bytes", same.front().bytes}, {"tensors", std::move(places)}});
    }
    return Json{{"files", std::move(files)}, {"tensors", std::move(tensors)}};
  }

 private:
  struct Member {
    std::string path;
    std::string name;
    std::string what;
    std::uint64_t bytes;
  };
  using Groups = std::map<Digest, std::vector<Member>>;

  static void add(Groups& groups, std::vector<Digest>& order, const Digest& digest, Member member) {
    std::vector<Member>& group = groups[digest];
    if (group.empty()) order.push_back(digest);
    group.push_back(std::move(member));
  }

  Groups files_;
  Groups tensors_;
  std::vector<Digest> file_order_;
  std::vector<Digest> tensor_order_;
};

int find_duplicates(const ChosenFiles& chosen, WantedTensors& names, const HashOptions& options) {
  Json refused = Json::array();
  for (const Refused& one : chosen.refused) refused.push_back(error_json(one.error, one.path));
  Duplicates duplicates;
  for (const std::string& path : chosen.paths) {
    const HashedFile file = hashed(path, options, names);
    if (file.archive) {
      duplicates.add(file);
    } else {
      refused.push_back(file.refused);
    }
  }
  const int code = refused.empty() ? 0 : 1;
  if (options.json) {
    Json out = duplicates.to_json();
    out["bad"] = std::move(refused);
    print_json(out);
  } else {
    duplicates.print();
  }
  names.require_used();
  return code;
}

int run(const HashOptions& options) {
  const FilesAndNames words = files_and_names(options.words, options.only);
  WantedTensors names(words.names);
  const ChosenFiles chosen = choose_files(words.files, options.exclude);
  if (options.duplicates) return find_duplicates(chosen, names, options);
  int code = chosen.refused.empty() ? 0 : 1;
  JsonOfFiles out(options.json, chosen);
  for (const std::string& path : chosen.paths) {
    const HashedFile file = hashed(path, options, names);
    if (!file.archive) code = 1;
    if (out) {
      write_hashes(*out, file, options);
    } else if (file.archive && !file.has_none()) {
      print_hashes(file, options);
    }
  }
  out.finish();
  names.require_used();
  return code;
}

std::function<int()> attach_hash(Arguments& arguments) {
  auto options = std::make_shared<HashOptions>();
  take_files_and_names(arguments, options->words, options->only, options->exclude);
  options->headerless.take(arguments);
  arguments.add("--content", &options->only_content, "Only the hash of each file's content");
  arguments.add("--duplicates", &options->duplicates, "List files of equal content and equal tensors")
      .excludes("--content");
  arguments.add("--json", &options->json, "Print JSON: an object; of several files, a list of objects");
  return [options] { return run(*options); };
}

}  // namespace

const Command kHash{
    "hash",
    "Print a hash of what a file holds, whatever its format",
    "Content is equal where hashes are: keys, dtypes, shapes and the bits of values, and numbers, text and all else "
    "that a .pt holds. Format, layout, order of keys, byte order, compression and metadata do not matter. Below each "
    "file's hash are those of its tensors, which do not depend on names. Words behind the files are names or patterns "
    "of tensors, as for ls: only those are read, and the file's hash is that of a file with nothing else in it. An "
    "XXH3 hash of 128 bits: it tells files apart, and is no protection from somebody who wants two of them to look "
    "alike. An index of shards stands for its shards. - is standard input. A file that cannot be read is told on "
    "standard error, and the others are read; the exit status is then 1.",
    {"penstock hash model.pt 'encoder.*'", "penstock hash --content images.npy labels.npy",
     "penstock hash --duplicates digits/*.pt"},
    attach_hash};

}  // namespace penstock::cli
