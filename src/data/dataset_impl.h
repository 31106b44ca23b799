#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "data/sample/layout.h"
#include "data/sample/scratch.h"
#include "data/sample/user_call.h"
#include "penstock/dataset.h"
#include "penstock/error.h"

namespace penstock::data {

class Conversion;
class LargeFile;
class SampleFile;

/// Where the payload of one tensor of a sample lies, and what happens to it on the way. Plain data in a Scratch. Which
/// pointers are set says which kind of place it is:
///
///   data   within   file   the payload is
///   set    null     null   in memory that stays: it is copied
///   set    set      null   in a mapping of `within`: it is copied under a guard, because another program may cut the
///                          file meanwhile
///   null   set      null   in `within`, from byte `offset` on and without gaps: it is read
///   null   null     set    entry `entry` of `file`: that file is read when the batch has its block
///   null   null     null   empty: a tensor without elements, or only headers were asked for
struct Source {
  const std::byte* data = nullptr;  ///< the first element
  const SampleFile* within = nullptr;
  std::uint64_t offset = 0;
  const LargeFile* file = nullptr;
  std::uint32_t entry = 0;
  /// What makes the sample's tensor of that payload, which lies as Conversion::input says. Null: it needs none.
  const Conversion* conversion = nullptr;
  std::uint64_t key = 0;  ///< of the random numbers that the conversion takes
};

/// One sample: a layout and a source for each of its tensors. Both are valid until the Scratch is reset, and while the
/// dataset lives.
struct Sample {
  const Layout* layout = nullptr;
  const Source* sources = nullptr;
};

/// One tensor of samples of which those numbered `at` are taken: each lies as many steps behind sample 0 as its number.
struct EvenColumn {
  Source first;  ///< of sample 0
  std::size_t step = 0;
  std::span<const std::int64_t> at;  ///< one for each sample that is taken

  Source source(std::size_t position) const noexcept {
    Source out = first;
    const std::size_t bytes = static_cast<std::size_t>(at[position]) * step;
    if (out.data != nullptr) {
      out.data += bytes;
    } else {
      out.offset += bytes;
    }
    return out;
  }
};

/// Samples that lie at equal steps and have one layout, with a column for each of its tensors. Valid as a Sample is.
struct EvenRows {
  const Layout* layout = nullptr;
  std::span<const EvenColumn> columns;
};

/// An Error that belongs to one of the samples that were asked for; carries its position among them. Never leaves this
/// layer.
class SampleError {
 public:
  SampleError(std::size_t position, Error error) : position_(position), error_(std::move(error)) {}
  std::size_t position() const noexcept { return position_; }
  const Error& error() const noexcept { return error_; }

 private:
  std::size_t position_;
  Error error_;
};

}  // namespace penstock::data

namespace penstock::detail {

/// What a Dataset is a handle on. Immutable; all members may be called from any thread, each with its own Scratch.
class DatasetImpl {
 public:
  virtual ~DatasetImpl() = default;
  virtual std::int64_t size() const noexcept = 0;
  virtual std::string describe(std::int64_t index) const = 0;
  /// Whether each sample is a file.
  virtual bool samples_are_files() const noexcept { return false; }
  /// Where that file is. `describe` shows the same, without the secret that a URL may have in it.
  virtual std::string path(std::int64_t index) const { return describe(index); }
  /// How many random numbers the transforms of a sample have drawn (Scratch::key_of). A further transform draws those
  /// after them, so that two crops in one chain differ, and an image is cropped as its mask is.
  virtual std::uint32_t draws() const noexcept { return 0; }
  /// Of the classes that samples are tuples with; empty where there are none.
  virtual std::span<const std::string> classes() const noexcept { return {}; }
  /// Bytes that are read for one sample, at most, as far as that is cheap to tell; the largest number where it is not.
  virtual std::uint64_t read_bytes(std::int64_t index) const = 0;
  /// Finds out what and where the samples are: reads headers, and whole files when they are small. `indices` are in
  /// [0, size()); out.size() == indices.size(). Throws data::SampleError for a sample that cannot be read, the first
  /// one in order of position.
  virtual void locate(std::span<const std::int64_t> indices, data::Scratch& scratch,
                      std::span<data::Sample> out) const = 0;
  /// The same samples as rows of arrays, where they are such rows: a batch of them is copied without a look at each.
  /// Nothing where they are not, and then they are located.
  virtual std::optional<data::EvenRows> even_rows(std::span<const std::int64_t>, data::Scratch&) const {
    return std::nullopt;
  }
  /// Sample `index` as a value of its own, whose memory nobody else writes to: what functions of `map` are given. Here
  /// it is located and copied; datasets whose samples are values give them. Throws Error or data::SampleError.
  virtual Value value(std::int64_t index, data::Scratch& scratch) const;
  /// Functions of whole batches, which follow collation in this order.
  virtual std::span<const data::UserFunction> batch_functions() const noexcept { return {}; }
  /// How many functions with random numbers a sample has passed through.
  virtual std::uint32_t random_stages() const noexcept { return 0; }
  /// Whether samples differ from epoch to epoch, by random numbers.
  bool is_random() const noexcept { return draws() > 0 || random_stages() > 0; }
};

}  // namespace penstock::detail
