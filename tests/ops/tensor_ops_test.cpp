#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "penstock/error.h"
#include "penstock/tensor.h"
#include "support/errors.h"
#include "support/tensors.h"

namespace penstock {
namespace {

using test::code_of;
using test::counting;
using test::values_of;
using testing::ElementsAre;

TEST(Zeros, AreZero) {
  const Tensor tensor = Tensor::zeros({3, 1000}, DType::complex128);
  EXPECT_TRUE(
      std::all_of(tensor.data(), tensor.data() + tensor.nbytes(), [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(Tensor::zeros({0, 3}).numel(), 0);
}

TEST(Reshape, IsAViewWhereItCanBe) {
  const Tensor tensor = counting({2, 3, 4});
  for (const Shape& shape : {Shape{24}, Shape{4, 6}, Shape{2, 1, 12}, Shape{2, 3, 2, 2}, Shape{1, 24, 1}}) {
    const Tensor reshaped = tensor.reshape(shape);
    EXPECT_EQ(reshaped.shape(), shape);
    EXPECT_TRUE(reshaped.buffer().shares_memory_with(tensor.buffer())) << shape;
    EXPECT_EQ(values_of<std::int32_t>(reshaped), values_of<std::int32_t>(tensor));
  }
  EXPECT_EQ(tensor.reshape({-1, 4}).shape(), (Shape{6, 4}));
  EXPECT_EQ(tensor.reshape({2, -1}).shape(), (Shape{2, 12}));
  EXPECT_EQ(counting({1}).reshape({}).rank(), 0U);
  EXPECT_EQ(counting({}).reshape({1, 1}).shape(), (Shape{1, 1}));
  EXPECT_EQ(counting({0, 3}).reshape({5, 0}).shape(), (Shape{5, 0}));
  EXPECT_EQ(counting({0, 3}).reshape({-1, 3}).shape(), (Shape{0, 3}));
}

TEST(Reshape, OfViewsSplitsAndJoinsWhatContinues) {
  const Tensor view = counting({4, 6, 2}).slice(0, 0, 4, 2);
  EXPECT_TRUE(view.reshape({2, 12}).buffer().shares_memory_with(view.buffer()));
  EXPECT_TRUE(view.reshape({2, 3, 4}).buffer().shares_memory_with(view.buffer()));
  EXPECT_FALSE(view.reshape({24}).buffer().shares_memory_with(view.buffer()));
  const Tensor turned = counting({4, 6}).transpose(0, 1);
  EXPECT_TRUE(turned.reshape({2, 3, 4}).buffer().shares_memory_with(turned.buffer()));
  EXPECT_FALSE(turned.reshape({8, 3}).buffer().shares_memory_with(turned.buffer()));
}

TEST(Reshape, KeepsElementsInOrderWhateverTheStrides) {
  std::mt19937 random(10);
  int views = 0;
  for (int round = 0; round < 2000; ++round) {
    Shape shape;
    for (auto rank = 1 + random() % 4; rank > 0; --rank) shape.push_back(1 + random() % 6);
    Tensor tensor = counting(shape);
    if (random() % 2 == 0) tensor = tensor.transpose(random() % tensor.rank(), random() % tensor.rank());
    if (random() % 2 == 0) tensor = tensor.slice(random() % tensor.rank(), 0, 100, 1 + random() % 2);
    std::int64_t rest = tensor.numel();
    Shape wanted;
    while (rest > 1 || random() % 3 == 0) {
      std::int64_t factor = 1 + random() % 6;
      while (rest % factor != 0) --factor;
      wanted.push_back(factor);
      rest /= factor;
      if (wanted.rank() == 8) {
        wanted.push_back(rest);
        break;
      }
    }
    const Tensor reshaped = tensor.reshape(wanted);
    ASSERT_EQ(reshaped.shape(), wanted);
    ASSERT_EQ(values_of<std::int32_t>(reshaped), values_of<std::int32_t>(tensor))
        << tensor.shape() << tensor.strides() << wanted;
    const bool is_view = reshaped.buffer().shares_memory_with(tensor.buffer());
    if (tensor.is_contiguous()) {
      ASSERT_TRUE(is_view);
    }
    views += is_view && !tensor.is_contiguous() ? 1 : 0;
  }
  EXPECT_GT(views, 50);
}

TEST(Reshape, RefusesOtherNumbersOfElements) {
  const Tensor tensor = counting({2, 3});
  EXPECT_EQ(code_of([&] { tensor.reshape({5}); }), ErrorCode::kShapeMismatch);
  EXPECT_EQ(code_of([&] { tensor.reshape({4, -1}); }), ErrorCode::kShapeMismatch);
  EXPECT_EQ(code_of([&] { tensor.reshape({1LL << 62, 1LL << 62}); }), ErrorCode::kShapeMismatch);
  EXPECT_EQ(code_of([&] { tensor.reshape({-1, -1}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { tensor.reshape({-2, 3}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { counting({0}).reshape({0, -1}); }), ErrorCode::kShapeMismatch);
}

TEST(Contiguous, ReturnsItselfOrACopy) {
  const Tensor tensor = counting({2, 3});
  EXPECT_TRUE(tensor.contiguous().buffer().shares_memory_with(tensor.buffer()));
  const Tensor turned = tensor.transpose(0, 1);
  EXPECT_THAT(values_of<std::int32_t>(turned), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_FALSE(tensor.clone().buffer().shares_memory_with(tensor.buffer()));
}

TEST(To, ReturnsItselfWhenNothingChanges) {
  const Tensor tensor = counting({3}).with_requires_grad(true);
  EXPECT_TRUE(tensor.to(DType::int32).buffer().shares_memory_with(tensor.buffer()));
  EXPECT_TRUE(tensor.to(Device{}).buffer().shares_memory_with(tensor.buffer()));
  const Tensor converted = tensor.to(DType::float32);
  EXPECT_THAT(test::values_of<float>(converted), ElementsAre(0, 1, 2));
  EXPECT_EQ(code_of([&] { tensor.to(Device(DeviceType::kCuda, 9999)); }), ErrorCode::kNoDevice);
}

TEST(To, TheGradientMarkTravelsWhereGradientsExist) {
  const Tensor tensor = Tensor::zeros({2}).with_requires_grad(true);
  EXPECT_TRUE(tensor.clone().requires_grad());
  EXPECT_TRUE(tensor.reshape({2, 1}).requires_grad());
  EXPECT_TRUE(tensor.to(DType::bfloat16).requires_grad());
  EXPECT_FALSE(tensor.to(DType::int32).requires_grad());
}

TEST(Item, ConvertsTheOnlyElement) {
  EXPECT_EQ(counting({3})[2].item<float>(), 2.0F);
  EXPECT_EQ(Tensor::of({1.9}).item<int>(), 1);
  EXPECT_EQ(Tensor::of({1.9}).item<bool>(), true);
  EXPECT_EQ(Tensor::of({2.5F}).item<std::complex<double>>(), std::complex<double>(2.5, 0));
  EXPECT_EQ(code_of([] { (void)counting({2}).item<int>(); }), ErrorCode::kShapeMismatch);
  const Buffer odd = Buffer::allocate(9);
  std::memset(odd.data(), 0, odd.size());
  odd.data()[1] = std::byte{5};
  EXPECT_EQ(Tensor(odd, DType::int64, {}, {}, 1).item<std::int64_t>(), 5) << "an unaligned address";
}

TEST(Identical, ComparesBytesNotStrides) {
  const Tensor tensor = counting({2, 3});
  EXPECT_TRUE(Tensor::identical(tensor, tensor.clone()));
  EXPECT_TRUE(Tensor::identical(tensor.transpose(0, 1), tensor.transpose(0, 1).clone()));
  EXPECT_FALSE(Tensor::identical(tensor, tensor.reshape({3, 2})));
  EXPECT_FALSE(Tensor::identical(tensor, tensor.to(DType::int64)));
  EXPECT_FALSE(Tensor::identical(Tensor::of({0.0F}), Tensor::of({-0.0F})));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(Tensor::identical(Tensor::of({nan}), Tensor::of({nan})));
  EXPECT_TRUE(Tensor::identical(Tensor(), Tensor()));
  EXPECT_FALSE(Tensor::identical(Tensor(), tensor));
  EXPECT_TRUE(Tensor::identical(Tensor::empty({0}), Tensor::empty({0})));
}

TEST(Item, RefusesWhatTheTypeHasNoNumberFor) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto refused = [](const Tensor& tensor, auto wanted) {
    return code_of([&] { static_cast<void>(tensor.item<decltype(wanted)>()); }) == ErrorCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(Tensor::of({300}), std::int8_t{}));
  EXPECT_TRUE(refused(Tensor::of({-1}), std::uint8_t{}));
  EXPECT_TRUE(refused(Tensor::of<std::uint64_t>({1ULL << 63}), std::int64_t{}));
  EXPECT_TRUE(refused(Tensor::of({kNaN}), int{}));
  EXPECT_TRUE(refused(Tensor::of({kInfinity}), std::int64_t{}));
  EXPECT_TRUE(refused(Tensor::of({9.3e18}), std::int64_t{}));
  EXPECT_TRUE(refused(Tensor::of({1e300}), float{}));
  EXPECT_TRUE(refused(Tensor::of<std::complex<double>>({{1, 2}}), double{}));
  EXPECT_TRUE(refused(Tensor::of({70000.0F}), float16{}));
  EXPECT_EQ(Tensor::of({-2.75}).item<int>(), -2);
  EXPECT_EQ(Tensor::of({127}).item<std::int8_t>(), 127);
  EXPECT_TRUE(std::isnan(Tensor::of({kNaN}).item<float>()));
  EXPECT_EQ(Tensor::of<std::complex<double>>({{3, 0}}).item<int>(), 3);
  EXPECT_TRUE(Tensor::of({300}).item<bool>());
  // One element of a larger tensor.
  EXPECT_TRUE(refused(Tensor::of({1, 300, 2})[1], std::int8_t{}));
}

}  // namespace
}  // namespace penstock
