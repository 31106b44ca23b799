#pragma once

// Indexes describe storages, io::RecordCheck checks records: this makes one of the other. ArchiveState::check_of adds
// the options of a load; data makes its checks here.

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
