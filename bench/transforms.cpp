// Shuffled rows that are transformed on their way into batches, beside two threads of a bare loop that reads the same
// rows in the same order, does the same arithmetic and writes the floats into a buffer that is used again. Prints the
// ratio of both in one run.
//
//   bench_transforms [FOLDER] [--rounds N]

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/format.h"
#include "penstock/penstock.h"
#include "support/bare_convert.h"
#include "support/compare.h"

namespace {

namespace fs = std::filesystem;
using namespace penstock;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t kRows = 100'000;
constexpr std::int64_t kPixels = 1024;
constexpr std::int64_t kRowBytes = 3 * kPixels;
constexpr std::int64_t kBatch = 256;

Tensor images() {
  Tensor out = Tensor::zeros({kRows, 3, 32, 32}, DType::uint8);
  std::mt19937_64 bits(1);
  auto* const words = reinterpret_cast<std::uint64_t*>(out.data());
  for (std::int64_t i = 0; i < kRows * kRowBytes / 8; ++i) words[i] = bits();
  return out;
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
  std::vector<bench::Floats> buffers;
  for (int t = 0; t < 2; ++t) buffers.push_back(bench::batch_memory(kBatch * kRowBytes));

  const Dataset plain = rows(path);
  const Dataset normalized =
      plain.cast(DType::float32)
          .scale(1 / 255.0)
          .normalize({bench::kMean.begin(), bench::kMean.end()}, {bench::kStd.begin(), bench::kStd.end()});
  std::vector<bench::Way> ways;
  ways.push_back({"a bare loop, 2 threads",
                  [&] { return bench::seconds_of([&] { bench::normalize_rows(pixels, kPixels, order, buffers); }); }});
  for (const std::size_t workers : {0, 1, 2}) {
    ways.push_back({core::format("normalized, {} workers", workers),
                    [&, workers] { return bench::seconds_of([&] { epoch(normalized, workers); }); }});
  }
  ways.push_back({"the bytes as they are, 2 workers", [&] { return bench::seconds_of([&] { epoch(plain, 2); }); }});
  bench::compare("100,000 shuffled uint8 rows of 3 KB to normalized float32, batches of 256", kRows * 1e-6, "M rows/s",
                 ways, rounds);
  return 0;
}
