// A file in the page cache into memory, fresh and kept from the last load: the engine against bare preads of the same
// bytes, with checksums and without, copied by the system and out of a mapping.
// bench_read [FILE [ROUNDS]]

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <thread>

#include "core/format.h"
#include "io/copy/crc32.h"
#include "io/move/engine.h"
#include "penstock/device.h"
#include "penstock/source.h"
#include "support/compare.h"

namespace penstock {
namespace {

constexpr std::size_t kThreads = 2;
constexpr std::size_t kCall = 8 * 1024 * 1024;

void bare_pread(int fd, const Buffer& into, std::size_t from, std::size_t to) {
  while (from < to) {
    const ssize_t got = ::pread(fd, into.data() + from, std::min(kCall, to - from), static_cast<off_t>(from));
    if (got <= 0) std::abort();
    from += static_cast<std::size_t>(got);
  }
}

/// Two threads, half the file each, in large calls: nothing but what the kernel takes.
double floor_seconds(const ByteSource& source) {
  const Buffer buffer = Buffer::allocate(source.size());
  return bench::seconds_of([&] {
    const std::size_t half = buffer.size() / 2;
    std::thread other([&] { bare_pread(source.descriptor(), buffer, half, buffer.size()); });
    bare_pread(source.descriptor(), buffer, 0, half);
    other.join();
  });
}

/// Records of a model's usual sizes, with their checksums.
std::vector<io::Checksum> checksums_of(const ByteSource& source) {
  constexpr std::uint64_t kRecord = 20'000'000;
  std::vector<io::Checksum> out;
  std::vector<std::byte> record;
  for (std::uint64_t at = 0; at < source.size(); at += kRecord) {
    record.resize(std::min(kRecord, source.size() - at));
    source.read(at, record);
    const io::Record recorded{.crc32 = io::crc32(0, record), .bytes = record.size(), .offset = at};
    out.push_back({0, at, record.size(), {recorded, true}});
  }
  return out;
}

double engine_seconds(const Source& source, const std::vector<io::Checksum>& checksums, std::optional<bool> mapped) {
  const Buffer buffer = Buffer::allocate(source.size());
  return bench::seconds_of([&] {
    const io::Piece piece = {.length = source.size()};
    const io::Move move = {io::make_plan({&piece, 1}), {&source, 1}, {&buffer, 1}, checksums, {}};
    Report report;
    io::execute(move, {.threads = kThreads, .mapped = mapped}, report);
  });
}

std::string default_file() {
  const std::string path = (std::filesystem::temp_directory_path() / "penstock-bench-read.bin").string();
  constexpr std::uintmax_t kBytes = std::uintmax_t{2} << 30;
  std::error_code ignored;
  if (std::filesystem::file_size(path, ignored) == kBytes) return path;
  std::vector<std::uint64_t> block((std::size_t{8} << 20) / 8);
  std::uint64_t state = 1;
  for (std::uint64_t& word : block) word = state = state * 6364136223846793005U + 1442695040888963407U;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  for (std::uintmax_t at = 0; at < kBytes; at += block.size() * 8) {
    if (::write(fd, block.data(), block.size() * 8) != static_cast<ssize_t>(block.size() * 8)) std::abort();
  }
  ::close(fd);
  return path;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  using namespace penstock;
  const Source source = open_source(argc > 1 ? argv[1] : default_file());
  const std::size_t rounds = argc > 2 ? static_cast<std::size_t>(std::atoi(argv[2])) : 9;
  const std::vector<io::Checksum> checksums = checksums_of(*source);
  for (const bool fresh : {true, false}) {
    const auto before = [fresh] {
      if (fresh) empty_cache(Device());
    };
    const auto way = [&](const char* name, const std::vector<io::Checksum>& checked, std::optional<bool> mapped) {
      return bench::Way{name, [&source, &checked, mapped, before] {
                          before();
                          return engine_seconds(source, checked, mapped);
                        }};
    };
    const std::vector<io::Checksum> none;
    const std::vector<bench::Way> ways = {{"bare pread, 2 threads",
                                           [&] {
                                             before();
                                             return floor_seconds(*source);
                                           }},
                                          way("engine", none, {}),
                                          way("by the system", none, false),
                                          way("out of a mapping", none, true),
                                          way("engine, checksums", checksums, {}),
                                          way("by the system", checksums, false),
                                          way("out of a mapping", checksums, true)};
    bench::compare(
        core::format("read {} of {} bytes into {} memory", source.name(), source.size(), fresh ? "fresh" : "kept"),
        static_cast<double>(source.size()) / 1e9, "GB/s", ways, rounds);
  }
}
