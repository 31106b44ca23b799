#include "core/byte_size.h"

#include <gtest/gtest.h>

namespace penstock::core {
namespace {

TEST(ByteSize, PowersOf1000AndOf1024) {
  EXPECT_EQ(parse_bytes("4096"), 4096U);
  EXPECT_EQ(parse_bytes("5GB"), 5'000'000'000U);
  EXPECT_EQ(parse_bytes("500 MiB"), 500U << 20);
  EXPECT_EQ(parse_bytes("3 kB"), 3000U);
  EXPECT_EQ(parse_bytes("1.5kB"), 1500U);
}

TEST(ByteSize, WhatIsNoSize) {
  for (const char* const text : {"", "GB", "0", "-1", "5 gb", "5GBx", "1e9", "9999999999GB", " 5GB", "1.5", "1.5B"}) {
    EXPECT_FALSE(parse_bytes(text)) << text;
  }
}

}  // namespace
}  // namespace penstock::core
