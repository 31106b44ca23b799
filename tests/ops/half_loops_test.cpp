#include "ops/half_loops.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace penstock::ops {
namespace {

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> out(values.size() * sizeof(T));
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

std::vector<std::byte> decoded(HalfLoops by, const std::vector<std::byte>& halves) {
  std::vector<std::byte> out(2 * halves.size());
  by.decode(halves.data(), out.data(), halves.size() / 2);
  return out;
}

std::vector<std::byte> encoded(HalfLoops by, const std::vector<std::byte>& floats) {
  std::vector<std::byte> out(floats.size() / 2);
  by.encode(floats.data(), out.data(), out.size() / 2);
  return out;
}

TEST(HalfLoops, EveryFloat16IsDecodedToTheSameBits) {
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  const std::vector<std::byte> given = bytes_of(halves);
  EXPECT_EQ(decoded(fastest_half_loops(), given), decoded(portable_half_loops(), given));
}

/// With all of sign, exponent and the bits that a float16 keeps, and of those that it rounds away what is on either
/// side of each decision; NaNs with every payload that is kept are among them.
TEST(HalfLoops, FloatsAreEncodedToTheSameBits) {
  for (const std::uint32_t rest : {0x0000U, 0x0001U, 0x0FFFU, 0x1000U, 0x1001U, 0x1FFFU}) {
    std::vector<std::uint32_t> floats;
    floats.reserve(std::size_t{1} << 19);
    for (std::uint32_t kept = 0; kept < (1U << 19); ++kept) floats.push_back(kept << 13 | rest);
    const std::vector<std::byte> given = bytes_of(floats);
    EXPECT_EQ(encoded(fastest_half_loops(), given), encoded(portable_half_loops(), given)) << rest;
  }
}

TEST(HalfLoops, EveryCountAndAlignmentAndNothingBeside) {
  const std::vector<std::byte> given(200, std::byte{0x3C});
  for (std::size_t count = 0; count < 40; ++count) {
    const std::size_t at = 1 + count % 7;
    std::vector<std::byte> floats(at + 4 * count + 9, std::byte{0xAA});
    std::vector<std::byte> wanted = floats;
    fastest_half_loops().decode(given.data() + count % 5, floats.data() + at, count);
    portable_half_loops().decode(given.data() + count % 5, wanted.data() + at, count);
    EXPECT_EQ(floats, wanted) << count;
    std::vector<std::byte> halves(at + 2 * count + 9, std::byte{0xAA});
    wanted = halves;
    fastest_half_loops().encode(given.data() + count % 5, halves.data() + at, count);
    portable_half_loops().encode(given.data() + count % 5, wanted.data() + at, count);
    EXPECT_EQ(halves, wanted) << count;
  }
}

}  // namespace
}  // namespace penstock::ops
