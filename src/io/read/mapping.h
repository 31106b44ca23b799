#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "penstock/source.h"

namespace penstock::io {

/// [offset, offset + bytes) of a source's file as read-only memory, unmapped with the last owner of the pointer; null
/// where the source has no file or its file system maps none. kOutOfMemory when address space runs out, kIo.
/// `bytes` > 0.
std::shared_ptr<const std::byte> map_file(const ByteSource& source, std::uint64_t offset, std::size_t bytes);

}  // namespace penstock::io
