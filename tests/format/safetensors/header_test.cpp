#include "format/safetensors/header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/errors.h"

namespace penstock::format {
namespace {

using test::code_of;
using test::error_of;
using testing::HasSubstr;

SafetensorsHeader parse(const std::string& json, std::uint64_t data_bytes) {
  return parse_safetensors_header(json, data_bytes, "m.safetensors");
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets, const std::string& more = {}) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + more +
         "}";
}
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets,
                const std::string& more = {}) {
  return "{" + tensor("a", dtype, shape, offsets, more) + "}";
}

TEST(SafetensorsHeader, ListsTensorsInTheOrderOfTheirBytes) {
  const auto header =
      parse("{" + tensor("b", "F32", "[2,3]", "[8,32]") + "," + tensor("a", "I64", "[]", "[0,8]") + "," +
                tensor("z", "U8", "[0,5]", "[0,0]") + "," + tensor("y", "U8", "[0]", "[32,32]") + "}",
            32);
  ASSERT_EQ(header.tensors.size(), 4U);
  EXPECT_EQ(header.tensors[0].name, "z");
  EXPECT_EQ(header.tensors[1].name, "a");
  EXPECT_EQ(header.tensors[1].shape, Shape{});
  EXPECT_EQ(header.tensors[2].name, "b");
  EXPECT_EQ(header.tensors[2].dtype->name, "F32");
  EXPECT_EQ(header.tensors[2].shape, (Shape{2, 3}));
  EXPECT_EQ(header.tensors[2].begin, 8U);
  EXPECT_EQ(header.tensors[3].name, "y");
}

TEST(SafetensorsHeader, ReadsMetadata) {
  const auto header = parse(R"({"__metadata__":{"format":"pt","":"é\n"}})", 0);
  EXPECT_EQ(header.metadata.at("format"), "pt");
  EXPECT_EQ(header.metadata.at(""), "é\n");
  EXPECT_TRUE(parse(R"({"__metadata__":{}})", 0).metadata.empty());
  EXPECT_TRUE(parse(R"({"__metadata__":null})", 0).metadata.empty()) << "as the reference";
  EXPECT_TRUE(parse("{}", 0).tensors.empty());
}

