#include "io/copy/crc32.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <random>
#include <string_view>
#include <vector>

#include "io/copy/crc32_wide.h"
#include "support/files.h"

namespace penstock::io {
namespace {

std::uint32_t reference(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

bool only(std::byte value, std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [value](std::byte b) { return b == value; });
}

TEST(Crc32, KnownValues) {
  EXPECT_EQ(crc32(0, {}), 0U);
  const std::string_view check = "123456789";
  EXPECT_EQ(crc32(0, std::as_bytes(std::span(check))), 0xCBF43926U);
}

TEST(Crc32, AgreesWithZlibForEveryLengthAndAlignment) {
  const std::vector<std::byte> bytes = test::numbered_bytes(5000);
  for (std::size_t length = 0; length < 2500; ++length) {
    const auto run = std::span(bytes).subspan(length % 67, length);
    ASSERT_EQ(crc32(0, run), reference(run)) << length;
    for (const Crc32Functions& wide : wide_crc32s()) {
      if (wide.of == nullptr || run.empty()) continue;
      ASSERT_EQ(wide.of(0, run), reference(run)) << length;
    }
  }
}

TEST(Crc32, ContinuesInEveryWidth) {
  const std::vector<std::byte> bytes = test::numbered_bytes(5000);
  const auto all = std::span<const std::byte>(bytes);
  for (const Crc32Functions& wide : wide_crc32s()) {
    for (std::size_t cut = 0; wide.of != nullptr && cut < all.size(); cut += 13) {
      ASSERT_EQ(wide.of(reference(all.first(cut)), all.subspan(cut)), reference(all)) << cut;
    }
  }
}

TEST(Crc32, Continues) {
  const std::vector<std::byte> bytes = test::numbered_bytes(100'000);
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const std::size_t cut = random() % bytes.size();
    const auto whole = std::span(bytes).first(cut + random() % (bytes.size() - cut));
    ASSERT_EQ(crc32(crc32(0, whole.first(cut)), whole.subspan(cut)), reference(whole));
  }
}

TEST(Crc32, CopiesOnTheWayForEveryLengthAndAlignment) {
  const std::vector<std::byte> bytes = test::numbered_bytes(50'000);
  std::vector<Crc32Functions> ways = {{crc32, crc32_copy}, narrow_crc32s()};
  for (const Crc32Functions& wide : wide_crc32s()) ways.push_back(wide);
  for (const Crc32Functions& way : ways) {
    if (way.copy == nullptr) continue;
    for (const Stores stores : {Stores::kCached, Stores::kStreamed}) {
      for (std::size_t length = 1; length < 40'000; length += length < 1200 ? 1 : 997) {
        const auto run = std::span(bytes).subspan(length % 61, length);
        const std::size_t at = 1 + length % 71;
        std::vector<std::byte> to(at + length + 64, std::byte{0xAA});
        const auto before = static_cast<std::uint32_t>(length);
        ASSERT_EQ(way.copy(before, to.data() + at, run, stores), way.of(before, run)) << length;
        ASSERT_TRUE(std::ranges::equal(run, std::span(to).subspan(at, length))) << length;
        ASSERT_TRUE(only(std::byte{0xAA}, std::span(to).first(at))) << length;
        ASSERT_TRUE(only(std::byte{0xAA}, std::span(to).subspan(at + length))) << length;
      }
    }
  }
}

TEST(Crc32, CombinesInOrder) {
  const std::vector<std::byte> bytes = test::numbered_bytes(100'000);
  const auto all = std::span<const std::byte>(bytes);
  for (const std::size_t cut : {0, 1, 255, 4096, 65'536, 99'999, 100'000}) {
    EXPECT_EQ(crc32_combine(crc32(0, all.first(cut)), crc32(0, all.subspan(cut)), all.size() - cut), reference(all));
  }
}

}  // namespace
}  // namespace penstock::io
