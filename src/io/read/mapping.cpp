// Maps files for as long as somebody uses the memory. Ranges that are mapped only to be copied take
// io/read/mapping_window.h, which unmaps many of them at once.

#include "io/read/mapping.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "core/round.h"
#include "core/system_error.h"
#include "io/read/reader.h"
#include "io/source/own_read.h"
#include "io/source/source.h"

namespace penstock::io {

std::shared_ptr<const std::byte> map_file(const ByteSource& source, std::uint64_t offset, std::size_t bytes) {
  if (source.descriptor() < 0) return nullptr;
  const auto lead = static_cast<std::size_t>(offset % core::page_size());
  // MAP_SHARED of a file opened for reading can never be made writable, so nothing that gets hold of the memory can
  // detach pages of it from the file.
  void* base =
      ::mmap(nullptr, lead + bytes, PROT_READ, MAP_SHARED, source.descriptor(), static_cast<off_t>(offset - lead));
  if (base == MAP_FAILED) {
    const int error = errno;
    if (error == ENODEV || error == EACCES || error == EPERM) return nullptr;
    core::throw_errno(error, "cannot map the file", {.path = source.name(), .offset = offset});
  }
  const auto unmap = [base, length = lead + bytes](const std::byte*) { ::munmap(base, length); };
  return {static_cast<const std::byte*>(base) + lead, unmap};
}

Buffer map_source(const ByteSource& source) {
  if (Buffer memory = memory_of(source)) return memory;
  if (source.size() == 0) return {};
  const auto bytes = static_cast<std::size_t>(source.size());
  // No advice on purpose. Faults map whole folios around them from the page cache, so populating ahead saves a few
  // milliseconds in a gigabyte and would stall on a file that is not cached; and readahead around random rows, which
  // MADV_RANDOM turns off, brings a file that fits in memory in several times sooner.
  std::shared_ptr<const std::byte> mapping = map_file(source, 0, bytes);
  if (!mapping) return {};
  auto* data = const_cast<std::byte*>(mapping.get());  // Buffer hands read-only memory to nobody for writing
  return Buffer::wrap(data, bytes, std::move(mapping), true);
}

void require_uncut(const ByteSource& source) {
  if (source.descriptor() < 0) return;
  struct stat status {};
  if (::fstat(source.descriptor(), &status) != 0) {
    core::throw_errno(errno, "cannot tell the size of the file", {.path = source.name()});
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size < source.size()) throw_cut(source, 0, source.size(), size);
}

}  // namespace penstock::io
