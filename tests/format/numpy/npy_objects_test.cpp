#include "format/numpy/npy_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "format/numpy/npy_support.h"
#include "format/rows.h"
#include "penstock/load.h"
#include "support/errors.h"
#include "support/pickles.h"
#include "support/tensors.h"
#include "support/zip_builder.h"

namespace penstock::format {
namespace {

using namespace test::pickled;

const std::string kNone = "N";
const std::string kTrue = "\x88";
const std::string kFalse = "\x89";

using test::build_zip;
using test::code_of;
using test::numbered;
using test::source_of;
using test::values_of;
using test::written;

std::string dtype(std::string_view name, std::string_view order) {
  return call(global("numpy", "dtype"), {text(name), kFalse, kTrue}) +
         tuple({integer(3), text(order), kNone, kNone, kNone, integer(-1), integer(-1), integer(63)}) + "b";
}

std::string array(const std::string& shape, const std::string& type, const std::string& data) {
  return call(global("numpy.core.multiarray", "_reconstruct"),
              {global("numpy", "ndarray"), integers({0}), bytes("b")}) +
         tuple({integer(1), shape, type, kFalse, data}) + "b";
}

std::string objects(const std::vector<std::int64_t>& shape, std::initializer_list<std::string> items) {
  return array(integers(shape), dtype("O8", "|"), items.size() == 0 ? "]" : list(items));
}

std::string npy(const Shape& shape, const std::string& pickle) {
  std::string header = make_npy_header(DType::int32, shape, false);
  header.replace(header.find("'<i4'"), 5, "'|O' ");
  return header + whole(pickle);
}

Archive opened(const std::string& file, const OpenOptions& options = {}) { return open(source_of(file), options); }

std::string three() { return array(integers({3}), dtype("i1", "|"), bytes("\1\2\3")); }

TEST(NpyObjects, AreListsOfValues) {
  const std::string file =
      npy({4}, objects({4}, {three(), text("word"), kNone, dict({text("k"), list({integer(1), integer(2)})})}));
  const Archive archive = opened(file);
  ASSERT_EQ(archive.entries().size(), 1U);
  EXPECT_EQ(archive.entries()[0].name, "0");
  const Value value = archive.load();
  ASSERT_EQ(value.size(), 4U);
  EXPECT_THAT(values_of<std::int8_t>(value[0].as_tensor()), testing::ElementsAre(1, 2, 3));
  EXPECT_EQ(value[1].as_string(), "word");
  EXPECT_TRUE(value[2].is(Value::Kind::kNone));
  EXPECT_EQ(value[3]["k"].size(), 2U);
}

TEST(NpyObjects, NestAsTheDimensionsSay) {
  const Value value = opened(npy({2, 2}, objects({2, 2}, {integer(1), integer(2), integer(3), integer(4)}))).load();
  ASSERT_EQ(value.size(), 2U);
  EXPECT_EQ(value[1][0].as_int(), 3);
  EXPECT_EQ(opened(npy({2, 0}, objects({2, 0}, {}))).load()[1].size(), 0U);
  EXPECT_EQ(opened(npy({0}, objects({0}, {}))).load().size(), 0U);
}

TEST(NpyObjects, WithoutDimensionsIsTheObject) {
  EXPECT_EQ(opened(npy({}, objects({}, {dict({text("a"), integer(1)})}))).load()["a"].as_int(), 1);
}

TEST(NpyObjects, OtherClassesAreInert) {
  const Archive archive = opened(npy({1}, objects({1}, {call(global("os", "system"), {text("true")})})));
  EXPECT_EQ(archive.load()[0].type_name(), "os.system");
  EXPECT_THAT(archive.unknown_globals(), testing::ElementsAre("os.system"));
}

TEST(NpyObjects, MustBeWhatTheHeaderSays) {
  EXPECT_EQ(code_of([] { opened(npy({3}, objects({2}, {kNone, kNone}))); }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([] { opened(npy({2}, objects({2}, {kNone}))); }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([] { opened(npy({3}, three())); }), ErrorCode::kCorrupt);
  EXPECT_EQ(code_of([] { opened(npy({1}, integer(1))); }), ErrorCode::kCorrupt);
  const std::string whole_file = npy({1}, objects({1}, {kNone}));
  EXPECT_EQ(code_of([&] { opened(whole_file.substr(0, whole_file.size() - 1)); }), ErrorCode::kTruncated);
  EXPECT_EQ(code_of([] { opened(npy({1}, "\x82\1")); }), ErrorCode::kUnsafe);
  EXPECT_EQ(code_of([] { opened(npy({1LL << 40, 0}, objects({1LL << 40, 0}, {}))); }), ErrorCode::kLimit);
}

TEST(NpyObjects, WhatFollowsThePickleIsLeftAlone) {
  const std::string file = npy({1}, objects({1}, {integer(7)}));
  EXPECT_EQ(opened(file + file).load()[0].as_int(), 7);
}

TEST(NpyObjects, LieBesideOtherMembers) {
  const Tensor plain = numbered(DType::int8, Shape{2});
  const std::string a = written(kNpyFormat, Value::tensor(plain));
  const Archive archive = opened(build_zip({{.name = "o.npy", .data = npy({2}, objects({2}, {three(), text("x")}))},
                                            {.name = "a.npy", .data = a},
                                            {.name = "o.0.npy", .data = a}}));
  const Value value = archive.load();
  EXPECT_TRUE(Tensor::identical(value["a"].as_tensor(), plain));
  EXPECT_TRUE(Tensor::identical(value["o.0"].as_tensor(), plain));
  EXPECT_THAT(values_of<std::int8_t>(value["o"][0].as_tensor()), testing::ElementsAre(1, 2, 3));
  EXPECT_EQ(value["o"][1].as_string(), "x");
  EXPECT_TRUE(archive.contains("o.0#2"));
}

TEST(NpyObjects, ThatCannotBeReadLeaveTheOtherMembersReadable) {
  const Tensor plain = numbered(DType::int8, Shape{2});
  const Archive archive = opened(build_zip({{.name = "bad.npy", .data = npy({1}, "\x82\1")},
                                            {.name = "a.npy", .data = written(kNpyFormat, Value::tensor(plain))}}));
  EXPECT_TRUE(Tensor::identical(archive["a"].load(), plain));
  EXPECT_EQ(code_of([&] { (void)archive["bad"].load(); }), ErrorCode::kUnsafe);
}

TEST(NpyObjects, ByteStringsOfPython2AreDecodedAsAsked) {
  const std::string file = npy({1}, objects({1}, {"U\1\xe4"}));
  EXPECT_TRUE(opened(file).load()[0].is(Value::Kind::kBytes));
  OpenOptions options;
  options.decode = [](std::string_view) { return std::string("decoded"); };
  EXPECT_EQ(opened(file, options).load()[0].as_string(), "decoded");
}

}  // namespace
}  // namespace penstock::format
