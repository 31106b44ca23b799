#pragma once

// Puts a tensor together that a checkpoint keeps in chunks, as an entry of the index. Both kinds of folders use it:
// those with `.metadata` (dcp.h) and those of shards alone (shards.h).

#include <string>
#include <string_view>
#include <vector>

#include "format/dcp/chunked_tensor.h"
#include "format/format.h"
#include "penstock/error.h"

namespace penstock::format::dcp {

/// A chunk as the index of its file describes it.
struct StoredChunk {
  Box box;
  TensorEntry entry;
  StorageEntry storage;
  Source file;
};

/// kCorrupt where a chunk is not of the dtype and shape that .metadata says. `where`: of the chunk, for errors.
void require_as_said(const TensorEntry& chunk, std::string_view dtype, const Shape& shape, const ErrorContext& where);

/// Adds a tensor to `index`: as a view of its file where it is one chunk, else as a storage of its own whose source
/// reads the chunks. The chunks must cover it (coverage.h); a tensor without elements has none. kCorrupt where a chunk
/// is of another dtype or shape than said, kUnsupported for chunks that cannot be read in parts.
void add_tensor(const std::string& name, const DType& dtype, const Shape& shape, std::vector<StoredChunk> chunks,
                bool verify, Index& index);

}  // namespace penstock::format::dcp
