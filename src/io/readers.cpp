// The tables of readers. A load takes the first row that can serve its source: memory is copied, files are read by
// pread. The rows "direct" and "mmap" are for callers who name them: a load's own choice between the page cache, direct
// reads and copies out of a mapping is made by Routes (io/move/routes.h) and CopyTrial (io/read/copy_trial.h). "source"
// works for every source.

#include <array>

#include "io/gds/gds_reader.h"
#include "io/read/device_reader.h"
#include "io/read/reader.h"
#include "io/read/reader_rows.h"
#include "io/remote/remote.h"

namespace penstock::io {

std::span<const Reader> readers() noexcept {
  static constexpr std::array<Reader, 6> kReaders = {{
      {"memory", memory_usable, memory_read},
      {"pread", file_usable, pread_read},
      {"direct", file_usable, direct_read},
      {"mmap", file_usable, mmap_read},
      {"remote", remote::url_usable, remote::url_read, true, remote::url_read_runs},
      {"source", any_usable, source_read},
  }};
  return kReaders;
}

const Reader& reader_for(const ByteSource& source) noexcept {
  for (const Reader& reader : readers()) {
    if (reader.usable(source)) return reader;
  }
  return readers().back();
}

std::span<const DeviceReader> device_readers() noexcept {
  static constexpr std::array<DeviceReader, 1> kDeviceReaders = {{{"gds", "cuFile", open_gds}}};
  return kDeviceReaders;
}

}  // namespace penstock::io
