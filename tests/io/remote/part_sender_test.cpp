#include "io/remote/part_sender.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace penstock::io::remote {
namespace {

constexpr std::uint64_t kTera = std::uint64_t{1} << 40;
constexpr std::uint64_t kMostInPart = std::uint64_t{5} << 30;

std::uint64_t size_of_all(std::uint64_t expected) {
  std::uint64_t bytes = 0;
  for (std::size_t number = 1; number <= kMostParts; ++number) bytes += part_size(number, expected);
  return bytes;
}

TEST(PartSize, TenThousandPartsSuffice) {
  for (const std::uint64_t expected : {std::uint64_t{0}, std::uint64_t{1}, kTera / 10, kTera, 5 * kTera}) {
    EXPECT_GE(size_of_all(expected), expected + expected / 10);
    EXPECT_GE(size_of_all(expected), kTera);
  }
}

TEST(PartSize, IsOneSizeForWhatWasExpected) {
  EXPECT_EQ(part_size(1, 0), kLeastPart);
  EXPECT_EQ(part_size(8'000, 60'000'000'000), kLeastPart);
  EXPECT_EQ(part_size(1, kTera), part_size(8'000, kTera));
  EXPECT_GT(part_size(8'001, kTera), part_size(8'000, kTera));
  EXPECT_LE(part_size(1, 5 * kTera), kMostInPart);
}

}  // namespace
}  // namespace penstock::io::remote
