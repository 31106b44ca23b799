#include "format/dcp/assembly.h"

#include <utility>

#include "core/format.h"
#include "core/view.h"
#include "penstock/error.h"

namespace penstock::format::dcp {
namespace {

[[noreturn]] void fail_chunk(const StoredChunk& chunk, ErrorCode code, const std::string& message,
                             const std::string& name) {
  throw Error(code, message, {chunk.file.name(), chunk.storage.offset, name});
}

/// Whether parts of the chunk can be read from its file, in the order of bytes that the others have.
void require_readable_in_parts(const StoredChunk& chunk, const StoredChunk& first, const std::string& name) {
  const bool plain = chunk.storage.lies_in_file() && !chunk.entry.encoding.has_math_bits();
  if (plain && chunk.entry.encoding.swapped == first.entry.encoding.swapped) return;
  fail_chunk(
      chunk, ErrorCode::kUnsupported,
      "it is cut into chunks, and this one is compressed, has torch's conj or neg bit, or the other byte order than "
      "the others; load the checkpoint with torch and save it again",
      name);
}

FoundChunk found(const StoredChunk& chunk, bool verify) {
  return {.box = chunk.box,
          .file = chunk.file,
          .offset = chunk.storage.offset + chunk.entry.byte_offset,
          .strides = chunk.entry.strides,
          .record_offset = chunk.storage.offset,
          .record_bytes = chunk.storage.nbytes,
          .crc32 = verify ? chunk.storage.crc32 : std::nullopt};
}

/// The source of a tensor of several chunks; it is the last of the index's sources.
StorageEntry composed_storage(const std::string& name, const DType& dtype, const Shape& shape,
                              const std::vector<StoredChunk>& chunks, bool verify, Index& index) {
  std::vector<FoundChunk> parts;
  for (const StoredChunk& chunk : chunks) {
    require_readable_in_parts(chunk, chunks.front(), name);
    parts.push_back(found(chunk, verify));
  }
  const std::string& path = index.sources.front().name();
  StorageEntry storage{.name = name, .source = static_cast<std::uint32_t>(index.sources.size())};
  index.sources.push_back(chunked_tensor(path, name, shape, dtype, std::move(parts)));
  storage.stored_bytes = storage.nbytes = index.sources.back().size();
  return storage;
}

}  // namespace

void require_as_said(const TensorEntry& chunk, std::string_view dtype, const Shape& shape, const ErrorContext& where) {
  constexpr std::string_view kAdvice = "the file and .metadata are not of one save: copy both again";
  if (chunk.dtype.name() != dtype) {
    throw Error(ErrorCode::kCorrupt,
                core::format("a chunk is of {}, where .metadata says {}; {}", chunk.dtype.name(), dtype, kAdvice),
                where);
  }
  if (chunk.shape == shape) return;
  throw Error(ErrorCode::kCorrupt,
              core::format("a chunk has shape {}, where .metadata says {}; {}", chunk.shape.to_string(),
                           shape.to_string(), kAdvice),
              where);
}

void add_tensor(const std::string& name, const DType& dtype, const Shape& shape, std::vector<StoredChunk> chunks,
                bool verify, Index& index) {
  for (const StoredChunk& chunk : chunks) {
    require_as_said(chunk.entry, dtype.name(), chunk.box.shape, {chunk.file.name(), chunk.storage.offset, name});
  }
  TensorEntry entry;
  entry.name = name;
  entry.dtype = dtype;
  entry.shape = shape;
  entry.strides = shape.contiguous_strides();
  entry.nbytes();  // throws where it does not fit
  StorageEntry storage{.name = name};
  if (chunks.size() == 1) {
    entry.strides = chunks.front().entry.strides;
    entry.byte_offset = chunks.front().entry.byte_offset;
    entry.encoding = chunks.front().entry.encoding;
    storage = std::move(chunks.front().storage);
  } else if (!chunks.empty()) {
    entry.encoding.swapped = chunks.front().entry.encoding.swapped;
    storage = composed_storage(name, dtype, shape, chunks, verify, index);
  }
  entry.storage = index.storages.size();
  index.storages.push_back(std::move(storage));
  index.entries.push_back(std::move(entry));
}

}  // namespace penstock::format::dcp
