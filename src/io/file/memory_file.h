#pragma once

// Host memory that several processes map: a file without a name (memfd), which ends with the last process that maps it.
// Nothing has to be removed, and nothing lies in /dev/shm. Another process opens it as /proc/PID/fd/N while this one
// keeps a descriptor, which whoever maps it does.

#include <cstddef>

#include "io/file/file_descriptor.h"
#include "penstock/buffer.h"

namespace penstock::io {

/// A new file in memory with room for `bytes`, at least a page. It never becomes shorter, so that no process that maps
/// it can lose its pages. kUnsupported where the system gives none, kLimit without a free descriptor, kOutOfMemory.
FileDescriptor new_memory_file(std::size_t bytes);

/// A second descriptor on the same file, for the caller to close. kLimit.
int second_descriptor(int descriptor);

/// `bytes` of such a file, mapped to be written. The buffer's owner keeps a descriptor of its own. kTruncated where the
/// file has fewer, kLimit, kOutOfMemory.
Buffer map_memory_file(int descriptor, std::size_t bytes);
/// The same of a new file, which nothing else keeps.
Buffer allocate_shared(std::size_t bytes);

/// The same memory, page-locked for this process while the result lives. kNoDevice where there is no device for it.
Buffer page_locked(const Buffer& memory);

}  // namespace penstock::io
