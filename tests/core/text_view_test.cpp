#include "penstock/text_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>

#include "support/errors.h"

namespace penstock {
namespace {

std::string text_of(TextView text) { return std::string(text); }

/// A string of another library, as frameworks have them.
struct OwnString {
  operator std::string_view() const { return "own"; }  // NOLINT(google-explicit-constructor): as those have it
};

TEST(TextView, TakesEveryKindOfText) {
  std::array<char, 8> characters = {'a', 'b'};
  char* const writable = characters.data();
  char array[] = "array";
  EXPECT_EQ(text_of("literal"), "literal");
  EXPECT_EQ(text_of(array), "array");
  EXPECT_EQ(text_of(writable), "ab");
  EXPECT_EQ(text_of(std::string("string")), "string");
  EXPECT_EQ(text_of(std::string_view("nul\0l", 5)), std::string("nul\0l", 5));
  EXPECT_EQ(text_of(std::filesystem::path("a") / "b"), "a/b");
  EXPECT_EQ(text_of(OwnString()), "own");
  EXPECT_EQ(text_of(""), "");
}

TEST(TextView, ANullPointerIsNoText) {
  const char* const unset = nullptr;
  char* const writable = nullptr;
  for (const auto& error : {test::error_of([&] { text_of(unset); }), test::error_of([&] { text_of(writable); })}) {
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error->message(), testing::HasSubstr("std::getenv"));
  }
}

}  // namespace
}  // namespace penstock
