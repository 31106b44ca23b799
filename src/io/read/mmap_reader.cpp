// Reads by mapping the range, copying and unmapping. A load does not choose this reader; see io/read/cached_copies.h
// for copies out of mappings that are worth it.

#include "io/copy/guarded.h"
#include "io/read/mapping.h"
#include "io/read/reader_rows.h"

namespace penstock::io {

void mmap_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts) {
  const auto wanted = static_cast<std::size_t>(require_inside(source, offset, parts));
  if (wanted == 0) return;
  const std::shared_ptr<const std::byte> run = map_file(source, offset, wanted);
  if (!run) return source_read(source, offset, parts);
  guarded_scatter(run.get(), parts, source.name());
  require_uncut(source);
}

}  // namespace penstock::io
