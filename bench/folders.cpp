// Folders of files of middle and mixed sizes, through a loader epoch after epoch, beside a bare loop: open, fstat, read
// into the slots of a batch buffer that is used again, close, by two threads. Prints the ratio of both in one run, each
// by its quickest round.
//
//   bench_folders [FOLDER] [--rounds N] [--only TEXT] [--batch N] [--prefetch N] [--buffers N]
//
// --buffers is how many batch buffers a thread of the bare loop uses by turns. With one, the default, a small batch
// stays in the processor's cache; a loader cannot use its buffer again while the loop has the batch.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/format.h"
#include "penstock/penstock.h"

namespace {

namespace fs = std::filesystem;
using namespace penstock;  // NOLINT(google-build-using-namespace)

constexpr std::int64_t kSmall = 4096;                    // elements of 16 KB
constexpr std::int64_t kMiddle = std::int64_t{1} << 18;  // of 1 MB
constexpr std::int64_t kLarge = std::int64_t{1} << 21;   // of 8 MB

struct Options {
  fs::path root = "build/bench-data/folders";
  std::string only;
  int rounds = 5;
  std::size_t batch = 32;
  std::size_t prefetch = 2;
  std::size_t buffers = 1;
};

struct Folder {
  std::string name;
  std::string extension;
  std::size_t files;
  std::function<Value(std::size_t)> content;
  std::vector<std::string> keys = {};
};

Value tensor_of(std::int64_t elements) { return Value::tensor(full({elements}, 1.5, DType::float32)); }

Value dict_of(std::int64_t elements, std::int64_t parts) {
  std::vector<std::pair<std::string, Value>> items;
  for (std::int64_t i = 0; i < parts; ++i) items.emplace_back(core::format("x{}", i), tensor_of(elements / parts));
  return Value::dict(std::move(items));
}

std::vector<Folder> folders() {
  const auto mixed = [](std::size_t i) { return tensor_of(i % 2 == 0 ? kSmall : kMiddle); };
  std::vector<Folder> out;
  for (const char* extension : {".npy", ".pt"}) {
    const std::string name(extension);
    out.push_back({"2,000 of 16 KB and 1 MB by turns, " + name, extension, 2000, mixed});
    out.push_back({"2,000 of 1 MB, " + name, extension, 2000, [](std::size_t) { return tensor_of(kMiddle); }});
    out.push_back({"200 of 8 MB, " + name, extension, 200, [](std::size_t) { return tensor_of(kLarge); }});
  }
  for (const char* extension : {".safetensors", ".npz"}) {
    const std::string name(extension);
    out.push_back(
        {"1,000 of 1 MB in 4 tensors, " + name, extension, 1000, [](std::size_t) { return dict_of(kMiddle, 4); }});
  }
  out.push_back({"1,000 of 1 MB in 4 tensors, keys of one, .safetensors",
                 ".safetensors",
                 1000,
                 [](std::size_t) { return dict_of(kMiddle, 4); },
                 {"x2"}});
  return out;
}

std::vector<std::string> write(const Folder& folder, const fs::path& root) {
  const fs::path where = root / core::format("{}_{}", std::hash<std::string>()(folder.name) % 1000000, folder.files);
  std::vector<std::string> paths;
  const bool made = fs::exists(where);
  fs::create_directories(where);
  for (std::size_t i = 0; i < folder.files; ++i) {
    paths.push_back((where / core::format("{:05}{}", i, folder.extension)).string());
    if (!made) save(folder.content(i), paths.back(), {.sync = false});
  }
  return paths;
}

/// What a piece of work takes: time, and time of processors, which other programs disturb less.
struct Cost {
  double seconds = 0;
  double processor = 0;
};

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Cost cost_of(const std::function<void()>& work) {
  const auto started = std::chrono::steady_clock::now();
  const double before = processor_seconds();
  work();
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count(),
          processor_seconds() - before};
}

/// The memory of a batch of one thread of the floor, used again from run to run. On huge pages, as the loader's blocks.
class BatchBuffer {
 public:
  BatchBuffer() = default;
  ~BatchBuffer() { std::free(data_); }
  BatchBuffer(const BatchBuffer&) = delete;
  BatchBuffer& operator=(const BatchBuffer&) = delete;

  /// At least so many bytes; what was in it is lost.
  char* reserve(std::size_t bytes) {
    if (bytes <= size_) return data_;
    constexpr std::size_t kHugePage = std::size_t{2} << 20;
    std::free(data_);
    size_ = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    data_ = static_cast<char*>(std::aligned_alloc(kHugePage, size_));
    if (data_ == nullptr) throw std::bad_alloc();
    ::madvise(data_, size_, MADV_HUGEPAGE);
    return data_;
  }

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
};
using BatchBuffers = std::array<std::vector<BatchBuffer>, 2>;  // of each thread

