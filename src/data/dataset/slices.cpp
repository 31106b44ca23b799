// Slices of arrays as samples. They have the arrays' layout but for dimension 0, and their payload lies as that of rows
// does, so that nothing is read to know them. One over the end of an array is put together (row_pieces.h).

#include "data/dataset/slices.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "data/dataset/layouts_by_lengths.h"
#include "data/dataset/row_pieces.h"
#include "data/dataset_impl.h"
#include "penstock/error.h"
#include "penstock/windows.h"

namespace penstock {

namespace {

constexpr const char* kTakenOf = "slices are taken of what rows() gives";

[[noreturn]] void throw_outside(std::int64_t slice, std::int64_t start, std::int64_t length, std::int64_t rows,
                                const std::string& name) {
  std::string what =
      core::format("slice {} begins at row {} and has {} rows, but the array has {}", slice, start, length, rows);
  if (length < 0) {
    what = core::format("slice {} begins at row {} and ends in front of it or outside of the array, which has {} rows",
                        slice, start, rows);
  }
  if (start < 0) what = core::format("slice {} begins at row {}, and rows are counted from 0", slice, start);
  throw Error(ErrorCode::kIndexOutOfRange, std::move(what), {.path = name});
}

void require_as_many(std::size_t starts, std::size_t lengths) {
  if (starts == lengths) return;
  throw Error(ErrorCode::kShapeMismatch, core::format("there are {} and {}; each slice has one of both",
                                                      core::counted(static_cast<std::uint64_t>(starts), "start"),
                                                      core::counted(static_cast<std::uint64_t>(lengths), "length")));
}

/// Whether each slice begins where the one before ends. Says no where that cannot be computed.
bool are_joined(std::span<const std::int64_t> starts, std::span<const std::int64_t> lengths) {
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    if (lengths[i] < 0 || starts[i + 1] < 0 || starts[i] != starts[i + 1] - lengths[i]) return false;
  }
  return true;
}

class Slices final : public detail::DatasetImpl {
 public:
  explicit Slices(data::SlicedArrays slices) : slices_(std::make_shared<const data::SlicedArrays>(std::move(slices))) {}

  std::int64_t size() const noexcept override { return table().size(); }
  std::string describe(std::int64_t index) const override {
    return slices_->parts.describe(table().begin(index), table().length(index));
  }
  std::uint64_t read_bytes(std::int64_t index) const override {
    return static_cast<std::uint64_t>(table().length(index)) * slices_->parts.row_bytes();
  }
  bool is_at_hand(std::int64_t index, io::ResidentPages& pages) const override {
    return slices_->parts.are_at_hand(table().begin(index), table().length(index), pages);
  }
  std::shared_ptr<const data::SlicedArrays> slices() const override { return slices_; }

  void fetch(std::span<const std::int64_t> indices, const data::Work& work,
             std::span<data::Sample> out) const override {
    auto& layouts = work.scratch.state<data::LayoutsByLengths>(this);
    const std::span<data::Payload> payloads = work.scratch.arena.array<data::Payload>(indices.size());
    const auto make = [this](const std::vector<std::int64_t>& lengths) {
      return data::single_tensor_layout(slices_->parts.layout(lengths[0]));
    };
    const data::ArrayParts& parts = slices_->parts;
    const bool may_go_over = parts.arrays() > 1 && parts.row_bytes() != 0 && !work.call.headers_only;
    data::RowPieces pieces(parts);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const std::int64_t begin = table().begin(indices[i]);
      const std::int64_t length = table().length(indices[i]);
      layouts.lengths.assign(1, length);
      out[i] = {layouts.find(make, work.scratch), {&payloads[i]}};
      payloads[i] = length == 0 || may_go_over ? data::Payload{} : parts.at(begin);
      if (!may_go_over) continue;
      pieces.begin(i);
      pieces.add(begin, length);
      const auto place = pieces.end(work.scratch);
      if (!place) continue;
      payloads[i] =
          place->memory == nullptr ? parts.at(place->row) : data::Payload{.place = data::InMemory{place->memory}};
    }
    pieces.copy(work);
  }

 private:
  const data::SliceTable& table() const noexcept { return slices_->table; }

  std::shared_ptr<const data::SlicedArrays> slices_;
};

}  // namespace

