#pragma once

// A whole file into huge pages by bare system calls: what reads of large files are compared with.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/format.h"

namespace penstock::bench {

struct BareRead {
  bool direct = false;  ///< O_DIRECT
  bool kept = false;    ///< into memory that has been written before
  std::size_t threads = 2;
  std::size_t piece = std::size_t{8} << 20;  ///< bytes of a pread; a multiple of every disk's block
};

inline std::string name_of(const BareRead& how) {
  return core::format("pread{} of {} KiB into {} huge pages, {} threads", how.direct ? " past the cache" : "",
                      how.piece / 1024, how.kept ? "kept" : "fresh", how.threads);
}

/// Huge pages that nobody has touched.
class FreshMemory {
 public:
  explicit FreshMemory(std::size_t bytes) : bytes_(bytes + kHugePage) {
    block_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block_ == MAP_FAILED) throw std::runtime_error("no memory for the file");
    const auto address = reinterpret_cast<std::uintptr_t>(block_);
    data_ = static_cast<std::byte*>(block_) + (kHugePage - address % kHugePage) % kHugePage;
    ::madvise(data_, bytes, MADV_HUGEPAGE);
  }
  ~FreshMemory() { ::munmap(block_, bytes_); }
  FreshMemory(const FreshMemory&) = delete;
  FreshMemory& operator=(const FreshMemory&) = delete;
  std::byte* data() const noexcept { return data_; }

 private:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
  std::size_t bytes_;
  void* block_;
  std::byte* data_;
};

/// Reads pieces from `next` on until there are none.
inline void read_pieces(int fd, std::byte* to, std::size_t size, std::size_t piece, std::atomic<std::size_t>& next) {
  constexpr std::size_t kBlock = 4096;
  for (std::size_t at = next.fetch_add(piece); at < size; at = next.fetch_add(piece)) {
    const std::size_t wanted = std::min(piece, size - at);
    // Past the cache only whole blocks are read; the memory is larger than the file for that.
    const ssize_t got = ::pread(fd, to + at, (wanted + kBlock - 1) / kBlock * kBlock, static_cast<off_t>(at));
    if (got < static_cast<ssize_t>(wanted)) throw std::runtime_error("the file cannot be read");
  }
}

/// Seconds from opening the file to having all of it.
inline double bare_read(const std::string& path, const BareRead& how) {
  std::optional<FreshMemory> memory;
  if (how.kept) {
    const auto bytes = static_cast<std::size_t>(std::filesystem::file_size(path)) + 4096;
    std::memset(memory.emplace(bytes).data(), 1, bytes);
  }
  const auto started = std::chrono::steady_clock::now();
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | (how.direct ? O_DIRECT : 0));
  struct stat facts {};
  if (fd < 0 || ::fstat(fd, &facts) != 0) throw std::runtime_error("cannot open " + path);
  const auto size = static_cast<std::size_t>(facts.st_size);
  if (!memory) memory.emplace(size + 4096);
  std::atomic<std::size_t> next = 0;
  {
    std::vector<std::jthread> workers;
    for (std::size_t t = 0; t < how.threads; ++t) {
      workers.emplace_back([&] { read_pieces(fd, memory->data(), size, how.piece, next); });
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  ::close(fd);
  return seconds;
}

}  // namespace penstock::bench
