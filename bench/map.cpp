// A function of the program behind a folder of small files: Dataset::map in a loader with two workers, beside the same
// function in a bare loop of two threads that open, read and close the same files and write into the slots of a batch.
// Prints the ratio of both in one run.
//
//   bench_map [FOLDER] [--rounds N] [--microseconds N]

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/format.h"
#include "penstock/penstock.h"

namespace {

namespace fs = std::filesystem;
using namespace penstock;  // NOLINT(google-build-using-namespace)
using Clock = std::chrono::steady_clock;

constexpr std::size_t kFiles = 10'000;
constexpr std::size_t kBatch = 32;
constexpr std::int64_t kElements = 1024;
constexpr std::size_t kHeader = 128;  // of a .npy of one dimension

/// Arithmetic that takes as long as it is told to: the same for both.
struct Work {
  int passes = 1;

  void operator()(const float* in, float* out) const {
    for (std::int64_t i = 0; i < kElements; ++i) out[i] = in[i];
    for (int pass = 0; pass < passes; ++pass) {
      for (std::int64_t i = 0; i < kElements; ++i) out[i] = out[i] * 0.99F + 0.5F;
    }
  }
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Work of about so many microseconds.
Work work_of(double microseconds) {
  std::vector<float> in(kElements, 1), out(kElements);
  constexpr int kCalls = 2000;
  const auto took = [&](const Work& work) {
    double best = 1e9;
    for (int round = 0; round < 7; ++round) {
      const auto start = Clock::now();
      for (int i = 0; i < kCalls; ++i) work(in.data(), out.data());
      best = std::min(best, 1e6 * seconds_since(start) / kCalls);
    }
    return best;
  };
  Work work{64};
  work.passes = std::max(1, static_cast<int>(64 * microseconds / took(work)));
  std::printf("the function takes %.1f us\n", took(work));
  return work;
}

std::vector<std::string> write(const fs::path& root) {
  fs::create_directories(root);
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < kFiles; ++i) {
    paths.push_back((root / core::format("{:05}.npy", i)).string());
    if (!fs::exists(paths.back())) save(full({kElements}, 1.5, DType::float32), paths.back(), {.sync = false});
  }
  return paths;
}

double bare(const std::vector<std::string>& paths, const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto start = Clock::now();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        std::vector<float> slots(kBatch * kElements);
        std::vector<char> file(kHeader + kElements * sizeof(float) + 1);
        std::vector<float> in(kElements);
        for (std::size_t first = next.fetch_add(kBatch); first < paths.size(); first = next.fetch_add(kBatch)) {
          for (std::size_t i = first; i < std::min(first + kBatch, paths.size()); ++i) {
            const int fd = ::open(paths[i].c_str(), O_RDONLY | O_CLOEXEC);
            if (fd < 0 || ::read(fd, file.data(), file.size()) + 1 != static_cast<ssize_t>(file.size())) {
              throw std::runtime_error("cannot read " + paths[i]);
            }
            ::close(fd);
            std::memcpy(in.data(), file.data() + kHeader, kElements * sizeof(float));
            work(in.data(), slots.data() + (i - first) * kElements);
          }
        }
      });
    }
  }
  return seconds_since(start);
}

double mapped(const Dataset& dataset) {
  const auto start = Clock::now();
  DataLoader loader(dataset, {.batch_size = kBatch, .num_workers = 2});
  for (const Batch& batch : loader) (void)batch;
  return seconds_since(start);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  fs::path root = "build/bench-data/map";
  int rounds = 9;
  double microseconds = 20;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--rounds" && i + 1 < argc) {
      rounds = std::stoi(argv[++i]);
    } else if (argument == "--microseconds" && i + 1 < argc) {
      microseconds = std::stod(argv[++i]);
    } else if (argument.starts_with("-")) {
      std::fprintf(stderr, "usage: bench_map [FOLDER] [--rounds N] [--microseconds N]\n");
      return argument == "--help" ? 0 : 2;
    } else {
      root = argument;
    }
  }
  const std::vector<std::string> paths = write(root);
  const Work work = work_of(microseconds);
  const Dataset dataset = files(paths).map([work](const Tensor& x) {
    Tensor out = Tensor::empty(x.shape(), x.dtype());
    work(x.values<const float>().data(), out.values<float>().data());
    return out;
  });
  std::vector<double> floor, ours;
  for (int round = 0; round <= rounds; ++round) {
    const double one = bare(paths, work);
    const double other = mapped(dataset);
    if (round == 0) continue;  // the files come into the cache
    floor.push_back(one);
    ours.push_back(other);
  }
  const double files_per_second = static_cast<double>(paths.size());
  std::printf("map over %zu files of %lld floats: %.0f files/s, %.2f of the bare loop's %.0f (medians of %d)\n", kFiles,
              static_cast<long long>(kElements), files_per_second / median(ours), median(floor) / median(ours),
              files_per_second / median(floor), rounds);
  return 0;
}
