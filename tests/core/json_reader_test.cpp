#include "core/json_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/errors.h"

namespace penstock::core {
namespace {

using test::code_of;
using test::error_of;

/// Writes down what it is told; steps over the value of "skip", and over what is inside lists.
class Recorder final : public JsonReader {
 public:
  using JsonReader::JsonReader;
  std::string seen;

 private:
  void on_object() override { seen += "{"; }
  void on_object_end() override { seen += "}"; }
  void on_array() override {
    seen += "[]";
    skip_array();
  }
  void on_key(std::string& name) override {
    seen += name + ":";
    if (name == "skip") skip_value();
  }
  void on_string(std::string& value) override { seen += "'" + value + "' "; }
  void on_unsigned(std::uint64_t value) override { seen += std::to_string(value) + " "; }
  void on_other(std::string_view kind) override { seen += "<" + std::string(kind) + "> "; }
  void unexpected(std::string_view kind) override { fail(std::string(kind) + " is not expected"); }
};

std::string events(std::string_view json) {
  Recorder reader(json, "f", 0);
  reader.read();
  return reader.seen;
}

TEST(JsonReader, TellsWhatItReads) {
  EXPECT_EQ(events(R"( { "a" : 1 , "b" : { "c" : "x" } } )"), "{a:1 b:{c:'x' }}");
  EXPECT_EQ(events("\t\r\n{}\n"), "{}");
  EXPECT_EQ(events(R"({"a\u0062\n": 18446744073709551615})"), "{ab\n:18446744073709551615 }");
}

TEST(JsonReader, TellsOddNumbersApart) {
  const std::string fraction = "<a number with a fraction or exponent, or beyond 64 bits> ";
  EXPECT_EQ(events(R"({"a":-1,"b":-0})"), "{a:<a negative number> b:<a negative number> }");
  EXPECT_EQ(events(R"({"a":1.0,"b":1e0,"c":18446744073709551616})"),
            "{a:" + fraction + "b:" + fraction + "c:" + fraction + "}");
  EXPECT_EQ(events(R"({"a":null,"b":true})"), "{a:<null> b:<a boolean> }");
}

TEST(JsonReader, StepsOverValues) {
  EXPECT_EQ(events(R"({"skip":{"a":[1,{"b":2}],"c":{}},"d":3})"), "{skip:d:3 }");
  EXPECT_EQ(events(R"({"skip":"text","d":3})"), "{skip:d:3 }");
  EXPECT_EQ(events(R"({"skip":[[[]]],"d":3})"), "{skip:d:3 }");
  EXPECT_EQ(events(R"({"l":[1,{"x":2},[3]],"d":3})"), "{l:[]d:3 }");
}

TEST(JsonReader, NamesInSkippedValuesMayNotRepeat) {
  EXPECT_EQ(code_of([] { events(R"({"skip":{"a":1,"a":2}})"); }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([] { events(R"({"skip":{"a":1,"\u0061":2}})"); }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([] { events(R"({"skip":[{"a":{"b":1,"b":2}}]})"); }), ErrorCode::kCorrupt);
  EXPECT_EQ(events(R"({"skip":{"a":{"a":1},"b":[{"a":1},{"a":2}]}})"), "{skip:}");
}

TEST(JsonReader, RefusesWhatIsNotOneObject) {
  const std::vector<std::string> texts = {
      "",
      " ",
      "[]",
      "1",
      "null",
      "\"a\"",
      "{",
      "{}{}",
      "{} x",
      "{\"a\"}",
      "{\"a\":}",
      "{\"a\":1,}",
      "{a:1}",
      "{'a':1}",
      "{\"a\":01}",
      "{\"a\":+1}",
      "{\"a\":NaN}",
      "{\"a\":1 /* */}",
      "\xEF\xBB\xBF{}",
      "\v{}",
      std::string("{}\0", 3),
      std::string("{\"a\":1}\0{}", 10),
      std::string("{\"a\0\":1}", 8),
      "{\"\xff\":1}",
      "{\"\xc0\x80\":1}",
      "{\"\xed\xa0\x80\":1}",
      R"({"\ud83d":1})",
      R"({"\udc00\ud83d":1})",
      "{\"a\nb\":1}",
      R"({"\x41":1})",
  };
  for (const std::string& text : texts) {
    EXPECT_EQ(code_of([&] { events(text); }), ErrorCode::kCorrupt) << text;
  }
}

TEST(JsonReader, BoundsTheNesting) {
  const auto nested = [](std::size_t depth) {
    return R"({"skip":)" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
  };
  EXPECT_EQ(events(nested(JsonReader::kMaxDepth)), "{skip:}");
  EXPECT_EQ(code_of([&] { events(nested(JsonReader::kMaxDepth + 1)); }), ErrorCode::kLimit);
  EXPECT_EQ(code_of([] { events(R"({"skip":)" + std::string(10'000'000, '[')); }), ErrorCode::kLimit);
}

TEST(JsonReader, BoundsTheNamesThatItStepsOver) {
  const auto names = [](std::size_t count) {
    std::string out = R"({"skip":{"a":[{})";
    for (std::size_t i = 0; i < count; ++i) out += ",{\"" + std::to_string(i) + "\":0}";
    out += "]";
    for (std::size_t i = 0; i < count; ++i) out += ",\"" + std::to_string(i) + "\":0";
    return out + "}}";
  };
  EXPECT_EQ(events(names(JsonReader::kMaxSkippedNames - 1)), "{skip:}") << "what has ended no longer counts";
  EXPECT_EQ(code_of([&] { events(names(JsonReader::kMaxSkippedNames)); }), ErrorCode::kLimit);
}

TEST(JsonReader, ErrorsOfTextThatIsInNoFileHaveNoOffset) {
  Recorder reader("{", "f", std::nullopt);
  EXPECT_EQ(error_of([&] { reader.read(); })->offset(), std::nullopt);
}

TEST(JsonReader, ErrorsSayWhere) {
  const std::string text = R"({"a": 1, "b": tru})";
  Recorder reader(text, "model.safetensors", 8);
  const auto error = error_of([&] { reader.read(); });
  EXPECT_EQ(error->path(), "model.safetensors");
  ASSERT_TRUE(error->offset());
  EXPECT_GE(*error->offset(), 8 + text.find("tru"));
  EXPECT_LE(*error->offset(), 8 + text.size());
}

TEST(JsonReader, MessagesStayShort) {
  const std::string text = "{\"" + std::string(1'000'000, 'x') + "\" 1}";
  EXPECT_LT(error_of([&] { events(text); })->message().size(), 400U);
  const std::string number = R"({"a": 1e999})";
  EXPECT_EQ(error_of([&] { events(number); })->message(), "the JSON is broken: a number in it is too large");
}

}  // namespace
}  // namespace penstock::core
