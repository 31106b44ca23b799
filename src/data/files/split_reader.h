#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "data/sample/scratch.h"

namespace penstock::data {

/// Reads a small file of which one part goes elsewhere: its payload, straight into the batch. One call of the system
/// and no copy. Not thread-safe.
class SplitReader {
 public:
  /// What a file is expected to be, from one like it. `begin + bytes` is no more than `file_bytes`.
  struct Split {
    std::size_t file_bytes = 0;
    std::size_t begin = 0;  ///< of the part
    std::size_t bytes = 0;

    friend bool operator==(const Split&, const Split&) = default;
  };

  /// For files of up to `most` bytes, and one more.
  explicit SplitReader(std::size_t most);

  /// Reads the file from its start, the part that `split` names to `part`. Gives the bytes read: `most` + 1 for a file
  /// that is too long, 0 for one that cannot be read.
  std::size_t read(int fd, const Split& split, std::byte* part);
  /// What was read is as long as expected.
  bool expected() const noexcept { return filled_ == split_.file_bytes; }
  /// Of a file as long as expected, until the next is read: its bytes, but zeros for the part.
  std::span<const std::byte> image() const noexcept { return {image_.get(), filled_}; }
  /// All that was read, put together in `arena`.
  std::span<const std::byte> whole(Arena& arena) const;

 private:
  std::size_t most_;
  std::unique_ptr<std::byte[]> image_;
  Split split_;
  const std::byte* part_ = nullptr;
  std::size_t filled_ = 0;
};

}  // namespace penstock::data
