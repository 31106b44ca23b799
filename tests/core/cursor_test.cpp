#include "core/cursor.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string_view>

#include "core/checked.h"
#include "penstock/error.h"
#include "support/errors.h"

namespace penstock::core {
namespace {

using test::error_of;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Cursor, ReadsLittleEndian) {
  Cursor cursor(bytes_of("\x01\x02\x01\x03\x02\x01\xff\xff\xff\xff"), 100);
  EXPECT_EQ(cursor.u8(), 1);
  EXPECT_EQ(cursor.u16(), 0x0102);
  EXPECT_EQ(cursor.offset(), 103U);
  EXPECT_EQ(cursor.read<std::uint8_t>(), 3);
  EXPECT_EQ(cursor.u16(), 0x0102);
  EXPECT_EQ(cursor.i32(), -1);
  EXPECT_TRUE(cursor.at_end());
}

TEST(Cursor, NeverReadsPastTheEnd) {
  Cursor cursor(bytes_of("abc"), 100);
  cursor.skip(2);
  const auto error = error_of([&] { cursor.u32(); });
  EXPECT_EQ(error->code(), ErrorCode::kTruncated);
  EXPECT_EQ(error->offset(), 102U);
  EXPECT_EQ(cursor.position(), 2U) << "a failed read takes nothing";
  EXPECT_EQ(error_of([&] { cursor.take(std::numeric_limits<std::size_t>::max()); })->code(), ErrorCode::kTruncated);
  EXPECT_EQ(error_of([&] { cursor.u64(); })->code(), ErrorCode::kTruncated);
  EXPECT_EQ(cursor.take_text(1), "c");
  EXPECT_EQ(cursor.take(0).size(), 0U);
  EXPECT_EQ(error_of([&] { cursor.u8(); })->code(), ErrorCode::kTruncated);
}

TEST(Cursor, SeeksToTheEndAndNoFarther) {
  Cursor cursor(bytes_of("abc"));
  cursor.seek(3);
  EXPECT_TRUE(cursor.at_end());
  EXPECT_EQ(error_of([&] { cursor.seek(4); })->code(), ErrorCode::kTruncated);
  cursor.seek(1);
  EXPECT_EQ(cursor.take_text(2), "bc");
}

TEST(Cursor, TakesLines) {
  Cursor cursor(bytes_of("one\n\nthree"));
  EXPECT_EQ(cursor.take_line(), "one");
  EXPECT_EQ(cursor.take_line(), "");
  EXPECT_EQ(error_of([&] { cursor.take_line(); })->code(), ErrorCode::kTruncated);
  EXPECT_EQ(cursor.take_text(5), "three");
}

TEST(Cursor, EmptyDataIsAtItsEnd) {
  Cursor cursor({});
  EXPECT_TRUE(cursor.at_end());
  EXPECT_EQ(error_of([&] { cursor.take_line(); })->code(), ErrorCode::kTruncated);
}

TEST(Checked, IsExactOrAnError) {
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(try_add<std::uint64_t>(kMax, 0), kMax);
  EXPECT_EQ(try_add<std::uint64_t>(kMax, 1), std::nullopt);
  EXPECT_EQ(try_mul<std::int64_t>(std::int64_t{1} << 32, std::int64_t{1} << 31), std::nullopt);
  EXPECT_EQ(checked_mul<std::uint64_t>(1ULL << 32, 1ULL << 31, "it"), 1ULL << 63);
  const auto error = error_of([] { checked_add<std::uint64_t>(kMax, kMax, "the record's size"); });
  EXPECT_EQ(error->code(), ErrorCode::kCorrupt);
  EXPECT_TRUE(error->message().starts_with("the record's size does not fit in 64 bits"));
}

TEST(Checked, RangesDoNotWrap) {
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  EXPECT_TRUE(range_fits(0, 0, 0));
  EXPECT_TRUE(range_fits(10, 0, 10));
  EXPECT_TRUE(range_fits(4, 6, 10));
  EXPECT_FALSE(range_fits(4, 7, 10));
  EXPECT_FALSE(range_fits(11, 0, 10));
  EXPECT_FALSE(range_fits(kMax, 2, 10));
  EXPECT_FALSE(range_fits(2, kMax, 10));
}

}  // namespace
}  // namespace penstock::core
