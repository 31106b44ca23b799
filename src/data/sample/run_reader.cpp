#include "data/sample/run_reader.h"

#include <utility>

#include "data/sample/held_file.h"

namespace penstock::data {

void RunReader::add(const InFile& from, std::byte* to, std::uint64_t bytes, std::size_t position) {
  if (bytes == 0) return;
  if (from.file != last_) {
    last_ = from.file;
    most_ = from.file->costs().piece;
  }
  if (!runs_.empty()) {
    FileRun& last = runs_.back();
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
  std::vector<FileRun> remote;
  for (const FileRun& run : runs_) {
    call_.check_cancelled();
    if (run.from.file->reads_at_once()) {
      remote.push_back(run);
    } else {
      read_local(run);
    }
  }
  if (remote.empty()) return;
  figures_.stats.read_bytes += read_at_once(std::move(remote));
  figures_.clock.lap(Stage::kRead);
}

void RunReader::read_local(const FileRun& run) {
  try {
    run.from.file->read(run.from.offset, {run.to, static_cast<std::size_t>(run.bytes)});
  } catch (const Error& error) {
    throw SampleError(run.position, run.from.file->error_of_change(error));
  }
  files_.add(run.from.file, run.position);
  figures_.stats.read_bytes += run.bytes;
  figures_.clock.lap(Stage::kRead);
}

}  // namespace penstock::data
