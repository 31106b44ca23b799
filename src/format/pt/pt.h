#pragma once

// What other formats and the loader need of `.pt`: its index out of memory, and its layouts of files that look alike.

#include <cstddef>
#include <span>
#include <string_view>

#include "format/format.h"
#include "format/zip/layouts.h"
#include "penstock/entry.h"

namespace penstock::format {

/// The index of a `.pt` (zip or legacy) whose bytes all lie in memory; reads nothing else. `path` is for errors. The
/// result's `sources` is empty: source 0 is `file`. Nothing in the result refers to `file`'s memory.
Index read_pt_index(std::span<const std::byte> file, std::string_view path, const OpenOptions& options = {});

/// The layouts of zipped `.pt` files.
class PtLayouts final : public ZipLayouts {
 public:
  PtLayouts();
};

}  // namespace penstock::format
