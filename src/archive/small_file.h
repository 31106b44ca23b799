#pragma once

#include <cstdint>

#include "penstock/buffer.h"
#include "penstock/source.h"

namespace penstock::archive {

/// A file of up to this size is read once, with index and payload: the end of a zip archive may lie as far from the end
/// of its file, so that as much is read anyway, and each further call costs as much as some kilobytes more.
inline constexpr std::uint64_t kReadWhole = std::uint64_t{64} << 10;

/// All of a small source; empty of a larger one, and where memory has it already.
Buffer small_content(const ByteSource& source);

/// The source whose content is `content`, to be read from there.
SourcePtr read_already(SourcePtr source, Buffer content);

}  // namespace penstock::archive
