// Fixed work whose instructions and system calls bench/counts.py counts: they stay the same where time varies.
//
//   bench_counts files FOLDER           makes what the workloads read
//   bench_counts list                   their names
//   bench_counts run WORKLOAD FOLDER    does the work twice, the second time to be counted, and prints its items
//   bench_counts about                  what the program was built with and for, as JSON

#include <gnu/libc-version.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "core/format.h"
#include "penstock/load.h"
#include "penstock/loader.h"
#include "support/count_files.h"

namespace {

using namespace penstock;

/// Does the work and returns how many items it had.
using Work = std::function<std::size_t()>;

struct Workload {
  std::string_view name;
  Work (*prepare)(const std::string& folder);
};

/// Epoch after epoch in the calling thread.
Work epochs(Dataset dataset, std::int64_t batch_size, Collate collate = collate::stack()) {
  const auto loader = std::make_shared<DataLoader>(
      std::move(dataset),
      LoaderOptions{
          .batch_size = batch_size, .shuffle = true, .num_workers = 0, .collate = std::move(collate), .seed = 1});
  return [loader] {
    std::size_t samples = 0;
    while (const auto batch = loader->next()) samples += batch->indices.size();
    return samples;
  };
}

Work loads(const std::string& path, std::size_t times) {
  return [path, times] {
    for (std::size_t i = 0; i < times; ++i) load(path, {.threads = 1});
    return times;
  };
}

Work whole_load(const std::string& path) {
  return [path] { return load(path, {.threads = 1}).size(); };
}

Work index_of(const std::string& path) {
  return [path] {
    const Archive archive = open(path);
    return archive.entries().size();
  };
}

Work listing(const std::string& pattern, FilesOptions options = {}) {
  return [pattern, options = std::move(options)] { return static_cast<std::size_t>(files(pattern, options).size()); };
}

constexpr std::size_t kLoads = 200;
constexpr std::size_t kLargeLoads = 10;

constexpr Workload kWorkloads[] = {
    {"small .pt", [](const std::string& root) { return epochs(files(root + "/pt"), 32); }},
    {"small .pt, dict, padded",
     [](const std::string& root) { return epochs(files(root + "/ragged"), 32, collate::pad()); }},
    {"small .npy", [](const std::string& root) { return epochs(files(root + "/npy"), 32); }},
    {"large .npy", [](const std::string& root) { return epochs(files(root + "/large_npy"), 8); }},
    {"large .pt", [](const std::string& root) { return epochs(files(root + "/large_pt"), 8); }},
    {"large .safetensors of 2 tensors",
     [](const std::string& root) { return epochs(files(root + "/large_safetensors"), 8); }},
    {"large .npz of 2 arrays", [](const std::string& root) { return epochs(files(root + "/large_npz"), 8); }},
    {"rows of 3 KB", [](const std::string& root) { return epochs(rows(root + "/rows.npy"), 256); }},
    {"one .pt of 1 KB", [](const std::string& root) { return loads(root + "/one.pt", kLoads); }},
    {"one .npy of 1 KB", [](const std::string& root) { return loads(root + "/one.npy", kLoads); }},
    {"one .pt of 1 MB", [](const std::string& root) { return loads(root + "/large.pt", kLargeLoads); }},
    {"one .safetensors of 2 MB",
     [](const std::string& root) { return loads(root + "/large.safetensors", kLargeLoads); }},
    {"state dict, .pt", [](const std::string& root) { return whole_load(root + "/state.pt"); }},
    {"state dict, .safetensors", [](const std::string& root) { return whole_load(root + "/state.safetensors"); }},
    {"index, .pt", [](const std::string& root) { return index_of(root + "/state.pt"); }},
    {"index, .safetensors", [](const std::string& root) { return index_of(root + "/many.safetensors"); }},
    {"listing", [](const std::string& root) { return listing(root + "/tree/*/*.npy"); }},
    {"listing, kept index",
     [](const std::string& root) {
       return listing(root + "/tree/*/*.npy", {.index = true, .index_path = root + "/kept.index"});
     }},
};

/// A system call that does nothing, where a trace of them shows it.
void mark(std::string_view text) { static_cast<void>(!::write(-1, text.data(), text.size())); }

/// Several threads would share the work otherwise each time.
void use_one_processor() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (::sched_getaffinity(0, sizeof(mask), &mask) != 0) return;
  int first = 0;
  while (first < CPU_SETSIZE && !CPU_ISSET(first, &mask)) ++first;
  CPU_ZERO(&mask);
  CPU_SET(first, &mask);
  ::sched_setaffinity(0, sizeof(mask), &mask);
}

}  // namespace

/// callgrind counts what this function does.
extern "C" [[gnu::noinline]] std::size_t penstock_counted_work(const Work& work) { return work(); }

namespace {

int run(std::string_view name, const std::string& folder) {
  use_one_processor();
  for (const Workload& workload : kWorkloads) {
    if (workload.name != name) continue;
    const Work work = workload.prepare(folder);
    work();
    mark("counts: begin");
    const std::size_t items = penstock_counted_work(work);
    mark("counts: end");
    core::print("{}\n", items);
    return 0;
  }
  throw std::runtime_error(core::format("there is no workload '{}'", name));
}

int make(const std::string& folder) {
  bench::make_count_files(folder);
  // An index of folders is kept from when their times are old enough to tell a change.
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  return 0;
}

int about() {
#if defined(__clang__)
  constexpr const char* kCompiler = "Clang " __clang_version__;
#else
  constexpr const char* kCompiler = "GCC " __VERSION__;
#endif
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") != 0;
#else
  const bool avx2 = false;
#endif
  core::print(
      "{{\"compiler\": \"{}\", \"flags\": \"{}\", \"libc\": \"glibc {}\", \"machine\": \"{}\", \"avx2\": {}}}\n",
      kCompiler, PENSTOCK_COUNTS_FLAGS, ::gnu_get_libc_version(), PENSTOCK_COUNTS_MACHINE, avx2);
  return 0;
}

int list() {
  for (const Workload& workload : kWorkloads) core::print("{}\n", workload.name);
  return 0;
}

int dispatch(const std::vector<std::string>& args) {
  if (args.size() == 2 && args[0] == "files") return make(args[1]);
  if (args.size() == 1 && args[0] == "list") return list();
  if (args.size() == 3 && args[0] == "run") return run(args[1], args[2]);
  if (args.size() == 1 && args[0] == "about") return about();
  throw std::runtime_error("usage: bench_counts files FOLDER | list | run WORKLOAD FOLDER | about");
}

}  // namespace

int main(int argc, char** argv) try { return dispatch({argv + 1, argv + argc}); } catch (const std::exception& error) {
  core::print(stderr, "bench_counts: {}\n", error.what());
  return 2;
}
