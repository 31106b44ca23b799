#include "data/files/file_sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "penstock/error.h"

namespace penstock::data {
namespace {

using testing::HasSubstr;

/// The layout of a sample without tensors.
LayoutPtr layout_of(const Value& content) {
  StructureInterner interner;
  return file_sample(content, {}, {}, interner).layout;
}

std::optional<Error> refusal(const Value& content) {
  try {
    layout_of(content);
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

Value in_lists(Value value, int levels) {
  for (int i = 0; i < levels; ++i) value = Value::list({value, value});
  return value;
}

TEST(FileSample, HasAPlaceForEachWayToASharedPart) {
  const LayoutPtr layout = layout_of(in_lists(Value::integer(7), 3));
  ASSERT_EQ(layout->structure->leaves.size(), 8);
  EXPECT_EQ(layout->structure->leaves[6].path, "[1][1][0]");
}

TEST(FileSample, IsRefusedWhereTheWaysToItsPartsMultiply) {
  for (const Value& leaf : {Value::integer(7), Value::list({}), Value::dict(std::vector<Value::Item>{})}) {
    for (const int levels : {25, 60}) {
      const auto refused = refusal(in_lists(leaf, levels));
      ASSERT_TRUE(refused);
      EXPECT_EQ(refused->code(), ErrorCode::kLimit);
      EXPECT_THAT(refused->message(), HasSubstr("select what you need with keys"));
    }
  }
}

TEST(FileSample, IsRefusedWhereEachOfManyLeavesHasALongKey) {
  const Value numbers = Value::list(std::vector<Value>(1000, Value::integer(1)));
  const auto with_key = [&](std::size_t size) { return Value::dict({{std::string(size, 'k'), numbers}}); };
  EXPECT_EQ(layout_of(with_key(10'000))->structure->leaves.size(), 1000);
  const auto refused = refusal(with_key(1'000'000));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), ErrorCode::kLimit);
}

TEST(FileSample, PathsOfLongKeysKeepTheirEnd) {
  const Value content = Value::dict({{std::string(1000, 'k'), Value::list({Value::integer(1), Value::integer(2)})}});
  const LayoutPtr layout = layout_of(content);
  const std::vector<Leaf>& leaves = layout->structure->leaves;
  EXPECT_LT(leaves[1].path.size(), 500);
  EXPECT_THAT(leaves[1].path, testing::EndsWith("[1]"));
  EXPECT_EQ(leaves[1].key, std::string(1000, 'k'));
}

}  // namespace
}  // namespace penstock::data
