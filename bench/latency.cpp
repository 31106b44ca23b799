// Storage that answers late: each sample costs an open and a read that take a fixed time, as over a network. Prints how
// many requests a second the loader keeps going, beside what as many workers could at best: workers / latency.
// bench_latency [SECONDS]

#include <sys/prctl.h>

#include <cstdlib>
#include <memory>
#include <thread>

#include "core/format.h"
#include "data/dataset_impl.h"
#include "penstock/loader.h"
#include "support/compare.h"

namespace penstock {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr int kRequestsASample = 2;
constexpr std::int64_t kBatch = 8;

class SlowRows final : public detail::DatasetImpl {
 public:
  SlowRows(Dataset rows, Seconds latency) : rows_(std::move(rows)), latency_(latency) {}
  std::int64_t size() const noexcept override { return rows_.size(); }
  std::string describe(std::int64_t index) const override { return rows_.impl().describe(index); }
  std::uint64_t read_bytes(std::int64_t index) const override { return rows_.impl().read_bytes(index); }
  void fetch(std::span<const std::int64_t> indices, const data::Work& work,
             std::span<data::Sample> out) const override {
    // The system rounds sleeps up by 50 microseconds otherwise, which is no property of the storage.
    ::prctl(PR_SET_TIMERSLACK, 1UL);
    for (std::size_t i = 0; i < indices.size() * kRequestsASample; ++i) std::this_thread::sleep_for(latency_);
    rows_.impl().fetch(indices, work, out);
  }

 private:
  Dataset rows_;
  Seconds latency_;
};

struct Figures {
  double requests_per_second;
  std::uint64_t workers;
};

/// Of the second half of `seconds`: the first is for the number of workers to settle.
Figures measure(Seconds latency, std::size_t workers, double seconds) {
  const Dataset slow(std::make_shared<SlowRows>(rows(Tensor::zeros(Shape{1 << 22, 1})), latency));
  DataLoader loader(slow, {.batch_size = kBatch, .num_workers = workers});
  const auto run = [&](double for_seconds) {
    std::int64_t batches = 0;
    const auto begin = std::chrono::steady_clock::now();
    while (Seconds(std::chrono::steady_clock::now() - begin).count() < for_seconds && loader.next()) ++batches;
    return static_cast<double>(batches) / Seconds(std::chrono::steady_clock::now() - begin).count();
  };
  run(seconds / 2);
  return {run(seconds / 2) * kBatch * kRequestsASample, loader.stats().workers};
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  using namespace penstock;
  const double seconds = argc > 1 ? std::atof(argv[1]) : 16;
  core::print("{:>10} {:>8} {:>12} {:>12} {:>6}\n", "latency", "workers", "requests/s", "at best", "ratio");
  for (const double latency : {0.0005, 0.005, 0.05}) {
    for (const std::size_t workers : {std::size_t{8}, std::size_t{64}, LoaderOptions::kAutoWorkers}) {
      const Figures figures = measure(Seconds(latency), workers, seconds);
      const double best = static_cast<double>(figures.workers) / latency;
      const std::string name = workers == LoaderOptions::kAutoWorkers ? "auto: " : "";
      core::print("{:>7} ms {:>8} {:>12.0f} {:>12.0f} {:>6.2f}\n", latency * 1e3,
                  name + std::to_string(figures.workers), figures.requests_per_second, best,
                  figures.requests_per_second / best);
    }
  }
}
