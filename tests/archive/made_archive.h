#pragma once

// Archives whose index is made by hand: any layout over any bytes.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "archive/archive_state.h"
#include "format/check_index.h"
#include "format/rows.h"
#include "support/bytes.h"

namespace penstock::test {

/// An archive over one source. Add storages and entries, then load from `state`.
class MadeArchive {
 public:
  explicit MadeArchive(Source source) {
    state.format = &format::kSafetensorsFormat;
    state.index.sources = {std::move(source)};
  }

  std::size_t add_storage(std::uint64_t offset, std::uint64_t nbytes) {
    StorageEntry storage;
    storage.name = "s" + std::to_string(state.index.storages.size());
    storage.offset = offset;
    storage.stored_bytes = storage.nbytes = nbytes;
    state.index.storages.push_back(storage);
    return state.index.storages.size() - 1;
  }
  TensorEntry& add_entry(std::size_t storage, DType dtype, Shape shape, Strides strides,
                         std::uint64_t byte_offset = 0) {
    TensorEntry entry;
    entry.name = "t" + std::to_string(state.index.entries.size());
    entry.dtype = std::move(dtype);
    entry.shape = std::move(shape);
    entry.strides = std::move(strides);
    entry.storage = storage;
    entry.byte_offset = byte_offset;
    state.index.entries.push_back(std::move(entry));
    return state.index.entries.back();
  }

  StorageEntry& storage(std::size_t i) { return state.index.storages[i]; }
  const std::vector<TensorEntry>& entries() { return sealed().index.entries; }
  /// The state as opening a file leaves it.
  const detail::ArchiveState& sealed() {
    format::write_encodings(state.index);
    return state;
  }

  detail::ArchiveState state;
};

/// The bytes as text, for sources.
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// What an entry's elements should be: a view of the source's bytes in memory.
inline Tensor expected(const std::string& bytes, const StorageEntry& storage, const TensorEntry& entry) {
  Buffer buffer = Buffer::allocate(storage.nbytes);
  if (storage.nbytes != 0) std::memcpy(buffer.data(), bytes.data() + storage.offset, storage.nbytes);
  return {buffer, entry.dtype, entry.shape, entry.strides, entry.byte_offset};
}

}  // namespace penstock::test
