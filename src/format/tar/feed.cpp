#include "format/tar/feed.h"

#include <algorithm>

#include "penstock/error.h"

namespace penstock::format {
namespace {

constexpr std::size_t kMostKept = std::size_t{4} << 30;

}  // namespace

bool TarFeed::read_more() {
  if (end_ != std::numeric_limits<std::uint64_t>::max()) return false;
  forget(wanted_);
  if (first_ >= held_.size() / 2) {
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  if (held_.size() - first_ > kMostKept) {
    throw Error(ErrorCode::kLimit,
                "a sample of more than 4 GiB; unpack the archive, whose samples can be read in part then",
                {.path = path_, .offset = begin_});
  }
  const std::size_t before = held_.size();
  grown_ = std::min(grown_ * 2, chunk_);
  held_.resize(before + grown_);
  const std::size_t got = read_(std::span(held_).subspan(before));
  held_.resize(before + got);
  if (got == 0) end_ = held_end();
  return got != 0;
}

std::span<const std::byte> TarFeed::view(std::uint64_t offset, std::size_t count) {
  if (offset < begin_) return {};
  while (held_end() < offset || held_end() - offset < count) {
    if (!read_more()) break;
  }
  if (offset >= held_end()) return {};
  const std::size_t at = first_ + static_cast<std::size_t>(offset - begin_);
  return std::span<const std::byte>(held_).subspan(at, std::min(count, held_.size() - at));
}

void TarFeed::forget(std::uint64_t offset) {
  wanted_ = std::max(wanted_, offset);
  offset = std::min(offset, held_end());
  if (offset <= begin_) return;
  first_ += static_cast<std::size_t>(offset - begin_);
  begin_ = offset;
}

}  // namespace penstock::format
