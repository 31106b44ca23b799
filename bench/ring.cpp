// What the way through the pinned ring takes of the host: a file in the page cache to a device, against the same file
// to fresh host memory. On a simulated device whose copies cost nothing (PENSTOCK_SIM_COPIES=0) that is the ring's own
// cost. bench_ring FILE [ROUNDS [THREADS]]; script/bench ring runs it on the simulated driver.

#include <cstdlib>
#include <exception>

#include "core/format.h"
#include "penstock/load.h"
#include "support/bare_read.h"
#include "support/compare.h"

namespace penstock {
namespace {

double load_seconds(const std::string& path, Device device, std::size_t threads) {
  return bench::seconds_of([&] { load_value(path, {.device = device, .threads = threads}); });
}

void run(const std::string& path, std::size_t rounds, std::size_t threads) {
  if (!is_available()) throw std::runtime_error("no device; PENSTOCK_LIBCUDA names a simulated driver");
  const Device device{DeviceType::kCuda, 0};
  const bench::BareRead bare = {.threads = threads};
  const std::vector<bench::Way> ways = {
      {bench::name_of(bare), [&] { return bench::bare_read(path, bare); }},
      {"load to the host", [&] { return load_seconds(path, {}, threads); }},
      {"load to the device", [&] { return load_seconds(path, device, threads); }},
  };
  for (const bench::Way& way : ways) way.seconds();  // the cache, the ring and its locked pages
  bench::compare(core::format("{}, {} threads", path, threads), static_cast<double>(open_source(path)->size()) / 1e9,
                 "GB/s", ways, rounds);
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) try {
  if (argc < 2) throw std::runtime_error("usage: bench_ring FILE [ROUNDS [THREADS]]");
  penstock::run(argv[1], argc > 2 ? std::stoul(argv[2]) : 7, argc > 3 ? std::stoul(argv[3]) : 2);
  return 0;
} catch (const std::exception& error) {
  penstock::core::print(stderr, "bench_ring: {}\n", error.what());
  return 2;
}
