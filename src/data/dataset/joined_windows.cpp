// Windows over slices that are put together, such as documents that are cut into samples of one length. Where a window
// begins is found in two steps: the rows in front of each 8th slice of the order are kept, and from there slices are
// counted. The order itself is computed and takes no memory. A window that lies in one slice is copied straight out of
// its array; one over the end of a slice is put together (row_pieces.h).

#include "data/dataset/joined_windows.h"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "data/dataset/row_pieces.h"
#include "data/dataset_impl.h"
#include "data/sample/computed_permutation.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

/// Slices whose rows are counted to find one; each has so much less of the index.
constexpr std::int64_t kCounted = 8;

std::int64_t rows_of(const SliceTable& table) {
  std::int64_t out = 0;
  for (std::int64_t i = 0; i < table.size(); ++i) {
    const auto sum = core::try_add(out, table.length(i));
    if (!sum) core::refuse("the slices have more rows than fit in 64 bits; take fewer of them");
    out = *sum;
  }
  return out;
}

/// Slices in some order, put together. Their rows can be counted (rows_of).
class JoinedSlices {
 public:
  /// In the order of this permutation, or in their own. `table` outlives it.
  JoinedSlices(const SliceTable& table, const std::optional<ComputedPermutation>& order)
      : table_(table), order_(order) {
    begins_.reserve(static_cast<std::size_t>(table.size() / kCounted + 1));
    std::int64_t rows = 0;
    for (std::int64_t place = 0; place < table.size(); ++place) {
      if (place % kCounted == 0) begins_.push_back(rows);
      rows += table.length(slice_at(place));
    }
  }

  /// Calls `visit` with the rows of the array, as (begin, count), that `count` joined rows from `row` on are; all of
  /// them exist.
  template <class Visit>
  void visit(std::int64_t row, std::int64_t count, const Visit& visit) const {
    const auto behind = std::upper_bound(begins_.begin(), begins_.end(), row);
    std::int64_t place = (behind - begins_.begin() - 1) * kCounted;
    std::int64_t skipped = row - *(behind - 1);
    for (; count > 0; ++place) {
      const std::int64_t slice = slice_at(place);
      const std::int64_t length = table_.length(slice);
      if (skipped >= length) {
        skipped -= length;
        continue;
      }
      const std::int64_t taken = std::min(length - skipped, count);
      visit(table_.begin(slice) + skipped, taken);
      count -= taken;
      skipped = 0;
    }
  }

 private:
  std::int64_t slice_at(std::int64_t place) const noexcept { return order_ ? (*order_)(place) : place; }

  const SliceTable& table_;
  std::optional<ComputedPermutation> order_;
  std::vector<std::int64_t> begins_;  ///< of each slice at a place that kCounted divides, in joined rows
};

class JoinedWindows final : public detail::DatasetImpl {
 public:
  JoinedWindows(const SlicedArrays& slices, const WindowSizes& sizes, bool shuffled)
      : slices_(slices),
        sizes_(sizes),
        shuffled_(shuffled),
        layout_(window_layout(slices.parts, sizes)),
        rows_(rows_of(slices_.table)),
        in_order_(shuffled ? nullptr : std::make_shared<const JoinedSlices>(slices_.table, std::nullopt)) {
    size_ = sizes.count_in(rows_);
    const std::string name = slices.parts.name();
    if (!slices.parts.contiguous()) {
      throw Error(
          ErrorCode::kUnsupported,
          "the rows of this array do not lie one behind the other, so that slices cannot be joined; take rows() "
          "of a contiguous copy",
          {.path = name});
    }
    if (size_ > 0) return;
    throw Error(ErrorCode::kShapeMismatch,
                core::format("all {} together have {}, fewer than {}",
                             core::counted(static_cast<std::uint64_t>(slices.table.size()), "slice"),
                             core::counted(static_cast<std::uint64_t>(rows_), "row"), sizes.text()),
                {.path = name});
  }

  std::int64_t size() const noexcept override { return size_; }
  std::string describe(std::int64_t index) const override {
    return core::format("{}, window {} of {} rows of the joined slices", slices_.parts.describe(), index,
                        sizes_.span());
  }
  std::uint32_t draws() const noexcept override { return shuffled_ ? 1 : 0; }
  std::uint64_t read_bytes(std::int64_t) const override {
    return static_cast<std::uint64_t>(sizes_.span()) * slices_.parts.row_bytes();
  }

  void fetch(std::span<const std::int64_t> indices, const Work& work, std::span<Sample> out) const override {
    const std::span<Payload> payloads = work.scratch.arena.array<Payload>(indices.size() * sizes_.parts());
    std::fill(payloads.begin(), payloads.end(), Payload{});
    for (std::size_t i = 0; i < indices.size(); ++i) out[i] = {layout_.get(), {&payloads[i * sizes_.parts()]}};
    if (work.call.headers_only || slices_.parts.row_bytes() == 0) return;
    const std::shared_ptr<const JoinedSlices> joined = joined_in(work.call);
    RowPieces pieces(slices_.parts);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      pieces.begin(i);
      joined->visit(indices[i] * sizes_.stride, sizes_.span(),
                    [&](std::int64_t row, std::int64_t rows) { pieces.add(row, rows); });
      sizes_.place(slices_.parts, pieces.end(work.scratch), payloads.subspan(i * sizes_.parts(), sizes_.parts()));
    }
    pieces.copy(work);
  }

 private:
  /// The slices as they are joined in that epoch. Few epochs are read at once: the one at hand, the next one that is
  /// read ahead, and those of `get`.
  std::shared_ptr<const JoinedSlices> joined_in(const CallContext& call) const {
    if (!shuffled_) return in_order_;
    const std::scoped_lock lock(mutex_);
    for (const Epoch& epoch : epochs_) {
      if (epoch.joined && epoch.seed == call.epoch_seed) return epoch.joined;
    }
    // No sample has the index -1, so that nothing else is drawn by its key.
    const ComputedPermutation order(slices_.table.size(), call.key_of(-1));
    std::rotate(epochs_.begin(), epochs_.end() - 1, epochs_.end());
    epochs_[0] = {call.epoch_seed, std::make_shared<const JoinedSlices>(slices_.table, order)};
    return epochs_[0].joined;
  }

  struct Epoch {
    EpochSeed seed;
    std::shared_ptr<const JoinedSlices> joined;
  };

  SlicedArrays slices_;
  WindowSizes sizes_;
  bool shuffled_;
  LayoutPtr layout_;
  std::int64_t rows_;
  std::shared_ptr<const JoinedSlices> in_order_;  ///< null where they are shuffled
  std::int64_t size_ = 0;
  mutable std::mutex mutex_;
  mutable std::array<Epoch, 3> epochs_;  ///< the last one first
};

}  // namespace

Dataset joined_windows(const SlicedArrays& slices, const WindowSizes& sizes, bool shuffled) {
  return Dataset(std::make_shared<JoinedWindows>(slices, sizes, shuffled));
}

}  // namespace penstock::data
