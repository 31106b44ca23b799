#include "cli/tensor_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "archive/archive_state.h"
#include "cli/standard_input.h"
#include "cli/terminal/terminal.h"
#include "core/shown_url.h"
#include "data/scan/folder_list.h"
#include "data/scan/glob.h"
#include "data/scan/name_match.h"
#include "data/scan/sample_extensions.h"
#include "format/folder.h"
#include "format/format.h"
#include "io/file/url.h"
#include "io/locations.h"
#include "io/remote/location.h"
#include "penstock/load.h"

namespace penstock::cli {
namespace {

using FileId = std::pair<dev_t, ino_t>;

bool is_index_name(std::string_view name) {
  const auto is_index = [&](const format::Format& format) {
    const auto ends_name = [&](std::string_view extension) { return name.ends_with(extension); };
    return format.is_index && std::ranges::any_of(format.extensions, ends_name);
  };
  return std::ranges::any_of(format::formats(), is_index);
}

bool identify(const std::string& path, FileId& out) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return false;
  out = {status.st_dev, status.st_ino};
  return true;
}

/// The shards that the indexes among these files list; an index that cannot be read lists none.
std::set<FileId> shards_of(const std::vector<std::string>& paths) {
  std::set<FileId> out;
  for (const std::string& path : paths) {
    if (!is_index_name(std::filesystem::path(path).filename().string())) continue;
    try {
      const Archive archive = open(path);
      if (!detail::ArchiveState::of(archive).format->is_index) continue;
      for (const Source& shard : archive.sources().subspan(1)) {
        if (FileId id; identify(shard.name(), id)) out.insert(id);
      }
    } catch (const Error&) {
      continue;
    }
  }
  return out;
}

void drop_shards(std::vector<std::string>& paths) {
  const std::set<FileId> shards = shards_of(paths);
  std::erase_if(paths, [&](const std::string& path) {
    FileId id;
    return identify(path, id) && shards.contains(id);
  });
}

/// The folders in front of the first component that stands for several.
std::string fixed_part(std::string_view pattern) {
  std::size_t end = 0;
  for (std::size_t slash = pattern.find('/'); slash != std::string_view::npos; slash = pattern.find('/', slash + 1)) {
    if (data::is_magic(pattern.substr(end, slash - end))) break;
    end = slash + 1;
  }
  return std::string(pattern.substr(0, end));
}

/// Whether the last component of a pattern says nothing about names.
bool takes_all(std::string_view pattern) {
  return pattern.substr(pattern.rfind('/') + 1).find_first_not_of('*') == pattern.npos;
}

/// Whether a pattern ends in an extension that is written out.
bool names_extension(std::string_view pattern) {
  const std::size_t dot = pattern.rfind('.');
  return dot != pattern.npos && dot + 1 < pattern.size() && !data::is_magic(pattern.substr(dot));
}

std::vector<std::string> paths_of(const data::PathTable& table) {
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < table.size(); ++i) out.push_back(table.path(i));
  return out;
}

/// Whether the content is tokens, as llm.c writes them: their extension, .bin, is also that of many other things.
bool has_tokens(const std::string& path) {
  if (io::waits_for_server(path)) return false;  // each would be a request
  const auto may_be = [&](const format::Format& format) {
    return format.documents != nullptr && !format.is_index &&
           std::ranges::any_of(format.extensions, [&](std::string_view end) { return path.ends_with(end); });
  };
  if (!std::ranges::any_of(format::formats(), may_be)) return false;
  try {
    const Source source = open_source(path);
    const format::Format* const found = format::find_format(*source);
    return found != nullptr && found->documents != nullptr;
  } catch (const Error&) {
    return false;
  }
}

bool is_no_tensor_file(const std::string& path) {
  return !has_tensor_extension(path) && !path.ends_with(format::kCheckpointExtension) && !has_tokens(path);
}

/// In place of the files of a checkpoint, its folder.
void gather_checkpoints(std::vector<std::string>& paths) {
  std::set<std::string> folders;
  for (const std::string& path : paths) {
    const std::filesystem::path file = path;
    if (file.extension() == format::kCheckpointExtension) folders.insert(file.parent_path().string());
  }
  if (folders.empty()) return;
  std::erase_if(paths, [&](const std::string& path) {
    return folders.contains(std::filesystem::path(path).parent_path().string());
  });
  paths.insert(paths.end(), folders.begin(), folders.end());
  std::sort(paths.begin(), paths.end());
}

/// The checkpoints among the folders that a pattern matches. None is looked for where it names files by their
/// extension, because all keys below would have to be listed in a bucket, and below `**`, whose files tell them.
std::vector<std::string> checkpoints_of(const std::string& pattern, const std::vector<std::string>& exclude,
                                        std::vector<Error>& refused) {
  if (has_tensor_extension(pattern) || pattern.ends_with("**")) return {};
  const std::string files = pattern + (pattern.ends_with('/') ? "*" : "/*") + std::string(format::kCheckpointExtension);
  std::vector<std::string> found;
  try {
    found = paths_of(data::expand(files, {.exclude = exclude}));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) refused.push_back(error);
  }
  gather_checkpoints(found);
  return found;
}

