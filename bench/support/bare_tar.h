#pragma once

// Tar shards by bare system calls, all of which are open before the clock starts: each thread reads into memory of its
// own, which it uses again.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace penstock::bench {

class OpenShards {
 public:
  explicit OpenShards(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      struct stat facts {};
      fds_.push_back(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (fds_.back() < 0 || ::fstat(fds_.back(), &facts) != 0) throw std::runtime_error("cannot open " + path);
      sizes_.push_back(static_cast<std::size_t>(facts.st_size));
    }
  }
  ~OpenShards() {
    for (const int fd : fds_) ::close(fd);
  }
  OpenShards(const OpenShards&) = delete;
  OpenShards& operator=(const OpenShards&) = delete;

  std::size_t count() const noexcept { return fds_.size(); }
  std::size_t bytes(std::size_t shard) const noexcept { return sizes_[shard]; }
  std::size_t bytes() const noexcept {
    std::size_t all = 0;
    for (const std::size_t size : sizes_) all += size;
    return all;
  }
  /// `bytes` at `offset`, fewer at the end of the shard.
  std::size_t read(std::size_t shard, std::size_t offset, std::byte* to, std::size_t bytes) const {
    const ssize_t got = ::pread(fds_[shard], to, bytes, static_cast<off_t>(offset));
    if (got < 0) throw std::runtime_error("a shard cannot be read");
    return static_cast<std::size_t>(got);
  }

 private:
  std::vector<int> fds_;
  std::vector<std::size_t> sizes_;
};

/// `body(i, memory)` for i below `count`; threads take so many at a time.
template <class Body>
void share_out(std::size_t count, std::size_t at_a_time, std::size_t threads, const Body& body) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> workers;
  for (std::size_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, memory = std::vector<std::byte>(std::size_t{1} << 20)]() mutable {
      for (std::size_t first = next.fetch_add(at_a_time); first < count; first = next.fetch_add(at_a_time)) {
        for (std::size_t i = first; i < std::min(first + at_a_time, count); ++i) body(i, memory);
      }
    });
  }
}

/// All of every shard, front to back, in pieces of half a MiB.
inline void read_shards(const OpenShards& shards, std::size_t threads) {
  constexpr std::size_t kPiece = std::size_t{512} << 10;
  share_out(shards.count(), 1, threads, [&](std::size_t shard, std::vector<std::byte>& memory) {
    for (std::size_t at = 0; at < shards.bytes(shard);) at += shards.read(shard, at, memory.data(), kPiece);
  });
}

struct SamplePlace {
  std::size_t shard;
  std::size_t offset;
  std::size_t bytes;
};

/// Samples one by one, in their order.
inline void read_samples(const OpenShards& shards, const std::vector<SamplePlace>& samples, std::size_t threads) {
  constexpr std::size_t kBatch = 32;
  share_out(samples.size(), kBatch, threads, [&](std::size_t i, std::vector<std::byte>& memory) {
    const SamplePlace& place = samples[i];
    const std::size_t got = shards.read(place.shard, place.offset, memory.data(), std::min(place.bytes, memory.size()));
    if (got < place.bytes) throw std::runtime_error("a sample lies behind the end of its shard");
  });
}

/// From header to header, each by a read of its own; returns how many there are.
inline std::size_t read_headers(const OpenShards& shards, std::size_t threads) {
  constexpr std::size_t kBlock = 512;
  constexpr std::size_t kSize = 124;  // eleven octal digits
  std::atomic<std::size_t> headers = 0;
  share_out(shards.count(), 1, threads, [&](std::size_t shard, std::vector<std::byte>& memory) {
    for (std::size_t at = 0; at < shards.bytes(shard);) {
      if (shards.read(shard, at, memory.data(), kBlock) < kBlock || memory[0] == std::byte{0}) break;
      std::array<char, 12> digits{};
      std::transform(memory.begin() + kSize, memory.begin() + kSize + 11, digits.begin(),
                     [](std::byte byte) { return static_cast<char>(byte); });
      const std::size_t size = std::strtoul(digits.data(), nullptr, 8);
      at += kBlock + (size + kBlock - 1) / kBlock * kBlock;
      ++headers;
    }
  });
  return headers;
}

}  // namespace penstock::bench
