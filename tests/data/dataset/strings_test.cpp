#include <gtest/gtest.h>

#include "penstock/dataset.h"
#include "penstock/loader.h"

namespace penstock {
namespace {

TEST(Strings, SamplesAreTheTextsAndABatchIsAListOfThem) {
  const Dataset labels = strings({"cat", "dog", "", "cat"});
  EXPECT_EQ(labels.size(), 4);
  EXPECT_EQ(labels.get(-3).as_string(), "dog");
  const auto batch = DataLoader(labels, {.batch_size = 4, .num_workers = 0}).next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->value[3].as_string(), "cat");
  EXPECT_EQ(batch->value.size(), 4);
}

TEST(Strings, AreZippedAndTakenInPart) {
  const Dataset pairs = subset(zip(strings({"a", "b", "c"}), strings({"x", "y", "z"})), {2, 0});
  EXPECT_EQ(pairs.get(0)[std::size_t{0}].as_string(), "c");
  EXPECT_EQ(pairs.get(1)[std::size_t{1}].as_string(), "x");
}

}  // namespace
}  // namespace penstock
