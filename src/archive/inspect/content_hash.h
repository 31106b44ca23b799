#pragma once

// `penstock hash`.

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "penstock/load.h"

namespace penstock::archive {

/// An XXH3 hash of 128 bits, most significant byte first.
struct Digest {
  std::array<std::uint8_t, 16> bytes{};

  /// 32 hexadecimal digits.
  std::string hex() const;

  friend auto operator<=>(const Digest&, const Digest&) = default;
};

/// Hashes of an archive's content, which layout, order of keys, byte order, compression and format do not change.
/// docs/design/content_hash.md has the definition, by which others can compute it.
struct ContentHashes {
  std::vector<Digest> tensors;  ///< in the order of the entries; all 0 of those that were not wanted
  Digest content;               ///< of all tensors and leaves (leaves.h) by their names
};

/// Reads each tensor once, in little memory, on all processors. `seen` is told bytes that were read, from any thread.
/// Errors are those of loading, but kUnsafe: an array of Python objects is hashed by the bytes of its pickle. Where
/// `wanted` is set, the content is the tensors whose names it says true of: others are not read, and leaves have no
/// part.
ContentHashes hash_content(const Archive& archive, const std::function<void(std::uint64_t bytes)>& seen = {},
                           const std::function<bool(const TensorEntry&)>& wanted = {});

}  // namespace penstock::archive
