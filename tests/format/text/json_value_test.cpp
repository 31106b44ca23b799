#include "format/text/json_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "support/errors.h"

namespace penstock::format {
namespace {

using ::testing::HasSubstr;
using Kind = Value::Kind;

Value value_of(std::string_view text) { return json_value(text, "a.tar", 1000); }
std::optional<ErrorCode> refused(std::string_view text) {
  return test::code_of([&] { value_of(text); });
}

TEST(JsonValue, ReadsEachKind) {
  EXPECT_EQ(value_of("null").kind(), Kind::kNone);
  EXPECT_TRUE(value_of("true").as_bool());
  EXPECT_FALSE(value_of(" false ").as_bool());
  EXPECT_EQ(value_of("-0").as_int(), 0);
  EXPECT_EQ(value_of("12").as_int(), 12);
  EXPECT_EQ(value_of("-12").as_int(), -12);
  EXPECT_EQ(value_of("1.5").as_float(), 1.5);
  EXPECT_EQ(value_of("1e2").kind(), Kind::kFloat);
  EXPECT_EQ(value_of(R"("ä \u00e4\n")").as_string(), "ä ä\n");
  EXPECT_EQ(value_of("[]").size(), 0U);
  EXPECT_EQ(value_of("{}").size(), 0U);
}

TEST(JsonValue, KeepsOrderAndNesting) {
  const Value value = value_of(R"({"b": [1, {"x": [[], [2]]}], "a": "t", "": null})");
  ASSERT_EQ(value.size(), 3U);
  EXPECT_EQ(value.item(0).first.as_string(), "b");
  EXPECT_EQ(value.item(1).first.as_string(), "a");
  EXPECT_EQ(value.item(2).first.as_string(), "");
  EXPECT_EQ(value["b"][1]["x"][1][0].as_int(), 2);
}

TEST(JsonValue, ReadsWholeNumbersOfAnySize) {
  EXPECT_EQ(value_of("9223372036854775807").as_int(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(value_of("-9223372036854775808").as_int(), std::numeric_limits<std::int64_t>::min());
  for (const char* text : {"9223372036854775808", "18446744073709551615", "18446744073709551616",
                           "-9223372036854775809", "123456789012345678901234567890"}) {
    EXPECT_EQ(value_of(text).to_string(), text);
    EXPECT_NE(value_of(text).kind(), Kind::kFloat) << text;
  }
}

TEST(JsonValue, ReadsNumbersThatAreNotFinite) {
  const Value value = value_of(R"({"NaN": NaN, "i": [Infinity, -Infinity,NaN], "0": 0, "t": "NaN -Infinity \" NaN"})");
  EXPECT_TRUE(std::isnan(value["NaN"].as_float()));
  EXPECT_EQ(value["i"][0].as_float(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(value["i"][1].as_float(), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(value["i"][2].as_float()));
  EXPECT_EQ(value["0"].as_int(), 0);
  EXPECT_EQ(value["t"].as_string(), "NaN -Infinity \" NaN");
  EXPECT_TRUE(std::isnan(value_of("NaN").as_float()));
  EXPECT_TRUE(std::isnan(value_of("\n\tNaN \n").as_float()));
  EXPECT_EQ(value_of(R"(["\\",Infinity])")[1].kind(), Kind::kFloat);
}

TEST(JsonValue, RefusesWordsThatOnlyLookLikeThem) {
  for (const char* text :
       {"1NaN",     "-NaN",    "+NaN",     "0.NaN",    "1eNaN", "--Infinity", "+Infinity", "NaN1",
        "NaNNaN",   "NaN NaN", "truNaN",   "[1 NaN]",  "[NaN",  "nan",        "inf",       "infinity",
        "INFINITY", "NaN.",    "{NaN: 1}", "\"a\"NaN", "[]NaN", "{}Infinity"}) {
    EXPECT_EQ(refused(text), ErrorCode::kCorrupt) << text;
  }
}

TEST(JsonValue, RefusesWhatIsNoJson) {
  for (const std::string_view text :
       {std::string_view(), std::string_view(" "), std::string_view("[1,]"), std::string_view("{\"a\":1,}"),
        std::string_view("{'a':1}"), std::string_view("[1] 2"), std::string_view("01"), std::string_view("1."),
        std::string_view(".5"), std::string_view("\"a"), std::string_view("\"\n\""), std::string_view("\"\xff\""),
        std::string_view("\"\\ud800\""), std::string_view("// c\n1"), std::string_view("1\0", 2)}) {
    EXPECT_EQ(refused(text), ErrorCode::kCorrupt) << text;
  }
}

TEST(JsonValue, RefusesNamesThatComeTwice) {
  EXPECT_EQ(refused(R"({"a": 1, "a": 1})"), ErrorCode::kCorrupt);
  EXPECT_EQ(refused(R"([{"a": {"b": 1, "\u0062": 1}}])"), ErrorCode::kCorrupt);
  EXPECT_EQ(refused(R"({"a": NaN, "a": 1})"), ErrorCode::kCorrupt);
  EXPECT_EQ(value_of(R"([{"a": 1}, {"a": {"a": 2}}])")[1]["a"]["a"].as_int(), 2);
}

TEST(JsonValue, LimitsNesting) {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  EXPECT_EQ(value_of(nested(64)).size(), 1U);
  EXPECT_EQ(refused(nested(65)), ErrorCode::kLimit);
  EXPECT_EQ(refused(std::string(1'000'000, '[')), ErrorCode::kLimit);
}

TEST(JsonText, RefusesWhatItCouldNotReadBack) {
  EXPECT_EQ(json_text(Value{{"é", "\U0001F600"}}), "{\"é\": \"\U0001F600\"}");
  EXPECT_EQ(test::code_of([] { json_text(Value::string("\xff")); }), ErrorCode::kUnsupported);
  EXPECT_EQ(test::code_of([] { json_text(Value{{"\xed\xa0\x80", 1}}); }), ErrorCode::kUnsupported);
}

TEST(JsonText, PartsThatComeAgainAreCopied) {
  const Value part{{"a", Value::list({1, 2})}};
  EXPECT_EQ(json_text(Value::list({part, part})), R"([{"a": [1, 2]}, {"a": [1, 2]}])");
  Value twice = Value::list({1});
  for (int i = 0; i < 50; ++i) twice = Value::list({twice, twice});
  EXPECT_EQ(test::code_of([&] { json_text(twice, 1'000'000); }), ErrorCode::kLimit) << "of size";
  EXPECT_EQ(test::code_of([&] { json_text(Value::list({1, 2}), 5); }), ErrorCode::kLimit);
  EXPECT_EQ(json_text(Value::list({1, 2}), 6), "[1, 2]");
}

TEST(JsonText, LimitsNestingByAnyWay) {
  Value deep = Value::list({});
  for (int i = 0; i < 62; ++i) deep = Value::list({deep});
  EXPECT_EQ(json_text(Value::list({deep})).size(), 128U);
  EXPECT_EQ(test::code_of([&] { json_text(Value::list({deep, Value::list({deep})})); }), ErrorCode::kLimit);
}

TEST(JsonValue, ErrorsTellThePlace) {
  const auto error = test::error_of([] { value_of("[1, 2, x]"); });
  EXPECT_EQ(error->path(), "a.tar");
  EXPECT_GE(error->offset(), 1007U);
  EXPECT_LE(error->offset(), 1009U);
}

}  // namespace
}  // namespace penstock::format
