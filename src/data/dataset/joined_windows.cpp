// Windows over slices that are put together, such as documents that are cut into samples of one length. Where a window
// begins is found in two steps: the rows in front of each 8th slice of the order are kept, and from there slices are
// counted. The order itself is computed and takes no memory. A window that lies in one slice is copied straight out of
// its array; one over the end of a slice is put together here, by one guarded copy for all of a batch and array.

#include "data/dataset/joined_windows.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "data/dataset_impl.h"
#include "data/sample/computed_permutation.h"
#include "data/sample/file_runs.h"
#include "io/copy/guarded.h"
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

/// Rows of an array that are copied to a place of their own.
struct RowsCopy {
  std::byte* to = nullptr;
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::size_t array = 0;
  std::size_t position = 0;  ///< of the sample
};

/// Copies pieces out of the mapping of one array, which another program may cut meanwhile.
class PieceCopies final : public io::GuardedMemory {
 public:
  /// `first`: where row `begin` is, of so many bytes of rows.
  PieceCopies(std::span<const RowsCopy> pieces, const std::byte* first, std::int64_t begin, std::uint64_t bytes,
              std::uint64_t row_bytes)
      : pieces_(pieces), first_(first), begin_(begin), bytes_(bytes), row_bytes_(row_bytes) {}

  bool contains(const std::byte* address) const noexcept override {
    const std::less<> before;
    return !before(address, first_) && before(address, first_ + bytes_);
  }
  void read() const noexcept override {
    for (const RowsCopy& piece : pieces_) {
      std::memcpy(piece.to, first_ + static_cast<std::uint64_t>(piece.row - begin_) * row_bytes_,
                  static_cast<std::size_t>(static_cast<std::uint64_t>(piece.rows) * row_bytes_));
    }
  }

 private:
  std::span<const RowsCopy> pieces_;
  const std::byte* first_;
  std::int64_t begin_;
  std::uint64_t bytes_;
  std::uint64_t row_bytes_;
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
    return core::format("window {} of the joined slices of {}", index, slices_.parts.name());
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
    std::vector<RowsCopy> pieces;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      place(indices[i], i, *joined, payloads.subspan(i * sizes_.parts(), sizes_.parts()), work.scratch, pieces);
    }
    if (!pieces.empty()) copy(pieces, work);
  }

 private:
  /// Says where the window lies, or which pieces will be where it does.
  void place(std::int64_t index, std::size_t position, const JoinedSlices& joined, std::span<Payload> payloads,
             Scratch& scratch, std::vector<RowsCopy>& pieces) const {
    const std::size_t before = pieces.size();
    joined.visit(index * sizes_.stride, sizes_.span(), [&](std::int64_t row, std::int64_t rows) {
      const std::size_t array = slices_.parts.array_of(row);
      const bool goes_on =
          pieces.size() > before && pieces.back().array == array && pieces.back().row + pieces.back().rows == row;
      if (goes_on) {
        pieces.back().rows += rows;
      } else {
        pieces.push_back({.row = row, .rows = rows, .array = array, .position = position});
      }
    });
    if (pieces.size() == before + 1) {
      sizes_.place(slices_.parts, pieces.back().row, payloads);
      pieces.pop_back();
      return;
    }
    const std::uint64_t row_bytes = slices_.parts.row_bytes();
    std::byte* to = scratch.arena.allocate(static_cast<std::size_t>(read_bytes(index)));
    payloads[0].place = InMemory{to};
    if (payloads.size() > 1) payloads[1].place = InMemory{to + static_cast<std::uint64_t>(sizes_.shift) * row_bytes};
    for (std::size_t p = before; p < pieces.size(); ++p) {
      pieces[p].to = to;
      to += static_cast<std::uint64_t>(pieces[p].rows) * row_bytes;
    }
  }

  /// Array by array: those that are mapped under a guard each, and what servers have all at once.
  void copy(std::vector<RowsCopy>& pieces, const Work& work) const {
    std::stable_sort(pieces.begin(), pieces.end(),
                     [](const RowsCopy& a, const RowsCopy& b) { return a.array < b.array; });
    std::vector<FileRun> remote;
    for (std::size_t first = 0, last = 0; first < pieces.size(); first = last) {
      const std::size_t array = pieces[first].array;
      while (last < pieces.size() && pieces[last].array == array) ++last;
      const std::span<const RowsCopy> own(&pieces[first], last - first);
      work.call.check_cancelled();
      const Payload begin = slices_.parts.at(array, slices_.parts.begin(array));
      if (const auto* const mapping = std::get_if<InMapping>(&begin.place)) {
        copy_mapped(own, mapping->data);
      } else if (std::get<InFile>(begin.place).file->reads_at_once()) {
        for (const RowsCopy& piece : own) remote.push_back(run_of(piece));
        continue;  // each answer says whether the object is the same
      } else {
        read(own, work);
      }
      require_unchanged(own.front());
    }
    if (remote.empty()) return;
    work.figures.stats.read_bytes += read_at_once(std::move(remote));
    work.figures.clock.lap(Stage::kRead);
  }

  const HeldFile& file_of(const RowsCopy& piece) const { return slices_.parts.file(piece.array); }

  void require_unchanged(const RowsCopy& piece) const {
    try {
      file_of(piece).require_unchanged();
    } catch (const Error& error) {
      throw SampleError(piece.position, error);
    }
  }

  /// `first`: where their array begins.
  void copy_mapped(std::span<const RowsCopy> pieces, const std::byte* first) const {
    const std::uint64_t row_bytes = slices_.parts.row_bytes();
    const std::int64_t begin = slices_.parts.begin(pieces[0].array);
    const auto bytes = static_cast<std::uint64_t>(slices_.parts.end(pieces[0].array) - begin) * row_bytes;
    const auto copied = [&](std::span<const RowsCopy> some) {
      return io::read_guarded(PieceCopies(some, first, begin, bytes, row_bytes));
    };
    if (copied(pieces)) return;
    // An error names the first sample that is gone.
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (copied(pieces.subspan(i, 1))) continue;
      try {
        io::throw_vanished(file_of(pieces[i]).name());
      } catch (const Error& error) {
        throw SampleError(pieces[i].position, file_of(pieces[i]).error_of_change(error));
      }
    }
  }

  FileRun run_of(const RowsCopy& piece) const {
    return {.from = std::get<InFile>(slices_.parts.at(piece.array, piece.row).place),
            .to = piece.to,
            .bytes = static_cast<std::uint64_t>(piece.rows) * slices_.parts.row_bytes(),
            .position = piece.position};
  }

  void read(std::span<const RowsCopy> pieces, const Work& work) const {
    for (const RowsCopy& piece : pieces) {
      const FileRun run = run_of(piece);
      try {
        run.from.file->read(run.from.offset, {run.to, static_cast<std::size_t>(run.bytes)});
      } catch (const Error& error) {
        throw SampleError(piece.position, run.from.file->error_of_change(error));
      }
      work.figures.stats.read_bytes += run.bytes;
    }
    work.figures.clock.lap(Stage::kRead);
  }

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
