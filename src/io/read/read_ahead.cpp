#include "io/read/read_ahead.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "io/read/reader.h"
#include "io/source/opened_file.h"

namespace penstock::io {
namespace {

/// Those that touch as one.
std::vector<Extent> joined(std::span<const Extent> pieces) {
  std::vector<Extent> out;
  for (const Extent& piece : pieces) {
    if (!out.empty() && piece.begin <= out.back().end) {
      out.back().end = std::max(out.back().end, piece.end);
    } else {
      out.push_back(piece);
    }
  }
  return out;
}

}  // namespace

bool read_ahead(const ByteSource& source, std::span<const Extent> pieces) {
  const auto* const opened = dynamic_cast<const OpenedFile*>(&source);
  if (opened == nullptr || !costs_of(*opened->source()).waits()) return false;
  std::map<std::uint64_t, OpenedFile::Bytes> kept;
  std::vector<SourceRuns> reads = {{opened->source()}};
  for (const Extent& piece : joined(pieces)) {
    if (opened->keeps(piece.begin, piece.end - piece.begin)) continue;
    OpenedFile::Bytes bytes = OpenedFile::Bytes::uninitialised(static_cast<std::size_t>(piece.end - piece.begin));
    reads.front().runs.push_back({piece.begin, bytes.span()});
    kept.emplace(piece.begin, std::move(bytes));
  }
  if (kept.empty()) return true;
  read_at_once(reads);
  opened->keep(std::move(kept));
  return true;
}

}  // namespace penstock::io
