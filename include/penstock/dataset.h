#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "penstock/load.h"
#include "penstock/tensor.h"
#include "penstock/value.h"

namespace penstock {

namespace detail {
class DatasetImpl;
}

/// A fixed sequence of samples: it knows *where* sample i lies and reads nothing until a loader or `get` asks. A value
/// handle on an immutable, shared index: copies cost nothing and any number of threads may use it at once.
class Dataset {
 public:
  std::int64_t size() const noexcept;
  /// Sample `index` alone, read now: a tensor, a dict or tuple of tensors and scalars, or what `zip` makes. Negative
  /// indices count from the end; kIndexOutOfRange.
  Value get(std::int64_t index) const;
  /// What sample `index` is, for messages: "clips/0007.pt", "images.npy[7]".
  std::string describe(std::int64_t index) const;
  /// The file of each sample, in their order: of files(), and of what subset() and concat() make of them.
  /// kInvalidArgument for a dataset whose samples are no files.
  std::vector<std::string> paths() const;

  explicit Dataset(std::shared_ptr<const detail::DatasetImpl> impl) : impl_(std::move(impl)) {}
  const detail::DatasetImpl& impl() const noexcept { return *impl_; }

 private:
  std::shared_ptr<const detail::DatasetImpl> impl_;
};

/// Samples are the rows (dimension 0) of one large array: a tensor in memory, a tensor of an archive, or the only
/// tensor of a file (`key` names one of several). Nothing of an uncompressed file is read ahead: it is mapped, or each
/// row is read when it is wanted (`map` false). Unset: mapped where it fits into the memory that this process may use
/// (machine, control group); rows of a mapping that does not are read many times over. Rows with gaps within are always
/// mapped. Checksums of the file are not looked at: a row is less than they are about. A batch of a file that was
/// written to since it was opened is kChanged, of one that was cut kTruncated. kShapeMismatch for a 0-d array.
Dataset rows(const Tensor& tensor);
Dataset rows(const LazyTensor& tensor, std::optional<bool> map = {});
Dataset rows(std::string_view path, std::string_view key = {}, std::optional<bool> map = {});

/// Samples are these texts (UTF-8): labels, names, captions. A batch has them as a list.
Dataset strings(std::vector<std::string> strings);

struct FilesOptions {
  /// Take only these keys of each file's dict (in this order, giving a dict); empty: everything.
  std::vector<std::string> keys = {};
  /// Keeps the list of what a pattern or folder gave, and next time looks only into folders that changed since. The
  /// file is written as a whole, may be deleted at any time, and is made anew when it is damaged or another pattern's.
  /// What it does not see: a link whose target became another kind of file.
  bool index = false;
  /// Where that is kept; empty: $XDG_CACHE_HOME/penstock or ~/.cache/penstock, and nowhere if that cannot be written. A
  /// file named here is left out only where the disk takes no more.
  std::string index_path = {};
  /// Folders and files that are left out where a pattern or folder is listed; what lies in such a folder is not looked
  /// at. A name or glob without a slash ("lost+found", "tmp*") is that of a folder or file at any depth; one with
  /// slashes ("old/raw") is how its path ends, and one that begins with a slash the whole path. What the pattern names
  /// without `*`, `?` or brackets is not left out.
  std::vector<std::string> exclude = {};
};

/// Each file is a sample: one tensor, or the dict, list or tuple of tensors and scalars in it. `pattern` is a file, a
/// folder (its tensor files, by extension, not those of sub-folders) or a glob (`*`, `?`, `[a-z]`, and `**` for any
/// depth, through links to folders too but for those that lead back up; a file called just so goes before a set in
/// brackets); the order is by name, bytewise. kNotFound when nothing matches, kPermission for a folder that cannot be
/// listed: a dataset that quietly lacks samples would be worse; `exclude` leaves it out. Files are looked at when they
/// are needed. A list of paths takes neither index nor exclude (kInvalidArgument).
Dataset files(std::string_view pattern, const FilesOptions& options = {});
Dataset files(const std::vector<std::string>& paths, const FilesOptions& options = {});

/// Sample i is the tuple of sample i of each; kShapeMismatch names the sizes when they differ.
Dataset zip(const std::vector<Dataset>& datasets);
template <class... More>
Dataset zip(const Dataset& first, const More&... more) {
  return zip(std::vector<Dataset>{first, more...});
}
/// Sample i is the dict of sample i of each, under these names. kInvalidArgument for a name that is there twice.
Dataset zip(const std::vector<std::pair<std::string, Dataset>>& datasets);
/// All samples of the first, then of the second, ...
Dataset concat(const std::vector<Dataset>& datasets);
/// The samples at `indices`, in that order; repeats are fine. kIndexOutOfRange.
Dataset subset(const Dataset& dataset, std::vector<std::int64_t> indices);

}  // namespace penstock
