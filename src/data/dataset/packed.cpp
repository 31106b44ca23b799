// Reads samples that pack() wrote. A shard holds each tensor of all its samples as one array, so a sample is a stretch
// of rows, and no file is opened for a single sample. Tensors of varying length lie one after the other, with an array
// of offsets beside them (docs/formats/packed.md). All shards are checked when the dataset is opened, because their
// offsets then need no check when a sample is read.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "data/dataset/layouts_by_lengths.h"
#include "data/dataset/sample_array.h"
#include "data/dataset_impl.h"
#include "data/pack/sample_form.h"
#include "data/pack/shard_number.h"
#include "data/scan/glob.h"
#include "io/file/file_url.h"
#include "penstock/error.h"
#include "penstock/pack.h"

namespace penstock {
namespace {

using data::PackedArray;
using data::SampleForm;

/// What all samples have in common of one of their tensors: all but the size of dimension 0.
struct Kind {
  DType dtype = {};
  std::size_t rank = 0;
  Shape rest = {};  ///< dimensions behind the first

  friend bool operator==(const Kind&, const Kind&) = default;
};

/// One of the tensors of all samples of a shard.
struct Column {
  data::SampleArray values = {};
  Kind kind = {};
  std::int64_t count = 0;                  ///< samples
  std::int64_t length = 0;                 ///< of dimension 0 of each, where there are no offsets
  std::vector<std::int64_t> offsets = {};  ///< of each sample along dimension 0 of `values`, and the end
  std::uint64_t row_bytes = 0;             ///< of one step along dimension 0 of `values`

