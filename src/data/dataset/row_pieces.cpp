#include "data/dataset/row_pieces.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <variant>

#include "data/sample/copied_files.h"
#include "data/sample/held_file.h"
#include "data/sample/run_reader.h"
#include "data/sample/scratch.h"
#include "io/copy/guarded.h"
#include "penstock/error.h"

namespace penstock::data {

/// Copies pieces out of the mapping of one array, which another program may cut meanwhile.
class RowPieces::Mapped final : public io::GuardedMemory {
 public:
  /// `first`: where row `begin` is, of so many bytes of rows.
  Mapped(std::span<const Piece> pieces, const std::byte* first, std::int64_t begin, std::uint64_t bytes,
         std::uint64_t row_bytes)
      : pieces_(pieces), first_(first), begin_(begin), bytes_(bytes), row_bytes_(row_bytes) {}

  bool contains(const std::byte* address) const noexcept override {
    const std::less<> before;
    return !before(address, first_) && before(address, first_ + bytes_);
  }
  void read() const noexcept override {
    for (const Piece& piece : pieces_) {
      std::memcpy(piece.to, first_ + static_cast<std::uint64_t>(piece.row - begin_) * row_bytes_,
                  static_cast<std::size_t>(static_cast<std::uint64_t>(piece.rows) * row_bytes_));
    }
  }

 private:
  std::span<const Piece> pieces_;
  const std::byte* first_;
  std::int64_t begin_;
  std::uint64_t bytes_;
  std::uint64_t row_bytes_;
};

void RowPieces::begin(std::size_t position) noexcept {
  first_ = pieces_.size();
  position_ = position;
}

void RowPieces::add(std::int64_t row, std::int64_t rows) {
  while (rows > 0) {
    const std::size_t array = parts_.array_of(row);
    const std::int64_t count = std::min(rows, parts_.end(array) - row);
    const bool goes_on =
        pieces_.size() > first_ && pieces_.back().array == array && pieces_.back().row + pieces_.back().rows == row;
    if (goes_on) {
      pieces_.back().rows += count;
    } else {
      pieces_.push_back({.row = row, .rows = count, .array = array, .position = position_});
    }
    row += count;
    rows -= count;
  }
}

std::optional<RowPieces::Place> RowPieces::end(Scratch& scratch) {
  const std::span<Piece> own = std::span(pieces_).subspan(first_);
  if (own.empty()) return std::nullopt;
  if (own.size() == 1) {
    const Place place{own.front().row};
    pieces_.pop_back();
    return place;
  }
  std::uint64_t bytes = 0;
  for (const Piece& piece : own) bytes += bytes_of(piece);
  std::byte* const memory = scratch.arena.allocate(static_cast<std::size_t>(bytes));
  std::byte* to = memory;
  for (Piece& piece : own) {
    piece.to = to;
    to += bytes_of(piece);
  }
  return Place{own.front().row, memory};
}

void RowPieces::copy(const Work& work) {
  // Array by array: those that are mapped under a guard each, and what servers have all at once.
  std::stable_sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) { return a.array < b.array; });
  std::vector<FileRun> runs;
  CopiedFiles files;
  RunReader reader(work.call, work.figures, runs, files);
  for (std::size_t first = 0, last = 0; first < pieces_.size(); first = last) {
    const std::size_t array = pieces_[first].array;
    while (last < pieces_.size() && pieces_[last].array == array) ++last;
    const std::span<const Piece> own(&pieces_[first], last - first);
    const Payload begin = parts_.at(array, parts_.begin(array));
    if (const auto* const mapping = std::get_if<InMapping>(&begin.place)) {
      work.call.check_cancelled();
      copy_mapped(own, mapping->data);
      files.add(mapping->file, own.front().position);
      continue;
    }
    for (const Piece& piece : own) {
      reader.add(std::get<InFile>(parts_.at(array, piece.row).place), piece.to, bytes_of(piece), piece.position);
    }
  }
  reader.read();
  files.require_unchanged();
}

/// `first`: where their array begins.
void RowPieces::copy_mapped(std::span<const Piece> pieces, const std::byte* first) const {
  const std::uint64_t row_bytes = parts_.row_bytes();
  const std::int64_t begin = parts_.begin(pieces[0].array);
  const auto bytes = static_cast<std::uint64_t>(parts_.end(pieces[0].array) - begin) * row_bytes;
  const auto copied = [&](std::span<const Piece> some) {
    return io::read_guarded(Mapped(some, first, begin, bytes, row_bytes));
  };
  if (copied(pieces)) return;
  // An error names the first sample that is gone.
  const HeldFile& file = parts_.file(pieces[0].array);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (copied(pieces.subspan(i, 1))) continue;
    try {
      io::throw_vanished(file.name());
    } catch (const Error& error) {
      throw SampleError(pieces[i].position, file.error_of_change(error));
    }
  }
}

}  // namespace penstock::data
