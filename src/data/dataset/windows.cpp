// Windows of one length over an array or over each of its slices. Where a window begins is computed, so that those of
// one array are even rows: the batch is copied, or converted, straight out of the array.

#include "penstock/windows.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "data/dataset/joined_windows.h"
#include "data/dataset/slices.h"
#include "data/dataset/window_sizes.h"
#include "data/dataset_impl.h"
#include "data/transform/geometry.h"
#include "penstock/error.h"

namespace penstock {

namespace {

using data::ArrayParts;
using data::SlicedArrays;
using data::WindowSizes;

constexpr const char* kWindowsTakenOf = "windows are taken of what rows() or slices() gives";

/// Each window begins at a row of the array that can be computed.
class PlacedWindows : public detail::DatasetImpl {
 public:
  PlacedWindows(const ArrayParts& parts, const WindowSizes& sizes)
      : parts_(parts),
        sizes_(sizes),
        layout_(data::window_layout(parts, sizes)),
        may_go_over_(parts.arrays() > 1 && parts.row_bytes() != 0) {}

  std::string describe(std::int64_t index) const override { return parts_.describe(row_of(index), sizes_.span()); }
  std::uint64_t read_bytes(std::int64_t) const override {
    return static_cast<std::uint64_t>(sizes_.span()) * parts_.row_bytes();
  }
  bool is_at_hand(std::int64_t index, io::ResidentPages& pages) const override {
    return parts_.are_at_hand(row_of(index), sizes_.span(), pages);
  }
  void fetch(std::span<const std::int64_t> indices, const data::Work& work,
             std::span<data::Sample> out) const override {
    const std::size_t each = sizes_.parts();
    const std::span<data::Payload> payloads = work.scratch.arena.array<data::Payload>(indices.size() * each);
    data::RowPieces pieces(parts_);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto own = payloads.subspan(i * each, each);
      out[i] = {layout_.get(), {own.data()}};
      if (!may_go_over_) {
        sizes_.place(parts_, row_of(indices[i]), own);
        continue;
      }
      std::fill(own.begin(), own.end(), data::Payload{});
      if (work.call.headers_only) continue;
      pieces.begin(i);
      pieces.add(row_of(indices[i]), sizes_.span());
      sizes_.place(parts_, pieces.end(work.scratch), own);
    }
    pieces.copy(work);
  }
  std::optional<data::EvenRows> even_rows(std::span<const std::int64_t> indices,
                                          data::Scratch& scratch) const override {
    if (parts_.arrays() > 1) return std::nullopt;
    return data::EvenRows{layout_.get(), columns_of(indices, scratch)};
  }

 protected:
  const WindowSizes& sizes() const noexcept { return sizes_; }

 private:
  virtual std::int64_t row_of(std::int64_t index) const noexcept = 0;

  std::span<const data::EvenColumn> columns_of(std::span<const std::int64_t> indices, data::Scratch& scratch) const {
    const std::span<std::int64_t> rows = scratch.arena.array<std::int64_t>(indices.size());
    std::transform(indices.begin(), indices.end(), rows.begin(), [this](std::int64_t index) { return row_of(index); });
    const std::span<data::EvenColumn> columns = scratch.arena.array<data::EvenColumn>(sizes_.parts());
    for (std::size_t c = 0; c < columns.size(); ++c) {
      columns[c] = {.first = parts_.at(0, c == 0 ? 0 : sizes_.shift),
                    .step = static_cast<std::size_t>(parts_.step()),
                    .at = rows};
    }
    return columns;
  }

  ArrayParts parts_;
  WindowSizes sizes_;
  data::LayoutPtr layout_;
  bool may_go_over_;  ///< the end of an array
};

class ArrayWindows final : public PlacedWindows {
 public:
  ArrayWindows(const ArrayParts& parts, const WindowSizes& sizes)
      : PlacedWindows(parts, sizes), size_(sizes.count_in(parts.rows())) {
    if (size_ > 0) return;
    throw Error(ErrorCode::kShapeMismatch,
                core::format("the array has {}, fewer than {}",
                             core::counted(static_cast<std::uint64_t>(parts.rows()), "row"), sizes.text()),
                {.path = parts.name()});
  }

  std::int64_t size() const noexcept override { return size_; }

 private:
  std::int64_t row_of(std::int64_t index) const noexcept override { return index * sizes().stride; }

  std::int64_t size_;
};

class SliceWindows final : public PlacedWindows {
 public:
  SliceWindows(const SlicedArrays& slices, const WindowSizes& sizes)
      : PlacedWindows(slices.parts, sizes), table_(slices.table) {
    ends_.reserve(static_cast<std::size_t>(table_.size()));
    std::int64_t end = 0;
    std::int64_t longest = 0;
    for (std::int64_t i = 0; i < table_.size(); ++i) {
      const std::int64_t count = sizes.count_in(table_.length(i));
      longest = std::max(longest, table_.length(i));
      without_ += count == 0 ? 1 : 0;
      const auto sum = core::try_add(end, count);
      if (!sum) core::refuse("there are more windows than fit in 64 bits; take a larger stride or fewer slices");
      end = *sum;
      ends_.push_back(end);
    }
    if (end > 0) return;
    throw Error(ErrorCode::kShapeMismatch,
                core::format("none of {} has {}; the longest has {}",
                             core::counted(static_cast<std::uint64_t>(table_.size()), "slice"), sizes.text(), longest),
                {.path = slices.parts.name()});
  }

  std::int64_t size() const noexcept override { return ends_.back(); }
  std::string remark() const override {
    if (without_ == 0) return {};
    return core::format("{} of {} {} shorter than {} and left out", without_,
                        core::counted(static_cast<std::uint64_t>(table_.size()), "slice"), without_ == 1 ? "is" : "are",
                        sizes().text());
  }

