#pragma once

/// Which samples there are. `rows` takes the rows of a large array, `files` a folder of files with a sample each,
/// `dataset` whatever a function of yours makes; `zip`, `concat` and `subset` combine them. Members such as `cast` and
/// `normalize` transform tensors on the way into the batch, and `Dataset::map` and `Dataset::filter` call your code. A
/// Dataset reads nothing by itself: give it to a DataLoader (loader.h).
///
/// Your code runs in the loader's worker threads, several calls at once: a function must be callable as const, and what
/// it shares it must guard. It is moved and never copied, so that it may hold what only moves; a generic lambda is
/// called with a Value. What it throws arrives from the loader (or `get`) as an Error that names the sample and its
/// file, with the text of the exception and the exception itself in Error::cause(). That of a function of whole batches
/// names the batch and its samples. An Error of Penstock keeps its code, and others are kUserCode. The loader goes on
/// with the batch after it, as it does for a damaged file.

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "penstock/detail/functions.h"
#include "penstock/flag.h"
#include "penstock/integer.h"
#include "penstock/iterate.h"
#include "penstock/load.h"
#include "penstock/random.h"
#include "penstock/source.h"
#include "penstock/tensor.h"
#include "penstock/text_view.h"
#include "penstock/transforms.h"
#include "penstock/value.h"

namespace penstock {

namespace detail {
class DatasetImpl;
}  // namespace detail

/// What a dataset of your own implements. Objects are immutable, and threads call them at once.
class DatasetInterface {
 public:
  virtual ~DatasetInterface() = default;
  /// Samples, 0 or more. Asked once, when a Dataset is made of the object.
  virtual std::int64_t size() const = 0;
  /// Sample `index`, which is at least 0 and less than size(): tensors in host memory, numbers and texts, and dicts,
  /// lists and tuples of them. The batch is a copy. Functions of `map` that follow, and callers of Dataset::get, may
  /// write to what they are given: tensors whose memory is kept elsewhere too are copied for them.
  virtual Value get(std::int64_t index) const = 0;
  /// A name of sample `index` for messages: the path of its file, or by default "<dataset>[7]", also where it throws.
  virtual std::string describe(std::int64_t index) const;
};

struct MapOptions {
  /// The function takes a whole batch, after collation, in place of a sample. It sees the batch in host memory; with
  /// LoaderOptions::device, what it gives is moved there. Only a loader makes batches: `get` and `pack` refuse such a
  /// dataset, and so do `zip`, `concat`, native transforms and functions of samples that would follow.
  Flag batched = false;
};

struct FilterOptions {
  /// Threads, as LoaderOptions::num_workers.
  Integer num_workers = -1;
  /// Ends the search by kCancelled.
  std::stop_token stop = {};
};

/// A fixed sequence of samples. It knows *where* each sample lies and reads nothing until a loader or `get` asks for
/// it. A value handle on an immutable, shared index: copies cost nothing, and any number of threads may use it at once.
class Dataset : public Transforms<Dataset> {
 public:
  /// No samples.
  Dataset();
  Dataset(const Dataset&) = default;
  Dataset(Dataset&&) noexcept = default;
  /// Not to a temporary, where it would change nothing.
  Dataset& operator=(const Dataset&) & = default;
  Dataset& operator=(Dataset&&) & noexcept = default;
  ~Dataset() = default;

