// A file that is not in the page cache into fresh memory: the engine, and a load of the tensors in it, against bare
// preads of the same bytes. bench_cold FILE [ROUNDS [THREADS]]

#include <cstdlib>
#include <exception>
#include <optional>

#include "core/format.h"
#include "io/move/engine.h"
#include "penstock/load.h"
#include "penstock/source.h"
#include "support/bare_read.h"
#include "support/compare.h"
#include "support/drop.h"

namespace penstock {
namespace {

double engine_seconds(const std::string& path, std::optional<bool> direct, std::size_t threads) {
  bench::drop_from_cache(path);
  return bench::seconds_of([&] {
    const Source source = open_source(path);
    const Buffer buffer = Buffer::allocate(source.size());
    const io::Piece piece = {.length = source.size()};
    const io::Move move = {io::make_plan({&piece, 1}), {&source, 1}, {&buffer, 1}, {}, {}};
    Report report;
    io::execute(move, {.threads = threads, .direct = direct}, report);
  });
}

/// Places in memory follow from where tensors lie in the file, and what that leaves unaligned goes through a scratch.
double load_seconds(const std::string& path, std::optional<bool> direct, std::size_t threads) {
  bench::drop_from_cache(path);
  return bench::seconds_of([&] { load(path, {.direct = direct, .threads = threads}); });
}

bench::Way bare(const std::string& path, const bench::BareRead& how) {
  return {bench::name_of(how), [path, how] {
            bench::drop_from_cache(path);
            return bench::bare_read(path, how);
          }};
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) try {
  using namespace penstock;
  if (argc < 2) throw std::runtime_error("usage: bench_cold FILE [ROUNDS [THREADS]]");
  const std::string path = argv[1];
  const std::size_t rounds = argc > 2 ? std::stoul(argv[2]) : 5;
  const std::size_t threads = argc > 3 ? std::stoul(argv[3]) : 0;
  constexpr std::size_t kMega = std::size_t{1} << 20;
  const std::vector<bench::Way> ways = {
      bare(path, {.direct = true, .threads = 8, .piece = kMega}),
      bare(path, {.direct = true, .threads = 16, .piece = kMega / 2}),
      bare(path, {.direct = false, .threads = 2}),
      bare(path, {.direct = false, .threads = 8, .piece = kMega}),
      {"engine", [&] { return engine_seconds(path, {}, threads); }},
      {"engine, through the cache", [&] { return engine_seconds(path, false, threads); }},
      {"load", [&] { return load_seconds(path, {}, threads); }},
      {"load, through the cache", [&] { return load_seconds(path, false, threads); }},
  };
  const auto size = static_cast<double>(open_source(path).size());
  bench::compare(core::format("cold read of {}", path), size / 1e9, "GB/s", ways, rounds);
  return 0;
} catch (const std::exception& error) {
  penstock::core::print(stderr, "bench_cold: {}\n", error.what());
  return 2;
}
