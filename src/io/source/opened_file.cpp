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
#include "io/source/source.h"

namespace penstock::io {

OpenedFile::OpenedFile(Source source) : source_(std::move(source)) {
  if (source_.memory()) return;
  const std::uint64_t size = source_.size();
  if (size <= kWhole) {
    whole_ = Buffer::allocate(static_cast<std::size_t>(size));
    source_.read(0, {whole_.data(), whole_.size()});
  } else {
    head_ = std::make_unique_for_overwrite<std::byte[]>(kHead);
    source_.read(0, {head_.get(), kHead});
  }
}

/// Where [offset, + length), which lies inside the file, is kept; null where it is not.
const std::byte* OpenedFile::find(std::uint64_t offset, std::uint64_t length) const {
  if (whole_) return whole_.data() + offset;
  if (!head_) return nullptr;
  if (offset + length <= kHead) return head_.get() + offset;
  const std::uint64_t tail = size() - std::min(size(), kTail);
  if (offset < tail) return nullptr;
  const std::scoped_lock lock(tail_mutex_);
  if (!tail_) {
    const auto bytes = static_cast<std::size_t>(size() - tail);
    Bytes read = std::make_unique_for_overwrite<std::byte[]>(bytes);
    source_.read(tail, {read.get(), bytes});
    tail_ = std::move(read);
  }
  return tail_.get() + (offset - tail);
}

void OpenedFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  require_inside(*this, offset, into.size());
  if (into.empty()) return;
  if (const std::byte* const kept = find(offset, into.size())) {
    std::memcpy(into.data(), kept, into.size());
  } else {
    source_.read(offset, into);
  }
}

}  // namespace penstock::io
