#include <gtest/gtest.h>

#include <cstdint>

#include "data/transform/transformed.h"
#include "penstock/dataset.h"
#include "penstock/loader.h"
#include "penstock/ops.h"
#include "support/errors.h"

namespace penstock::data {
namespace {

Dataset pairs() {
  const Tensor ids = Tensor::of<std::int64_t>({257, 70001}).reshape({1, 2});
  const Tensor weights = Tensor::of<double>({1.5, -2.0}).reshape({1, 2});
  return zip({{"ids", rows(ids)}, {"w", rows(weights)}});
}

TEST(Typed, IntegersStayWhereAFloatIsWanted) {
  const Dataset typed = data::typed(pairs(), DType::bfloat16, true, {});
  const Value sample = typed.get(0);
  EXPECT_EQ(sample["w"].as_tensor().dtype(), DType::bfloat16);
  EXPECT_TRUE(Tensor::identical(sample["ids"].as_tensor(), Tensor::of<std::int64_t>({257, 70001})));
  DataLoader loader(typed, {.batch_size = 1, .num_workers = 2});
  const Value batch = loader.next()->value;
  EXPECT_EQ(batch["ids"].as_tensor().dtype(), DType::int64);
}

TEST(Typed, ANamedIntegerIsConverted) {
  const Value sample = data::typed(pairs(), DType::float64, false, {"ids"}).get(0);
  EXPECT_TRUE(Tensor::identical(sample["ids"].as_tensor(), Tensor::of<double>({257, 70001})));
  const Value whole = data::typed(pairs(), DType::int32, false, {"ids"}).get(0);
  EXPECT_EQ(whole["ids"].as_tensor().dtype(), DType::int32);
  EXPECT_EQ(whole["w"].as_tensor().dtype(), DType::float64);
}

TEST(Typed, ATypeThatAModuleDoesNotTakeIsRefused) {
  const auto error = test::error_of([] { data::typed(pairs(), DType::int32, false, {}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
}

TEST(Typed, ASampleOfIntegersAloneStays) {
  const Dataset ids = rows(Tensor::of<std::int64_t>({257, 70001}));
  EXPECT_EQ(data::typed(ids, DType::float16, false, {}).get(1).as_tensor().item<std::int64_t>(), 70001);
}

}  // namespace
}  // namespace penstock::data
