// Address space is reserved once and filled with ranges, one behind the other:
//
//   | range | range | range |        reserved         |
//
// When a range does not fit any more, everything is unmapped by one call and a new window begins. Each unmapping
// interrupts all processors that run the process, whatever its size, so that fewer are cheaper.

#include "io/read/mapping_window.h"

#include <sys/mman.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/checked.h"
#include "core/round.h"
#include "core/stopwatch.h"
#include "device/host_blocks.h"

namespace penstock::io {
namespace {

// Where the page cache keeps a file in folios of this size, one entry of the page table does for each, if the address
// is a multiple of it wherever the place in the file is.
using device::kHugePage;
// Eight ranges of the usual 8 MiB, with what is mapped before and behind them.
constexpr std::size_t kWindowBytes = 8 * (8 * 1024 * 1024 + kHugePage);

std::byte* round_up(std::byte* address) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  return address + (core::round_up(number, kHugePage) - number);
}

}  // namespace

MappingWindow::~MappingWindow() { release(); }

const std::byte* MappingWindow::map(const ByteSource& source, std::uint64_t offset, std::size_t bytes) noexcept {
  if (source.descriptor() < 0) return nullptr;
  const auto lead = static_cast<std::size_t>(offset % kHugePage);
  const std::optional<std::size_t> end = core::try_add(lead, bytes);
  if (!end || *end > std::numeric_limits<std::size_t>::max() - 2 * kHugePage) return nullptr;
  const std::size_t length = core::round_up(*end, kHugePage);
  if (!reserve(length)) return nullptr;
  // MAP_SHARED, as in map_file.
  void* const at =
      ::mmap(next_, length, PROT_READ, MAP_SHARED | MAP_FIXED, source.descriptor(), static_cast<off_t>(offset - lead));
  if (at == MAP_FAILED) {
    leave_out(length);
    return nullptr;
  }
  next_ += length;
  mapped_ += bytes;
  return static_cast<const std::byte*>(at) + lead;
}

bool MappingWindow::reserve(std::size_t bytes) noexcept {
  if (base_ != nullptr && bytes <= static_cast<std::size_t>(base_ + size_ - next_)) return true;
  release();
  const std::size_t size = std::max(bytes, kWindowBytes) + kHugePage;
  void* const base = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return false;
  base_ = static_cast<std::byte*>(base);
  size_ = size;
  next_ = round_up(base_);
  return true;
}

/// A refused mapping may have removed what was reserved there (Linux before 6.12), where others may map by now.
void MappingWindow::leave_out(std::size_t hole) noexcept {
  std::byte* const behind = next_ + hole;
  if (next_ > base_) ::munmap(base_, static_cast<std::size_t>(next_ - base_));
  if (base_ + size_ > behind) ::munmap(behind, static_cast<std::size_t>(base_ + size_ - behind));
  base_ = next_ = nullptr;
  size_ = 0;
  mapped_ = 0;
}

void MappingWindow::release() noexcept {
  if (base_ == nullptr) return;
  core::Stopwatch watch;
  ::munmap(base_, size_);
  unmapped_.seconds += watch.lap();
  unmapped_.bytes += std::exchange(mapped_, 0);
  base_ = next_ = nullptr;
  size_ = 0;
}

}  // namespace penstock::io
