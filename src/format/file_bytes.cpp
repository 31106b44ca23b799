// Readers of formats work on a file in memory and on one that is read, by the same code. Only the second kind copies.

#include "format/file_bytes.h"

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "io/source/own_read.h"
#include "penstock/error.h"

namespace penstock::format {

FileBytes::FileBytes(const ByteSource& source)
    : size_(source.size()), path_(source.name()), owner_(io::memory_of(source)) {
  if (owner_) {
    memory_ = {owner_.data(), owner_.size()};
  } else {
    source_ = &source;
  }
}

std::span<const std::byte> FileBytes::at(std::uint64_t offset, std::uint64_t length,
                                         std::vector<std::byte>& store) const {
  if (!core::range_fits(offset, length, size_)) {
    throw Error(ErrorCode::kTruncated,
                core::format("{} wanted here, but the file ends at byte {}; fetch or write it again",
                             core::counted(length, "byte is", "bytes are"), size_),
                {.path = path_, .offset = offset});
  }
  if (source_ == nullptr) return memory_.subspan(offset, length);
  store.resize(length);
  source_->read(offset, store);
  return store;
}

}  // namespace penstock::format
