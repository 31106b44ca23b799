#include "data/batch/run_reader.h"

#include <algorithm>

#include "data/sample/sample_file.h"
#include "io/read/reader.h"

namespace penstock::data {

namespace {

/// Bytes read at once. They are few, so that a stop of the loader is answered soon.
constexpr std::uint64_t kReadAtOnce = std::uint64_t{1} << 20;

bool is_remote(const SampleFile& file) {
  if (!file.is_held()) return false;
  const penstock::Source source = file.source();
  return io::reader_for(*source).read_runs != nullptr;
}

}  // namespace

void RunReader::add(const InFile& from, std::byte* to, std::uint64_t bytes, std::size_t position) {
  if (bytes == 0) return;
  if (!runs_.empty()) {
    Run& last = runs_.back();
    const bool goes_on = last.from.file == from.file && last.from.offset + last.bytes == from.offset &&
                         last.to + last.bytes == to && last.bytes + bytes <= kReadAtOnce;
    if (goes_on) {
      last.bytes += bytes;
      return;
    }
  }
  runs_.push_back({from, to, bytes, position});
}

void RunReader::read() {
  std::vector<Run> remote;
  for (const Run& run : runs_) {
    call_.check_cancelled();
    if (is_remote(*run.from.file)) {
      remote.push_back(run);
    } else {
      read_local(run);
    }
  }
  if (!remote.empty()) read_remote(std::move(remote));
}

void RunReader::read_local(const Run& run) {
  try {
    run.from.file->read(run.from.offset, {run.to, static_cast<std::size_t>(run.bytes)});
  } catch (const Error& error) {
    throw SampleError(run.position, run.from.file->error_of_change(error));
  }
  files_.add(run.from.file, run.position);
  figures_.stats.read_bytes += run.bytes;
  figures_.clock.lap(Stage::kRead);
}

void RunReader::read_remote(std::vector<Run> runs) {
  while (!runs.empty()) {
    const SampleFile* const file = runs.front().from.file;
    const auto others =
        std::stable_partition(runs.begin(), runs.end(), [file](const Run& run) { return run.from.file == file; });
    std::vector<io::Run> asked;
    for (auto run = runs.begin(); run != others; ++run) {
      asked.push_back({run->from.offset, {run->to, static_cast<std::size_t>(run->bytes)}});
      figures_.stats.read_bytes += run->bytes;
    }
    const penstock::Source source = file->source();
    try {
      io::reader_for(*source).read_runs(*source, asked);
    } catch (const Error& error) {
      throw SampleError(runs.front().position, file->error_of_change(error));
    }
    runs.erase(runs.begin(), others);
    figures_.clock.lap(Stage::kRead);
  }
}

}  // namespace penstock::data
