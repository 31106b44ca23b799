// mincore(2) says of each page whether it is in memory, without bringing it there.

#include "io/read/resident_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>

#include "core/round.h"

namespace penstock::io {

bool ResidentPages::hold(std::span<const std::byte> bytes) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  if (bytes.empty() || (address >= begin_ && address + bytes.size() <= end_)) return true;
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
  return true;
}

}  // namespace penstock::io
