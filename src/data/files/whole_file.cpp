#include "data/files/whole_file.h"

#include <algorithm>
#include <utility>

#include "core/checked.h"
#include "penstock/error.h"

namespace penstock::data {

namespace {

/// The bytes of a storage. The part that was read elsewhere is zeros in `file.bytes`; it is one whole storage, and no
/// other storage overlaps it.
std::span<const std::byte> stored_bytes(const WholeFile& file, std::uint64_t offset, std::uint64_t bytes,
                                        Arena& arena) {
  if (file.part == nullptr) return file.bytes.subspan(offset, bytes);
  if (offset == file.split.begin && bytes == file.split.bytes) return {file.part, bytes};
  // The image that `bytes` is will have the next file in it, before the batch is made.
  const std::span<std::byte> copy(arena.allocate(bytes), bytes);
  std::copy_n(file.bytes.data() + offset, bytes, copy.data());
  return copy;
}

}  // namespace

// Not inlined, because files without CRCs should not pay for it.
[[gnu::noinline]] void WholeFilePayloads::verify(std::size_t storage, const io::Record& record,
                                                 std::span<const std::byte> bytes) {
  if (verified_.empty()) {
    verified_ = arena_.array<bool>(layout_.storages.size());
    std::fill(verified_.begin(), verified_.end(), false);
  }
  if (!std::exchange(verified_[storage], true)) io::RecordCheck(record, true).check(bytes);
}

Payload WholeFilePayloads::find(std::size_t number) {
  const TensorBytes& at = layout_.tensors[number];
  const StorageEntry& storage = layout_.storages[at.storage];
  const auto [offset, crc32] = layout_.location(at.storage, locations_);
  // The layout is that of another file, so what was checked there is checked here again.
  if (!core::range_fits(offset, storage.nbytes, file_.bytes.size()) ||
      !core::range_fits(at.offset, at.extent, storage.nbytes)) {
    throw Error(ErrorCode::kTruncated, "the file ends before the bytes it declares; fetch or write it again",
                {.path = file_.path, .offset = offset, .tensor = storage.name});
  }
  const std::span<const std::byte> bytes = stored_bytes(file_, offset, storage.nbytes, arena_);
  if (crc32 && verify_) {
    verify(at.storage,
           {.crc32 = crc32, .bytes = storage.nbytes, .path = file_.path, .offset = offset, .name = storage.name},
           bytes);
  }
  return at.nbytes == 0 ? Payload{} : Payload{.place = InMemory{bytes.data() + at.offset}};
}

Sample WholeFilePayloads::sample() {
  const std::span<Payload> payloads = arena_.array<Payload>(layout_.tensors.size());
  for (std::size_t i = 0; i < payloads.size(); ++i) payloads[i] = find(i);
  return {layout_.sample.layout.get(), {payloads.data()}};
}

}  // namespace penstock::data
