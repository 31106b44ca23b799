#include "format/tar/sample_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "support/bytes.h"
#include "support/errors.h"

namespace penstock::format {
namespace {

using ::testing::HasSubstr;
using Kind = TarMember::Kind;

/// "key|field", or "-" for a member of no sample.
std::string split(const std::string& name, Kind kind = Kind::kFile) {
  const auto out = sample_name({.kind = kind, .name = name});
  return out ? out->key + "|" + out->field : "-";
}

TEST(SampleName, IsWhatWebDatasetMakesOfIt) {
  EXPECT_EQ(split("a.npy"), "a|npy");
  EXPECT_EQ(split("a.seg.npy"), "a|seg.npy");
  EXPECT_EQ(split("a/b.SEG.Npy"), "a/b|seg.npy");
  EXPECT_EQ(split("a.b/c.npy"), "a.b/c|npy");
  EXPECT_EQ(split("./a.npy"), "./a|npy");
  EXPECT_EQ(split("../../etc/a.npy"), "../../etc/a|npy");
  EXPECT_EQ(split("/a.npy"), "/a|npy");
  EXPECT_EQ(split("a."), "a|");
  EXPECT_EQ(split("a..npy"), "a|.npy");
  EXPECT_EQ(split("A.npy"), "A|npy");
  EXPECT_EQ(split("\xc3\xa4/\xc3\x96.npy"), "\xc3\xa4/\xc3\x96|npy");
}

TEST(SampleName, IsNoneOfSomeMembers) {
  EXPECT_EQ(split("readme"), "-");
  EXPECT_EQ(split("a.b/readme"), "-");
  EXPECT_EQ(split(".hidden"), "-");
  EXPECT_EQ(split(".hidden.npy"), "-");
  EXPECT_EQ(split("a/.hidden.npy"), "-");
  EXPECT_EQ(split("a/._b.npy"), "-");  // what macOS adds
  EXPECT_EQ(split("a.npy/"), "-");
  EXPECT_EQ(split(""), "-");
  EXPECT_EQ(split("/"), "-");
  EXPECT_EQ(split("__info__.json"), "-");
  EXPECT_EQ(split("a/__info__.json"), "a/__info__|json");
  EXPECT_EQ(split("__info__/a.json"), "-");
  EXPECT_EQ(split("__info__/b/a.json"), "-");
  EXPECT_EQ(split("____/a.json"), "-");
  EXPECT_EQ(split("a/__info__/b.json"), "a/__info__/b|json");
  EXPECT_EQ(split("./__info__/a.json"), "./__info__/a|json");
  EXPECT_EQ(split("__info/a.json"), "__info/a|json");
  EXPECT_EQ(split("___/a.json"), "___/a|json");
  EXPECT_EQ(split("__info.json"), "__info|json");
  EXPECT_EQ(split("____.json"), "____|json");
  EXPECT_EQ(split("a.npy", Kind::kFolder), "-");
  // These have content that is not there: whoever reads them is told so.
  for (const Kind kind : {Kind::kLink, Kind::kDevice, Kind::kSparse, Kind::kOther})
    EXPECT_EQ(split("a.npy", kind), "a|npy");
}

TEST(SampleName, IsUtf8WhateverTheBytes) { EXPECT_EQ(split("a\xff.n\xfepy"), "a\\xff|n\\xfepy"); }

TEST(GzippedField, IsNamedByWhatIsInIt) {
  EXPECT_EQ(gzipped_field("seg.npy.gz"), "seg.npy");
  EXPECT_EQ(gzipped_field("gz"), "");
  EXPECT_EQ(gzipped_field("npy"), std::nullopt);
  EXPECT_EQ(gzipped_field("gz.npy"), std::nullopt);
  EXPECT_EQ(gzipped_field("xgz"), std::nullopt);
}

TEST(FieldKind, GoesByTheLastExtension) {
  for (const char* field : {"npy", "seg.npy", "npz", "pt", "pth", "safetensors", "ten", "tb"})
    EXPECT_EQ(field_kind(field), FieldKind::kTensors) << field;
  for (const char* field : {"cls", "cls2", "class", "count", "index", "inx", "id", "x.id"})
    EXPECT_EQ(field_kind(field), FieldKind::kNumber) << field;
  for (const char* field : {"txt", "text", "transcript"}) EXPECT_EQ(field_kind(field), FieldKind::kText) << field;
  for (const char* field : {"json", "jsn"}) EXPECT_EQ(field_kind(field), FieldKind::kJson) << field;
  for (const char* field : {"pyd", "pkl", "pickle"}) EXPECT_EQ(field_kind(field), FieldKind::kPickle) << field;
  for (const char* field : {"jpg", "", "npy.gz", "npy.x", "xnpy", "xten"})
    EXPECT_EQ(field_kind(field), FieldKind::kBytes) << field;
}

Value value_of(FieldKind kind, std::string_view content) {
  return field_value(kind, test::bytes_of(content), "a.tar", 100);
}
std::optional<ErrorCode> refused(FieldKind kind, std::string_view content) {
  return test::code_of([&] { value_of(kind, content); });
}

TEST(FieldValue, ReadsNumbersAsPythonDoes) {
  const auto number = [](std::string_view text) { return value_of(FieldKind::kNumber, text).as_int(); };
  EXPECT_EQ(number("7"), 7);
  EXPECT_EQ(number(" \t-12\r\n"), -12);
  EXPECT_EQ(number("+5\n"), 5);
  EXPECT_EQ(number("007"), 7);
  EXPECT_EQ(number("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(number("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  for (const std::string_view text :
       {std::string_view(), std::string_view(" "), std::string_view("+"), std::string_view("-"),
        std::string_view("+-5"), std::string_view("-+5"), std::string_view("--5"), std::string_view("++5"),
        std::string_view("1.0"), std::string_view("1e3"), std::string_view("0x1"), std::string_view("1 2"),
        std::string_view("+ 5"), std::string_view("9223372036854775808"), std::string_view("cat"),
        std::string_view("1\0", 2)}) {
    EXPECT_EQ(refused(FieldKind::kNumber, text), ErrorCode::kCorrupt) << text;
  }
}

TEST(FieldValue, ReadsTextAndBytes) {
  EXPECT_EQ(value_of(FieldKind::kText, " \xc3\xa4\n").as_string(), " \xc3\xa4\n");
  EXPECT_EQ(value_of(FieldKind::kText, "").as_string(), "");
  EXPECT_EQ(refused(FieldKind::kText, "\xff"), ErrorCode::kCorrupt);
  const Value bytes = value_of(FieldKind::kBytes, std::string_view("\xff\0x", 3));
  EXPECT_EQ(bytes.kind(), Value::Kind::kBytes);
  EXPECT_EQ(bytes.as_string(), std::string("\xff\0x", 3));
}

TEST(FieldValue, RunsNoPickle) {
  EXPECT_EQ(refused(FieldKind::kPickle, "cos\nsystem\n(S'true'\ntR."), ErrorCode::kUnsafe);
}

TEST(FieldValue, ReadsJson) {
  EXPECT_EQ(value_of(FieldKind::kJson, R"({"a": [1]})")["a"][0].as_int(), 1);
  const auto error = test::error_of([] { value_of(FieldKind::kJson, "[1, }"); });
  EXPECT_EQ(error->code(), ErrorCode::kCorrupt);
  EXPECT_EQ(error->path(), "a.tar");
  EXPECT_EQ(error->offset(), 105U);
}

}  // namespace
}  // namespace penstock::format