data::SliceTable::SliceTable(Tensor starts, Tensor lengths, std::int64_t rows, const std::string& name)
    : starts_(std::move(starts)), lengths_(std::move(lengths)) {
  const auto first = starts_.values<const std::int64_t>();
  first_ = first.data();
  if (lengths_.defined()) {
    const auto length = lengths_.values<const std::int64_t>();
    require_as_many(first.size(), length.size());
    length_ = length.data();
  } else if (first.empty()) {
    core::refuse("slices without lengths have one start more than there are slices; found none");
  }
  for (std::int64_t i = 0; i < size(); ++i) {
    const bool starts_inside = first_[i] >= 0 && first_[i] <= rows;
    // Of two numbers from 0 to `rows` the difference can be computed.
    const std::int64_t count =
        length_ != nullptr ? length_[i] : (starts_inside && first_[i + 1] >= 0 ? first_[i + 1] - first_[i] : -1);
    if (!starts_inside || count < 0 || count > rows - first_[i]) throw_outside(i, first_[i], count, rows, name);
  }
}

data::SliceTable data::SliceTable::of(std::span<const std::int64_t> starts, std::span<const std::int64_t> lengths,
                                      std::int64_t rows, const std::string& name) {
  require_as_many(starts.size(), lengths.size());
  const auto end = starts.empty() ? std::nullopt : core::try_add(starts.back(), lengths.back());
  const bool is_joined = end && lengths.back() >= 0 && are_joined(starts, lengths);
  if (!is_joined) return {Tensor::of(starts), Tensor::of(lengths), rows, name};
  Tensor ends = Tensor::empty(Shape{std::ssize(starts) + 1}, DType::int64);
  const auto numbers = ends.values<std::int64_t>();
  std::copy(starts.begin(), starts.end(), numbers.begin());
  numbers.back() = *end;
  return {std::move(ends), Tensor(), rows, name};
}

data::SlicedArrays data::SlicedArrays::whole(ArrayParts parts) {
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < parts.arrays(); ++i) {
    starts.push_back(parts.begin(i));
    lengths.push_back(parts.end(i) - parts.begin(i));
  }
  SliceTable table = SliceTable::of(starts, lengths, parts.rows(), parts.name());
  return {std::move(parts), std::move(table)};
}

data::SlicedArrays data::SlicedArrays::joined(std::span<const std::shared_ptr<const SlicedArrays>> parts) {
  if (parts.size() == 1) return *parts[0];
  std::vector<std::shared_ptr<const ArrayParts>> arrays;
  for (const auto& part : parts) arrays.emplace_back(part, &part->parts);
  ArrayParts all = ArrayParts::joined(arrays);
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> lengths;
  std::int64_t before = 0;  // rows of the arrays of the parts before
  for (const auto& part : parts) {
    for (std::int64_t i = 0; i < part->table.size(); ++i) {
      starts.push_back(before + part->table.begin(i));
      lengths.push_back(part->table.length(i));
    }
    before += part->parts.rows();
  }
  SliceTable table = SliceTable::of(starts, lengths, all.rows(), all.name());
  return {std::move(all), std::move(table)};
}

Dataset data::sliced(SlicedArrays slices) { return Dataset(std::make_shared<Slices>(std::move(slices))); }

Dataset data::sliced(const Dataset& rows, const Tensor& starts, const Tensor& lengths) {
  const ArrayParts parts = arrays_of(rows, kTakenOf);
  return sliced({parts, SliceTable(starts, lengths, parts.rows(), parts.name())});
}

Dataset slices(const Dataset& rows, const std::vector<std::int64_t>& starts, const std::vector<std::int64_t>& lengths) {
  const data::ArrayParts parts = data::arrays_of(rows, kTakenOf);
  return data::sliced({parts, data::SliceTable::of(starts, lengths, parts.rows(), parts.name())});
}

Dataset slices(const Dataset& rows, const std::vector<std::int64_t>& lengths) {
  const data::ArrayParts parts = data::arrays_of(rows, kTakenOf);
  std::vector<std::int64_t> starts;
  starts.reserve(lengths.size());
  std::int64_t next = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto end = core::try_add(next, lengths[i]);
    if (lengths[i] < 0 || !end) {
      throw_outside(static_cast<std::int64_t>(i), next, lengths[i], parts.rows(), parts.name());
    }
    starts.push_back(next);
    next = *end;
  }
  if (next != parts.rows()) {
    throw Error(
        ErrorCode::kShapeMismatch,
        core::format("the lengths of {} add up to {}, but the array has {}; give starts too where rows are left "
                     "out",
                     core::counted(lengths.size(), "slice"), next,
                     core::counted(static_cast<std::uint64_t>(parts.rows()), "row")),
        {.path = parts.name()});
  }
  return data::sliced({parts, data::SliceTable::of(starts, lengths, parts.rows(), parts.name())});
}

}  // namespace penstock
