#pragma once

// The source of a tensor that lies in chunks. assembly.h makes it, loads read it as they read any source, and reads of
// a part fetch only the chunks that have some of it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/dcp/metadata.h"
#include "penstock/dtype.h"
#include "penstock/source.h"

namespace penstock::format::dcp {

/// A chunk of a tensor that was found in its file.
struct FoundChunk {
  Box box;
  Source file;
  std::uint64_t offset = 0;         ///< of its first element in the file
  Strides strides;                  ///< in the file, in elements
  std::uint64_t record_offset = 0;  ///< of the bytes that the checksum is of
  std::uint64_t record_bytes = 0;
  std::optional<std::uint32_t> crc32 = {};
};

/// The bytes of a tensor in C order, whose chunks lie in several places: an io::ComposedSource. Reading it reads each
/// byte from its chunk to where it was asked for, and only the chunks that have some of them. Chunks whose elements
/// do not lie in C order are read whole on first use and kept. The chunks must cover the tensor, each element once.
/// `name`: for errors.
Source chunked_tensor(std::string name, std::string tensor, const Shape& shape, const DType& dtype,
                      std::vector<FoundChunk> chunks);

}  // namespace penstock::format::dcp
