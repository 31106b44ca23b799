#include "format/dcp/write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "support/errors.h"

namespace penstock::format::dcp {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Value number() { return Value::integer(5); }
Value list_of_dict() { return Value::list({Value::dict({{"x", number()}})}); }

std::vector<std::string> names_of(const Value& root) {
  std::vector<std::string> names;
  for (const Leaf& leaf : flat_leaves(root)) names.push_back(leaf.name);
  return names;
}

TEST(FlatLeaves, DictsAndListsWithDictsAreTakenApart) {
  const Value root = Value::dict({{"a", list_of_dict()}, {"b", Value::list({number()})}});
  EXPECT_THAT(names_of(root), ElementsAre("a.0.x", "b"));
}

TEST(FlatLeaves, EachListIsLookedAtOnce) {
  Value numbers = Value::list({number()});
  Value dicts = list_of_dict();
  for (int i = 0; i < 50; ++i) {
    numbers = Value::list({numbers, numbers});
    dicts = Value::list({dicts, dicts});
  }
  EXPECT_THAT(names_of(Value::dict({{"a", numbers}})), ElementsAre("a"));
  EXPECT_EQ(test::code_of([&] { flat_leaves(Value::dict({{"a", dicts}})); }), ErrorCode::kLimit);
}

TEST(FlatLeaves, KeysThatAreTheSameTextAreRefused) {
  // What lies below them has names of its own: 1.0.x and 1.y.
  const Value dict = Value::dict(std::vector<Value::Item>{{Value::integer(1), list_of_dict()},
                                                          {Value::string("1"), Value::dict({{"y", number()}})}});
  for (const Value& root : {dict, Value::dict({{"model", dict}})}) {
    const auto error = error_of([&] { flat_leaves(root); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error->message(), HasSubstr("two keys of"));
    EXPECT_THAT(error->message(), HasSubstr("'1'"));
  }
}

TEST(FlatLeaves, NamesThatAreTheSameAreRefused) {
  const Value root = Value::dict({{"a", Value::dict({{"b", number()}})}, {"a.b", number()}});
  const auto error = error_of([&] { flat_leaves(root); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message(), HasSubstr("two items would be called"));
}

}  // namespace
}  // namespace penstock::format::dcp
