// Arrays of Python objects as samples: numbers, text and rows of unlike length. Nothing in their pickles is run.

#include <gtest/gtest.h>

#include <string>

#include "penstock/collate.h"
#include "penstock/loader.h"

namespace penstock {
namespace {

/// NumPy's file of the arrays [0, 1, 2] and [0, 0], a text, None and {"k": [1, 2]}.
const std::string kObjects = "fuzz/corpus/npy/objects.npy";

TEST(ObjectArrays, ASampleIsTheListInTheFile) {
  const Value sample = files({kObjects}).get(0);
  ASSERT_TRUE(sample.is(Value::Kind::kList));
  ASSERT_EQ(sample.size(), 5U);
  EXPECT_TRUE(Tensor::identical(sample[0].as_tensor(), Tensor::of<double>({0, 1, 2})));
  EXPECT_TRUE(Tensor::identical(sample[1].as_tensor(), Tensor::of<std::int64_t>({0, 0})));
  EXPECT_EQ(sample[2].as_string(), "text");
  EXPECT_TRUE(sample[3].is(Value::Kind::kNone));
  EXPECT_EQ(sample[4]["k"][1].as_int(), 2);
}

TEST(ObjectArrays, ABatchHasTheirTensorsByPlace) {
  DataLoader loader(files({kObjects, kObjects}), {.batch_size = 2, .num_workers = 0});
  const Value batch = loader.next()->value;
  EXPECT_EQ(batch[0].as_tensor().shape(), Shape({2, 3}));
  EXPECT_EQ(batch[1].as_tensor().shape(), Shape({2, 2}));
}

}  // namespace
}  // namespace penstock
