#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <vector>

#include "penstock/ops.h"
#include "support/errors.h"
#include "support/tensors.h"

namespace penstock {
namespace {

using test::values_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// bool has no address of its own in a vector.
std::vector<int> truth_of(const Tensor& tensor) {
  std::vector<int> out;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) out.push_back(tensor[i].item<bool>() ? 1 : 0);
  return out;
}

TEST(Operands, ComplexNumbersOfBothWidths) {
  const Tensor z = full({1}, std::complex<double>(0, 2)).to(DType::complex64);
  EXPECT_EQ((z * std::complex<float>(0, 1)).item<std::complex<float>>(), std::complex<float>(-2, 0));
  EXPECT_EQ((z * std::complex<double>(0, 1)).item<std::complex<float>>(), std::complex<float>(-2, 0));
}

TEST(Operands, UndefinedTensorsAreRefused) {
  const Tensor x = ones({2});
  EXPECT_EQ(test::code_of([&] { return Tensor{} + x; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { return x + Tensor{}; }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { return matmul(x, Tensor{}); }), ErrorCode::kInvalidArgument);
}

TEST(Elementwise, OperatorsTakeTensorsAndNumbers) {
  const Tensor x = Tensor::of<float>({1, 2, 3});
  EXPECT_THAT(values_of<float>(x + x), ElementsAre(2, 4, 6));
  EXPECT_THAT(values_of<float>(1 - x), ElementsAre(0, -1, -2));
  EXPECT_THAT(values_of<float>(x * 2.5), ElementsAre(2.5, 5, 7.5));
  EXPECT_THAT(values_of<float>(6 / x), ElementsAre(6, 3, 2));
  EXPECT_THAT(values_of<float>(-x), ElementsAre(-1, -2, -3));
  EXPECT_THAT(truth_of(x > 1), ElementsAre(0, 1, 1));
  EXPECT_THAT(truth_of(2 >= x), ElementsAre(1, 1, 0));
  EXPECT_THAT(truth_of(x == 2), ElementsAre(0, 1, 0));
  EXPECT_THAT(truth_of(x != x), ElementsAre(0, 0, 0));
}

TEST(Elementwise, IntegersWrapAround) {
  constexpr auto high = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ((Tensor::of<std::int64_t>({high}) + 1).item<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ((Tensor::of<std::int16_t>({-32768}) * -1).item<std::int16_t>(), -32768);
  EXPECT_EQ((Tensor::of<std::uint16_t>({65535}) * Tensor::of<std::uint16_t>({65535})).item<std::uint16_t>(), 1);
  EXPECT_EQ(abs(Tensor::of<std::int8_t>({-128})).item<std::int8_t>(), -128);
}

TEST(Elementwise, RowsAndColumnsAreBroadcast) {
  const Tensor row = Tensor::of<std::int32_t>({1, 2, 3});
  const Tensor column = Tensor::of<std::int32_t>({10, 20}).reshape({2, 1});
  const Tensor sum = row + column;
  EXPECT_EQ(sum.shape(), (Shape{2, 3}));
  EXPECT_THAT(values_of<std::int32_t>(sum), ElementsAre(11, 12, 13, 21, 22, 23));
  EXPECT_EQ((row.reshape({3, 1}) + Tensor::empty({0}, DType::int32)).shape(), (Shape{3, 0}));
}

TEST(Elementwise, UnalignedElementsAreRead) {
  const Tensor bytes = Tensor::zeros({13}, DType::uint8);
  const Tensor x(bytes.buffer(), DType::float32, Shape{3}, Strides{1}, 1);
  EXPECT_THAT(values_of<float>(x + 1), ElementsAre(1, 1, 1));
  EXPECT_THAT(values_of<float>(exp(x)), ElementsAre(1, 1, 1));
}

TEST(Elementwise, ManyElementsOnManyThreads) {
  const std::int64_t count = 1'500'001;
  const Tensor x = arange(0, count, 1, DType::int32);
  const Tensor y = x.reshape({1, count}) * 2 - x;
  EXPECT_TRUE(Tensor::identical(y.reshape({count}), x));
}

TEST(Elementwise, ResultTypes) {
  EXPECT_EQ((Tensor::of<std::int32_t>({1}) + Tensor::of<std::uint8_t>({1})).dtype(), DType::int32);
  EXPECT_EQ((Tensor::of<std::int8_t>({1}) + Tensor::of<std::uint8_t>({1})).dtype(), DType::int16);
  EXPECT_EQ((Tensor::of<std::int32_t>({1}) / 2).dtype(), DType::float32);
  EXPECT_EQ((Tensor::of<float>({1}) + std::complex<double>(0, 1)).dtype(), DType::complex64);
  EXPECT_EQ((Tensor::zeros({1}, DType::float16) + Tensor::of<double>({1}).reshape({})).dtype(), DType::float16);
  EXPECT_EQ(sqrt(Tensor::of<bool>({true})).dtype(), DType::float32);
  EXPECT_EQ(abs(full({2}, std::complex<double>(3, 4))).dtype(), DType::float32);
}

TEST(Elementwise, ShapesThatDoNotFitAreRefused) {
  const auto error = test::error_of([] { return Tensor::zeros({2, 3}) + Tensor::zeros({4}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kShapeMismatch);
  EXPECT_THAT(error->message(), HasSubstr("(2, 3) and (4,)"));
}

TEST(Elementwise, WhatHasNoMeaningIsRefused) {
  const Tensor truth = Tensor::of<bool>({true});
  EXPECT_EQ(test::code_of([&] { return truth - truth; }), ErrorCode::kUnsupported);
  EXPECT_EQ(test::code_of([&] { return -truth; }), ErrorCode::kUnsupported);
  EXPECT_EQ(test::code_of([&] { return relu(truth); }), ErrorCode::kUnsupported);
  const Tensor complex = full({2}, std::complex<double>(1, 1));
  EXPECT_EQ(test::code_of([&] { return complex < complex; }), ErrorCode::kUnsupported);
  const Tensor text = Tensor::empty({2}, DType::with_descr(DType::Code::kBytes, 3, "|S3"));
  EXPECT_EQ(test::code_of([&] { return text + 1; }), ErrorCode::kUnsupported);
  EXPECT_EQ(test::code_of([&] { return exp(text); }), ErrorCode::kUnsupported);
  EXPECT_EQ(test::code_of([] { return promote_types(DType::uint16, DType::int8); }), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(test::code_of([] { return promote_types(DType::float8_e5m2, DType::float32); }), ErrorCode::kDTypeMismatch);
}

TEST(Elementwise, FunctionsAtTheirEdges) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::of<float>({0, -0.0F, infinity, -infinity, 88.73F, -103.9F, -104.5F});
  EXPECT_THAT(values_of<float>(exp(x)), ElementsAre(1, 1, infinity, 0, infinity, 1.40129846e-45F, 0));
  EXPECT_THAT(values_of<float>(tanh(x)), ElementsAre(0, 0, 1, -1, 1, -1, -1));
  const std::vector<float> logs = values_of<float>(log(Tensor::of<float>({0, 1, infinity, 1e-45F, -1})));
  EXPECT_EQ(logs[0], -infinity);
  EXPECT_EQ(logs[1], 0);
  EXPECT_EQ(logs[2], infinity);
  EXPECT_FLOAT_EQ(logs[3], std::log(1e-45F));
  EXPECT_TRUE(std::isnan(logs[4]));
  EXPECT_TRUE(std::signbit(tanh(Tensor::of<double>({-0.0})).item<double>()));
}

TEST(Creation, FullAndArange) {
  EXPECT_THAT(values_of<std::int64_t>(full({2}, 7)), ElementsAre(7, 7));
  EXPECT_EQ(full({2}, 7.0).dtype(), DType::float32);
  EXPECT_EQ(ones({3}, DType::bfloat16).to(DType::float32)[2].item<float>(), 1);
  EXPECT_THAT(values_of<std::int64_t>(arange(5, 0, -2)), ElementsAre(5, 3, 1));
  EXPECT_THAT(values_of<float>(arange(0, 1, 0.25)), ElementsAre(0, 0.25, 0.5, 0.75));
  EXPECT_EQ(test::code_of([] { return full({1}, 256, DType::uint8); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([] { return arange(0, 5, 0); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([] { return arange(0, std::nan("")); }), ErrorCode::kInvalidArgument);
}

TEST(Creation, WhatATypeDoesNotHoldIsRefused) {
  constexpr std::int64_t large = std::int64_t{1} << 60;  // its neighbours are the same double
  EXPECT_THAT(values_of<std::int64_t>(arange(large + 1, large, -1)), ElementsAre(large + 1));
  EXPECT_THAT(test::error_of([] { return arange(large + 1, large); })->message(), HasSubstr("1152921504606846977"));
  EXPECT_EQ(test::code_of([] { return arange(large, large + 1, -1); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(arange(0.0, 256.0, 1, DType::uint8)[255].item<int>(), 255);
  EXPECT_EQ(test::code_of([] { return arange(0.0, 257.0, 1, DType::uint8); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([] { return arange(-0.5, 2.0, 1, DType::float32), arange(-1.5, 2.0, 1, DType::uint8); }),
            ErrorCode::kInvalidArgument);
  const std::complex<double> both(1, 2);
  EXPECT_EQ(test::code_of([&] { return arange(0, both); }), ErrorCode::kInvalidArgument);
  for (const DType& real : {DType::int64, DType::uint8, DType::float16, DType::float64}) {
    EXPECT_EQ(test::code_of([&] { return full({1}, both, real); }), ErrorCode::kInvalidArgument) << real;
    EXPECT_EQ(full({1}, std::complex<double>(3, 0), real).item<int>(), 3) << real;
  }
  EXPECT_TRUE(full({1}, both, DType::boolean).item<bool>());
}

}  // namespace
}  // namespace penstock
