// The tables of readers. A load takes the first row that can serve its source: memory is copied, files are read by
// pread; what waits is read by many threads at once. The rows "direct" and "mmap" are for callers who name them: a
// load's own choice between the page cache, direct reads and copies out of a mapping is made by Routes
// (io/move/routes.h) and CopyTrial (io/read/copy_trial.h). "source" works for every source.

#include <array>
#include <utility>

#include "io/gds/gds_reader.h"
#include "io/read/device_reader.h"
#include "io/read/reader.h"
#include "io/read/reader_rows.h"
#include "io/remote/remote.h"
#include "io/source/source.h"
#include "io/source/window_source.h"

namespace penstock::io {

std::span<const Reader> readers() noexcept {
  static constexpr std::array<Reader, 7> kReaders = {{
      {"memory", memory_usable, memory_read},
      {"pread", file_usable, pread_read},
      {"direct", file_usable, direct_read},
      {"mmap", file_usable, mmap_read},
      {"remote", remote::url_usable, remote::url_read, remote::url_costs, remote::url_read_runs},
      {"waiting", waiting_usable, waiting_read, waiting_costs, waiting_read_runs},
      {"source", any_usable, source_read, costs_within},
  }};
  return kReaders;
}

const Reader& reader_for(const ByteSource& source) {
  for (const Reader& reader : readers()) {
    if (reader.usable(source)) return reader;
  }
  return readers().back();
}

ReadCosts costs_of(const ByteSource& source) {
  const Reader& reader = reader_for(source);
  return reader.costs == nullptr ? ReadCosts{} : reader.costs(source);
}

void read_at_once(std::span<const SourceRuns> reads) {
  std::vector<SourceRuns> far;
  std::vector<SourceRuns> waiting;
  for (SourceRuns one : reads) {
    for (WindowPlace window = window_place(*one.source); window.of != nullptr; window = window_place(*one.source)) {
      for (SourceRun& run : one.runs) {
        require_inside(*one.source, run.offset, run.into.size());
        run.offset += window.offset;
      }
      one.source = Source(*window.of);
    }
    if (remote::url_usable(*one.source)) {
      far.push_back(std::move(one));
      continue;
    }
    if (waiting_usable(*one.source)) {
      waiting.push_back(std::move(one));
      continue;
    }
    const Reader& reader = reader_for(*one.source);
    for (const SourceRun& run : one.runs) {
      const Scatter part{run.into.data(), run.into.size()};
      reader.read(*one.source, run.offset, {&part, 1});
    }
  }
  if (!waiting.empty()) read_waiting(waiting);
  if (!far.empty()) remote::read_runs(far);
}

std::span<const DeviceReader> device_readers() noexcept {
  static constexpr std::array<DeviceReader, 1> kDeviceReaders = {{{"gds", "cuFile", open_gds}}};
  return kDeviceReaders;
}

}  // namespace penstock::io
