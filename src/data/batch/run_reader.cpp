#include "data/batch/run_reader.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "data/sample/held_file.h"
#include "io/read/reader.h"

namespace penstock::data {

namespace {

/// Bytes that several runs have, read once and copied to each of them.
struct Shared {
  std::vector<RunReader::SlotRead> runs = {};
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::unique_ptr<std::byte[]> memory = {};
};

/// The runs of one file, those that overlap together, such as windows and the same shifted.
std::vector<Shared> by_bytes(std::vector<RunReader::SlotRead> runs) {
  std::stable_sort(runs.begin(), runs.end(), [](const RunReader::SlotRead& a, const RunReader::SlotRead& b) {
    return a.from.offset < b.from.offset;
  });
  std::vector<Shared> out;
  for (const RunReader::SlotRead& run : runs) {
    const std::uint64_t end = run.from.offset + run.bytes;
    if (out.empty() || run.from.offset >= out.back().end) out.push_back({.begin = run.from.offset, .end = end});
    out.back().runs.push_back(run);
    out.back().end = std::max(out.back().end, end);
  }
  return out;
}

}  // namespace

void RunReader::add(const InFile& from, std::byte* to, std::uint64_t bytes, std::size_t position) {
  if (bytes == 0) return;
  if (from.file != last_) {
    last_ = from.file;
    most_ = from.file->costs().piece;
  }
  if (!runs_.empty()) {
    SlotRead& last = runs_.back();
    const bool goes_on = last.from.file == from.file && last.from.offset + last.bytes == from.offset &&
                         last.to + last.bytes == to && last.bytes + bytes <= most_;
    if (goes_on) {
      last.bytes += bytes;
      return;
    }
  }
  runs_.push_back({from, to, bytes, position});
}

void RunReader::read() {
  std::vector<SlotRead> remote;
  for (const SlotRead& run : runs_) {
    call_.check_cancelled();
    if (run.from.file->reads_at_once()) {
      remote.push_back(run);
    } else {
      read_local(run);
    }
  }
  if (!remote.empty()) read_remote(std::move(remote));
}

void RunReader::read_local(const SlotRead& run) {
  try {
    run.from.file->read(run.from.offset, {run.to, static_cast<std::size_t>(run.bytes)});
  } catch (const Error& error) {
    throw SampleError(run.position, run.from.file->error_of_change(error));
  }
  files_.add(run.from.file, run.position);
  figures_.stats.read_bytes += run.bytes;
  figures_.clock.lap(Stage::kRead);
}

void RunReader::read_remote(std::vector<SlotRead> runs) {
  while (!runs.empty()) {
    const HeldFile* const file = runs.front().from.file;
    const auto others =
        std::stable_partition(runs.begin(), runs.end(), [file](const SlotRead& run) { return run.from.file == file; });
    std::vector<Shared> all = by_bytes({runs.begin(), others});
    std::vector<io::Run> asked;
    for (Shared& one : all) {
      const auto bytes = static_cast<std::size_t>(one.end - one.begin);
      if (one.runs.size() > 1) one.memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
      asked.push_back({one.begin, {one.memory ? one.memory.get() : one.runs[0].to, bytes}});
      figures_.stats.read_bytes += bytes;
    }
    try {
      file->read(asked);
    } catch (const Error& error) {
      throw SampleError(runs.front().position, file->error_of_change(error));
    }
    for (const Shared& one : all) {
      if (!one.memory) continue;
      for (const SlotRead& run : one.runs) {
        std::memcpy(run.to, one.memory.get() + (run.from.offset - one.begin), static_cast<std::size_t>(run.bytes));
      }
    }
    runs.erase(runs.begin(), others);
    figures_.clock.lap(Stage::kRead);
  }
}

}  // namespace penstock::data