  /// Of `shards` the samples are found by the first call, which throws what finding them does.
  std::int64_t size() const;
  /// Reads one sample: a tensor, a dict or tuple of tensors and scalars, or what `zip` makes of them. Negative indices
  /// count from the end; kIndexOutOfRange.
  Value get(Integer index) const;
  Value operator[](Integer index) const { return get(index); }
  /// For range-for: each sample, read in this thread when it is reached. A DataLoader reads ahead and is faster.
  using Iterator = detail::IndexIterator<Dataset, detail::Subscript<std::int64_t>>;
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, static_cast<std::size_t>(size())}; }
  /// A name of sample `index` for messages: "clips/0007.pt", "images.npy[7]".
  const std::string describe(Integer index) const;
  /// The file of each sample, in order: for files(), and for what subset() and concat() make of it. kInvalidArgument
  /// for a dataset whose samples are no files.
  const std::vector<std::string> paths() const;
  /// The names of the classes, by number, in bytewise order: for files() with class_folders, and for what subset(),
  /// map(), filter() and native transforms make of it. kInvalidArgument for other datasets.
  const std::vector<std::string> classes() const;

  // Native transforms are the members of Transforms (transforms.h).

  /// Each sample (or each batch: MapOptions::batched) as `function` makes it from the one that was read. It is called
  /// with a Value, or with a Tensor if that is what it takes, and gives a Value or a Tensor: not None, in host memory.
  /// It may be called again for the same sample, and must give the same again. Maps follow each other:
  /// `files("clips").map(decode).map(crop)`.
  ///
  /// A function that also takes a Generator& is given one that is made from the loader's seed, the epoch, the index of
  /// the sample in this dataset, and how many such maps lie below. So its random numbers are the same for any number
  /// of workers and ranks and in a resumed run, and other ones in the next epoch; two datasets that are zipped draw the
  /// same for sample i. `get` has seed and epoch 0. Of a batch it is the index of its first sample.
  template <detail::MapFunction Function>
  Dataset map(Function function, const MapOptions& options = {}) const {
    if constexpr (detail::TakesSample<Function, Generator>) {
      return map_seeded(
          [f = detail::kept(std::move(function))](const Value& sample, Generator& generator) {
            return detail::as_value(detail::call_with(*f, sample, generator));
          },
          options);
    } else {
      return map_plain([f = detail::kept(std::move(function))](
                           const Value& sample) { return detail::as_value(detail::call_with(*f, sample)); },
                       options);
    }
  }

  /// The samples for which `keep` is true, in their order. They are found now, by reading every sample once, so that
  /// the size is known; the result is a `subset`. What `keep` throws, and samples that cannot be read, are thrown.
  template <detail::TakesSample Function>
  Dataset filter(Function keep, const FilterOptions& options = {}) const {
    return filter_plain([f = detail::kept(std::move(keep))](
                            const Value& sample) { return static_cast<bool>(detail::call_with(*f, sample)); },
                        options);
  }

  /// A dataset of your own. kInvalidArgument when its size is negative.
  template <std::derived_from<DatasetInterface> Own>
  Dataset(Own own)  // NOLINT(google-explicit-constructor): as a Sampler is made of one
      : Dataset(std::shared_ptr<const DatasetInterface>(std::make_shared<const Own>(std::move(own)))) {}
  /// Shares an object, one that cannot be moved for example. kInvalidArgument for null.
  explicit Dataset(std::shared_ptr<const DatasetInterface> own);

  /// For the library itself.
  explicit Dataset(std::shared_ptr<const detail::DatasetImpl> impl) : impl_(std::move(impl)) {}
  const detail::DatasetImpl& impl() const& noexcept { return *impl_; }
  const detail::DatasetImpl& impl() const&& = delete;
  /// The dataset behind one more step: what Transforms calls.
  Dataset transformed(detail::steps::TransformOp op, const std::vector<std::string>& keys) const;

 private:
  Dataset map_plain(std::function<Value(const Value&)> function, const MapOptions& options) const;
  Dataset map_seeded(std::function<Value(const Value&, Generator&)> function, const MapOptions& options) const;
  Dataset filter_plain(std::function<bool(const Value&)> keep, const FilterOptions& options) const;

  std::shared_ptr<const detail::DatasetImpl> impl_;
};

namespace detail {
Dataset dataset_of(std::int64_t size, std::function<Value(std::int64_t)> get);
}

/// Samples are what `get(index)` gives, a Value or a Tensor, as DatasetInterface::get says it. kInvalidArgument for a
/// negative size. Where the function has fewer samples than `size` says, let it throw: the error names the sample.
template <detail::SampleMaker Function>
Dataset dataset(Integer size, Function get) {
  return detail::dataset_of(
      size, [f = detail::kept(std::move(get))](std::int64_t index) { return detail::as_value((*f)(index)); });
}
/// Samples are these values, each of a structure, shapes and types of its own. They stay in memory; what `get` and
/// functions of `map` are given are copies. kUnsupported for a value that cannot be a sample, kDeviceMismatch for a
/// tensor that is not in host memory; both name it.
Dataset dataset(std::vector<Value> values);
/// The same for tensors, of equal length or not. For equal ones that lie in one tensor, `rows` is faster.
Dataset dataset(const std::vector<Tensor>& tensors);
inline Dataset dataset(std::initializer_list<Tensor> tensors) { return dataset(std::vector<Tensor>(tensors)); }
inline Dataset dataset(std::initializer_list<Value> values) { return dataset(std::vector<Value>(values)); }

/// Samples are the rows (dimension 0) of one large array: a tensor in memory, a tensor of an archive, or the only
/// tensor of a file (`key` names one of several). An uncompressed file is not read ahead. Either it is mapped (`mmap`
/// true), or each row is read when it is wanted (false). Unset: it is mapped when it fits into the memory that this
/// process may use (machine, control group), because a mapping that does not fit is read from the disk again and again.
/// Rows whose elements do not lie together are always mapped. Checksums are not verified: they cover the whole array,
/// not a row. A batch is kChanged when the file was written to since it was opened, and kTruncated when it was cut.
/// kShapeMismatch for an array without dimensions.
Dataset rows(const Tensor& tensor);
Dataset rows(const LazyTensor& tensor, OptionalFlag mmap = {});
Dataset rows(TextView path, TextView key = {}, OptionalFlag mmap = {});

/// Samples are these texts (UTF-8): labels, names, captions. A batch holds them as a list.
Dataset strings(std::vector<std::string> strings);

