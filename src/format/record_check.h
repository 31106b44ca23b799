#pragma once

// Makes the io::RecordCheck of a storage that an index describes. Only loads make theirs here (ArchiveState::check_of).
// Batches make their own (data/files/whole_file.cpp, large_file.cpp): the layout of a recognised file is that of an
// earlier file, but its checksums are its own.

#include <string_view>

#include "io/copy/record_check.h"
#include "penstock/entry.h"

namespace penstock::format {

/// The check of a storage of the file `path`. Both must outlive it.
inline io::RecordCheck check_of(const StorageEntry& storage, std::string_view path, bool verify) noexcept {
  return {
      {.crc32 = storage.crc32, .bytes = storage.nbytes, .path = path, .offset = storage.offset, .name = storage.name},
      verify};
}

}  // namespace penstock::format
