#include <gtest/gtest.h>

#include <complex>
#include <limits>
#include <numeric>
#include <sstream>
#include <vector>

#include "penstock/ops.h"
#include "penstock/tensor.h"
#include "support/tensors.h"

namespace penstock {
namespace {

using test::counting;

std::string text_of(const Tensor& tensor) {
  std::ostringstream out;
  out << tensor;
  return out.str();
}

TEST(Print, DimensionsAreBracketsAndElementsEquallyWide) {
  EXPECT_EQ(text_of(Tensor::of({1.0F, 2.5F, -30.0F})), "[  1, 2.5, -30] float32(3,)");
  EXPECT_EQ(text_of(counting({2, 3})), "[[0, 1, 2],\n [3, 4, 5]] int32(2, 3)");
  EXPECT_EQ(text_of(counting({2, 2, 2})), "[[[0, 1],\n  [2, 3]],\n\n [[4, 5],\n  [6, 7]]] int32(2, 2, 2)");
}

TEST(Print, TheShortestDecimalThatReadsBack) {
  EXPECT_EQ(text_of(Tensor::of({0.1F})), "[0.1] float32(1,)");
  EXPECT_EQ(text_of(Tensor::of({0.1})), "[0.1] float64(1,)");
  EXPECT_EQ(text_of(Tensor::of({std::numeric_limits<double>::infinity(), std::nan("")})), "[inf, nan] float64(2,)");
  EXPECT_EQ(text_of(Tensor::of({std::complex<float>(1, -2)})), "[1-2j] complex64(1,)");
  EXPECT_EQ(text_of(Tensor::of({float16(0.1F)})), "[0.099975586] float16(1,)");
  EXPECT_EQ(text_of(Tensor::of({std::numeric_limits<std::uint64_t>::max()})), "[18446744073709551615] uint64(1,)");
  EXPECT_EQ(text_of(Tensor::of({true, false})), "[ true, false] bool(2,)");
}

TEST(Print, TextIsQuoted) { EXPECT_EQ(text_of(Tensor::of({"a\n", "\xC3\xA4"})), "['a\\n',  '\xC3\xA4'] str64(2,)"); }

TEST(Print, WithoutDimensionsOrElements) {
  EXPECT_EQ(text_of(Tensor()), "Tensor()");
  EXPECT_EQ(text_of(Tensor::of({7}).reshape({})), "7 int32()");
  EXPECT_EQ(text_of(Tensor::zeros({0})), "[] float32(0,)");
  EXPECT_EQ(text_of(Tensor::zeros({2, 0})), "[[],\n []] float32(2, 0)");
  EXPECT_EQ(text_of(Tensor::zeros({0, 1000000})), "[] float32(0, 1000000)");
}

TEST(Print, ViewsShowWhatTheyView) {
  EXPECT_EQ(text_of(counting({2, 3}).transpose(0, 1)), "[[0, 3],\n [1, 4],\n [2, 5]] int32(3, 2)");
  EXPECT_EQ(text_of(counting({6}).slice(0, 0, 6, 2)), "[0, 2, 4] int32(3,)");
}

TEST(Print, OfALargeTensorTheEndsAreShown) {
  EXPECT_EQ(text_of(counting({1000})).find("..."), std::string::npos);
  EXPECT_EQ(text_of(counting({1001})), "[   0,    1,    2, ...,  998,  999, 1000] int32(1001,)");
  EXPECT_EQ(text_of(counting({1000, 2})),
            "[[   0,    1],\n [   2,    3],\n [   4,    5],\n ...,\n [1994, 1995],\n [1996, 1997],\n [1998, 1999]] "
            "int32(1000, 2)");
}

TEST(Print, TakesTheSameTimeForAnySize) {
  const Tensor one = Tensor::of({1});
  const Tensor huge(one.buffer(), one.dtype(), {std::int64_t{1} << 20, std::int64_t{1} << 40}, {0, 0});
  EXPECT_NE(text_of(huge).find("[1, 1, 1, ..., 1, 1, 1]"), std::string::npos);
  Shape twos;
  Strides none;
  for (int d = 0; d < 40; ++d) {
    twos.push_back(2);
    none.push_back(0);
  }
  EXPECT_LT(text_of(Tensor(one.buffer(), one.dtype(), twos, none)).size(), 10000U);
  EXPECT_LT(text_of(Tensor::zeros({1000000, 0})).size(), 10000U);
}

}  // namespace
}  // namespace penstock
