#include "format/tar/bytes.h"

#include <algorithm>
#include <utility>

#include "io/source/source.h"

namespace penstock::format {
namespace {

/// Holds a header, the content of a number or label, and the next header: most shards have such members.
constexpr std::size_t kLocalWindow = 2048;
/// What a round trip should bring at least, and at most.
constexpr std::size_t kRemoteWindow = std::size_t{64} << 10;
constexpr std::size_t kRemoteMost = std::size_t{8} << 20;

}  // namespace

std::span<const std::byte> TarMemory::view(std::uint64_t offset, std::size_t count) {
  if (offset < begin_ || offset - begin_ >= bytes_.size()) return {};
  const auto at = static_cast<std::size_t>(offset - begin_);
  return bytes_.subspan(at, std::min(count, bytes_.size() - at));
}

TarWindow::TarWindow(Source source) : source_(std::move(source)), grows_(io::beneath(*source_).descriptor() < 0) {}

std::size_t TarWindow::window_at(std::uint64_t offset) noexcept {
  if (!grows_) return kLocalWindow;
  // Little was passed by since the last window: the next ones are worth a longer read.
  const bool goes_on = window_ != 0 && offset - begin_ < 2 * std::uint64_t{window_};
  window_ = goes_on ? std::min(window_ * 2, kRemoteMost) : kRemoteWindow;
  return window_;
}

std::span<const std::byte> TarWindow::view(std::uint64_t offset, std::size_t count) {
  if (offset >= size()) return {};
  count = static_cast<std::size_t>(std::min<std::uint64_t>(count, size() - offset));
  const bool is_held = offset >= begin_ && offset - begin_ <= held_.size() && held_.size() - (offset - begin_) >= count;
  if (!is_held) {
    const std::size_t wanted = std::max(count, window_at(offset));
    held_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(wanted, size() - offset)));
    source_.read(offset, held_);
    begin_ = offset;
    read_ += held_.size();
  }
  return std::span<const std::byte>(held_).subspan(static_cast<std::size_t>(offset - begin_), count);
}

}  // namespace penstock::format
