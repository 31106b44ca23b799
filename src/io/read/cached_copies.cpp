// A range tells the trial how fast it was copied, without what unmapping took: mappings are unmapped together, when a
// window is full, so that the range that happens to pay for it says nothing about the others. What unmapping costs is
// told apart, as seconds a byte, and the trial charges it to every mapped range.

#include "io/read/cached_copies.h"

#include <span>
#include <utility>

#include "io/copy/crc32.h"
#include "io/copy/guarded.h"
#include "io/read/reader.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

// How long shorter ranges take tells little about the route they took.
constexpr std::uint64_t kTellingBytes = 1024 * 1024;
// Unmapping less is mostly the interruption of other processors, which a full window spreads over more bytes.
constexpr std::uint64_t kTellingMappedBytes = 24 * 1024 * 1024;

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

void CachedCopies::RangeCopy::map(std::uint64_t offset, Stores stores) {
  try {
    require_uncut(source_);
  } catch (const Error&) {
    return;  // whoever asked reads instead, which says what is wrong
  }
  mapped_ = thread_.window.map(source_, offset, static_cast<std::size_t>(bytes_));
  offset_ = offset;
  stores_ = stores;
}

bool CachedCopies::RangeCopy::copy(std::uint64_t offset, std::byte* to, std::size_t bytes, std::uint32_t* crc) const {
  return bytes == 0 || read_guarded(Copy(to, {mapped_ + (offset - offset_), bytes}, stores_, crc));
}

void CachedCopies::RangeCopy::finish() {
  if (is_mapped()) require_uncut(source_);
  MappingWindow& window = thread_.window;
  CopyTrial& trial = copies_.trial_;
  const double seconds = watch_.lap() - (window.unmapped().seconds - before_.seconds);
  // The first range of a thread takes twice as long, whichever route it takes.
  const bool is_first = !std::exchange(thread_.begun, true);
  const bool is_telling = !is_first && bytes_ >= kTellingBytes && seconds > 0;
  if (is_telling) trial.done(is_mapped(), static_cast<double>(bytes_) / seconds);

  // The trial needs to know once what unmapping costs, so it does not wait for a full window then.
  const bool is_enough = is_telling && is_mapped() && window.mapped() >= kTellingMappedBytes;
  if (is_enough && !trial.knows_unmapping()) window.release();
  const std::uint64_t unmapped = window.unmapped().bytes - before_.bytes;
  if (unmapped > 0) trial.unmapped(unmapped, window.unmapped().seconds - before_.seconds);
}

}  // namespace penstock::io
