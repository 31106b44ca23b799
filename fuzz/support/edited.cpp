#include "support/edited.h"

#include <algorithm>

#include "support/zip_mending.h"

namespace penstock::fuzz {

namespace {

constexpr std::size_t kMostEdits = 7;

}  // namespace

std::vector<std::byte> edited(std::span<const std::byte> file, Choices& choices) {
  std::vector<std::byte> out(file.begin(), file.end());
  const std::size_t edits = choices.below(kMostEdits + 1);
  for (std::size_t i = 0; i < edits && !out.empty(); ++i) {
    const std::size_t at = choices.word() % out.size();
    // Counted from the end too, where an archive has its directory.
    out[choices.flag() ? out.size() - 1 - at : at] ^= static_cast<std::byte>(choices.byte());
  }
  switch (choices.below(6)) {
    case 1:
      out.erase(out.end() - static_cast<std::ptrdiff_t>(std::min<std::size_t>(out.size(), choices.byte())), out.end());
      break;
    case 2:
      out.insert(out.end(), choices.byte(), std::byte{});
      break;
    case 3:
    case 4:
      mend_checksums(out);
      break;
    default:
      break;
  }
  return out;
}

}  // namespace penstock::fuzz