 private:
  std::int64_t row_of(std::int64_t index) const noexcept override {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), index);
    const std::int64_t before = end == ends_.begin() ? 0 : *(end - 1);
    return table_.begin(end - ends_.begin()) + (index - before) * sizes().stride;
  }

  data::SliceTable table_;
  std::vector<std::int64_t> ends_;  ///< of each slice, the number of windows up to its last one
  std::int64_t without_ = 0;        ///< slices that have none
};

/// Windows that are drawn from all places where one can begin.
class RandomWindows final : public detail::DatasetImpl {
 public:
  RandomWindows(Dataset places, std::int64_t count, std::int64_t span, std::string arrays)
      : places_(std::move(places)), count_(count), span_(span), arrays_(std::move(arrays)) {}

  std::int64_t size() const noexcept override { return count_; }
  std::string describe(std::int64_t index) const override {
    return core::format("{}, random window {} of {} rows", arrays_, index, span_);
  }
  std::string remark() const override { return places_.impl().remark(); }
  std::uint32_t draws() const noexcept override { return 1; }
  std::uint64_t read_bytes(std::int64_t) const override { return places_.impl().read_bytes(0); }
  void fetch(std::span<const std::int64_t> indices, const data::Work& work,
             std::span<data::Sample> out) const override {
    const std::span<std::int64_t> drawn = work.scratch.arena.array<std::int64_t>(indices.size());
    for (std::size_t i = 0; i < indices.size(); ++i) {
      drawn[i] = data::Draws(work.call.key_of(indices[i])).below(places_.size());
    }
    places_.impl().fetch(drawn, work, out);
  }

 private:
  Dataset places_;
  std::int64_t count_;
  std::int64_t span_;
  std::string arrays_;
};

}  // namespace

WindowSizes WindowSizes::checked(std::int64_t length, std::optional<std::int64_t> stride, std::int64_t shift) {
  if (length < 1) core::refuse(core::format("the length of windows is {}; it must be 1 or more", length));
  if (stride && *stride < 1) core::refuse(core::format("the stride of windows is {}; it must be 1 or more", *stride));
  if (shift < 0) core::refuse(core::format("the shift of windows is {}; it must be 0 or more", shift));
  if (!core::try_add(length, shift)) {
    core::refuse(core::format("the length of windows is {} and their shift {}, which together are no number of rows",
                              length, shift));
  }
  return {length, stride.value_or(length), shift};
}

void WindowSizes::place(const ArrayParts& parts, std::int64_t row, std::span<Payload> out) const {
  const std::size_t array = parts.array_of(row);
  for (std::size_t p = 0; p < out.size(); ++p) out[p] = parts.at(array, p == 0 ? row : row + shift);
}

void WindowSizes::place(const ArrayParts& parts, const std::optional<RowPieces::Place>& found,
                        std::span<Payload> out) const {
  if (found->memory == nullptr) return place(parts, found->row, out);
  const std::uint64_t shifted = static_cast<std::uint64_t>(shift) * parts.row_bytes();
  for (std::size_t p = 0; p < out.size(); ++p) out[p].place = InMemory{found->memory + (p == 0 ? 0 : shifted)};
}

std::string WindowSizes::text() const {
  const std::string rows = core::counted(static_cast<std::uint64_t>(span()), "row");
  return shift == 0 ? core::format("the {} of a window", rows)
                    : core::format("the {} of a window (length {}, shift {})", rows, length, shift);
}

data::LayoutPtr data::window_layout(const ArrayParts& parts, const WindowSizes& sizes) {
  const LayoutPtr one = single_tensor_layout(parts.layout(sizes.length));
  if (sizes.shift == 0) return one;
  StructureInterner structures;
  const LayoutPtr both[] = {one, one};
  return tuple_layout(both, structures);
}

namespace {

/// Over one array, or nothing where `dataset` is not the rows of one alone.
std::optional<Dataset> windows_of_array(const ArrayParts& parts, const WindowSizes& sizes, JoinSlices join) {
  if (parts.arrays() > 1) return std::nullopt;
  if (join != JoinSlices::kNot) {
    core::refuse(
        "only slices are joined, or several arrays; take windows of rows() without join, or slices() of it first");
  }
  return Dataset(std::make_shared<ArrayWindows>(parts, sizes));
}

}  // namespace

Dataset windows(const Dataset& dataset, Integer length, const WindowsOptions& options) {
  const WindowSizes sizes = WindowSizes::checked(length, options.stride, options.shift);
  std::shared_ptr<const SlicedArrays> slices = dataset.impl().slices();
  if (!slices) {
    ArrayParts parts = data::arrays_of(dataset, kWindowsTakenOf);
    if (auto of_one = windows_of_array(parts, sizes, options.join)) return *std::move(of_one);
    slices = std::make_shared<const SlicedArrays>(SlicedArrays::whole(std::move(parts)));
  }
  if (options.join == JoinSlices::kNot) return Dataset(std::make_shared<SliceWindows>(*slices, sizes));
  return data::joined_windows(*slices, sizes, options.join == JoinSlices::kShuffled);
}

Dataset random_windows(const Dataset& dataset, Integer length, Integer count, Integer shift) {
  if (count < 0) core::refuse(core::format("the number of random windows is {}; it must be 0 or more", count));
  const Dataset places = windows(dataset, length, {.stride = 1, .shift = shift});
  const auto slices = dataset.impl().slices();
  const std::string arrays = slices ? slices->parts.describe() : dataset.impl().arrays()->describe();
  return Dataset(std::make_shared<RandomWindows>(places, count, length + shift, arrays));
}

}  // namespace penstock
