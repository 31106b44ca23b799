#include <gtest/gtest.h>

#include <complex>
#include <vector>

#include "penstock/error.h"
#include "penstock/ops.h"
#include "support/errors.h"

namespace penstock {
namespace {

template <class T>
std::vector<T> list(const Tensor& tensor) {
  const Tensor packed = tensor.contiguous();
  const auto values = packed.values<const T>();
  return {values.begin(), values.end()};
}

TEST(Compound, ChangesTheMemoryThatAllHandlesShare) {
  Tensor a = Tensor::of({1.0F, 2.0F, 3.0F, 4.0F}).reshape({2, 2});
  const Tensor handle = a;
  a += Tensor::of({10.0F, 20.0F});
  EXPECT_EQ(list<float>(handle), (std::vector<float>{11, 22, 13, 24}));
  a -= 1;
  a *= 2;
  a /= 4;
  EXPECT_EQ(list<float>(handle), (std::vector<float>{5, 10.5, 6, 11.5}));
}

TEST(Compound, AViewChangesWhatItViews) {
  const Tensor whole = Tensor::of({1, 2, 3, 4, 5, 6}).reshape({2, 3});
  Tensor column = whole.select(1, 1);
  column *= 10;
  EXPECT_EQ(list<int>(whole), (std::vector<int>{1, 20, 3, 4, 50, 6}));
}

TEST(Compound, BothSidesMayShareMemory) {
  const Tensor whole = Tensor::of({1, 2, 3, 4});
  Tensor front = whole.slice(0, 0, 3);
  front += whole.slice(0, 1, 4);
  EXPECT_EQ(list<int>(whole), (std::vector<int>{3, 5, 7, 4}));
  Tensor all = whole;
  all += all;
  EXPECT_EQ(list<int>(whole), (std::vector<int>{6, 10, 14, 8}));
}

TEST(Compound, KeepsTheTypeOfTheLeftSide) {
  Tensor half = Tensor::of({float16(1.0F)});
  half += Tensor::of({0.25});
  EXPECT_EQ(half.dtype(), DType::float16);
  EXPECT_EQ(float(half.at<float16>(0)), 1.25F);
  Tensor bytes = Tensor::of({std::uint8_t{250}});
  bytes += Tensor::of({10});
  EXPECT_EQ(bytes.at<std::uint8_t>(0), 4);  // as torch: computed in int32, stored in uint8
}

TEST(Compound, RefusesWhatCannotBeStored) {
  const auto code = [](Tensor a, const Operand& b) { return test::code_of([&] { a += b; }); };
  EXPECT_EQ(code(Tensor::of({1, 2}), 0.5), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(code(Tensor::of({1.0F}), std::complex<float>(0, 1)), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(code(Tensor::of({1.0F}), Tensor::of({1.0F, 2.0F})), ErrorCode::kShapeMismatch);
  EXPECT_EQ(code(Tensor(), 1), ErrorCode::kInvalidArgument);
  const Tensor one = Tensor::of({1});
  EXPECT_EQ(code(Tensor(one.buffer(), one.dtype(), {3}, {0}), 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(one.at<int>(0), 1);
  const Tensor fixed(Buffer::wrap(one.data(), 4, std::make_shared<Tensor>(one), true), one.dtype(), {1});
  EXPECT_EQ(code(fixed, 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(one.at<int>(0), 1);
}

TEST(Compound, QuotientsOfIntegersAreFloats) {
  Tensor a = Tensor::of({4});
  EXPECT_EQ(test::code_of([&] { a /= 2; }), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(a.at<int>(0), 4);
}

}  // namespace
}  // namespace penstock
