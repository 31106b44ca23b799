#pragma once

/// Samples that belong together by the names of their files, where `zip` goes by place. `join` pairs the files of
/// several datasets by name. `fields` has one file for each sample listed, and derives the names of the others.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "penstock/dataset.h"
#include "penstock/flag.h"

namespace penstock {

/// What of its path names a file in a join.
enum class JoinBy : std::uint8_t {
  kStem,  ///< its name without the last extension: "0007" of "images/cat/0007.npy"
  kName,  ///< its name: "0007.npy"
  kPath,  ///< its path below the folder that was listed, without the last extension: "cat/0007"
};

/// What happens to samples that lack a file.
enum class Missing : std::uint8_t {
  kError,  ///< an error that names the first of them and counts all
  kDrop,   ///< they are left out
};

struct JoinOptions {
  /// A part of the path, or a function that gives the name of the file at a path. It is called once for each file, in
  /// the calling thread; what it throws is thrown. Of a URL by http the query is no part of the name.
  std::variant<JoinBy, std::function<std::string(const std::string& path)>> by = JoinBy::kStem;
  Missing missing = Missing::kError;
};

/// Sample i is the tuple of the sample of each dataset whose file has the name of file i of the first one: in the first
/// dataset's order. The samples of each are files (Dataset::paths): those of files(), and what subset(), concat(),
/// map(), filter(), native transforms and joins make of them. Dataset::paths() of the result are those of the first.
///
/// kInvalidArgument says for each dataset how many files of others have no partner in it, and the first of them; names
/// both files where a name comes twice in one dataset; and is what a join gives that pairs no files at all, also with
/// Missing::kDrop. Random steps draw by the index of a sample, which a join changes, so two datasets that have some
/// are refused: an image and its mask are cropped alike by a step behind the join.
Dataset join(const std::vector<Dataset>& datasets, const JoinOptions& options = {});
inline Dataset join(const Dataset& first, const Dataset& second, const JoinOptions& options = {}) {
  return join(std::vector<Dataset>{first, second}, options);
}
/// The same with dicts for samples, under these names. kInvalidArgument for a name that occurs twice.
Dataset join(const std::vector<std::pair<std::string, Dataset>>& datasets, const JoinOptions& options = {});

struct FieldsOptions {
  Missing missing = Missing::kError;
  /// Look whether the files are there: each folder is listed once, of this machine and of buckets (s3, gs, az). Files
  /// behind other URLs, and those that FilesOptions::source opens, cannot be looked for; an absent one is an error when
  /// its sample is read. Missing::kDrop with these is kUnsupported, and without `check` kInvalidArgument.
  Flag check = true;
  /// Fields whose sample is the bytes of their file, as with FilesOptions::raw. Unset: all of them where the files that
  /// are listed are raw, else none.
  std::optional<std::vector<std::string>> raw = {};
};

/// Sample i is a dict of what several files hold, whose paths follow from that of file i of `dataset`: files(), and
/// what subset(), concat(), take() and the like make of it. Each field is a name and a template of a path:
///
/// | in a template | of "data/images/cat/0007.npy", found in the folder "data/images" |
/// |---|---|
/// | {stem} | 0007 |
/// | {name} | 0007.npy |
/// | {ext} | npy: the last extension, or nothing |
/// | {parent} | cat: the name of its folder |
/// | {root} | data/images: the folder that was listed; of a list of paths the folder that all lie below |
/// | {path} | cat/0007: the path below that folder, without the last extension |
/// | {{ and }} | { and } |
///
/// A path begins in the folder of file i, unless its template begins with '/', {root}, or a URL: "../masks/{stem}.npy"
/// or "{root}/../masks/{path}.npy". "." and ".." in a template are taken by the text, whatever links there are; URLs do
/// not lead out of their host or bucket. A URL by http keeps its query, unless the template has one. Functions of
/// `map`, native transforms, `keys` and `class_folders` come behind: kInvalidArgument for a dataset that has some, and
/// for a template that is none. kNotFound counts the files that are not there and names the first ones.
/// Dataset::paths() of the result are those of `dataset`.
Dataset fields(const Dataset& dataset, const std::vector<std::pair<std::string, std::string>>& templates,
               const FieldsOptions& options = {});

}  // namespace penstock