/// The files that a pattern matches, and the checkpoints, which are folders. kNotFound where there is neither.
std::vector<std::string> paths_of_pattern(const std::string& pattern, const std::vector<std::string>& exclude,
                                          std::vector<Error>& refused) {
  std::vector<std::string> out = checkpoints_of(pattern, exclude, refused);
  try {
    std::vector<std::string> files = paths_of(data::expand(pattern, {.exclude = exclude}));
    if (takes_all(pattern)) std::erase_if(files, is_no_tensor_file);
    gather_checkpoints(files);
    out.insert(out.end(), files.begin(), files.end());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound || (out.empty() && refused.empty())) throw;
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

bool is_checkpoint(const std::string& folder) {
  try {
    const std::optional<Source> index = format::open_folder(folder);
    if (!index) return false;
    const format::Format* const found = format::find_format(**index);
    return found != nullptr && (found->is_folder || found->is_listed);
  } catch (const Error& error) {
    return error.code() != ErrorCode::kPermission;  // it cannot be listed either, which tells more
  }
}

bool is_several_objects(const std::string& path) {
  try {
    const std::optional<io::remote::Location> location = io::remote::parse_in_bucket(path);
    return location && (location->key.empty() || location->key.ends_with('/') || data::is_magic(location->key));
  } catch (const Error&) {
    return false;  // opening it says what is wrong with the URL
  }
}

bool is_local_pattern(const std::string& path) {
  // The '?' of a web address begins its query.
  std::error_code ignored;
  return data::is_magic(path) && !io::is_url(path) && !std::filesystem::exists(path, ignored);
}

bool is_there(const std::string& word) {
  std::error_code ignored;
  if (word == kStandardInput || io::is_url(word)) return true;
  if (std::filesystem::exists(std::filesystem::symlink_status(word, ignored))) return true;
  if (!data::is_magic(word)) return false;
  try {
    std::vector<Error> refused;
    const std::vector<std::string> found = paths_of_pattern(word, {}, refused);
    // "*s*" is rather meant for names of tensors than for a README.
    return names_extension(word) || std::any_of(found.begin(), found.end(), [&](const std::string& path) {
             return has_tensor_extension(path) || std::filesystem::is_directory(path, ignored);
           });
  } catch (const Error&) {
    return false;
  }
}

bool has_tensor_extension(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename();
  return data::is_sample_name(name) || is_index_name(name);
}

TensorFiles tensor_files(const std::string& path, const std::vector<std::string>& exclude) {
  TensorFiles out;
  if (path == kStandardInput) {
    out.paths = out.names = {path};
    out.is_single = true;
    return out;
  }
  const data::FileKind kind = data::kind_of(path);
  std::string root;
  const bool is_folder = kind == data::FileKind::kFolder || kind == data::FileKind::kLinkToFolder;
  if (is_several_objects(path)) {
    const bool below = !data::is_magic(path);
    root = fixed_part(below && !path.ends_with('/') ? path + "/" : path);
    out.paths = paths_of_pattern(below ? root + "**" : path, exclude, out.refused);
  } else if (is_folder && !is_checkpoint(path)) {
    data::FilesBelow found = data::files_below(path, exclude);
    out.paths = paths_of(found.files);
    out.refused = std::move(found.refused);
    std::erase_if(out.paths, is_no_tensor_file);
    gather_checkpoints(out.paths);
    root = path.ends_with('/') ? path : path + "/";
  } else if (!is_folder && is_local_pattern(path)) {
    out.paths = paths_of_pattern(path, exclude, out.refused);
    root = fixed_part(path);
  } else {
    out.is_single = true;
    out.paths = {path};
    out.names = {std::filesystem::path(core::shown_path(path)).filename().string()};
    return out;
  }
  drop_shards(out.paths);
  if (out.paths.empty() && out.refused.empty()) {
    throw Error(ErrorCode::kNotFound, "there are no tensor files in it or below", {.path = path});
  }
  for (const std::string& file : out.paths) {
    out.names.push_back(file.starts_with(root) ? file.substr(root.size()) : file);
  }
  return out;
}

ChosenFiles choose_files(const std::vector<std::string>& words, const std::vector<std::string>& exclude) {
  ChosenFiles out;
  const auto refuse = [&](const std::string& word, const Error& error) {
    print_error(error.what());
    out.refused.push_back({error.path().empty() ? word : error.path(), error});
  };
  for (const std::string& word : words) {
    try {
      const TensorFiles found = tensor_files(word, exclude);
      out.paths.insert(out.paths.end(), found.paths.begin(), found.paths.end());
      out.is_single = words.size() == 1 && found.is_single;
      out.are_named = out.are_named && found.is_single;
      for (const Error& refused : found.refused) refuse(word, refused);
    } catch (const Error& error) {
      refuse(word, error);
      out.are_named = false;
    }
  }
  return out;
}

FilesAndNames files_and_names(const std::vector<std::string>& words, const std::vector<std::string>& only) {
  const auto is_file = [](const std::string& word) {
    return word.find('/') != word.npos || has_tensor_extension(word) || is_there(word);
  };
  FilesAndNames out;
  for (const std::string& word : words) (out.files.empty() || is_file(word) ? out.files : out.names).push_back(word);
  out.names.insert(out.names.end(), only.begin(), only.end());
  return out;
}

}  // namespace penstock::cli
