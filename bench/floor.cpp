// What the machine does with the same files and no library in between: one measurement, printed as one line of JSON.
//
//   bench_floor files LIST THREADS            open+fstat+read+close of every path in LIST, one a line
//   bench_floor rows THREADS FILE...          memcpy of shuffled rows of the arrays, mapped
//   bench_floor normalized THREADS FILE       shuffled rows of images (3, H, W) of bytes, to normalized floats
//   bench_floor windows THREADS FILE L COUNT  shuffled windows of L uint16 tokens, and shifted by one, to int64
//   bench_floor narrowed LIST THREADS         as files, and the doubles behind a header of 128 bytes become floats
//   bench_floor read THREADS FILE             pread of the whole file into fresh huge pages
//   bench_floor read-again THREADS FILE       the same into pages that have been written before
//   bench_floor cold direct THREADS FILE      the same from an empty page cache, past it (O_DIRECT)
//   bench_floor cold cached THREADS FILE      the same from an empty page cache, through it
//   bench_floor tree THREADS FOLDER           getdents64 of every folder below; a sample is a file
//   bench_floor shards LIST THREADS           pread of every file in LIST, front to back
//   bench_floor samples LIST PLACES THREADS   pread of each line of PLACES: number of the file, offset, bytes
//   bench_floor headers LIST THREADS          pread of the header of each member of the tar files in LIST
//   bench_floor device BYTES                  pinned memory to the first device by its driver

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/bench/bench_floor.h"
#include "core/format.h"
#include "penstock/load.h"
#include "penstock/sampler.h"
#include "support/bare_convert.h"
#include "support/bare_read.h"
#include "support/bare_tar.h"
#include "support/device_copy.h"
#include "support/drop.h"
#include "support/tree.h"

