#pragma once

// Raw deflate streams, as zip members hold them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "penstock/source.h"

namespace penstock::format {

/// Inflates the whole stream `stored` into `out`, which it must fill exactly and use up exactly; else kCorrupt. `path`
/// and `record` are for the error. Thread-safe.
void inflate(std::span<const std::byte> stored, std::span<std::byte> out, std::string_view path,
             std::string_view record);

/// Inflates the first out.size() bytes of the stream that lies at [offset, offset + stored_bytes) of `source`, reading
/// no more of it than that takes (rounded up to a small piece). Returns how many bytes there are, fewer than out.size()
/// only at the end of the stream. kCorrupt, kTruncated.
std::size_t inflate_prefix(const ByteSource& source, std::uint64_t offset, std::uint64_t stored_bytes,
                           std::span<std::byte> out, std::string_view record);

/// Deflates the concatenation of `parts` (level 6) in bounded memory and hands the stream to `write` piece by piece.
void deflate(std::span<const std::span<const std::byte>> parts,
             const std::function<void(std::span<const std::byte>)>& write);

}  // namespace penstock::format
