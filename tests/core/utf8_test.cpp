#include "core/utf8.h"

#include <gtest/gtest.h>

namespace penstock::core {
namespace {

TEST(Utf8, EveryCharacterComesBack) {
  for (char32_t point = 0; point <= 0x10FFFF; point += point < 0x3000 ? 1 : 97) {
    if (point >= 0xD800 && point <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, point);
    EXPECT_TRUE(is_utf8(text));
    text += "x";
    std::string_view rest = text;
    EXPECT_EQ(take_code_point(rest), point);
    EXPECT_EQ(rest, "x");
  }
}

TEST(Utf8, WhatIsNoCharacterIsNotTaken) {
  for (const std::string_view bad :
       {"\x80", "\xC0\x80", "\xC3", "\xE2\x82", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF", "\xE2\x28\xA1"}) {
    std::string_view rest = bad;
    EXPECT_FALSE(take_code_point(rest));
    EXPECT_EQ(rest, bad);
    EXPECT_FALSE(is_utf8(bad));
  }
  EXPECT_TRUE(is_utf8_with_surrogates("\xED\xA0\x80"));
}

}  // namespace
}  // namespace penstock::core
