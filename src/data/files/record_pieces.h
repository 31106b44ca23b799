#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "io/copy/record_check.h"
#include "io/read/read_costs.h"

namespace penstock::data {

/// The pieces of a record that are in memory already: tensors that were read, and headers of the file.
class RecordPieces {
 public:
  struct RecordPiece {
    std::uint64_t begin;
    std::uint64_t end;
    const std::byte* at;
    std::optional<std::uint32_t> crc;
  };

  /// `crc`: of these bytes, if it is known already.
  void add(std::uint64_t begin, std::uint64_t bytes, const std::byte* at, std::optional<std::uint32_t> crc = {}) {
    pieces_.push_back({begin, begin + bytes, at, crc});
  }
  /// A whole tensor of the record was read, so the record is verified however many bytes that takes.
  void require() { required_ = true; }

  /// Gives all bytes of the record to its check; `crc_of(begin, end)` reads those that are not in memory for their
  /// CRC. Gives none and returns false if only slices were read, and what is missing is larger than a gap that a
  /// read may go over.
  template <class CrcOf>
  bool feed(io::RecordCheck& check, const io::ReadCosts& costs, const CrcOf& crc_of) {
    const std::uint64_t bytes = check.record().bytes;
    pieces_.push_back({bytes, bytes, nullptr, {}});
    std::sort(pieces_.begin(), pieces_.end(),
              [](const RecordPiece& a, const RecordPiece& b) { return a.begin < b.begin; });
    const std::uint64_t missing = unwanted();
    if (!required_ && missing > costs.gap_behind(bytes - missing)) return false;
    std::uint64_t at = 0;
    for (const RecordPiece& piece : pieces_) {
      if (piece.begin > at) check.add_known(crc_of(at, piece.begin), piece.begin - at);
      at = std::max(at, piece.begin);
      if (piece.end <= at) continue;
      if (piece.crc && piece.begin == at) {
        check.add_known(*piece.crc, piece.end - piece.begin);
      } else {
        check.add({piece.at + (at - piece.begin), static_cast<std::size_t>(piece.end - at)});
      }
      at = piece.end;
    }
    return true;
  }

 private:
  std::uint64_t unwanted() const {
    std::uint64_t at = 0;
    std::uint64_t out = 0;
    for (const RecordPiece& piece : pieces_) {
      out += piece.begin - std::min(piece.begin, at);
      at = std::max(at, piece.end);
    }
    return out;
  }

  std::vector<RecordPiece> pieces_;
  bool required_ = false;
};

}  // namespace penstock::data
