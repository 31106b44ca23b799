#include "cli/bench/bench_floor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <thread>

#include "core/format.h"

namespace penstock::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// body(first, last, thread), for the samples [first, last).
using Body = std::function<void(std::size_t, std::size_t, std::size_t)>;

/// The seconds that `passes` passes over blocks of [0, count) take on `threads` threads, from when they have started.
double time_passes(std::size_t count, std::size_t passes, std::size_t threads, const Body& body) {
  constexpr std::size_t kBlock = 32;
  const std::size_t blocks = (count - 1) / kBlock + 1;
  std::atomic<std::size_t> next{0};
  Clock::time_point started;
  std::barrier ready(static_cast<std::ptrdiff_t>(threads), [&]() noexcept { started = Clock::now(); });
  {
    std::vector<std::jthread> workers;
    for (std::size_t t = 0; t < threads; ++t) {
      workers.emplace_back([&, t] {
        ready.arrive_and_wait();
        for (std::size_t block = next++; block < blocks * passes; block = next++) {
          const std::size_t first = block % blocks * kBlock;
          body(first, std::min(first + kBlock, count), t);
        }
      });
    }
  }
  return std::chrono::duration<double>(Clock::now() - started).count();
}

/// The seconds of one pass. Few samples are passed over again and again, because the end of the threads would be most
/// of what is measured.
double time_pass(std::size_t count, std::size_t threads, const Body& body) {
  constexpr std::size_t kMostPasses = std::size_t{1} << 20;
  std::size_t passes = 1;
  double seconds = time_passes(count, passes, threads, body);
  while (seconds < kLeastFloorSeconds && passes < kMostPasses) {
    passes *= 4;
    seconds = time_passes(count, passes, threads, body);
  }
  return seconds / static_cast<double>(passes);
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

Floor rates(std::string what, std::size_t samples, double bytes_a_sample, double seconds) {
  const double rate = static_cast<double>(samples) / seconds;
  return {std::move(what), rate, rate * bytes_a_sample};
}

}  // namespace

Floor file_floor(const std::vector<std::string>& paths, std::size_t threads) {
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> files{0};
  constexpr std::size_t kPiece = std::size_t{8} << 20;
  std::vector<std::vector<char>> scratch(threads, std::vector<char>(kPiece));
  const double seconds = time_pass(paths.size(), threads, [&](std::size_t first, std::size_t last, std::size_t t) {
    std::uint64_t sum = 0;
    for (std::size_t i = first; i < last; ++i) sum += read_whole(paths[i], scratch[t]);
    bytes += sum;
    files += last - first;
  });
  const double bytes_a_file = static_cast<double>(bytes) / static_cast<double>(files);
  return rates(core::format("open+fstat+read+close by {} thread{}", threads, threads == 1 ? "" : "s"), paths.size(),
               bytes_a_file, seconds);
}

Floor row_floor(const std::vector<Tensor>& columns, const std::vector<std::int64_t>& order, std::size_t threads) {
  std::uint64_t row_bytes = 0;
  for (const Tensor& column : columns) row_bytes += column.nbytes() / static_cast<std::uint64_t>(column.shape()[0]);
  constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
  const std::size_t in_flight = std::clamp<std::size_t>(kMostBytes / std::max<std::uint64_t>(row_bytes, 1), 1, 256);
  std::vector<std::vector<char>> scratch(threads, std::vector<char>(row_bytes * in_flight));
  const double seconds = time_pass(order.size(), threads, [&](std::size_t first, std::size_t last, std::size_t t) {
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
               static_cast<double>(row_bytes), seconds);
}

}  // namespace penstock::cli
