// mincore(2) says of each page whether it is in memory, without bringing it there. The clock is the one that is read
// without a system call everywhere, and that moves every few milliseconds.

#include "io/read/resident_pages.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <array>

#include "core/round.h"

namespace penstock::io {

namespace {

std::chrono::nanoseconds coarse_now() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace

bool ResidentPages::hold(std::span<const std::byte> bytes) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  if (bytes.empty()) return true;
  const std::chrono::nanoseconds now = coarse_now();
  if (address >= begin_ && address + bytes.size() <= end_ && now < until_) return true;
  const std::uintptr_t page = core::page_size();
  const std::uintptr_t first = core::round_down(address, page);
  const std::uintptr_t last = core::round_up(address + bytes.size(), page);
  std::array<unsigned char, 512> there;
  for (std::uintptr_t at = first; at < last; at += there.size() * page) {
    const std::uintptr_t end = std::min(last, at + there.size() * page);
    if (::mincore(reinterpret_cast<void*>(at), end - at, there.data()) != 0) return false;
    const auto pages = static_cast<std::ptrdiff_t>((end - at) / page);
    const auto is_there = [](unsigned char flags) { return (flags & 1U) != 0; };
    if (!std::all_of(there.begin(), there.begin() + pages, is_there)) return false;
  }
  begin_ = first;
  end_ = last;
  until_ = now + believed_;
  return true;
}

}  // namespace penstock::io
