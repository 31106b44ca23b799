// The engine knows file offsets and no tensors, so its errors have no name. The tensor that an offset belongs to is
// found here, when an error is on its way to the user.

#include "archive/failing_tensor.h"

namespace penstock::archive {

Error with_tensor(const Error& error, const format::Index& index, std::span<const TensorEntry* const> tensors) {
  if (!error.tensor().empty() || !error.offset()) return error;
  const TensorEntry* found = nullptr;
  const auto storage_of = [&](const TensorEntry& entry) -> const StorageEntry& {
    return index.storages[entry.storage];
  };
  for (const TensorEntry* const entry : tensors) {
    if (entry->nbytes() == 0) continue;
    const StorageEntry& storage = storage_of(*entry);
    if (index.sources[storage.source].name() != error.path()) continue;
    if (storage.offset + storage.stored_bytes <= *error.offset()) continue;
    if (found == nullptr || storage.offset < storage_of(*found).offset) found = entry;
  }
  return found == nullptr ? error : error.within({.tensor = found->name});
}

}  // namespace penstock::archive
