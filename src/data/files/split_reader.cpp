#include "data/files/split_reader.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace penstock::data {

SplitReader::SplitReader(std::size_t most)
    : most_(most), image_(std::make_unique_for_overwrite<std::byte[]>(most + 1)) {}

std::size_t SplitReader::read(int fd, const Split& split, std::byte* part) {
  // Nothing that an earlier file left in the place of the part may be taken for this one's.
  if (split_ != split) std::memset(image_.get() + split.begin, 0, split.bytes);
  split_ = split;
  part_ = part;
  const std::size_t end = split.begin + split.bytes;
  const std::array<iovec, 3> pieces = {
      {{image_.get(), split.begin}, {part, split.bytes}, {image_.get() + end, most_ + 1 - end}}};
  ssize_t got = 0;
  do {
    got = ::readv(fd, pieces.data(), static_cast<int>(pieces.size()));
  } while (got < 0 && errno == EINTR);
  filled_ = got > 0 ? static_cast<std::size_t>(got) : 0;
  return filled_;
}

std::span<const std::byte> SplitReader::whole(Arena& arena) const {
  const std::span<std::byte> out(arena.allocate(filled_), filled_);
  const std::size_t begin = std::min(split_.begin, filled_);
  const std::size_t end = std::min(split_.begin + split_.bytes, filled_);
  std::copy_n(image_.get(), begin, out.data());
  std::copy_n(part_, end - begin, out.data() + begin);
  std::copy_n(image_.get() + end, filled_ - end, out.data() + end);
  return out;
}

}  // namespace penstock::data
