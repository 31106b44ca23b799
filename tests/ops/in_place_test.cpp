#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "ops/kernels.h"
#include "penstock/error.h"
#include "support/errors.h"
#include "support/tensors.h"

namespace penstock::ops {
namespace {

using test::code_of;
using testing::ElementsAre;

TEST(SwapBytes, ReversesEveryUnit) {
  std::mt19937 random(9);
  for (const std::size_t width : {1U, 2U, 3U, 4U, 8U, 16U}) {
    for (const std::size_t count : {0U, 1U, 2U, 7U, 100U}) {
      std::vector<std::byte> bytes(width * count);
      for (std::byte& b : bytes) b = static_cast<std::byte>(random());
      std::vector<std::byte> expected = bytes;
      for (auto unit = expected.begin(); unit != expected.end(); unit += static_cast<std::ptrdiff_t>(width)) {
        std::reverse(unit, unit + static_cast<std::ptrdiff_t>(width));
      }
      swap_bytes(bytes, width);
      EXPECT_EQ(bytes, expected) << width << " " << count;
    }
  }
}

TEST(SwapBytes, RefusesPartsOfUnits) {
  std::vector<std::byte> bytes(5);
  EXPECT_EQ(code_of([&] { swap_bytes(bytes, 2); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { swap_bytes(bytes, 0); }), ErrorCode::kInvalidArgument);
}

TEST(Negate, EveryKindOfNumber) {
  const Tensor integers = Tensor::of<std::int8_t>({0, 1, -5, -128});
  negate(integers);
  EXPECT_THAT(test::values_of<std::int8_t>(integers), ElementsAre(0, -1, 5, -128));
  const Tensor counts = Tensor::of<std::uint16_t>({0, 1, 65535});
  negate(counts);
  EXPECT_THAT(test::values_of<std::uint16_t>(counts), ElementsAre(0, 65535, 1));
  const Tensor reals = Tensor::of<float>({0, 1.5F, -std::numeric_limits<float>::infinity()});
  negate(reals);
  EXPECT_TRUE(std::signbit(reals.values<float>()[0]));
  EXPECT_THAT(test::values_of<float>(reals), ElementsAre(0, -1.5F, std::numeric_limits<float>::infinity()));
  const Tensor complexes = Tensor::of<std::complex<float>>({{1, -2}});
  negate(complexes);
  EXPECT_EQ(complexes.values<std::complex<float>>()[0], std::complex<float>(-1, 2));
}

TEST(Negate, SmallFloats) {
  for (const DType& dtype : {DType::float16, DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2,
                             DType::float8_e4m3fnuz, DType::float8_e5m2fnuz}) {
    const Tensor tensor = Tensor::of<float>({0, 1, -2, 0.5F}).to(dtype);
    negate(tensor);
    const Tensor back = tensor.to(DType::float32);
    EXPECT_THAT(test::values_of<float>(back), ElementsAre(0, -1, 2, -0.5F)) << dtype;
  }
  const std::array<std::byte, 1> nan = {std::byte{0x80}};
  const Tensor tensor = Tensor::empty({1}, DType::float8_e4m3fnuz);
  fill(tensor, nan);
  negate(tensor);
  EXPECT_EQ(tensor.data()[0], std::byte{0x80});
}

TEST(Negate, ViewsOnly) {
  const Tensor tensor = Tensor::of<std::int32_t>({1, 2, 3, 4, 5, 6});
  negate(Tensor(tensor.buffer(), DType::int32, {3}, {2}, 4));
  EXPECT_THAT(test::values_of<std::int32_t>(tensor), ElementsAre(1, -2, 3, -4, 5, -6));
  const Tensor scalar = Tensor::of<std::int32_t>({9}).select(0, 0);
  negate(scalar);
  EXPECT_EQ(scalar.item<int>(), -9);
}

TEST(Negate, RefusesWhatHasNoSign) {
  EXPECT_EQ(code_of([] { negate(Tensor::zeros({1}, DType::boolean)); }), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of([] { negate(Tensor::zeros({1}, DType::float8_e8m0fnu)); }), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of([] { negate(Tensor::zeros({1}, DType::Code::kQInt8)); }), ErrorCode::kUnsupported);
}

TEST(Conjugate, FlipsImaginaryParts) {
  const Tensor tensor = Tensor::of<std::complex<double>>({{1, -2}, {-3, 0}});
  conjugate(tensor);
  EXPECT_EQ(tensor.values<std::complex<double>>()[0], std::complex<double>(1, 2));
  EXPECT_TRUE(std::signbit(tensor.values<std::complex<double>>()[1].imag()));
  const Tensor halves = tensor.to(DType::complex32);
  conjugate(halves);
  EXPECT_EQ(halves[0].item<std::complex<double>>(), std::complex<double>(1, -2));
  const Tensor reals = Tensor::of<float>({1, -2});
  conjugate(reals);
  EXPECT_THAT(test::values_of<float>(reals), ElementsAre(1, -2));
}

TEST(Fill, WritesEveryElementAndNoOther) {
  const Tensor tensor = Tensor::zeros({4, 3}, DType::int32);
  const std::array<std::int32_t, 1> value = {0x01020304};
  fill(tensor.slice(1, 0, 3, 2), std::as_bytes(std::span(value)));
  const Tensor row = tensor[1];
  EXPECT_THAT(test::values_of<std::int32_t>(row), ElementsAre(0x01020304, 0, 0x01020304));
  fill(tensor, std::as_bytes(std::span(value)));
  for (const std::int32_t v : tensor.values<std::int32_t>()) EXPECT_EQ(v, 0x01020304);
  EXPECT_EQ(code_of([&] { fill(tensor, std::as_bytes(std::span(value)).first(2)); }), ErrorCode::kInvalidArgument);
  fill(Tensor::empty({0}, DType::int32), std::as_bytes(std::span(value)));
}

TEST(Fill, LargeTensors) {
  const Tensor tensor = Tensor::zeros({3'000'001}, DType::int64);
  const std::array<std::int64_t, 1> value = {-3};
  fill(tensor, std::as_bytes(std::span(value)));
  const auto values = tensor.values<std::int64_t>();
  EXPECT_EQ(std::count(values.begin(), values.end(), -3), 3'000'001);
}

}  // namespace
}  // namespace penstock::ops
