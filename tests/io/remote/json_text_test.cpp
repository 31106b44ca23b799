#include "io/remote/json_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock::io::remote {
namespace {

TEST(JsonText, IsWhatTheObjectHasUnderTheName) {
  const std::string json = R"({"Code":"Success","Token":"a\u0062","More":{"Token":"x"},"List":["y"],"Number":3})";
  EXPECT_EQ(json_text(json, "Token"), "ab");
  EXPECT_EQ(json_text(json, "Code"), "Success");
  EXPECT_EQ(json_text(json, "Number"), "3");
  for (const char* const name : {"More", "List", "none", "x"}) EXPECT_EQ(json_text(json, name), "") << name;
}

TEST(JsonText, IsEmptyWhereTheAnswerIsNoSuchObject) {
  const std::string deep(1'000'000, '[');
  for (const std::string& json :
       std::vector<std::string>{"", "[]", "{", R"({"a":"b"}x)", deep, R"({"a":)" + deep, R"({"a":"b","c":)" + deep}) {
    EXPECT_EQ(json_text(json, "a"), "") << json.substr(0, 20);
  }
}

}  // namespace
}  // namespace penstock::io::remote