struct FilesOptions {
  /// Take only these keys of each file's dict, in this order, as a dict. Empty: everything.
  std::vector<std::string> keys = {};
  /// Keep the list of what a pattern or folder gave in a file, and next time look only into folders that changed since.
  /// The file is written as a whole and may be deleted at any time; a damaged one, or one of another pattern, is made
  /// again. It does not notice when the target of a link becomes another kind of file.
  Flag index = false;
  /// Where that file lies. Empty: in $XDG_CACHE_HOME/penstock or ~/.cache/penstock, and nowhere when that cannot be
  /// written. A file named here is an error when it cannot be written, unless the disk is full: then it is left out.
  std::string index_path = {};
  /// Folders and files to leave out when a pattern or folder is listed; excluded folders are not entered. A name or
  /// glob without a slash ("lost+found", "tmp*") matches folders and files at any depth. One with slashes ("old/raw")
  /// matches the end of a path, and one that begins with a slash the whole path. Parts that the pattern names without
  /// `*`, `?` or brackets are never left out.
  std::vector<std::string> exclude = {};
  /// The bytes of each file are the sample, as a tensor of uint8, and no format is looked for: for a decoder of your
  /// own in `map`. A folder still stands for its tensor files, so name others by a glob ("images/*.ppm"). Excludes
  /// keys.
  Flag raw = false;
  /// A sample is the tuple of what its file holds and the number of its class, whose name is that of the first folder
  /// below the part that all paths share: of a pattern what stands in front of its first `*`, `?` or `[`, of a list of
  /// paths the folder that they all lie below. Dataset::classes() has the names. kInvalidArgument names a file that
  /// lies in no class's folder.
  Flag class_folders = false;
  /// Opens each file, in place of Penstock's own sources: for a store of the program's own, or a scheme that Penstock
  /// does not know. It is given a path of the list, which may be any text, and gives a Source: an object of a class
  /// derived from ByteSource, or what `memory_source` or `open_source` make. Called in the loader's workers, several
  /// calls at once, whenever a sample is read. What it throws is what functions of `map` throw. kInvalidArgument with a
  /// pattern, because nobody could list it.
  std::function<Source(const std::string& path)> source = {};
};

/// Each file is a sample: one tensor, or the dict, list or tuple of tensors and scalars in it. `pattern` is a file, a
/// folder or a glob. A folder stands for its tensor files, by extension, without sub-folders. A glob has `*`, `?`,
/// `[a-z]`, and `**` for any depth; `**` follows links to folders, except those that lead back up. When a file has
/// exactly the name that a pattern with brackets spells, that file is meant. Samples are in bytewise order of their
/// paths. kNotFound when nothing matches. kPermission for a folder that cannot be listed, because a dataset must not
/// lack samples silently; `exclude` leaves such a folder out. Files are opened when they are needed.
Dataset files(TextView pattern, const FilesOptions& options = {});
/// These files, in this order. kInvalidArgument for options `index` and `exclude`, which belong to a pattern.
Dataset files(const std::vector<std::string>& paths, const FilesOptions& options = {});
inline Dataset files(std::initializer_list<std::string> paths, const FilesOptions& options = {}) {
  return files(std::vector<std::string>(paths), options);
}
template <detail::FilePath Path>
Dataset files(const std::vector<Path>& paths, const FilesOptions& options = {}) {
  return files(std::vector<std::string>(paths.begin(), paths.end()), options);
}

struct ZipOptions {
  /// Compare the names of files that are zipped with each other, which takes one pass over them.
  Flag compare_names = true;
  /// Is told once, in a sentence, that files are zipped whose names do not pair so: "2.npy" with "3.npy", where another
  /// "2.npy" is there. Empty: the sentence is printed to stderr. What it throws is thrown by `zip`.
  std::function<void(const std::string& message)> warn = {};
};

/// Sample i is the tuple of sample i of each; kShapeMismatch names the sizes when they differ. Files are paired by
/// their places; `join` (join.h) pairs them by name.
Dataset zip(const std::vector<Dataset>& datasets, const ZipOptions& options = {});
template <class... More>
Dataset zip(const Dataset& first, const More&... more) {
  return zip(std::vector<Dataset>{first, more...});
}
/// Sample i is the dict of sample i of each, under these names. kInvalidArgument for a name that occurs twice.
Dataset zip(const std::vector<std::pair<std::string, Dataset>>& datasets, const ZipOptions& options = {});
/// All samples of the first, then of the second, ...
Dataset concat(const std::vector<Dataset>& datasets);
template <std::same_as<Dataset>... More>
Dataset concat(const Dataset& first, const Dataset& second, const More&... more) {
  return concat(std::vector<Dataset>{first, second, more...});
}
/// The samples at `indices`, in that order; an index may occur more than once. kIndexOutOfRange.
Dataset subset(const Dataset& dataset, std::vector<std::int64_t> indices);

}  // namespace penstock
