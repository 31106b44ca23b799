// Measures how fast a file is read: from the disk, after its pages were dropped from the page cache, and from the
// cache. The engine reads it, so that the figures are those of the routes that a load takes.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/environment.h"
#include "core/format.h"
#include "core/shown_url.h"
#include "core/system_error.h"
#include "doctor/diagnosis.h"
#include "io/file/file_descriptor.h"
#include "io/file/open_path.h"
#include "io/move/engine.h"
#include "io/read/residency.h"
#include "io/source/source.h"
#include "penstock/error.h"

namespace penstock::doctor {
namespace {

using Unit = Fact::Unit;
using Weight = Fact::Weight;

/// More than this of a file in the page cache, and a read of it says little about the disk.
constexpr double kCachedShare = 0.05;

/// A file of bytes that no file system compresses, gone with this. It has no name as soon as it is there, so that
/// nothing of it stays where the process is ended.
class MadeFile {
 public:
  MadeFile(const std::string& folder, std::uint64_t bytes) : path_(folder + "/penstock-doctor-XXXXXX") {
    file_ = io::FileDescriptor(::mkostemp(path_.data(), O_CLOEXEC));
    if (!file_) core::throw_errno(errno, "cannot make a file to read", {.path = folder});
    ::unlink(path_.c_str());
    path_ = core::format("/proc/self/fd/{}", file_.get());
    fill(file_.get(), bytes, folder);
    // Pages that are not written yet cannot be dropped.
    ::fdatasync(file_.get());
  }
  const std::string& path() const noexcept { return path_; }

 private:
  static void fill(int file, std::uint64_t bytes, const std::string& folder) {
    std::vector<std::uint64_t> words(std::size_t{1} << 17);
    std::uint64_t state = 1;
    for (std::uint64_t left = bytes; left > 0;) {
      for (std::uint64_t& word : words) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        word = state ^ state >> 29U;
      }
      const auto part = std::min<std::uint64_t>(left, words.size() * sizeof(std::uint64_t));
      const ssize_t written = ::write(file, words.data(), part);
      if (written <= 0) core::throw_errno(errno, "cannot write a file to read", {.path = folder});
      left -= static_cast<std::uint64_t>(written);
    }
  }

  std::string path_;
  io::FileDescriptor file_;
};

void drop_from_cache(const std::string& path, std::size_t bytes) {
  const io::FileDescriptor file = io::open_path(path, O_RDONLY | O_CLOEXEC);
  if (file) ::posix_fadvise(file.get(), 0, static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
}

/// Bytes per second of a read of the first bytes of a file, by default on the route that a load would take; which one
/// it took is in `report`.
double read_speed(const Source& source, const Buffer& into, Report& report, const io::EngineOptions& options = {}) {
  const io::Piece piece{.length = into.size()};
  io::Move move;
  move.plan = io::make_plan({&piece, 1}, {&source, 1});
  move.sources = {&source, 1};
  move.buffers = {&into, 1};
  report = {};
  const auto begin = std::chrono::steady_clock::now();
  io::execute(move, options, report);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return static_cast<double>(into.size()) / std::max(seconds, 1e-9);
}

void add_speeds(const Source& source, const std::string& path, std::size_t bytes, Section& out) {
  const Buffer into = Buffer::allocate(bytes);
  std::fill_n(into.data(), bytes, std::byte{});  // the first touch of memory is not the file's
  drop_from_cache(path, bytes);
  const std::optional<double> share = io::cached_share(*source, 0, bytes);
  Report report;
  const double first = read_speed(source, into, report);
  if (share && *share <= kCachedShare) {
    out.add("read_uncached", first, Unit::kBytesPerSecond);
    out.add("route_uncached", report.route + ": " + report.why);
    out.add("depth_uncached", report.depth);
    out.add("depth_limit", std::string(report.depth_limit));
  } else {
    out.add("read_uncached", {}, Unit::kBytesPerSecond);
    out.advise(Weight::kNote,
               "the file stays in memory (a tmpfs, or another process uses it), so the disk could not be "
               "measured: name a file or folder on the disk in question");
  }
  // A direct read leaves nothing in the page cache.
  read_speed(source, into, report, {.direct = false});
  const double second = read_speed(source, into, report);
  out.add("read_cached", std::max(second, read_speed(source, into, report)), Unit::kBytesPerSecond);
  out.add("route_cached", report.route + ": " + report.why);
}

/// Whether it is there is found out when a file is made in it.
std::string temporary_folder() {
  const char* const named = core::environment("TMPDIR");
  return named == nullptr || *named == '\0' ? "/tmp" : named;
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

void measure(const std::string& path, std::uint64_t at_most, Section& out) {
  const Source source = open_source(path);
  const auto bytes = static_cast<std::size_t>(std::min(source.size(), at_most));
  out.add("bytes_read", std::uint64_t{bytes}, Unit::kBytes);
  if (bytes == 0) {
    out.advise(Weight::kNote, "the file is empty, so nothing was measured");
  } else {
    add_speeds(source, path, bytes, out);
  }
}

}  // namespace

Section diagnose_file(const DiagnosisOptions& options) {
  Section out{"file", {}};
  if (!options.path.empty() && !is_folder(options.path)) {
    out.add("path", core::shown_path(options.path));
    measure(options.path, options.file_bytes, out);
    return out;
  }
  const std::string folder = options.path.empty() ? temporary_folder() : options.path;
  out.add("path", folder);
  try {
    const MadeFile file(folder, options.file_bytes);
    measure(file.path(), options.file_bytes, out);
  } catch (const Error& error) {
    if (!options.path.empty()) throw;
    out.add("read_cached", {}, Unit::kBytesPerSecond);
    out.advise(Weight::kProblem, core::format("no file could be made in {}: {}", folder, error.message()));
  }
  return out;
}

}  // namespace penstock::doctor
