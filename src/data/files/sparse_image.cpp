#include "data/files/sparse_image.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace penstock::data {

namespace {

/// Images of files of many sizes would touch one page after the other: from here on the memory is given back.
constexpr std::uint64_t kMostTouched = std::uint64_t{4} << 20;
constexpr std::size_t kGranule = std::size_t{1} << 20;

const char kKey = 0;

}  // namespace

SparseImage::~SparseImage() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

SparseImage& SparseImage::of(Scratch& scratch) { return scratch.state<SparseImage>(&kKey); }

std::byte* SparseImage::prepare(std::uint64_t bytes, std::span<const FileRange> ranges) {
  if (bytes > size_ && !grow(bytes)) return nullptr;
  if (std::equal(ranges.begin(), ranges.end(), written_.begin(), written_.end())) return data_;
  clear();
  written_.assign(ranges.begin(), ranges.end());
  for (const FileRange& range : ranges) touched_ += range.bytes();
  return data_;
}

bool SparseImage::grow(std::uint64_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) return false;
  const std::size_t size = (static_cast<std::size_t>(bytes) + kGranule - 1) / kGranule * kGranule;
  void* const mapped =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return false;
  ::madvise(mapped, size, MADV_NOHUGEPAGE);  // a few bytes here and there would take 2 MB each
  if (data_ != nullptr) ::munmap(data_, size_);
  data_ = static_cast<std::byte*>(mapped);
  size_ = size;
  written_.clear();
  touched_ = 0;
  return true;
}

/// Nothing that an earlier file left may be taken for bytes of another one.
void SparseImage::clear() {
  if (touched_ > kMostTouched && ::madvise(data_, size_, MADV_DONTNEED) == 0) {
    touched_ = 0;
    return;
  }
  for (const FileRange& range : written_) {
    std::memset(data_ + range.begin, 0, static_cast<std::size_t>(range.bytes()));
  }
}

}  // namespace penstock::data
