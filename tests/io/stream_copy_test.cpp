#include "io/stream_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/files.h"

namespace penstock::io {
namespace {

TEST(StreamCopy, EveryLengthAndAlignmentAndNothingBeside) {
  const std::vector<std::byte> bytes = test::numbered_bytes(9000);
  for (std::size_t length = 0; length < 8000; length += length < 600 ? 1 : 331) {
    const std::size_t at = 64 + length % 67;
    const auto from = std::span(bytes).subspan(length % 59, length);
    std::vector<std::byte> to(at + length + 64, std::byte{0xAA});
    std::vector<std::byte> wanted = to;
    std::ranges::copy(from, wanted.begin() + static_cast<std::ptrdiff_t>(at));
    stream_copy(to.data() + at, from);
    ASSERT_EQ(to, wanted) << length;
  }
}

}  // namespace
}  // namespace penstock::io
