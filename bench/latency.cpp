// Storage that answers late, as over a network. It sleeps and touches no memory, so that the figures are those of the
// queue and hardly of the machine.
// Loaders: each sample costs an open and a read that take a fixed time. Prints how many requests a second the loader
// keeps going, beside what as many workers could at best: workers / latency.
// Loads: each request takes a fixed time and then its turn on a line of bounded bandwidth. Prints the rate by 8
// threads, which is what loads of the disk had before they looked for a depth, and by the depth that they find.
// bench_latency [SECONDS of each figure of loaders, 0 for none] [GIGABYTES of each load]

#include <sys/prctl.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/format.h"
#include "data/dataset_impl.h"
#include "io/move/engine.h"
#include "io/read/reader_rows.h"
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
Figures measure(Seconds latency, std::int64_t workers, double seconds) {
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

void print_loaders(double seconds) {
  core::print("{:>10} {:>8} {:>12} {:>12} {:>6}\n", "latency", "workers", "requests/s", "at best", "ratio");
  for (const double latency : {0.0005, 0.005, 0.05}) {
    for (const std::int64_t workers : {std::int64_t{8}, std::int64_t{64}, LoaderOptions::kAutoWorkers}) {
      const Figures figures = measure(Seconds(latency), workers, seconds);
      const double best = static_cast<double>(figures.workers) / latency;
      const std::string name = workers == LoaderOptions::kAutoWorkers ? "auto: " : "";
      core::print("{:>7} ms {:>8} {:>12.0f} {:>12.0f} {:>6.2f}\n", latency * 1e3,
                  name + std::to_string(figures.workers), figures.requests_per_second, best,
                  figures.requests_per_second / best);
    }
  }
}

/// Answers after `latency`, one request behind the other at `rate` bytes a second.
class SlowSource final : public ByteSource {
 public:
  SlowSource(std::uint64_t size, Seconds latency, double rate) : size_(size), latency_(latency), rate_(rate) {}
  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return size_; }
  bool waits() const noexcept override { return true; }
  void read(std::uint64_t /*offset*/, std::span<std::byte> into) const override {
    ::prctl(PR_SET_TIMERSLACK, 1UL);
    std::this_thread::sleep_until(turn(into.size()));
  }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point turn(std::size_t bytes) const {
    const auto on_line = std::chrono::duration_cast<Clock::duration>(Seconds(static_cast<double>(bytes) / rate_));
    const auto answered = Clock::now() + std::chrono::duration_cast<Clock::duration>(latency_);
    const std::scoped_lock lock(mutex_);
    // Whoever wakes late finds that its bytes have come meanwhile.
    return line_ = std::max(line_ + on_line, answered);
  }

  std::string name_ = "<slow>";
  std::uint64_t size_;
  Seconds latency_;
  double rate_;
  mutable std::mutex mutex_;
  mutable Clock::time_point line_{};
};

/// Requests of 1 MiB, as to a disk.
io::ReadCosts costs_of_small(const ByteSource& /*source*/) noexcept {
  return {.piece = std::uint64_t{1} << 20, .at_once = 8, .request_memory = std::uint64_t{2} << 20};
}

double load(Seconds latency, double rate, std::uint64_t bytes, std::size_t threads, bool is_small, Report& report) {
  const Source source(std::make_shared<SlowSource>(bytes, latency, rate));
  const io::Reader small{"slow", io::any_usable, io::source_read, costs_of_small};
  const Buffer into = Buffer::allocate(static_cast<std::size_t>(bytes));
  const io::Piece piece{.length = bytes};
  io::Move move;
  move.plan = is_small ? io::make_plan({&piece, 1}, costs_of_small(*source)) : io::make_plan({&piece, 1}, {&source, 1});
  move.sources = {&source, 1};
  move.buffers = {&into, 1};
  report = {};
  const auto begin = std::chrono::steady_clock::now();
  io::execute(move, {.threads = threads, .reader = is_small ? &small : nullptr}, report);
  return static_cast<double>(bytes) / Seconds(std::chrono::steady_clock::now() - begin).count() / 1e9;
}

void print_loads(double gigabytes) {
  const auto bytes = static_cast<std::uint64_t>(gigabytes * 1e9);
  constexpr double kRate = 20e9;
  core::print("\nloads of {:.1f} GB at most {:.0f} GB/s\n", gigabytes, kRate / 1e9);
  core::print("{:>10} {:>9} {:>14} {:>10} {:>10} {:>6}  {}\n", "latency", "requests", "by 8 threads", "by depth",
              "of bound", "depth", "limit");
  for (const bool is_small : {true, false}) {
    for (const double latency : {0.0002, 0.001, 0.002, 0.005}) {
      Report report;
      const double before = load(Seconds(latency), kRate, bytes, 8, is_small, report);
      const double now = load(Seconds(latency), kRate, bytes, 0, is_small, report);
      core::print("{:>7} ms {:>9} {:>9.2f} GB/s {:>5.2f} GB/s {:>10.2f} {:>6}  {}\n", latency * 1e3,
                  is_small ? "1 MiB" : "8 MiB", before, now, now * 1e9 / kRate, report.depth, report.depth_limit);
    }
  }
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  using namespace penstock;
  const double seconds = argc > 1 ? std::atof(argv[1]) : 16;
  if (seconds > 0) print_loaders(seconds);
  print_loads(argc > 2 ? std::atof(argv[2]) : 8);
}
