#pragma once

// A token file is one long array of tokens in which documents lie.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace penstock::format {

/// Where the documents of a token file lie.
struct Documents {
  std::size_t tokens = 0;                  ///< the entry that all of them are parts of
  std::vector<std::int64_t> starts = {};   ///< the first element of each
  std::vector<std::int64_t> lengths = {};  ///< as many
  /// The file does not say where they lie: each begins with this token.
  std::optional<std::int64_t> begin = {};
};

/// What is taken for a document.
enum class DocumentUnit : std::uint8_t { kDocument, kSequence };

}  // namespace penstock::format
