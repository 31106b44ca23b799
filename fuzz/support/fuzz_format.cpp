#include "support/fuzz_format.h"

#include <cstring>

#include "core/checked.h"
#include "core/view.h"
#include "penstock/load.h"
#include "penstock/tensor.h"
#include "support/outcome.h"
#include "support/payload.h"

namespace penstock::fuzz {
namespace {

Source source_of(const std::uint8_t* data, std::size_t size) {
  const Tensor bytes = Tensor::empty({static_cast<std::int64_t>(size)}, DType::uint8);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  return memory_source(bytes.buffer(), "fuzz/input");
}

void check_storage(const StorageEntry& storage, const format::Index& index) {
  if (storage.resident) {
    require(storage.nbytes <= storage.resident.size(), "a resident storage is shorter than it says");
    return;
  }
  require(storage.source < index.sources.size(), "a storage lies in no source");
  require(core::range_fits(storage.offset, storage.stored_bytes, index.sources[storage.source].size()),
          "a storage lies outside its file");
}

void check_entry(const TensorEntry& entry, const format::Index& index) {
  if (entry.pickled) return;
  require(entry.storage < index.storages.size(), "a tensor has no storage");
  const auto extent = core::view_extent(entry.shape, entry.strides);
  require(extent.has_value(), "a tensor's extent overflows");
  const auto bytes = core::try_mul<std::uint64_t>(static_cast<std::uint64_t>(*extent), entry.dtype.itemsize());
  require(bytes.has_value(), "a tensor's bytes overflow");
  if (*extent == 0) return;
  require(core::range_fits(entry.byte_offset, *bytes, index.storages[entry.storage].nbytes),
          "a tensor lies outside its storage");
}

std::uint64_t payload(const format::Index& index) {
  std::uint64_t total = 0;
  for (const StorageEntry& storage : index.storages) {
    total = core::try_add(total, storage.nbytes).value_or(kMostReadOnce + 1);
    if (total > kMostReadOnce) break;
  }
  return total;
}

bool read(const format::Format& format, const Source& source, bool verify) {
  const format::Index index = format.read_index(source, {.verify = verify});
  require(index.sources.size() <= 1, "bytes in memory made another file be opened");
  for (const StorageEntry& storage : index.storages) check_storage(storage, index);
  for (const TensorEntry& entry : index.entries) check_entry(entry, index);
  if (payload(index) > kMostReadOnce) return true;
  const Archive archive = open(source, {.verify = verify});
  static_cast<void>(archive.load({.verify = verify, .threads = 1}).to_string());
  return true;
}

}  // namespace

int fuzz_format(const format::Format& format, const std::uint8_t* data, std::size_t size) {
  const Source source = source_of(data, size);
  const auto outcome = attempt([&] { return read(format, source, true); });
  // Behind a checksum lies all that damage could do.
  if (outcome.failed_by(ErrorCode::kChecksum)) attempt([&] { return read(format, source, false); });
  return 0;
}

}  // namespace penstock::fuzz
