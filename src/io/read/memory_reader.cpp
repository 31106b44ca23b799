// The readers that make no system calls of their own: one for sources that are memory, one for every source.

#include "core/checked.h"
#include "io/copy/guarded.h"
#include "io/read/reader_rows.h"
#include "io/source/own_read.h"
#include "io/source/source.h"

namespace penstock::io {

std::uint64_t require_inside(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts) {
  std::uint64_t wanted = 0;
  for (const Scatter& part : parts) wanted = core::checked_add<std::uint64_t>(wanted, part.bytes, "a scattered read");
  require_inside(source, offset, wanted);
  return wanted;
}

bool memory_usable(const ByteSource& source) noexcept { return static_cast<bool>(source.memory()); }

void memory_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts) {
  require_inside(source, offset, parts);
  const Buffer memory = source.memory();
  guarded_scatter(memory.data() + offset, parts, source.name());
}

bool any_usable(const ByteSource& /*source*/) noexcept { return true; }

void source_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts) {
  require_inside(source, offset, parts);
  for (const Scatter& part : parts) {
    if (part.to && part.bytes > 0) read_own(source, offset, {part.to, part.bytes});
    offset += part.bytes;
  }
}

}  // namespace penstock::io
