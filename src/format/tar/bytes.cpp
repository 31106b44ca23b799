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

TarWindow::TarWindow(Source source, std::size_t ahead)
    : source_(std::move(source)), grows_(io::beneath(*source_).descriptor() < 0), most_ahead_(grows_ ? ahead : 0) {}

std::size_t TarWindow::window_at(std::uint64_t offset) noexcept {
  if (!grows_) return kLocalWindow;
  // Little was passed by since the last window: the next ones are worth a longer read.
  const bool goes_on = window_ != 0 && offset - begin_ < 2 * std::uint64_t{window_};
  window_ = goes_on ? std::min(window_ * 4, kRemoteMost) : kRemoteWindow;
  return window_;
}

/// Whether a window that was asked for has these bytes, which is held then.
bool TarWindow::take_ahead(std::uint64_t offset, std::size_t count) {
  while (!ahead_.empty() && ahead_.front()->end() <= offset) ahead_.pop_front();
  if (ahead_.empty()) return false;
  io::BackgroundRead& next = *ahead_.front();
  if (offset < next.begin() || next.end() - offset < count) {
    ahead_.clear();
    return false;
  }
  const std::span<const std::byte> bytes = next.bytes().subspan(static_cast<std::size_t>(offset - next.begin()));
  held_.assign(bytes.begin(), bytes.end());
  begin_ = offset;
  read_ += held_.size();
  ahead_.pop_front();
  return true;
}

void TarWindow::ask_ahead() {
  if (window_ < kRemoteMost) return;
  while (ahead_.size() < most_ahead_) {
    const std::uint64_t begin = ahead_.empty() ? begin_ + held_.size() : ahead_.back()->end();
    if (begin >= size()) return;
    const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(kRemoteMost, size() - begin));
    ahead_.push_back(std::make_unique<io::BackgroundRead>(source_, begin, bytes));
  }
}

std::span<const std::byte> TarWindow::view(std::uint64_t offset, std::size_t count) {
  if (offset >= size()) return {};
  count = static_cast<std::size_t>(std::min<std::uint64_t>(count, size() - offset));
  const bool is_held = offset >= begin_ && offset - begin_ <= held_.size() && held_.size() - (offset - begin_) >= count;
  if (!is_held && !take_ahead(offset, count)) {
    const std::size_t wanted = std::max(count, window_at(offset));
    held_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(wanted, size() - offset)));
    source_.read(offset, held_);
    begin_ = offset;
    read_ += held_.size();
  }
  if (!is_held) ask_ahead();
  return std::span<const std::byte>(held_).subspan(static_cast<std::size_t>(offset - begin_), count);
}

}  // namespace penstock::format
