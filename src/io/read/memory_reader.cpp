// The readers that make no system calls of their own: one for sources that are memory, one for every source.

#include <algorithm>

#include "core/checked.h"
#include "io/copy/guarded.h"
#include "io/read/reader_rows.h"
#include "io/source/composed_source.h"
#include "io/source/own_read.h"
#include "io/source/source.h"
#include "io/source/window_source.h"

namespace penstock::io {
namespace {

/// Each of them asks for several parts at once, and may hold a copy of a piece meanwhile.
constexpr std::size_t kComposedAtOnce = 16;

}  // namespace

std::uint64_t require_inside(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts) {
  std::uint64_t wanted = 0;
  for (const Scatter& part : parts) wanted = core::checked_add<std::uint64_t>(wanted, part.bytes, "a scattered read");
  require_inside(source, offset, wanted);
  return wanted;
}

bool memory_usable(const ByteSource& source) { return static_cast<bool>(memory_of(source)); }

void memory_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts) {
  require_inside(source, offset, parts);
  const Buffer memory = memory_of(source);
  guarded_scatter(memory.data() + offset, parts, source.name());
}

bool any_usable(const ByteSource& /*source*/) noexcept { return true; }

ReadCosts costs_within(const ByteSource& source) {
  if (const WindowPlace window = window_place(source); window.of != nullptr) return costs_of(**window.of);
  if (const ByteSource& own = beneath(source); &own != &source) return costs_of(own);
  const auto* const composed = dynamic_cast<const ComposedSource*>(&source);
  if (composed == nullptr || composed->parts().empty()) return {};
  ReadCosts costs = costs_of(*composed->parts().front());
  costs.at_once = std::min(costs.at_once, kComposedAtOnce);
  costs.is_paced = true;
  return costs;
}

void source_read(const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts) {
  require_inside(source, offset, parts);
  // All parts of a window are one read of what it lies in.
  if (const WindowPlace window = window_place(source); window.of != nullptr) {
    return reader_for(**window.of).read(**window.of, window.offset + offset, parts);
  }
  for (const Scatter& part : parts) {
    if (part.to && part.bytes > 0) read_own(source, offset, {part.to, part.bytes});
    offset += part.bytes;
  }
}

}  // namespace penstock::io