namespace {

using penstock::cli::Floor;
namespace bench = penstock::bench;

std::vector<std::string> lines_of(const std::string& list) {
  std::ifstream lines(list);
  std::vector<std::string> out;
  for (std::string line; std::getline(lines, line);) out.push_back(line);
  return out;
}

Floor files(const std::string& list, std::size_t threads) { return penstock::cli::file_floor(lines_of(list), threads); }

Floor rows(const std::vector<std::string>& arrays, std::size_t threads) {
  std::vector<penstock::Tensor> columns;
  for (const std::string& path : arrays) columns.push_back(penstock::load_tensor(path));
  return penstock::cli::row_floor(columns, penstock::sampler::random(columns[0].shape()[0]).order(1, 0).to_vector(),
                                  threads);
}

/// Seconds of `body`, as samples and bytes read a second.
template <class Body>
Floor timed(std::string what, std::size_t samples, std::size_t bytes, const Body& body) {
  const auto started = std::chrono::steady_clock::now();
  body();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return {std::move(what), static_cast<double>(samples) / seconds, static_cast<double>(bytes) / seconds};
}

Floor normalized(const std::string& path, std::size_t threads) {
  const penstock::Tensor images = penstock::load_tensor(path, {.mmap = true});
  const auto count = static_cast<std::size_t>(images.shape()[0]);
  const auto pixels = static_cast<std::size_t>(images.shape()[2] * images.shape()[3]);
  const std::vector<std::int64_t> order = penstock::sampler::random(images.shape()[0]).order(1, 0).to_vector();
  std::vector<bench::Floats> buffers;
  for (std::size_t t = 0; t < threads; ++t) buffers.push_back(bench::batch_memory(256 * 3 * pixels));
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(images.data());
  const auto run = [&] { bench::normalize_rows(bytes, pixels, order, buffers); };
  run();  // maps the file and the buffers
  return timed(penstock::core::format("a bare loop that normalizes, {} threads", threads), count, images.nbytes(), run);
}

Floor windows(const std::string& path, std::size_t threads, std::size_t length, std::size_t count) {
  const penstock::Tensor tokens = penstock::load_tensor(path, {.mmap = true});
  const std::int64_t all = (tokens.numel() - 1) / static_cast<std::int64_t>(length);
  const penstock::Order order = penstock::sampler::random(all).order(1, 0);
  std::vector<std::int64_t> chosen(count);
  order.copy(0, chosen);
  std::vector<bench::Floats> buffers;
  for (std::size_t t = 0; t < threads; ++t) buffers.push_back(bench::batch_memory(4 * 64 * length));
  const auto* const values = reinterpret_cast<const std::uint16_t*>(tokens.data());
  const auto run = [&] { bench::widen_windows(values, length, chosen, buffers); };
  run();  // maps the file and the buffers
  return timed(penstock::core::format("a bare loop that widens, {} threads", threads), count, count * length * 4, run);
}

Floor narrowed(const std::string& list, std::size_t threads) {
  constexpr std::size_t kHeader = 128;
  const std::vector<std::string> paths = lines_of(list);
  const std::size_t bytes = paths.size() * std::filesystem::file_size(paths.at(0));
  return timed(penstock::core::format("open+fstat+read+close and a bare loop, {} threads", threads), paths.size(),
               bytes, [&] { bench::narrow_files(paths, kHeader, threads); });
}

Floor whole_read(const std::string& path, const bench::BareRead& how) {
  const double seconds = bench::bare_read(path, how);
  const auto size = static_cast<double>(std::filesystem::file_size(path));
  return {bench::name_of(how), 1 / seconds, size / seconds};
}

Floor cold_read(const std::string& path, const std::string& how, std::size_t threads) {
  constexpr std::size_t kMega = std::size_t{1} << 20;
  if (how != "direct" && how != "cached") throw std::runtime_error("found " + how + ", expected direct or cached");
  const bool direct = how == "direct";
  bench::drop_from_cache(path);
  return whole_read(path, {.direct = direct, .threads = threads, .piece = (direct ? 1 : 8) * kMega});
}

Floor shards(const std::string& list, std::size_t threads) {
  const bench::OpenShards open(lines_of(list));
  return timed(penstock::core::format("pread of whole shards, {} threads", threads), open.count(), open.bytes(),
               [&] { bench::read_shards(open, threads); });
}

Floor samples(const std::string& list, const std::string& places, std::size_t threads) {
  const bench::OpenShards open(lines_of(list));
  std::vector<bench::SamplePlace> order;
  std::size_t bytes = 0;
  std::ifstream numbers(places);
  for (bench::SamplePlace place{}; numbers >> place.shard >> place.offset >> place.bytes;) {
    order.push_back(place);
    bytes += place.bytes;
  }
  return timed(penstock::core::format("pread of samples, {} threads", threads), order.size(), bytes,
               [&] { bench::read_samples(open, order, threads); });
}

/// A sample is one of two members.
Floor headers(const std::string& list, std::size_t threads) {
  const bench::OpenShards open(lines_of(list));
  const auto started = std::chrono::steady_clock::now();
  const std::size_t found = bench::read_headers(open, threads);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return {penstock::core::format("pread of headers, {} threads", threads), static_cast<double>(found) / 2 / seconds, 0};
}

Floor device(std::size_t bytes) {
  const double seconds = bench::device_copy({penstock::DeviceType::kCuda, 0}, bytes);
  return {"copies of pinned memory to the device", 1 / seconds, static_cast<double>(bytes) / seconds};
}

Floor tree(const std::string& folder, std::size_t threads) {
  const auto started = std::chrono::steady_clock::now();
  const std::size_t files = bench::count_files(folder, threads);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return {penstock::core::format("getdents64, {} threads", threads), static_cast<double>(files) / seconds, 0};
}

Floor measure(const std::vector<std::string>& args) {
  if (args.size() == 3 && args[0] == "files") return files(args[1], std::stoul(args[2]));
  if (args.size() >= 3 && args[0] == "rows") return rows({args.begin() + 2, args.end()}, std::stoul(args[1]));
  if (args.size() == 3 && args[0] == "normalized") return normalized(args[2], std::stoul(args[1]));
  if (args.size() == 5 && args[0] == "windows") {
    return windows(args[2], std::stoul(args[1]), std::stoul(args[3]), std::stoul(args[4]));
  }
  if (args.size() == 3 && args[0] == "narrowed") return narrowed(args[1], std::stoul(args[2]));
  if (args.size() == 3 && args[0] == "read") return whole_read(args[2], {.threads = std::stoul(args[1])});
  if (args.size() == 3 && args[0] == "read-again")
    return whole_read(args[2], {.kept = true, .threads = std::stoul(args[1])});
  if (args.size() == 4 && args[0] == "cold") return cold_read(args[3], args[1], std::stoul(args[2]));
  if (args.size() == 2 && args[0] == "device") return device(std::stoul(args[1]));
  if (args.size() == 3 && args[0] == "shards") return shards(args[1], std::stoul(args[2]));
  if (args.size() == 4 && args[0] == "samples") return samples(args[1], args[2], std::stoul(args[3]));
  if (args.size() == 3 && args[0] == "headers") return headers(args[1], std::stoul(args[2]));
  if (args.size() == 3 && args[0] == "tree") return tree(args[2], std::stoul(args[1]));
  throw std::runtime_error(
      "usage: bench_floor files LIST THREADS | rows THREADS FILE... | normalized THREADS FILE | windows THREADS FILE "
      "L COUNT | narrowed LIST THREADS | "
      "read|read-again THREADS FILE | cold direct|cached THREADS FILE | device BYTES | tree THREADS FOLDER | "
      "shards|headers LIST THREADS | samples LIST PLACES THREADS");
}

}  // namespace

int main(int argc, char** argv) try {
  const Floor floor = measure({argv + 1, argv + argc});
  penstock::core::print("{{\"what\": \"{}\", \"samples_per_second\": {:.1f}, \"bytes_per_second\": {:.1f}}}\n",
                        floor.what, floor.samples_per_second, floor.bytes_per_second);
  return 0;
} catch (const std::exception& error) {
  penstock::core::print(stderr, "bench_floor: {}\n", error.what());
  return 2;
}
