#include "format/pt/pickle/scalars.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "support/bytes.h"

namespace penstock::format::pickle {
namespace {

using namespace std::string_literals;
using test::bytes_of;

TEST(Scalars, DecimalsAndBytesAreInverse) {
  for (const std::int64_t value :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1}, std::int64_t{127}, std::int64_t{128}, std::int64_t{-128},
        std::int64_t{-129}, std::int64_t{255}, std::int64_t{256}, std::numeric_limits<std::int64_t>::min(),
        std::numeric_limits<std::int64_t>::max()}) {
    char bytes[8];
    std::memcpy(bytes, &value, 8);
    EXPECT_EQ(decimal_of_bytes(bytes_of({bytes, 8})), std::to_string(value));
    EXPECT_EQ(decimal_of_bytes(bytes_of(bytes_of_decimal(std::to_string(value)))), std::to_string(value));
  }
}

TEST(Scalars, RandomNumbersSurviveBothWays) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::string bytes(1 + random() % 60, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    const std::string decimal = decimal_of_bytes(bytes_of(bytes));
    EXPECT_EQ(normal_decimal(decimal), decimal);
    EXPECT_EQ(decimal_of_bytes(bytes_of(bytes_of_decimal(decimal))), decimal);
    EXPECT_LE(bytes_of_decimal(decimal).size(), bytes.size());
  }
}

TEST(Scalars, ShortestBytesAsPythonWritesThem) {
  EXPECT_EQ(bytes_of_decimal("0"), "");
  EXPECT_EQ(bytes_of_decimal("127"), "\x7f");
  EXPECT_EQ(bytes_of_decimal("128"), "\x80\x00"s);
  EXPECT_EQ(bytes_of_decimal("-128"), "\x80");
  EXPECT_EQ(bytes_of_decimal("-129"), "\x7f\xff");
  EXPECT_EQ(bytes_of_decimal("18446744073709551616"), "\0\0\0\0\0\0\0\0\1"s);
}

TEST(Scalars, KnownBigNumber) {
  EXPECT_EQ(decimal_of_bytes(bytes_of("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19")), "119547037146038801333356");
  EXPECT_EQ(decimal_of_bytes(bytes_of("\0\0\0\0\0\0\0\0\1"s)), "18446744073709551616");
  // A chunk of eighteen zeros in the middle.
  EXPECT_EQ(decimal_of_bytes(bytes_of(bytes_of_decimal("1000000000000000000000000000000000000"))),
            "1000000000000000000000000000000000000");
}

TEST(Scalars, NormalDecimal) {
  EXPECT_EQ(normal_decimal("+007"), "7");
  EXPECT_EQ(normal_decimal("-000"), "0");
  EXPECT_EQ(normal_decimal("-0012"), "-12");
  for (const char* bad : {"", "-", "+", "1_0", " 1", "1 ", "0x1", "--1", "1e3"})
    EXPECT_FALSE(normal_decimal(bad)) << bad;
}

TEST(Scalars, ParseInt64) {
  EXPECT_EQ(parse_int64("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_FALSE(parse_int64("9223372036854775808"));
  EXPECT_FALSE(parse_int64("1x"));
  EXPECT_FALSE(parse_int64(""));
}

TEST(Scalars, Latin1) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  const std::string utf8 = from_latin1(all);
  std::string back(utf8.size(), '\0');
  const auto count = to_latin1(utf8, back.data());
  ASSERT_EQ(count, 256U);
  EXPECT_EQ(back.substr(0, 256), all);
  EXPECT_FALSE(to_latin1("\u0100", back.data()));
  EXPECT_FALSE(to_latin1("\xc3", back.data()));
}

}  // namespace
}  // namespace penstock::format::pickle
