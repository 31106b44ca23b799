#include "format/pt/pickle_window.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/bytes.h"
#include "support/errors.h"

namespace penstock::format {
namespace {

/// A pickle of so many bytes in a file of 1,000, of which 10 are looked at first and 400 at most.
std::vector<std::size_t> windows_of(std::size_t pickle) {
  std::vector<std::size_t> seen;
  const std::string file(1000, 'x');
  with_window(
      FileBytes(test::bytes_of(file), "x"), 0, file.size(), 10,
      [&](std::span<const std::byte> bytes) {
        seen.push_back(bytes.size());
        if (bytes.size() < pickle) throw Error(ErrorCode::kTruncated, "");
        return 0;
      },
      400);
  return seen;
}

TEST(PickleWindow, GrowsToTheLargestPickle) {
  EXPECT_EQ(windows_of(5), (std::vector<std::size_t>{10}));
  EXPECT_EQ(windows_of(400), (std::vector<std::size_t>{10, 80, 400}));
  EXPECT_EQ(test::code_of([] { windows_of(401); }), ErrorCode::kLimit);
}

}  // namespace
}  // namespace penstock::format
