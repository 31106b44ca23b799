// Shuffled rows that are transformed on their way into batches, beside two threads of a bare loop that reads the same
// rows in the same order, does the same arithmetic and writes the floats into a buffer that is used again. Prints the
// ratio of both in one run.
//
//   bench_transforms [FOLDER] [--rounds N]

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/processor.h"
#include "penstock/penstock.h"
#include "support/compare.h"

namespace {

namespace fs = std::filesystem;
using namespace penstock;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t kRows = 100'000;
constexpr std::int64_t kPixels = 1024;
constexpr std::int64_t kRowBytes = 3 * kPixels;
constexpr std::int64_t kBatch = 256;
constexpr float kScale = static_cast<float>(1 / 255.0);
const std::vector<double> kMean = {0.485, 0.456, 0.406};
const std::vector<double> kStd = {0.229, 0.224, 0.225};

Tensor images() {
  Tensor out = Tensor::zeros({kRows, 3, 32, 32}, DType::uint8);
  std::mt19937_64 bits(1);
  auto* const words = reinterpret_cast<std::uint64_t*>(out.data());
  for (std::int64_t i = 0; i < kRows * kRowBytes / 8; ++i) words[i] = bits();
  return out;
}

/// (x / 255 - mean) / std of one image of three channels, in the order of operations that torch has.
[[gnu::always_inline]] inline void convert_row(const std::uint8_t* __restrict from, float* __restrict to) {
  for (std::size_t c = 0; c < 3; ++c) {
    const auto mean = static_cast<float>(kMean[c]);
    const auto std = static_cast<float>(kStd[c]);
    for (std::size_t i = 0; i < kPixels; ++i) {
      to[c * kPixels + i] = (static_cast<float>(from[c * kPixels + i]) * kScale - mean) / std;
    }
  }
}
PENSTOCK_TARGET_AVX2 void convert_row_avx2(const std::uint8_t* from, float* to) { convert_row(from, to); }
void convert_row_plain(const std::uint8_t* from, float* to) { convert_row(from, to); }

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

/// The memory of one thread's batch, on huge pages as the loader's blocks.
std::unique_ptr<float[], Free> batch_buffer() {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t bytes = (kBatch * kRowBytes * sizeof(float) + kHugePage - 1) / kHugePage * kHugePage;
  void* const memory = std::aligned_alloc(kHugePage, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  return std::unique_ptr<float[], Free>(static_cast<float*>(memory));
}

void bare(const std::uint8_t* pixels, const std::vector<std::int64_t>& order,
          const std::vector<std::unique_ptr<float[], Free>>& buffers) {
  const auto convert = core::has_avx2() ? convert_row_avx2 : convert_row_plain;
  std::atomic<std::int64_t> next{0};
  std::vector<std::jthread> threads;
  for (const auto& buffer : buffers) {
    threads.emplace_back([&] {
      for (std::int64_t first = next.fetch_add(kBatch); first < kRows; first = next.fetch_add(kBatch)) {
        const std::int64_t last = std::min(first + kBatch, kRows);
        for (std::int64_t i = first; i < last; ++i) {
          convert(pixels + order[static_cast<std::size_t>(i)] * kRowBytes, buffer.get() + (i - first) * kRowBytes);
        }
      }
    });
  }
}

void epoch(const Dataset& dataset, std::size_t workers) {
  DataLoader loader(dataset, {.batch_size = kBatch, .shuffle = true, .num_workers = workers});
  for (const Batch& batch : loader) (void)batch;
}

}  // namespace

int main(int argc, char** argv) {
  fs::path root = "build/bench-data";
  std::size_t rounds = 7;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--rounds" && i + 1 < argc) {
      rounds = std::stoul(argv[++i]);
    } else if (argument.starts_with("-")) {
      std::fprintf(stderr, "usage: bench_transforms [FOLDER] [--rounds N]\n");
      return argument == "--help" ? 0 : 2;
    } else {
      root = argument;
    }
  }
  fs::create_directories(root);
  const fs::path path = root / "transforms.npy";
  if (!fs::exists(path)) save(Value::tensor(images()), path, {.sync = false});
  const Tensor mapped = load_tensor(path, {.mmap = true});
  const auto* const pixels = reinterpret_cast<const std::uint8_t*>(mapped.data());
  std::vector<std::int64_t> order(kRows);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(7));
  std::vector<std::unique_ptr<float[], Free>> buffers;
  buffers.push_back(batch_buffer());
  buffers.push_back(batch_buffer());

  const Dataset plain = rows(path);
  const Dataset normalized = plain.cast(DType::float32).scale(1 / 255.0).normalize(kMean, kStd);
  std::vector<bench::Way> ways;
  ways.push_back({"a bare loop, 2 threads", [&] { return bench::seconds_of([&] { bare(pixels, order, buffers); }); }});
  for (const std::size_t workers : {0, 1, 2}) {
    ways.push_back({core::format("normalized, {} workers", workers),
                    [&, workers] { return bench::seconds_of([&] { epoch(normalized, workers); }); }});
  }
  ways.push_back({"the bytes as they are, 2 workers", [&] { return bench::seconds_of([&] { epoch(plain, 2); }); }});
  bench::compare("100,000 shuffled uint8 rows of 3 KB to normalized float32, batches of 256", kRows * 1e-6, "M rows/s",
                 ways, rounds);
  return 0;
}
