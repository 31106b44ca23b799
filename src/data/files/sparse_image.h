#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "data/sample/scratch.h"

namespace penstock::data {

/// Bytes [begin, end) of a file.
struct FileRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  std::uint64_t bytes() const noexcept { return end - begin; }
  friend bool operator==(const FileRange&, const FileRange&) = default;
};

/// Memory for a few bytes of a large file, each at its own offset, so that what reads directories of whole files in
/// memory reads these too. All other bytes are zeros and take no memory. Not thread-safe: one for each thread.
class SparseImage final : public Scratch::State {
 public:
  SparseImage() = default;
  ~SparseImage() override;
  SparseImage(const SparseImage&) = delete;
  SparseImage& operator=(const SparseImage&) = delete;

  /// That of this thread.
  static SparseImage& of(Scratch& scratch);
  /// The image of a file of `bytes` bytes, of which those of `ranges` are about to be written and all others are zeros.
  /// Valid until the next call. Null where the process may not have so many addresses.
  std::byte* prepare(std::uint64_t bytes, std::span<const FileRange> ranges);

 private:
  bool grow(std::uint64_t bytes);
  void clear();

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::vector<FileRange> written_;
  std::uint64_t touched_ = 0;  ///< bytes written since memory was given back
};

}  // namespace penstock::data
