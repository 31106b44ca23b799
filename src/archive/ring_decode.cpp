// The stage behind decode_job: a chunk is read, or inflated, into the ring; its checksum is computed there, of the
// bytes as the file has them; and then its units are reversed.

#include "archive/ring_decode.h"

#include <memory>
#include <optional>
#include <vector>

#include "format/zip/inflate.h"
#include "ops/kernels.h"

namespace penstock::archive {
namespace {

/// Where the bytes of a storage come from: the file itself, or a stream in it.
class Bytes {
 public:
  explicit Bytes(const RingStorage& from) : storage_(*from.storage), source_(*from.source) {
    if (!storage_.is_deflated()) return;
    if (storage_.nbytes > io::kDecodeChunk || storage_.stored_bytes > io::kDecodeChunk) {
      stream_.emplace(source_, storage_.offset, storage_.stored_bytes, storage_.name);
    } else {
      // The fastest way wants all of the stream, which is small.
      small_.emplace(static_cast<std::size_t>(storage_.stored_bytes));
      source_.read(storage_.offset, *small_);
    }
  }

  /// Fills `out` with what lies from `position` on.
  void read(std::uint64_t position, std::span<std::byte> out) {
    if (stream_) {
      stream_->fill(out, storage_.nbytes);
    } else if (small_) {
      format::inflate(*small_, out, source_.name(), storage_.name);
    } else {
      source_.read(storage_.offset + position, out);
    }
  }
  void require_end() {
    if (stream_) stream_->require_end(storage_.nbytes);
  }

 private:
  const StorageEntry& storage_;
  const ByteSource& source_;
  std::optional<format::InflateStream> stream_;
  std::optional<std::vector<std::byte>> small_;
};

class StorageStage final : public io::DecodeStage {
 public:
  explicit StorageStage(const RingStorage& from) : from_(from), bytes_(from), check_(from.check) {}

  void fill(std::uint64_t position, std::span<std::byte> chunk) override {
    bytes_.read(position, chunk);
    check_.add(chunk);
    swap_units(position, chunk);
  }
  void finish() override {
    bytes_.require_end();
    check_.finish();
  }

 private:
  /// Reverses the units in a chunk, which ends with a whole unit or with the storage.
  void swap_units(std::uint64_t position, std::span<std::byte> chunk) const {
    const std::size_t width = from_.swap_width;
    if (width == 1) return;
    const std::uint64_t before = position < from_.swap_phase ? from_.swap_phase - position : 0;
    if (before >= chunk.size()) return;
    const auto units = chunk.subspan(static_cast<std::size_t>(before));
    ops::swap_bytes(units.first(units.size() / width * width), width);
  }

  const RingStorage from_;
  Bytes bytes_;
  io::RecordCheck check_;
};

}  // namespace

io::DecodeJob decode_job(const RingStorage& storage, std::uint32_t buffer, std::uint64_t offset) {
  const StorageEntry& entry = *storage.storage;
  return {.buffer = buffer,
          .offset = offset,
          .bytes = entry.nbytes,
          .stored_bytes = entry.stored_bytes,
          .width = storage.swap_width,
          .phase = storage.swap_phase,
          .in_order = entry.is_deflated() || storage.check.wanted(),
          .begin = [storage] { return std::make_unique<StorageStage>(storage); },
          .place = {storage.source->name(), entry.offset, entry.name}};
}

}  // namespace penstock::archive
