// What is kept of a file that is too large to be read whole:
//
//   | head, 16 KiB |  ...  | tail, 64 KiB |
//
// A read that lies inside one of them is a copy, any other goes to the file. The tail is read when it is first asked
// for, because only zip archives have anything to say there.

#include "io/source/opened_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/checked.h"
#include "io/source/own_read.h"
#include "io/source/source.h"

namespace penstock::io {

OpenedFile::OpenedFile(Source source) : source_(std::move(source)) {
  if (memory_of(*source_)) return;
  const std::uint64_t size = source_.size();
  if (size <= kWhole) {
    whole_ = Buffer::allocate(static_cast<std::size_t>(size));
    read_own(*source_, 0, {whole_.data(), whole_.size()});
  } else {
    head_ = Bytes::uninitialised(kHead);
    read_own(*source_, 0, head_.span());
  }
}

OpenedFile::OpenedFile(Source source, Ends ends)
    : source_(std::move(source)),
      whole_(std::move(ends.whole)),
      head_(std::move(ends.head)),
      tail_(std::move(ends.tail)) {}

/// Fills `into`, which is to hold bytes inside the file, where they are kept.
bool OpenedFile::copy_kept(std::uint64_t offset, std::span<std::byte> into) const {
  if (!whole_ && head_.size == 0) return false;
  if (whole_ || offset + into.size() <= head_.size) {
    std::memcpy(into.data(), (whole_ ? whole_.data() : head_.data.get()) + offset, into.size());
    return true;
  }
  const std::scoped_lock lock(tail_mutex_);
  if (auto run = kept_.upper_bound(offset); run != kept_.begin()) {
    const auto& [begin, bytes] = *--run;
    if (offset + into.size() <= begin + bytes.size) {
      std::memcpy(into.data(), bytes.data.get() + (offset - begin), into.size());
      return true;
    }
  }
  const std::uint64_t from_end = size() - offset;
  if (from_end > kTail) return false;
  if (from_end > tail_.size) {
    Bytes read = Bytes::uninitialised(static_cast<std::size_t>(std::min(size(), kTail)));
    read_own(*source_, size() - read.size, read.span());
    tail_ = std::move(read);
  }
  std::memcpy(into.data(), tail_.data.get() + (tail_.size - from_end), into.size());
  return true;
}

bool OpenedFile::keeps(std::uint64_t offset, std::uint64_t bytes) const {
  const std::scoped_lock lock(tail_mutex_);
  return whole_ || offset + bytes <= head_.size || size() - offset <= tail_.size;
}

void OpenedFile::keep(std::map<std::uint64_t, Bytes> runs) const {
  const std::scoped_lock lock(tail_mutex_);
  kept_ = std::move(runs);
}

void OpenedFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  require_inside(*this, offset, into.size());
  if (!into.empty() && !copy_kept(offset, into)) read_own(*source_, offset, into);
}

}  // namespace penstock::io
