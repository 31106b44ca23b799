#include "io/copy/record_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "io/copy/crc32.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"

namespace penstock::io {
namespace {

using Bytes = std::vector<std::byte>;
using testing::HasSubstr;

/// By zlib, which computes it in another way.
std::uint32_t peer_crc(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

Record record_of(const Bytes& bytes) { return {.crc32 = peer_crc(bytes), .bytes = bytes.size()}; }

/// Lengths that sum up to `bytes`, some of them 0.
std::vector<std::size_t> cut(std::size_t bytes, std::mt19937& random) {
  std::vector<std::size_t> lengths;
  while (bytes > 0) {
    lengths.push_back(random() % 5 == 0 ? 0 : std::min<std::size_t>(bytes, random() % 3000));
    bytes -= lengths.back();
  }
  return lengths;
}

TEST(RecordCheck, BytesInOrderThenPartsInAnyOrder) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Bytes bytes = test::numbered_bytes(random() % 20'000, random());
    const Record record = record_of(bytes);
    const bool damaged = !bytes.empty() && round % 2 == 1;
    if (damaged) bytes[random() % bytes.size()] ^= std::byte{1};
    RecordCheck check(record, true);
    std::vector<RecordCheck::RecordPart> parts;
    const std::size_t in_order = random() % (bytes.size() + 1);
    std::size_t at = 0;
    for (const std::size_t length : cut(bytes.size(), random)) {
      const auto part = std::span(bytes).subspan(at, length);
      if (at < in_order) {
        check.add(part);
      } else {
        parts.push_back({1000 + at, length, crc32(0, part)});
      }
      at += length;
    }
    std::ranges::shuffle(parts, random);
    for (const RecordCheck::RecordPart& part : parts) check.add_part(part);
    EXPECT_EQ(check.missing(), 0U);
    if (damaged) {
      EXPECT_EQ(test::code_of([&] { check.finish(); }), ErrorCode::kChecksum) << round;
    } else {
      EXPECT_NO_THROW(check.finish()) << round;
    }
  }
}

TEST(RecordCheck, CountsWhatIsMissing) {
  const Bytes bytes = test::numbered_bytes(100);
  RecordCheck check(record_of(bytes), true);
  EXPECT_EQ(check.missing(), 100U);
  check.add(std::span(bytes).first(30));
  EXPECT_EQ(check.missing(), 70U);
  check.add_part({60, 40, crc32(0, std::span(bytes).subspan(60))});
  EXPECT_EQ(check.missing(), 30U);
  EXPECT_EQ(test::code_of([copy = check]() mutable { copy.finish(); }), ErrorCode::kChecksum);
  check.add_part({30, 30, crc32(0, std::span(bytes).subspan(30, 30))});
  check.finish();
}

TEST(RecordCheck, BytesWhoseCrcIsKnownComeBetweenOthers) {
  const Bytes bytes = test::numbered_bytes(60);
  const auto part = [&](std::size_t begin, std::size_t length) { return std::span(bytes).subspan(begin, length); };
  for (const bool known_first : {false, true}) {
    RecordCheck check({.crc32 = peer_crc(bytes), .bytes = 60}, true);
    const std::size_t first = known_first ? 0 : 7;
    check.add(part(0, first));
    check.add_known(crc32(0, part(first, 20)), 20);
    check.add(part(first + 20, 40 - first));
    EXPECT_EQ(check.missing(), 0U);
    check.finish();
  }
  RecordCheck wrong({.crc32 = peer_crc(bytes), .bytes = 60}, true);
  wrong.add_known(crc32(0, part(0, 20)) ^ 1, 20);
  wrong.add(part(20, 40));
  EXPECT_EQ(test::code_of([&] { wrong.finish(); }), ErrorCode::kChecksum);
}

TEST(RecordCheck, ANameIsLookedUpForTheErrorAlone) {
  const Bytes bytes = test::numbered_bytes(10);
  int lookups = 0;
  const auto name_of = [&] { return "record " + std::to_string(++lookups); };
  RecordCheck good({.crc32 = peer_crc(bytes), .bytes = 10}, true);
  good.add(bytes);
  good.finish(name_of);
  EXPECT_EQ(lookups, 0);
  RecordCheck bad({.crc32 = peer_crc(bytes) ^ 1, .bytes = 10}, true);
  bad.add(bytes);
  const auto error = test::error_of([&] { bad.finish(name_of); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->tensor(), "record 1");
}

TEST(RecordCheck, IsWantedOnlyWhereACrcIsRecordedAndAskedFor) {
  const Bytes bytes = test::numbered_bytes(10);
  const Record wrong{.crc32 = peer_crc(bytes) ^ 1, .bytes = 10};
  EXPECT_FALSE(RecordCheck().wanted());
  EXPECT_FALSE(RecordCheck(wrong, false).wanted());
  EXPECT_FALSE(RecordCheck({.bytes = 10}, true).wanted());
  EXPECT_TRUE(RecordCheck(wrong, true).wanted());
  RecordCheck().check(bytes);
  RecordCheck(wrong, false).check(bytes);
  RecordCheck({.bytes = 10}, true).check(bytes);
  EXPECT_EQ(test::code_of([&] { RecordCheck(wrong, true).check(bytes); }), ErrorCode::kChecksum);
}

TEST(RecordCheck, ARecordWithoutBytesHasACrcToo) {
  RecordCheck({.crc32 = 0}, true).check({});
  EXPECT_EQ(test::code_of([] { RecordCheck({.crc32 = 1}, true).check({}); }), ErrorCode::kChecksum);
}

TEST(RecordCheck, TheErrorSaysWhatIsDamagedAndWhere) {
  const std::string text = "123456789";  // whose CRC-32 every description of it gives: cbf43926
  const auto error = test::error_of([&] {
    RecordCheck({.crc32 = 0xDEADBEEF, .bytes = 9, .path = "a.pt", .offset = 64, .name = "archive/data/0"}, true)
        .check(test::bytes_of(text));
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->path(), "a.pt");
  EXPECT_EQ(error->offset(), 64U);
  EXPECT_EQ(error->tensor(), "archive/data/0");
  EXPECT_THAT(error->message(), HasSubstr("cbf43926"));
  EXPECT_THAT(error->message(), HasSubstr("deadbeef"));
  EXPECT_THAT(error->message(), HasSubstr("fetch or write it again"));
}

}  // namespace
}  // namespace penstock::io