  std::int64_t length_of(std::int64_t sample) const {
    if (offsets.empty()) return length;
    const auto i = static_cast<std::size_t>(sample);
    return offsets[i + 1] - offsets[i];
  }
  std::int64_t first_row(std::int64_t sample) const {
    return offsets.empty() ? sample : offsets[static_cast<std::size_t>(sample)];
  }
  std::uint64_t bytes_of(std::int64_t sample) const {
    return offsets.empty() ? row_bytes : static_cast<std::uint64_t>(length_of(sample)) * row_bytes;
  }
};

struct Shard {
  std::string path;
  std::shared_ptr<const data::HeldFile> file;
  std::vector<Column> columns;
  std::int64_t end = 0;  ///< samples in it and the ones before
};

/// Offsets rise from 0 to the end of the values: copied, so that a file changed later cannot make them lie.
std::vector<std::int64_t> checked_offsets(const LazyTensor& lazy, std::int64_t end) {
  const ErrorContext where{.path = lazy.source().name(), .tensor = lazy.entry().name};
  if (lazy.dtype() != DType::int64 || lazy.shape().rank() != 1 || lazy.shape()[0] == 0) {
    throw Error(ErrorCode::kCorrupt,
                core::format("offsets are {}{}, expected one dimension of int64", lazy.dtype().name(),
                             lazy.shape().to_string()),
                where);
  }
  const Tensor loaded = lazy.load();
  const auto values = loaded.values<const std::int64_t>();
  const bool rising = std::is_sorted(values.begin(), values.end());
  if (values.front() != 0 || values.back() != end || !rising) {
    throw Error(ErrorCode::kCorrupt, core::format("offsets do not rise from 0 to {}, the length of the values", end),
                where);
  }
  return {values.begin(), values.end()};
}

LazyTensor array_named(const Archive& archive, const std::string& name) {
  if (archive.contains(name)) return archive[name];
  throw Error(ErrorCode::kCorrupt,
              core::format("the form of its samples names {}, which is not there", core::quoted(name)),
              {.path = archive.path()});
}

Column read_column(const Archive& archive, const PackedArray& array, data::Access access,
                   const std::shared_ptr<const data::HeldFile>& file) {
  const LazyTensor lazy = array_named(archive, array.values);
  Column column{.values = data::sample_array(lazy, access, file), .kind = {lazy.dtype(), 0, {}}};
  const Shape& shape = column.values.shape;
  const bool apart = !array.offsets.empty();
  if (shape.rank() == 0) {
    throw Error(ErrorCode::kCorrupt, "the array has no dimension for samples",
                {.path = archive.path(), .tensor = array.values});
  }
  column.row_bytes = core::checked_mul(static_cast<std::uint64_t>(shape.drop_front(1).numel()),
                                       std::uint64_t{lazy.dtype().itemsize()}, "the size of a row");
  column.kind.rank = apart ? shape.rank() : shape.rank() - 1;
  column.kind.rest = column.kind.rank == 0 ? Shape{} : shape.drop_front(apart ? 1 : 2);
  if (apart) {
    column.offsets = checked_offsets(array_named(archive, array.offsets), shape[0]);
    column.count = static_cast<std::int64_t>(column.offsets.size()) - 1;
  } else {
    column.count = shape[0];
    column.length = column.kind.rank == 0 ? 0 : shape[1];
  }
  return column;
}

Shard read_shard(const Archive& archive, const SampleForm& form, data::Access access) {
  Shard shard{
      .path = archive.path(), .file = std::make_shared<const data::HeldFile>(archive.sources().front()), .columns = {}};
  for (const PackedArray& array : form.arrays) {
    shard.columns.push_back(read_column(archive, array, access, shard.file));
    const std::int64_t count = shard.columns.back().count;
    if (count == shard.columns.front().count) continue;
    throw Error(
        ErrorCode::kCorrupt,
        core::format("the array has {}, and {} has {}", core::counted(static_cast<std::uint64_t>(count), "sample"),
                     core::quoted(form.arrays[0].values), shard.columns.front().count),
        {.path = shard.path, .tensor = array.values});
  }
  return shard;
}

SampleForm form_of(const Archive& archive) {
  const auto& metadata = archive.metadata();
  const auto found = metadata.find(std::string(data::kSampleFormKey));
  if (found != metadata.end()) return data::parse_sample_form(found->second, archive.path());
  throw Error(ErrorCode::kInvalidArgument,
              "the file was not written by pack: its metadata does not say how samples lie in it; rows() takes rows of "
              "any array",
              {.path = archive.path()});
}

class Packed final : public detail::DatasetImpl {
 public:
  void add(const Archive& archive, data::Access access) {
    const SampleForm form = form_of(archive);
    if (const auto number = data::shard_number_of(archive.metadata(), archive.path())) {
      found_.add(archive.path(), *number);
    }
    Shard shard = read_shard(archive, form, access);
    if (shards_.empty()) {
      structure_ = std::make_shared<const data::Structure>(form.structure);
      for (const Column& column : shard.columns) kinds_.push_back(column.kind);
    }
    require_same(form, shard);
    shard.end = core::checked_add(size(), shard.columns.front().count, "the size of a packed dataset");
    shards_.push_back(std::move(shard));
  }

  void require_all() const { found_.require_all(); }

  std::int64_t size() const override { return shards_.empty() ? 0 : shards_.back().end; }
  std::string describe(std::int64_t index) const override {
    const Shard& shard = shards_[shard_of(index)];
    return core::format("{}[{}]", shard.path, index - begin(shard));
  }
  std::uint64_t read_bytes(std::int64_t index) const override {
    const Shard& shard = shards_[shard_of(index)];
    std::uint64_t bytes = 0;
    for (const Column& column : shard.columns) bytes += column.bytes_of(index - begin(shard));
    return bytes;
  }

