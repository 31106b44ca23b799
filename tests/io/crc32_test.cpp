#include "io/crc32.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>
#include <string_view>

#include "io/crc32_wide.h"
#include "support/files.h"

namespace penstock::io {
namespace {

std::uint32_t reference(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
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
    for (const Crc32Function wide : wide_crc32s()) {
      if (wide == nullptr) continue;
      ASSERT_EQ(wide(0, run.data(), run.size()), reference(run)) << length;
    }
  }
}

TEST(Crc32, ContinuesInEveryWidth) {
  const std::vector<std::byte> bytes = test::numbered_bytes(5000);
  const auto all = std::span<const std::byte>(bytes);
  for (const Crc32Function wide : wide_crc32s()) {
    for (std::size_t cut = 0; wide != nullptr && cut < all.size(); cut += 13) {
      ASSERT_EQ(wide(reference(all.first(cut)), all.data() + cut, all.size() - cut), reference(all)) << cut;
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

TEST(Crc32, CombinesInOrder) {
  const std::vector<std::byte> bytes = test::numbered_bytes(100'000);
  const auto all = std::span<const std::byte>(bytes);
  for (const std::size_t cut : {0, 1, 255, 4096, 65'536, 99'999, 100'000}) {
    EXPECT_EQ(crc32_combine(crc32(0, all.first(cut)), crc32(0, all.subspan(cut)), all.size() - cut), reference(all));
  }
}

}  // namespace
}  // namespace penstock::io
