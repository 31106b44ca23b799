#include "ops/copy_plane.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace penstock::ops {
namespace {

using Bytes = std::vector<std::byte>;

/// A dimension of one side: its step in bytes, which may be negative, for elements of `bytes` bytes.
std::int64_t a_step(std::mt19937& random, std::int64_t bytes) {
  const auto apart = bytes + static_cast<std::int64_t>(random() % 2 * (random() % 3));
  return random() % 2 == 0 ? apart : -apart;
}

/// Where the first element lies, when no element lies before 0; and how many bytes the plane reaches over.
struct Reach {
  std::int64_t first = 0;
  std::size_t bytes = 0;
};

Reach reach(std::int64_t outer, std::int64_t outer_step, std::int64_t inner, std::int64_t inner_step,
            std::size_t width) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (const std::int64_t end : {(outer - 1) * outer_step, (inner - 1) * inner_step}) (end < 0 ? low : high) += end;
  return {-low, static_cast<std::size_t>(high - low) + width};
}

// The memory of each side ends where the plane ends, so that AddressSanitizer sees one byte too many.
TEST(CopyPlane, AgreesWithOneElementAtATime) {
  std::mt19937 random(5);
  for (int round = 0; round < 4000; ++round) {
    const std::size_t width = 1 + random() % 17;
    const auto bytes = static_cast<std::int64_t>(width);
    const bool packed = random() % 2 == 0;  // runs without gaps on both sides
    Dim inner{1 + static_cast<std::int64_t>(random() % 20), bytes, bytes};
    if (!packed) inner = {inner.size, a_step(random, bytes), a_step(random, bytes)};
    Dim outer{1 + static_cast<std::int64_t>(random() % 40), 0, 0};
    outer.from = a_step(random, inner.size * std::abs(inner.from));
    outer.to = packed ? inner.size * bytes : a_step(random, inner.size * std::abs(inner.to));
    const Reach source = reach(outer.size, outer.from, inner.size, inner.from, width);
    const Reach target = reach(outer.size, outer.to, inner.size, inner.to, width);
    Bytes from(source.bytes);
    for (std::byte& byte : from) byte = static_cast<std::byte>(random());
    Bytes to(target.bytes, std::byte{0x5A});
    Bytes expected = to;
    for (std::int64_t i = 0; i < outer.size; ++i) {
      for (std::int64_t j = 0; j < inner.size; ++j) {
        std::memcpy(expected.data() + target.first + i * outer.to + j * inner.to,
                    from.data() + source.first + i * outer.from + j * inner.from, width);
      }
    }
    copy_plane(width, outer, inner, from.data() + source.first, to.data() + target.first);
    ASSERT_EQ(to, expected) << "width " << width << ", outer " << outer.size << " " << outer.from << " " << outer.to
                            << ", inner " << inner.size << " " << inner.from << " " << inner.to;
  }
}

TEST(CopyPlane, ASourceThatRepeatsOneElement) {
  const Bytes from = {std::byte{1}, std::byte{2}, std::byte{3}};
  Bytes to(12);
  copy_plane(1, {4, 0, 3}, {3, 1, 1}, from.data(), to.data());
  for (std::size_t i = 0; i < to.size(); ++i) EXPECT_EQ(to[i], from[i % 3]);
}

}  // namespace
}  // namespace penstock::ops