  void fetch(std::span<const std::int64_t> indices, const data::Work& work,
             std::span<data::Sample> out) const override {
    auto& layouts = work.scratch.state<data::LayoutsByLengths>(this);
    const auto payloads = work.scratch.arena.array<data::Payload>(indices.size() * kinds_.size());
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const Shard& shard = shards_[shard_of(indices[i])];
      const std::int64_t sample = indices[i] - begin(shard);
      const auto own = payloads.subspan(i * kinds_.size(), kinds_.size());
      layouts.lengths.clear();
      for (std::size_t c = 0; c < kinds_.size(); ++c) {
        const Column& column = shard.columns[c];
        layouts.lengths.push_back(column.length_of(sample));
        const auto rows = static_cast<std::uint64_t>(column.first_row(sample));
        const bool empty = column.bytes_of(sample) == 0;
        own[c] = empty ? data::Payload{} : column.values.at(rows * column.row_bytes);
      }
      out[i] = {layouts.find([this](const auto& lengths) { return layout(lengths); }, work.scratch), {own.data()}};
    }
  }

 private:
  void require_same(const SampleForm& form, const Shard& shard) const {
    const auto refuse = [&](ErrorCode code, const std::string& what) {
      throw Error(code,
                  core::format("samples of this file are not of the form of those of {}: {}", shards_[0].path, what),
                  {.path = shard.path});
    };
    if (form.structure != *structure_) refuse(ErrorCode::kShapeMismatch, "they have other keys or parts");
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      const Kind& kind = shard.columns[i].kind;
      const std::string& name = form.arrays[i].values;
      if (kind.dtype != kinds_[i].dtype) {
        refuse(ErrorCode::kDTypeMismatch, core::format("{} is {} here and {} there", core::quoted(name),
                                                       kind.dtype.name(), kinds_[i].dtype.name()));
      }
      if (kind != kinds_[i]) {
        refuse(ErrorCode::kShapeMismatch, core::format("{} differs in more than dimension 0", core::quoted(name)));
      }
    }
  }

  std::size_t shard_of(std::int64_t index) const {
    const auto found = std::upper_bound(shards_.begin(), shards_.end(), index,
                                        [](std::int64_t i, const Shard& shard) { return i < shard.end; });
    return static_cast<std::size_t>(found - shards_.begin());
  }
  static std::int64_t begin(const Shard& shard) { return shard.end - shard.columns.front().count; }

  data::LayoutPtr layout(const std::vector<std::int64_t>& lengths) const {
    auto out = std::make_shared<data::Layout>();
    out->structure = structure_;
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      std::vector<std::int64_t> sizes;
      if (kinds_[i].rank > 0) sizes.push_back(lengths[i]);
      sizes.insert(sizes.end(), kinds_[i].rest.begin(), kinds_[i].rest.end());
      const Shape shape(sizes);
      out->tensors.emplace_back(kinds_[i].dtype, shape, shape.contiguous_strides());
    }
    return out;
  }

  data::StructurePtr structure_;
  std::vector<Kind> kinds_;
  std::vector<Shard> shards_;
  data::FoundShards found_;
};

/// Of all files; those that cannot be looked at are said to be wrong when they are opened.
std::uint64_t bytes_of(const data::PathTable& paths) {
  std::uint64_t bytes = 0;
  for (std::int64_t i = 0; i < paths.size(); ++i) {
    std::error_code ignored;
    const std::uintmax_t size = std::filesystem::file_size(paths.path(i), ignored);
    if (!ignored) bytes = core::checked_add<std::uint64_t>(bytes, size, "the size of a packed dataset");
  }
  return bytes;
}

}  // namespace

Dataset packed(TextView pattern, OptionalFlag mmap) {
  auto out = std::make_shared<Packed>();
  const std::string text = io::local_path(pattern);
  const data::PathTable paths = data::expand(text);
  const data::Access access = data::access_for(mmap, bytes_of(paths));
  for (std::int64_t i = 0; i < paths.size(); ++i) out->add(open(paths.path(i)), access);
  // Who names one file wants that one.
  const bool is_one = paths.size() == 1 && paths.path(0) == text;
  if (!is_one) out->require_all();
  return Dataset(std::move(out));
}

}  // namespace penstock
