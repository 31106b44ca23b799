// The tables of readers. A load takes the first row that can serve its source: memory is copied, files are read by
// pread. The rows "direct" and "mmap" are for those who name them (Routes chooses direct reads by itself), and "source"
// works for every source.

#include <array>

#include "io/gds/gds_reader.h"
#include "io/read/device_reader.h"
#include "io/read/reader.h"
#include "io/read/reader_rows.h"

namespace penstock::io {

std::span<const Reader> readers() noexcept {
  static constexpr std::array<Reader, 5> kReaders = {{
      {"memory", memory_usable, memory_read},
      {"pread", file_usable, pread_read},
      {"direct", file_usable, direct_read},
      {"mmap", file_usable, mmap_read},
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
