#include "cli/bench/bench_floor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "core/format.h"
#include "penstock/error.h"

namespace penstock::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// Runs body(first, last, thread) over blocks of [0, count) on `threads` threads and returns the seconds it took.
double timed_blocks(std::size_t count, std::size_t threads,
                    const std::function<void(std::size_t, std::size_t, std::size_t)>& body) {
  constexpr std::size_t kBlock = 32;
  std::atomic<std::size_t> next{0};
  const auto started = Clock::now();
  {
    std::vector<std::jthread> workers;
    for (std::size_t t = 0; t < threads; ++t) {
      workers.emplace_back([&, t] {
        for (std::size_t first = next.fetch_add(kBlock); first < count; first = next.fetch_add(kBlock)) {
          body(first, std::min(first + kBlock, count), t);
        }
      });
    }
  }
  return std::chrono::duration<double>(Clock::now() - started).count();
}

/// 0 when the file cannot be read; the loader has named it already.
std::uint64_t read_whole(const std::string& path, std::vector<char>& scratch) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  struct stat facts {};
  std::uint64_t total = 0;
  if (::fstat(fd, &facts) == 0) {
    const std::size_t piece = std::min(scratch.size(), static_cast<std::size_t>(std::max<off_t>(facts.st_size, 1)));
    ssize_t got = 0;
    while (total < static_cast<std::uint64_t>(facts.st_size) && (got = ::read(fd, scratch.data(), piece)) > 0)
      total += static_cast<std::uint64_t>(got);
  }
  ::close(fd);
  return total;
}

Floor rates(std::string what, std::size_t samples, std::uint64_t bytes, double seconds) {
  return {std::move(what), static_cast<double>(samples) / seconds, static_cast<double>(bytes) / seconds};
}

}  // namespace

Floor file_floor(const std::vector<std::string>& paths, std::size_t threads) {
  std::atomic<std::uint64_t> bytes{0};
  constexpr std::size_t kPiece = std::size_t{8} << 20;
  std::vector<std::vector<char>> scratch(threads, std::vector<char>(kPiece));
  const double seconds = timed_blocks(paths.size(), threads, [&](std::size_t first, std::size_t last, std::size_t t) {
    std::uint64_t sum = 0;
    for (std::size_t i = first; i < last; ++i) sum += read_whole(paths[i], scratch[t]);
    bytes += sum;
  });
  return rates(core::format("open+fstat+read+close by {} thread{}", threads, threads == 1 ? "" : "s"), paths.size(),
               bytes, seconds);
}

Floor row_floor(const std::vector<Tensor>& columns, const std::vector<std::int64_t>& order, std::size_t threads) {
  std::uint64_t row_bytes = 0;
  for (const Tensor& column : columns) row_bytes += column.nbytes() / static_cast<std::uint64_t>(column.shape()[0]);
  constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
  const std::size_t in_flight = std::clamp<std::size_t>(kMostBytes / std::max<std::uint64_t>(row_bytes, 1), 1, 256);
  std::vector<std::vector<char>> scratch(threads, std::vector<char>(row_bytes * in_flight));
  const double seconds = timed_blocks(order.size(), threads, [&](std::size_t first, std::size_t last, std::size_t t) {
    for (std::size_t i = first; i < last; ++i) {
      char* to = scratch[t].data() + (i % in_flight) * row_bytes;
      for (const Tensor& column : columns) {
        const std::size_t size = column.nbytes() / static_cast<std::size_t>(column.shape()[0]);
        std::memcpy(to, column.data() + static_cast<std::size_t>(order[i]) * size, size);
        to += size;
      }
    }
  });
  return rates(core::format("memcpy of the rows by {} thread{}", threads, threads == 1 ? "" : "s"), order.size(),
               row_bytes * order.size(), seconds);
}

}  // namespace penstock::cli