TEST(SafetensorsHeader, TakesWhatTheReferenceTakes) {
  EXPECT_EQ(parse(" \n\t\r" + one("F32", "[1]", "[0,4]") + " \n ", 4).tensors.size(), 1U);
  EXPECT_EQ(parse(one("F32", "[1]", "[0,4]", R"(,"extra":{"deep":[1,-2.5,null]})"), 4).tensors.size(), 1U);
  EXPECT_EQ(parse(R"({"\u0061":{"\u0064type":"F32","shape":[1],"data_offsets":[0,4]}})", 4).tensors[0].name, "a");
  EXPECT_EQ(parse(R"({"\ud83d\ude00":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4).tensors[0].name, "😀");
  EXPECT_EQ(parse("{" + tensor("", "F32", "[1]", "[0,4]") + "}", 4).tensors[0].name, "");
}

TEST(SafetensorsHeader, CountsTypesBelowAByteInBits) {
  EXPECT_EQ(parse(one("F4", "[8]", "[0,4]"), 4).tensors[0].shape, Shape{8});
  EXPECT_EQ(parse(one("F6_E2M3", "[4]", "[0,3]"), 3).tensors[0].shape, Shape{4});
  EXPECT_EQ(code_of([] { parse(one("F4", "[7]", "[0,4]"), 4); }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([] { parse(one("F6_E3M2", "[5]", "[0,4]"), 4); }), ErrorCode::kCorrupt);
}

TEST(SafetensorsHeader, UnknownTypesAreTakenWithTheirSize) {
  const auto header =
      parse("{" + tensor("a", "F128", "[1]", "[0,16]") + "," + tensor("b", "F32", "[1]", "[16,20]") + "}", 20);
  EXPECT_EQ(header.tensors[0].dtype, nullptr);
  EXPECT_EQ(header.tensors[0].foreign_dtype, "F128");
  EXPECT_EQ(header.tensors[1].dtype->name, "F32");
  EXPECT_EQ(parse(one("f32", "[1]", "[0,4]"), 4).tensors[0].dtype, nullptr) << "names are exact";
}

struct Refused {
  std::string what;
  std::string json;
  std::uint64_t data_bytes;
  ErrorCode code = ErrorCode::kCorrupt;
};

std::vector<Refused> refused() {
  const std::string a = tensor("a", "F32", "[1]", "[0,4]");
  const auto fields = [](const std::string& text) { return "{\"a\":{" + text + "}}"; };
  std::string ranks = "[1";
  for (int i = 0; i < 64; ++i) ranks += ",1";
  ranks += "]";
  return {
      {"a tensor twice", "{" + a + "," + a + "}", 4},
      {"a tensor twice, escaped", "{" + a + R"(,"\u0061":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8},
      {"a field twice", one("F32", "[1]", "[0,4]", R"(,"dtype":"F32")"), 4},
      {"a field twice, escaped", one("F32", "[1]", "[0,4]", R"(,"dt\u0079pe":"F32")"), 4},
      {"an unknown field twice", one("F32", "[1]", "[0,4]", R"(,"x":1,"x":1)"), 4},
      {"a name twice in an unknown field", one("F32", "[1]", "[0,4]", R"(,"x":{"y":1,"y":1})"), 4},
      {"metadata twice", R"({"__metadata__":{},"__metadata__":{}})", 0},
      {"a metadata key twice", R"({"__metadata__":{"a":"1","a":"1"}})", 0},
      {"a metadata key twice, escaped", R"({"__metadata__":{"a":"1","\u0061":"1"}})", 0},
      {"metadata of numbers", R"({"__metadata__":{"a":1}})", 0},
      {"nested metadata", R"({"__metadata__":{"a":{}}})", 0},
      {"metadata null", R"({"__metadata__":{"a":null}})", 0},
      {"metadata list", R"({"__metadata__":[]})", 0},
      {"metadata string", R"({"__metadata__":"a"})", 0},
      {"no dtype", fields(R"("shape":[1],"data_offsets":[0,4])"), 4},
      {"no shape", fields(R"("dtype":"F32","data_offsets":[0,4])"), 4},
      {"no offsets", fields(R"("dtype":"F32","shape":[1])"), 4},
      {"nothing", "{\"a\":{}}", 0},
      {"a list for a tensor", R"({"a":["F32",[1],[0,4]]})", 4},
      {"a string for a tensor", R"({"a":"F32"})", 4},
      {"null for a tensor", R"({"a":null})", 4},
      {"dtype is a number", fields(R"("dtype":5,"shape":[1],"data_offsets":[0,4])"), 4},
      {"dtype is an object", fields(R"("dtype":{"F32":null},"shape":[1],"data_offsets":[0,4])"), 4},
      {"dtype is null", fields(R"("dtype":null,"shape":[1],"data_offsets":[0,4])"), 4},
      {"shape is a number", one("F32", "1", "[0,4]"), 4},
      {"shape is null", one("F32", "null", "[0,4]"), 4},
      {"shape holds a string", one("F32", "[\"1\"]", "[0,4]"), 4},
      {"shape holds a list", one("F32", "[[1]]", "[0,4]"), 4},
      {"shape holds an object", one("F32", "[{}]", "[0,4]"), 4},
      {"shape is negative", one("F32", "[-1]", "[0,4]"), 4},
      {"shape is minus zero", one("F32", "[-0]", "[0,0]"), 0},
      {"shape is a fraction", one("F32", "[1.0]", "[0,4]"), 4},
      {"shape has an exponent", one("F32", "[1e0]", "[0,4]"), 4},
      {"shape is true", one("F32", "[true]", "[0,4]"), 4},
      {"shape is 2^63", one("F32", "[9223372036854775808]", "[0,4]"), 4},
      {"shape is 2^64", one("F32", "[18446744073709551616]", "[0,0]"), 0},
      {"shape wraps to 4 bytes", one("U8", "[4294967296,4294967296,4]", "[0,4]"), 4},
      {"shape wraps to 0 bytes", one("F32", "[4611686018427387904,4]", "[0,0]"), 0},
      {"shape is empty but wraps", one("F32", "[0,4294967296,4294967296,4294967296]", "[0,0]"), 0},
      {"bits wrap", one("F64", "[1152921504606846976]", "[0,0]"), 0},
      {"unknown dtype, shape wraps", one("X", "[4294967296,4294967296,4294967296]", "[0,4]"), 4},
      {"too many dimensions", one("F32", ranks, "[0,4]"), 4, ErrorCode::kLimit},
      {"one offset", one("F32", "[1]", "[0]"), 4},
      {"three offsets", one("F32", "[1]", "[0,4,4]"), 4},
      {"no offset", one("F32", "[1]", "[]"), 4},
      {"offsets reversed", one("F32", "[1]", "[4,0]"), 4},
      {"offset negative", one("F32", "[1]", "[-4,0]"), 4},
      {"offset fraction", one("F32", "[1]", "[0,4.0]"), 4},
      {"offset string", one("F32", "[1]", "[0,\"4\"]"), 4},
      {"offset 2^64", one("F32", "[1]", "[0,18446744073709551616]"), 4},
      {"offset near 2^64", one("F32", "[1]", "[18446744073709551612,18446744073709551616]"), 4},
      {"too few bytes for the shape", one("F32", "[2]", "[0,4]"), 4},
      {"too many bytes for the shape", one("F32", "[1]", "[0,8]"), 8},
      {"bytes for an empty shape", one("F32", "[0]", "[0,4]"), 4},
      {"a hole in front", one("F32", "[1]", "[4,8]"), 8},
      {"a hole between", "{" + a + "," + tensor("b", "U8", "[1]", "[5,6]") + "}", 6},
      {"an overlap", "{" + a + "," + tensor("b", "U8", "[2]", "[3,5]") + "}", 5},
      {"the same bytes twice", "{" + a + "," + tensor("b", "F32", "[1]", "[0,4]") + "}", 4},
      {"one inside another", "{" + tensor("a", "U8", "[8]", "[0,8]") + "," + tensor("b", "U8", "[1]", "[3,4]") + "}",
       8},
      {"an empty one inside another", "{" + a + "," + tensor("b", "U8", "[0]", "[2,2]") + "}", 4},
      {"an empty one behind the end", "{" + a + "," + tensor("b", "U8", "[0]", "[5,5]") + "}", 4},
      {"trailing bytes", "{" + a + "}", 5},
      {"trailing bytes and no tensor", "{}", 1},
      {"missing bytes", "{" + a + "}", 3, ErrorCode::kTruncated},
      {"all bytes missing", one("F32", "[1000]", "[0,4000]"), 0, ErrorCode::kTruncated},
      {"deep nesting", one("F32", "[1]", "[0,4]", ",\"x\":" + std::string(100, '[')), 4, ErrorCode::kLimit},
      {"invalid UTF-8 in a name", "{" + tensor("\xff", "F32", "[1]", "[0,4]") + "}", 4},
      {"a control character in a name", "{" + tensor("a\nb", "F32", "[1]", "[0,4]") + "}", 4},
      {"half a surrogate pair", "{" + tensor("\\ud83d", "F32", "[1]", "[0,4]") + "}", 4},
      {"two headers", "{" + a + "}{}", 4},
      {"a zero byte behind the header", "{" + a + "}" + std::string(1, '\0'), 4},
      {"a byte order mark", "\xEF\xBB\xBF{" + a + "}", 4},
  };
}

TEST(SafetensorsHeader, RefusesWhatBreaksARule) {
  for (const Refused& c : refused()) {
    const auto error = error_of([&] { parse(c.json, c.data_bytes); });
    ASSERT_TRUE(error) << c.what;
    EXPECT_EQ(error->code(), c.code) << c.what << ": " << error->what();
    EXPECT_EQ(error->path(), "m.safetensors") << c.what;
    EXPECT_LT(error->message().size(), 300U) << c.what;
  }
}

TEST(SafetensorsHeader, ErrorsNameTensorAndPlace) {
  const std::string json =
      "{" + tensor("good", "F32", "[1]", "[0,4]") + "," + tensor("bad", "F32", "[2]", "[4,8]") + "}";
  const auto error = error_of([&] { parse(json, 8); });
  EXPECT_EQ(error->tensor(), "bad");
  ASSERT_TRUE(error->offset());
  EXPECT_GE(*error->offset(), 8 + json.find("\"bad\""));
  EXPECT_THAT(error->message(), HasSubstr("8"));
  const auto overlap = error_of(
      [] { parse("{" + tensor("x", "U8", "[4]", "[0,4]") + "," + tensor("y", "U8", "[2]", "[3,5]") + "}", 5); });
  EXPECT_EQ(overlap->tensor(), "y");
  EXPECT_THAT(overlap->message(), HasSubstr("'x'"));
}

TEST(SafetensorsHeader, EveryTruncationIsAnError) {
  const std::string json = R"({"__metadata__":{"k":"v"},)" + tensor("a", "F32", "[1]", "[0,4]") + "}";
  for (std::size_t n = 0; n < json.size(); ++n) {
    EXPECT_EQ(code_of([&] { parse(json.substr(0, n), 4); }), ErrorCode::kCorrupt) << n;
  }
}

TEST(SafetensorsHeader, ManyTensorsInAnyOrder) {
  constexpr int kCount = 30'000;
  std::string json = "{";
  for (int i = kCount; i-- > 0;) {
    json += tensor("t" + std::to_string(i * 7919 % kCount), "U8", "[1]",
                   "[" + std::to_string(i) + "," + std::to_string(i + 1) + "]");
    json += i == 0 ? "}" : ",";
  }
  const auto header = parse(json, kCount);
  ASSERT_EQ(header.tensors.size(), std::size_t{kCount});
  EXPECT_EQ(header.tensors[1].begin, 1U);
}

}  // namespace
}  // namespace penstock::format
