#include "io/file/front_file.h"

#include <algorithm>
#include <vector>

namespace penstock::io {
namespace {

constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;

}  // namespace

void FrontFile::replace_front(std::uint64_t size, std::span<const std::byte> front) {
  grown_ = front.size() - size;
  std::vector<std::byte> piece;
  // From the last piece on, so that none is overwritten before it has moved.
  for (std::uint64_t end = file_.position(); grown_ != 0 && end > size; end -= piece.size()) {
    piece.resize(static_cast<std::size_t>(std::min(kPiece, end - size)));
    file_.read_back(end - piece.size(), piece);
    file_.overwrite(end - piece.size() + grown_, piece);
  }
  file_.overwrite(0, front);
}

}  // namespace penstock::io