/// Of a file, the bytes that a sample is made of: with `share`, that part of it alone.
void bare(const std::vector<std::string>& paths, double share, std::size_t batch, BatchBuffers& buffers) {
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (std::vector<BatchBuffer>& mine : buffers) {
    threads.emplace_back([&] {
      std::size_t turn = 0;
      for (std::size_t first = next.fetch_add(batch); first < paths.size(); first = next.fetch_add(batch)) {
        std::size_t at = 0;
        char* const slots = mine[turn++ % mine.size()].reserve(batch * (kLarge * sizeof(float) + 4096));
        for (std::size_t i = first; i < std::min(first + batch, paths.size()); ++i) {
          const int fd = ::open(paths[i].c_str(), O_RDONLY | O_CLOEXEC);
          struct stat facts {};
          if (fd < 0 || ::fstat(fd, &facts) != 0) throw std::runtime_error("cannot open " + paths[i]);
          const auto bytes = static_cast<std::size_t>(static_cast<double>(facts.st_size) * share);
          if (::read(fd, slots + at, bytes) != static_cast<ssize_t>(bytes)) throw std::runtime_error("cut");
          at += bytes;
          ::close(fd);
        }
      }
    });
  }
}

void epoch(DataLoader& loader) {
  for (const Batch& batch : loader) (void)batch;
}

/// Of the round that other programs disturbed least.
double least(const std::vector<Cost>& costs, double Cost::*of) {
  double out = costs.front().*of;
  for (const Cost& cost : costs) out = std::min(out, cost.*of);
  return out;
}

void compare(const Folder& folder, const Options& options) {
  const std::vector<std::string> paths = write(folder, options.root);
  const Dataset dataset = files(paths, {.keys = folder.keys});
  const double share = folder.keys.empty() ? 1.0 : 0.25;
  // Both have their memory before the first round: the floor its buffers, a loader the blocks of its first epoch.
  BatchBuffers buffers;
  for (std::vector<BatchBuffer>& mine : buffers) mine = std::vector<BatchBuffer>(options.buffers);
  bare(paths, 1.0, options.batch, buffers);
  std::vector<DataLoader> loaders;
  for (const std::size_t workers : {0U, 1U, 2U}) {
    loaders.emplace_back(dataset, LoaderOptions{.batch_size = static_cast<std::int64_t>(options.batch),
                                                .num_workers = workers,
                                                .collate = collate::ragged(),
                                                .prefetch_factor = options.prefetch});
    epoch(loaders.back());
  }
  std::vector<Cost> floor;
  std::array<std::vector<Cost>, 3> ours;
  for (int round = 0; round < options.rounds; ++round) {
    floor.push_back(cost_of([&] { bare(paths, share, options.batch, buffers); }));
    for (std::size_t workers = 0; workers < ours.size(); ++workers) {
      ours[workers].push_back(cost_of([&] { epoch(loaders[workers]); }));
    }
  }
  std::string by_workers;
  double best = 0;
  double processor = 1e9;
  for (const std::vector<Cost>& costs : ours) {
    const double rate = static_cast<double>(paths.size()) / least(costs, &Cost::seconds);
    by_workers += core::format(" {:.0f}", rate);
    best = std::max(best, rate);
    processor = std::min(processor, least(costs, &Cost::processor));
  }
  const double bare_rate = static_cast<double>(paths.size()) / least(floor, &Cost::seconds);
  std::printf("%-52s %7.0f files/s, %.2f of the floor's %.0f; processor time %.2f of its; with 0, 1, 2 workers:%s\n",
              folder.name.c_str(), best, best / bare_rate, bare_rate, processor / least(floor, &Cost::processor),
              by_workers.c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto number = [&] { return std::max(1, std::stoi(argv[++i])); };
    if (argument == "--only" && i + 1 < argc) {
      options.only = argv[++i];
    } else if (argument == "--rounds" && i + 1 < argc) {
      options.rounds = number();
    } else if (argument == "--batch" && i + 1 < argc) {
      options.batch = static_cast<std::size_t>(number());
    } else if (argument == "--prefetch" && i + 1 < argc) {
      options.prefetch = static_cast<std::size_t>(number());
    } else if (argument == "--buffers" && i + 1 < argc) {
      options.buffers = static_cast<std::size_t>(number());
    } else if (argument.starts_with("-")) {
      std::fprintf(
          stderr,
          "usage: bench_folders [FOLDER] [--rounds N] [--only TEXT] [--batch N] [--prefetch N] [--buffers N]\n");
      return argument == "--help" ? 0 : 2;
    } else {
      options.root = argument;
    }
  }
  for (const Folder& folder : folders()) {
    if (folder.name.find(options.only) != std::string::npos) compare(folder, options);
  }
  return 0;
}
