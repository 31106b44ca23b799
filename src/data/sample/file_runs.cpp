#include "data/sample/file_runs.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "data/sample/held_file.h"
#include "io/read/reader.h"
#include "penstock/error.h"

namespace penstock::data {
namespace {

/// Bytes that several runs have, read once and copied to each of them.
struct Shared {
  std::vector<FileRun> runs = {};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::unique_ptr<std::byte[]> memory = {};

  bool is_of(const FileRun& run) const noexcept {
    return runs.front().from.file == run.from.file && run.from.offset < end;
  }
  std::span<std::byte> place() {
    const auto bytes = static_cast<std::size_t>(end - begin);
    if (runs.size() == 1) return {runs[0].to, bytes};
    if (!memory) memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
    return {memory.get(), bytes};
  }
};

/// File by file, runs that overlap together, such as windows and the same shifted.
std::vector<Shared> by_bytes(std::vector<FileRun> runs) {
  std::stable_sort(runs.begin(), runs.end(), [](const FileRun& a, const FileRun& b) {
    if (a.from.file != b.from.file) return std::less<>()(a.from.file, b.from.file);
    return a.from.offset < b.from.offset;
  });
  std::vector<Shared> out;
  for (const FileRun& run : runs) {
    const std::uint64_t end = run.from.offset + run.bytes;
    if (out.empty() || !out.back().is_of(run)) out.push_back({.begin = run.from.offset, .end = end});
    out.back().runs.push_back(run);
    out.back().end = std::max(out.back().end, end);
  }
  return out;
}

/// What is read of one file.
struct FileReads {
  const HeldFile* file;
  std::size_t position;  ///< of the first sample
  std::vector<io::SourceRun> runs = {};

  void read() const {
    try {
      file->read(runs);
    } catch (const Error& error) {
      throw SampleError(position, file->error_of_change(error));
    }
  }
};

void read(std::span<const FileReads> reads) {
  if (reads.size() == 1) return reads[0].read();
  std::vector<io::SourceRuns> all;
  for (const FileReads& one : reads) all.push_back({one.file->source(), one.runs});
  try {
    io::read_at_once(all);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled) throw;
    for (const FileReads& one : reads) one.read();  // whose fault it is
  }
}

}  // namespace

std::uint64_t read_at_once(std::vector<FileRun> runs) {
  std::vector<Shared> all = by_bytes(std::move(runs));
  std::vector<FileReads> reads;
  std::uint64_t bytes = 0;
  for (Shared& one : all) {
    const FileRun& first = one.runs.front();
    if (reads.empty() || reads.back().file != first.from.file) reads.push_back({first.from.file, first.position});
    for (const FileRun& run : one.runs) reads.back().position = std::min(reads.back().position, run.position);
    reads.back().runs.push_back({one.begin, one.place()});
    bytes += one.end - one.begin;
  }
  std::sort(reads.begin(), reads.end(), [](const FileReads& a, const FileReads& b) { return a.position < b.position; });
  if (!reads.empty()) read(reads);
  for (const Shared& one : all) {
    if (!one.memory) continue;
    for (const FileRun& run : one.runs) {
      std::memcpy(run.to, one.memory.get() + (run.from.offset - one.begin), static_cast<std::size_t>(run.bytes));
    }
  }
  return bytes;
}

}  // namespace penstock::data
