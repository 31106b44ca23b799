#include "io/mapping_window.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace penstock::io {
namespace {

// Eight ranges of the usual 8 MiB, each with what it begins behind a page.
constexpr std::size_t kWindowBytes = 65 * 1024 * 1024;

}  // namespace

MappingWindow::~MappingWindow() { release(); }

const std::byte* MappingWindow::map(const ByteSource& source, std::uint64_t offset, std::size_t bytes) noexcept {
  if (source.descriptor() < 0) return nullptr;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto lead = static_cast<std::size_t>(offset % page);
  const std::size_t pages = (lead + bytes + page - 1) / page * page;
  if (!reserve(pages)) return nullptr;
  // MAP_SHARED, as in map_file.
  void* const at = ::mmap(base_ + used_, lead + bytes, PROT_READ, MAP_SHARED | MAP_FIXED, source.descriptor(),
                          static_cast<off_t>(offset - lead));
  if (at == MAP_FAILED) return nullptr;
  used_ += pages;
  return static_cast<const std::byte*>(at) + lead;
}

bool MappingWindow::reserve(std::size_t bytes) noexcept {
  if (bytes <= size_ - used_) return true;
  release();
  const std::size_t size = std::max(bytes, kWindowBytes);
  void* const base = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return false;
  base_ = static_cast<std::byte*>(base);
  size_ = size;
  return true;
}

void MappingWindow::release() noexcept {
  if (base_ != nullptr) ::munmap(base_, size_);
  base_ = nullptr;
  size_ = used_ = 0;
}

}  // namespace penstock::io
