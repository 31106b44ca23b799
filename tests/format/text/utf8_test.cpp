#include "format/text/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace penstock::format {
namespace {

using namespace std::string_view_literals;

TEST(Utf8, AcceptsWhatIsWellFormed) {
  for (const auto text : {""sv, "plain"sv, "\xC2\x80"sv, "\xDF\xBF"sv, "\xE0\xA0\x80"sv, "\xED\x9F\xBF"sv,
                          "\xEE\x80\x80"sv, "\xF0\x90\x80\x80"sv, "\xF4\x8F\xBF\xBF"sv, "a\0b"sv}) {
    EXPECT_TRUE(is_utf8(text)) << testing::PrintToString(text);
  }
}

TEST(Utf8, RefusesWhatIsNot) {
  for (const auto text :
       {"\x80"sv, "\xC2"sv, "\xC0\xAF"sv, "\xC1\xBF"sv, "\xE0\x9F\xBF"sv, "\xE2\x82"sv, "\xED\xA0\x80"sv,
        "\xF0\x8F\xBF\xBF"sv, "\xF4\x90\x80\x80"sv, "\xF5\x80\x80\x80"sv, "\xFF"sv, "\xC2 "sv, "a\xE2\x82(b"sv}) {
    EXPECT_FALSE(is_utf8(text)) << testing::PrintToString(text);
  }
}

TEST(Utf8, SurrogatesWhereTheyAreAllowed) {
  for (const auto text : {"\xED\xA0\x80"sv, "a\xED\xBF\xBF"sv, "\xED\xA0\x80\xED\xB0\x80"sv, "\xE2\x82\xAC"sv}) {
    EXPECT_TRUE(is_utf8_with_surrogates(text)) << testing::PrintToString(text);
  }
  for (const auto text : {"\xFF"sv, "\xC0\x80"sv, "\xED\xA0"sv, "\xF4\x90\x80\x80"sv}) {
    EXPECT_FALSE(is_utf8_with_surrogates(text)) << testing::PrintToString(text);
  }
}

TEST(Utf8, AppendsEveryLength) {
  std::string out;
  for (const char32_t c : {U'a', U'\u00E9', U'\u20AC', U'\U0001F600'}) append_utf8(out, c);
  EXPECT_EQ(out, "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
}

TEST(Utf8, AppendsOnlyWhatIsAccepted) {
  for (char32_t c = 0; c <= 0x10FFFF; c += 0x101) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string out;
    append_utf8(out, c);
    EXPECT_TRUE(is_utf8(out)) << static_cast<std::uint32_t>(c);
  }
}

}  // namespace
}  // namespace penstock::format
