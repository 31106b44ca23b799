#include "io/read/mapped_range.h"

#include <span>

#include "io/copy/crc32.h"
#include "io/copy/guarded.h"
#include "io/read/reader.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

class Copy final : public GuardedMemory {
 public:
  Copy(std::byte* to, std::span<const std::byte> from, Stores stores, std::uint32_t* crc)
      : to_(to), from_(from), stores_(stores), crc_(crc) {}
  bool contains(const std::byte* address) const noexcept override {
    return address >= from_.data() && address < from_.data() + from_.size();
  }
  void read() const noexcept override {
    if (crc_ == nullptr) return io::copy(to_, from_, stores_);
    *crc_ = crc32_copy(*crc_, to_, from_, stores_);
  }

 private:
  std::byte* to_;
  std::span<const std::byte> from_;
  Stores stores_;
  std::uint32_t* crc_;
};

}  // namespace

std::optional<MappedRange> MappedRange::map(MappingWindow& window, const ByteSource& source, std::uint64_t offset,
                                            std::size_t bytes, Stores stores) {
  try {
    require_uncut(source);
  } catch (const Error&) {
    return std::nullopt;  // whoever asked has another way to read, which says what is wrong
  }
  const std::byte* const memory = window.map(source, offset, bytes);
  return memory != nullptr ? std::optional(MappedRange(memory, offset, stores)) : std::nullopt;
}

bool MappedRange::copy(std::uint64_t offset, std::byte* to, std::size_t bytes, std::uint32_t* crc) const {
  return bytes == 0 || read_guarded(Copy(to, {memory_ + (offset - offset_), bytes}, stores_, crc));
}

}  // namespace penstock::io
