#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "penstock/ops.h"
#include "penstock/random.h"
#include "support/errors.h"
#include "support/tensors.h"

namespace penstock {
namespace {

using test::values_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Reduction, ByDimension) {
  const Tensor x = arange(0, 6).reshape({2, 3});
  EXPECT_EQ(sum(x).item<std::int64_t>(), 15);
  EXPECT_THAT(values_of<std::int64_t>(sum(x, 0)), ElementsAre(3, 5, 7));
  EXPECT_THAT(values_of<std::int64_t>(sum(x, -1)), ElementsAre(3, 12));
  EXPECT_EQ(sum(x, 1, true).shape(), (Shape{2, 1}));
  const std::array<std::int64_t, 2> both = {0, 1};
  EXPECT_EQ(sum(x, both, true).shape(), (Shape{1, 1}));
  EXPECT_THAT(values_of<float>(mean(x.to(DType::float32), 0)), ElementsAre(1.5, 2.5, 3.5));
  const Extremum greatest = max(x, 1);
  EXPECT_THAT(values_of<std::int64_t>(greatest.values), ElementsAre(2, 5));
  EXPECT_THAT(values_of<std::int64_t>(greatest.indices), ElementsAre(2, 2));
  EXPECT_EQ(min(x).item<std::int64_t>(), 0);
  EXPECT_EQ(argmax(x).item<std::int64_t>(), 5);
}

/// Enough for several threads, several chunks and results, in every arrangement: the same bits.
TEST(Reduction, SumsDoNotDependOnStridesOrThreads) {
  Generator generator(11);
  const Tensor x = randn({9000, 130}, generator);
  const Tensor turned = x.transpose(0, 1).contiguous();
  EXPECT_TRUE(Tensor::identical(sum(x, 0), sum(turned, 1)));
  EXPECT_TRUE(Tensor::identical(sum(x, 1), sum(turned, 0)));
  EXPECT_TRUE(Tensor::identical(sum(x.slice(1, 5, 6)), sum(x, 0)[5]));
  EXPECT_TRUE(Tensor::identical(max(x, 0).indices, max(turned, 1).indices));
}

TEST(Reduction, NaNIsTheExtreme) {
  const float nan = std::nanf("");
  const Tensor x = Tensor::of<float>({1, nan, 5, nan});
  EXPECT_TRUE(std::isnan(max(x).item<float>()));
  EXPECT_EQ(argmax(x).item<std::int64_t>(), 1);
  EXPECT_EQ(min(x, 0).indices.item<std::int64_t>(), 1);
}

TEST(Reduction, OfNothing) {
  const Tensor none = Tensor::zeros({0, 2});
  EXPECT_EQ(sum(none).item<float>(), 0);
  EXPECT_TRUE(std::isnan(mean(none).item<float>()));
  EXPECT_EQ(test::code_of([&] { return max(none); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { return argmax(none, 0); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(argmax(none, 1).numel(), 0);
  EXPECT_EQ(test::code_of([&] { return sum(none, 2); }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(test::code_of([&] { return mean(Tensor::zeros({2}, DType::int8)); }), ErrorCode::kUnsupported);
}

TEST(Matmul, MatricesVectorsAndBatches) {
  const Tensor a = arange(0, 6, 1, DType::float32).reshape({2, 3});
  const Tensor b = arange(0, 3, 1, DType::float32);
  EXPECT_THAT(values_of<float>(matmul(a, b)), ElementsAre(5, 14));
  EXPECT_THAT(values_of<float>(matmul(a, a.transpose(0, 1))), ElementsAre(5, 14, 14, 50));
  EXPECT_EQ(matmul(b, b).shape(), Shape());
  EXPECT_EQ(matmul(Tensor::zeros({4, 1, 2, 3}), Tensor::zeros({5, 3, 6})).shape(), (Shape{4, 5, 2, 6}));
  EXPECT_THAT(values_of<std::int32_t>(matmul(a.to(DType::int32), b.to(DType::int32))), ElementsAre(5, 14));
}

TEST(Matmul, EmptyAndLarge) {
  EXPECT_THAT(values_of<float>(matmul(Tensor::empty({2, 0}), Tensor::empty({0, 1}))), ElementsAre(0, 0));
  const Tensor x = ones({1000, 300});
  EXPECT_TRUE(Tensor::identical(matmul(x, ones({300, 7})), full({1000, 7}, 300.0)));
  EXPECT_TRUE(Tensor::identical(matmul(x.to(DType::bfloat16), ones({300, 7}, DType::bfloat16)),
                                full({1000, 7}, 300.0, DType::bfloat16)));
}

TEST(Matmul, Refusals) {
  const auto shapes = test::error_of([] { return matmul(Tensor::zeros({2, 3}), Tensor::zeros({2, 3})); });
  ASSERT_TRUE(shapes);
  EXPECT_EQ(shapes->code(), ErrorCode::kShapeMismatch);
  EXPECT_THAT(shapes->message(), HasSubstr("(2, 3) and (2, 3)"));
  EXPECT_EQ(test::code_of([] { return matmul(Tensor::zeros({2}), Tensor::zeros({2}, DType::int8)); }),
            ErrorCode::kDTypeMismatch);
}

TEST(Join, CatStackAndIndexSelect) {
  const Tensor x = arange(0, 6).reshape({2, 3});
  const std::array<Tensor, 2> both = {x, x.slice(1, 0, 1)};
  EXPECT_THAT(values_of<std::int64_t>(cat(both, 1)), ElementsAre(0, 1, 2, 0, 3, 4, 5, 3));
  const std::array<Tensor, 2> same = {x[0], x[1].to(DType::float32)};
  EXPECT_THAT(values_of<float>(stack(same, 1)), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(values_of<std::int64_t>(index_select(x, 1, Tensor::of<std::int64_t>({2, 2, 0}))),
              ElementsAre(2, 2, 0, 5, 5, 3));
  EXPECT_EQ(test::code_of([&] { return index_select(x, 1, Tensor::of<std::int64_t>({3})); }),
            ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(test::code_of([&] { return cat(both, 0); }), ErrorCode::kShapeMismatch);
  EXPECT_EQ(test::code_of([&] { return stack(both); }), ErrorCode::kShapeMismatch);
}

TEST(Operations, RefuseUndefinedTensors) {
  const Tensor none;
  for (const auto& call : std::vector<std::function<Tensor()>>{
           [&] { return sum(none); }, [&] { return sum(none, 0); }, [&] { return mean(none); },
           [&] { return max(none); }, [&] { return argmax(none); }, [&] { return min(none, 0).values; },
           [&] { return exp(none); }, [&] { return abs(none); }, [&] { return relu(none); }, [&] { return -none; },
           [&] { return none + 1; }, [&] { return none == none; }, [&] { return matmul(none, none); },
           [&] { return index_select(none, 0, none); }, [&] { return stack({none}); }, [&] { return cat({none}); }}) {
    EXPECT_EQ(test::code_of(call), ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace penstock
