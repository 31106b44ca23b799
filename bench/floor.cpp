// What the machine does with the same files and no library in between: one measurement, printed as one line of JSON.
//
//   bench_floor files LIST THREADS            open+fstat+read+close of every path in LIST, one a line
//   bench_floor rows THREADS FILE...          memcpy of shuffled rows of the arrays, mapped
//   bench_floor read THREADS FILE             pread of the whole file into fresh huge pages

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../cli/bench_floor.h"
#include "penstock/load.h"
#include "penstock/sampler.h"

namespace {

using penstock::cli::Floor;

Floor files(const std::string& list, std::size_t threads) {
  std::ifstream lines(list);
  std::vector<std::string> paths;
  for (std::string line; std::getline(lines, line);) paths.push_back(line);
  return penstock::cli::file_floor(paths, threads);
}

Floor rows(const std::vector<std::string>& arrays, std::size_t threads) {
  std::vector<penstock::Tensor> columns;
  for (const std::string& path : arrays) columns.push_back(penstock::load(path));
  return penstock::cli::row_floor(columns, penstock::random(columns[0].shape()[0])->order(1, 0), threads);
}

void pread_all(int fd, std::byte* to, std::size_t first, std::size_t last) {
  constexpr std::size_t kPiece = std::size_t{8} << 20;
  while (first < last) {
    const ssize_t got = ::pread(fd, to + first, std::min(kPiece, last - first), static_cast<off_t>(first));
    if (got <= 0) throw std::runtime_error("the file cannot be read");
    first += static_cast<std::size_t>(got);
  }
}

Floor whole_read(const std::string& path, std::size_t threads) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat facts {};
  if (fd < 0 || ::fstat(fd, &facts) != 0) throw std::runtime_error("cannot open " + path);
  const auto size = static_cast<std::size_t>(facts.st_size);
  const auto started = std::chrono::steady_clock::now();
  void* const block = ::mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) throw std::runtime_error("no memory for " + path);
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  auto* const to = reinterpret_cast<std::byte*>((address + kHugePage - 1) / kHugePage * kHugePage);
  ::madvise(to, size, MADV_HUGEPAGE);
  {
    std::vector<std::jthread> workers;
    for (std::size_t t = 0; t < threads; ++t) {
      workers.emplace_back(
          [=] { pread_all(fd, to, size / threads * t, t + 1 == threads ? size : size / threads * (t + 1)); });
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  ::munmap(block, size + kHugePage);
  ::close(fd);
  return {fmt::format("pread into fresh huge pages, {} threads", threads), 1 / seconds,
          static_cast<double>(size) / seconds};
}

Floor measure(const std::vector<std::string>& args) {
  if (args.size() == 3 && args[0] == "files") return files(args[1], std::stoul(args[2]));
  if (args.size() >= 3 && args[0] == "rows") return rows({args.begin() + 2, args.end()}, std::stoul(args[1]));
  if (args.size() == 3 && args[0] == "read") return whole_read(args[2], std::stoul(args[1]));
  throw std::runtime_error("usage: bench_floor files LIST THREADS | rows THREADS FILE... | read THREADS FILE");
}

}  // namespace

int main(int argc, char** argv) try {
  const Floor floor = measure({argv + 1, argv + argc});
  fmt::print("{{\"what\": \"{}\", \"samples_per_second\": {:.1f}, \"bytes_per_second\": {:.1f}}}\n", floor.what,
             floor.samples_per_second, floor.bytes_per_second);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "bench_floor: {}\n", error.what());
  return 2;
}
