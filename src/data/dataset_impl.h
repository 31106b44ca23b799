#pragma once

// What all datasets are. The rooms around, first those where datasets are made, by what their samples are:
//
//   files/      files: of a folder, a list or URLs, with their labels; scan/ lists them
//   tar/        members of tar shards; pack/ writes shards of our own
//   dataset/    parts of arrays, values of the program, and other datasets put together (zip, mix, map)
//   transform/  samples of another dataset, whose elements change on their way
//   stream/     samples that come one after the other and have no number
//
// Then those that a batch passes: loader/ decides which batches are made when, and by which thread; sampler/ the order
// of their samples. batch/ makes one: it lets the dataset `fetch` the samples, which reads headers and small files;
// collate/ plans the batch from their layouts; and batch/mover.h completes it, which moves all other payload into it.
// sample/ is what all of them speak of: a sample, where its payload lies, a thread's memory. trace/ is where time goes.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "data/sample/sample.h"
#include "data/sample/user_call.h"
#include "data/sample/work.h"
#include "penstock/dataset.h"

namespace penstock::io {
class ResidentPages;
}  // namespace penstock::io

namespace penstock {
class SampleStream;
}

namespace penstock::data {
class ArrayParts;
struct SlicedArrays;
}  // namespace penstock::data

namespace penstock::detail {

/// What a Dataset is a handle on. Immutable; all members may be called from any thread, each with its own
/// Scratch.
class DatasetImpl {
 public:
  virtual ~DatasetImpl() = default;
  /// May throw where the samples have to be found first.
  virtual std::int64_t size() const = 0;
  virtual std::string describe(std::int64_t index) const = 0;
  /// What people should know about the samples that the size does not say, such as what was left out; empty where there
  /// is nothing.
  virtual std::string remark() const { return {}; }
  /// Whether each sample is a file.
  virtual bool samples_are_files() const noexcept { return false; }
  /// Where that file is. `describe` shows the same, without the secret that a URL may have in it.
  virtual std::string path(std::int64_t index) const { return describe(index); }
  /// How much of that path is the folder below which files were listed, with its '/': of a pattern the part in front of
  /// what stands for several names, of a list the folder that all lie below.
  virtual std::size_t root_size(std::int64_t) const { return 0; }
  /// How the files of samples are opened, where a sample is what its file holds and nothing follows; else null.
  virtual const FilesOptions* file_options() const noexcept { return nullptr; }
  /// How many random numbers the transforms of a sample have drawn (CallContext::key_of). A further transform draws
  /// those after them, so that two crops in one chain differ, and an image is cropped as its mask is.
  virtual std::uint32_t draws() const noexcept { return 0; }
  /// Of the classes that samples are tuples with; empty where there are none.
  virtual std::span<const std::string> classes() const noexcept { return {}; }
  /// The arrays whose rows the samples are, one array behind the other; null for other datasets. Slices and windows are
  /// other parts of them. The errors of ArrayParts.
  virtual std::shared_ptr<const data::ArrayParts> arrays() const { return nullptr; }
  /// The arrays that samples are slices of; null for other datasets. The errors of ArrayParts.
  virtual std::shared_ptr<const data::SlicedArrays> slices() const { return nullptr; }
  /// Bytes that are read for one sample, at most, as far as that is cheap to tell; the largest number where it is not.
  virtual std::uint64_t read_bytes(std::int64_t index) const = 0;
  /// Whether this sample, in [0, size()), is copied by native code out of memory of the program that `pages` says to be
  /// there: who makes a batch of it waits for nothing and runs none of the program's functions.
  virtual bool is_at_hand(std::int64_t, io::ResidentPages&) const { return false; }
  /// Finds out what and where the samples are: reads headers, and whole files when they are small. `indices` are in
  /// [0, size()); out.size() == indices.size(). Throws data::SampleError for a sample that cannot be read, the first
  /// one in order of position; with CallContext::sets_aside it says so in `out` (data::fail), and fetches the others.
  virtual void fetch(std::span<const std::int64_t> indices, const data::Work& work,
                     std::span<data::Sample> out) const = 0;
  /// The same samples as rows of arrays, where they are such rows: a batch of them is copied without a look at each.
  /// Nothing where they are not, and then they are fetched.
  virtual std::optional<data::EvenRows> even_rows(std::span<const std::int64_t>, data::Scratch&) const {
    return std::nullopt;
  }
  /// Sample `index` as a value of its own, whose memory nobody else writes to: what functions of `map` are given. Here
  /// it is fetched and copied; datasets whose samples are values give them. Throws Error or data::SampleError.
  virtual Value value(std::int64_t index, const data::Work& work) const;
  /// Whether size() answers at once; else it first finds the samples, which may take long.
  virtual bool is_counted() const noexcept { return true; }
  /// Its samples from front to back, for a stream; empty where that is no other way than one by one.
  virtual std::function<SampleStream()> in_order() const { return {}; }
  /// Functions of whole batches, which follow collation in this order.
  virtual std::span<const data::UserFunction> batch_functions() const noexcept { return {}; }
  /// How many functions with random numbers a sample has passed through.
  virtual std::uint32_t random_stages() const noexcept { return 0; }
  /// Whether samples differ from epoch to epoch, by random numbers.
  bool is_random() const noexcept { return draws() > 0 || random_stages() > 0; }
};

}  // namespace penstock::detail
