// Shuffled rows of a mapped file into batches: guarded_gather against memcpy of the same rows.
// bench_gather [FILE [ROW_BYTES [ROUNDS]]]

#include "io/copy/gather.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>
#include <thread>

#include "core/format.h"
#include "io/read/reader.h"
#include "penstock/source.h"
#include "support/compare.h"

namespace penstock {
namespace {

constexpr std::size_t kThreads = 2;
constexpr std::size_t kBatch = 256;
constexpr std::size_t kSlots = 4;  // batches that a loader keeps in flight, for each thread

using CopyRows = void (*)(std::span<const io::GatherRow> rows, std::size_t row_bytes);

void plain_copy(std::span<const io::GatherRow> rows, std::size_t row_bytes) {
  for (const io::GatherRow& row : rows) std::memcpy(row.to, row.from, row_bytes);
}
void guarded(std::span<const io::GatherRow> rows, std::size_t row_bytes) {
  io::guarded_gather(rows, row_bytes, "bench");
}
/// One epoch over all rows in a shuffled order.
double epoch_seconds(const Buffer& file, std::size_t row_bytes, std::span<const std::uint32_t> order, CopyRows copy) {
  std::array<Buffer, kThreads> memory;
  for (Buffer& buffer : memory) {
    buffer = Buffer::allocate(kSlots * kBatch * row_bytes);
    std::memset(buffer.data(), 0, buffer.size());
  }
  const auto work = [&](std::size_t thread) {
    std::array<io::GatherRow, kBatch> rows;
    std::size_t slot = 0;
    for (std::size_t first = thread * kBatch; first + kBatch <= order.size(); first += kThreads * kBatch) {
      std::byte* to = memory[thread].data() + slot++ % kSlots * kBatch * row_bytes;
      for (std::size_t i = 0; i < kBatch; ++i)
        rows[i] = {to + i * row_bytes, file.data() + order[first + i] * row_bytes};
      copy(rows, row_bytes);
    }
  };
  return bench::seconds_of([&] {
    std::thread other(work, 1);
    work(0);
    other.join();
  });
}

std::string default_file() {
  const std::string path = (std::filesystem::temp_directory_path() / "penstock-bench-rows.bin").string();
  constexpr std::uintmax_t kBytes = 614'400'000;
  std::error_code ignored;
  if (std::filesystem::file_size(path, ignored) == kBytes) return path;
  const std::vector<char> block(6'144'000, 'x');
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  for (std::uintmax_t at = 0; at < kBytes; at += block.size()) {
    if (::write(fd, block.data(), block.size()) != static_cast<ssize_t>(block.size())) std::abort();
  }
  ::close(fd);
  return path;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  using namespace penstock;
  const Source source = open_source(argc > 1 ? argv[1] : default_file());
  const std::size_t row_bytes = argc > 2 ? static_cast<std::size_t>(std::atoi(argv[2])) : 3072;
  const std::size_t rounds = argc > 3 ? static_cast<std::size_t>(std::atoi(argv[3])) : 15;
  std::vector<std::uint32_t> order(source.size() / row_bytes);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));

  const auto amount = static_cast<double>(order.size() / kBatch * kBatch) / 1e6;
  const auto fresh = [&](CopyRows copy) { return epoch_seconds(io::map_source(*source), row_bytes, order, copy); };
  bench::compare(core::format("rows of {} bytes, mapping just made", row_bytes), amount, "M rows/s",
                 {{"memcpy", [&] { return fresh(plain_copy); }}, {"guarded_gather", [&] { return fresh(guarded); }}},
                 rounds);
  const Buffer file = io::map_source(*source);
  const auto warm = [&](CopyRows copy) { return epoch_seconds(file, row_bytes, order, copy); };
  bench::compare(core::format("rows of {} bytes, mapping in use", row_bytes), amount, "M rows/s",
                 {{"memcpy", [&] { return warm(plain_copy); }}, {"guarded_gather", [&] { return warm(guarded); }}},
                 rounds);
}
