// WebDataset's arrays, by bytes that are written here, and what is told of those that lie.
#include "format/tar/tenbin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "penstock/load.h"
#include "support/bytes.h"
#include "support/errors.h"

namespace penstock::format {
namespace {

using test::source_of;
using ::testing::HasSubstr;

std::string number(std::int64_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

std::string chunk(std::string content, std::optional<std::int64_t> bytes = {}) {
  std::string out = "~TenBin~" + number(bytes.value_or(std::ssize(content)));
  content.resize((content.size() + 63) / 64 * 64, '\0');
  return out + content;
}

std::string header(std::string type, const std::vector<std::int64_t>& shape, std::optional<std::int64_t> rank = {}) {
  type.resize(8, '\0');
  std::string out = type + "a name" + std::string(2, '\0') + number(rank.value_or(std::ssize(shape)));
  for (const std::int64_t size : shape) out += number(size);
  return out;
}

const std::string kTwoBytes = chunk(header("u1", {2})) + chunk("\1\2");

std::optional<Error> error_of(const std::string& file) {
  return test::error_of([&] { open(source_of(file, "x.ten")).load(); });
}

TEST(Tenbin, IsAListOfArrays) {
  const std::string file = kTwoBytes + chunk(header("f4", {1, 0, 3})) + chunk("") + chunk(header("i8", {})) +
                           chunk(number(-5)) + chunk(header("u2", {70})) + chunk(std::string(140, '\1'));
  const Archive archive = open(source_of(file, "x.ten"));
  EXPECT_EQ(archive.format(), "tenbin");
  EXPECT_EQ(archive.entry(3).name(), "3");
  const Value arrays = archive.load();
  ASSERT_EQ(arrays.size(), 4U);
  EXPECT_TRUE(Tensor::identical(arrays[0].as_tensor(), Tensor::of<std::uint8_t>({1, 2})));
  EXPECT_EQ(arrays[1].as_tensor().shape(), Shape({1, 0, 3}));
  EXPECT_EQ(arrays[2].as_tensor().item<std::int64_t>(), -5);
  EXPECT_EQ(arrays[3].as_tensor().slice(0, 69, 70).item<std::uint16_t>(), 0x101);
}

TEST(Tenbin, ChunksThatLieAreErrors) {
  EXPECT_EQ(error_of(kTwoBytes + "~TenBox~" + number(0))->code(), ErrorCode::kCorrupt);
  EXPECT_EQ(error_of(kTwoBytes + "~TenBin~" + number(0))->code(), ErrorCode::kCorrupt);
  EXPECT_EQ(error_of(kTwoBytes + "~TenBin~")->code(), ErrorCode::kTruncated);
  EXPECT_EQ(error_of(chunk(header("u1", {2})))->code(), ErrorCode::kTruncated);
  EXPECT_EQ(error_of(kTwoBytes.substr(0, kTwoBytes.size() - 1))->code(), ErrorCode::kTruncated);
  EXPECT_EQ(error_of(chunk(header("u1", {2})) + chunk("\1\2", -2))->code(), ErrorCode::kCorrupt);
  const auto most = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t bytes : {std::int64_t{65}, most, most - 63}) {
    EXPECT_EQ(error_of(chunk(header("u1", {bytes})) + chunk("\1\2", bytes))->code(), ErrorCode::kTruncated);
    EXPECT_NE(error_of(chunk(header("u1", {2}), bytes) + chunk("\1\2")), std::nullopt);
  }
}

TEST(Tenbin, HeadersThatLieAreErrors) {
  const auto told = [](const std::string& head, const std::string& content = std::string("\1\2\3\4")) {
    const auto error = error_of(chunk(head) + chunk(content));
    EXPECT_TRUE(error);
    EXPECT_EQ(error->path(), "x.ten");
    return *error;
  };
  const auto most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(told(header("u1", {3})).code(), ErrorCode::kCorrupt);
  EXPECT_EQ(told(header("u1", {5})).code(), ErrorCode::kCorrupt);
  EXPECT_THAT(told(header("f4", {3})).what(), HasSubstr("found 4 bytes of elements, but float32 of shape (3,) has 12"));
  EXPECT_EQ(told(header("u1", {-1, -4})).code(), ErrorCode::kCorrupt);
  EXPECT_EQ(told(header("u1", {most, most, 0})).code(), ErrorCode::kCorrupt);
  EXPECT_EQ(told(header("f8", {most / 4})).code(), ErrorCode::kCorrupt);
  for (const std::int64_t rank : {std::int64_t{-1}, std::int64_t{1}, std::int64_t{3}, most}) {
    EXPECT_EQ(told(header("u1", {2, 2}, rank)).code(), ErrorCode::kCorrupt) << rank;
  }
  EXPECT_EQ(told(header("u1", {4}) + "x").code(), ErrorCode::kCorrupt);
  EXPECT_EQ(told("u1").code(), ErrorCode::kCorrupt);
  EXPECT_EQ(told(header("u1", std::vector<std::int64_t>(65, 1))).code(), ErrorCode::kCorrupt);
  for (const char* type : {"O", "f3", "c8", "S4", "u1x", ">u1", ""}) {
    EXPECT_EQ(told(header(type, {4})).code(), ErrorCode::kUnsupported) << type;
  }
}

std::string written(const Value& value) {
  test::StringSink sink;
  write_tenbin(value, sink);
  return sink.text;
}

TEST(Tenbin, IsReadAsItIsWritten) {
  const Tensor one = Tensor::of<std::int16_t>({1, 2, 3, 4, 5, 6}).reshape({2, 3});
  const Tensor other = Tensor::of<double>({0.5});
  const Value read = open(source_of(written(Value::list({one, one.transpose(0, 1), other})))).load();
  ASSERT_EQ(read.size(), 3U);
  EXPECT_TRUE(Tensor::identical(read[0].as_tensor(), one));
  EXPECT_TRUE(Tensor::identical(read[1].as_tensor(), one.transpose(0, 1).contiguous()));
  EXPECT_TRUE(Tensor::identical(read[2].as_tensor(), other));
  EXPECT_EQ(written(Value(one)), written(Value::list({one})));
  EXPECT_EQ(written(Value(one)).size() % 64, 32U);
  EXPECT_EQ(test::code_of([&] { written(Value::list({one, Value::integer(1)})); }), ErrorCode::kUnsupported);
  EXPECT_EQ(test::code_of([] { written(Value::list({})); }), ErrorCode::kUnsupported);
  EXPECT_EQ(test::code_of([] { written(Tensor::of<bool>({true})); }), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace penstock::format
