#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "io/copy/record_check.h"

namespace penstock::data {

// A part of a tensor is not worth reading more than this for its checksum.
inline constexpr std::uint64_t kMostUnwanted = 16 * 1024;
// What nobody wants is read in pieces of this.
inline constexpr std::uint64_t kUnwantedAtOnce = 256 * 1024;

/// The bytes of a record that are in memory, wherever they are now: tensors that were wanted, and the file's own.
class RecordPieces {
 public:
  struct Piece {
    std::uint64_t begin;
    std::uint64_t end;
    const std::byte* at;
    std::optional<std::uint32_t> crc;
  };

  /// `crc` of these bytes, where that is known already.
  void add(std::uint64_t begin, std::uint64_t bytes, const std::byte* at, std::optional<std::uint32_t> crc = {}) {
    pieces_.push_back({begin, begin + bytes, at, crc});
  }
  /// A whole tensor of it was wanted, so that it is verified whatever there is to read for that.
  void require() { required_ = true; }

  /// Gives all bytes of a record to its check, where `read(begin, end)` gives those that nobody wanted. Gives none, and
  /// returns false, where that is much to read for parts of tensors.
  template <class Read>
  bool feed(io::RecordCheck& check, const Read& read) {
    const std::uint64_t bytes = check.record().bytes;
    pieces_.push_back({bytes, bytes, nullptr, {}});
    std::sort(pieces_.begin(), pieces_.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    if (!required_ && unwanted() > kMostUnwanted) return false;
    std::uint64_t at = 0;
    for (const Piece& piece : pieces_) {
      while (piece.begin > at) {
        const std::uint64_t end = std::min(piece.begin, at + kUnwantedAtOnce);
        check.add(read(at, end));
        at = end;
      }
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
    for (const Piece& piece : pieces_) {
      out += piece.begin - std::min(piece.begin, at);
      at = std::max(at, piece.end);
    }
    return out;
  }

  std::vector<Piece> pieces_;
  bool required_ = false;
};

}  // namespace penstock::data
