#pragma once

// From words of a command line to files: folders, patterns, buckets and checkpoints become the tensor files that they
// stand for. `ls`, `verify`, `convert` and the others share it, so that a word means the same to all.

#include <string>
#include <vector>

#include "penstock/error.h"

namespace penstock::cli {

/// Whether a file of this name is taken for one with tensors, or for an index of such.
bool has_tensor_extension(const std::string& path);

/// Whether the files of a folder are one checkpoint. True also of one that is refused when it is opened.
bool is_checkpoint(const std::string& folder);

/// Whether it is a URL that stands for several objects: a bucket, a folder of one (ends in '/'), or a pattern.
bool is_several_objects(const std::string& path);

/// Whether it is no path of a file that is there, but a pattern of such paths.
bool is_local_pattern(const std::string& path);

/// Whether a word of the command line names something that is there, as far as this machine can tell without a request,
/// or is a pattern that matches tensor files, or any files where it says their extension.
bool is_there(const std::string& word);

/// The tensor files that a word of the command line stands for, sorted.
struct TensorFiles {
  std::vector<std::string> paths;
  /// Each without the folder that was named, or that the pattern begins with; the bare name of a single file.
  std::vector<std::string> names;
  std::vector<Error> refused;  ///< folders that cannot be listed
  bool is_single = false;      ///< a file was named, and no folder or pattern
};

/// `path` is a file, a folder (all files below it with the extension of a tensor format, and .bin with tokens of
/// llm.c), a pattern, or "-" for standard input, which is a file. A pattern that ends in `*` or `**` takes files with
/// such an extension alone. In folders and patterns an index of shards stands for its shards, which are left out. A
/// folder that is a checkpoint is a file, and so are those below a folder, those that a pattern matches, and those of
/// whose files it matches some. kNotFound where there is nothing.
TensorFiles tensor_files(const std::string& path, const std::vector<std::string>& exclude = {});

/// What cannot be read, and why.
struct Refused {
  std::string path;
  Error error;
};

/// The files of several such words. What cannot be found or listed is told on standard error.
struct ChosenFiles {
  std::vector<std::string> paths;
  std::vector<Refused> refused;
  bool is_single = false;  ///< one word, which names a file
  bool are_named = true;   ///< each is a word; no folder or pattern is among them
};
ChosenFiles choose_files(const std::vector<std::string>& words, const std::vector<std::string>& exclude);

/// Words of a command that takes files and then names of tensors. The first is a file, and so is each that is_there,
/// and each that looks like a path: it has a '/' or the extension of a tensor file.
struct FilesAndNames {
  std::vector<std::string> files;
  std::vector<std::string> names;
};
/// `only` are names besides.
FilesAndNames files_and_names(const std::vector<std::string>& words, const std::vector<std::string>& only);

}  // namespace penstock::cli
