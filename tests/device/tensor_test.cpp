#include "penstock/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <complex>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "penstock/error.h"
#include "support/errors.h"
#include "support/tensors.h"

namespace penstock {
namespace {

using test::code_of;
using test::counting;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

std::int64_t at(const Tensor& tensor, const std::vector<std::int64_t>& index) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * tensor.strides()[d];
  return reinterpret_cast<const std::int64_t*>(tensor.data())[offset];
}

/// Calls `visit` with every index of `shape`, in C order.
template <class Visit>
void for_each_index(const Shape& shape, Visit visit) {
  std::vector<std::int64_t> index(shape.rank());
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    std::int64_t rest = i;
    for (std::size_t d = shape.rank(); d-- > 0;) {
      index[d] = rest % shape[d];
      rest /= shape[d];
    }
    visit(index);
  }
}

Shape random_shape(std::mt19937& random, std::size_t min_rank = 0) {
  Shape shape;
  for (auto rank = min_rank + random() % 5; rank > 0; --rank) shape.push_back(1 + random() % 5);
  return shape;
}

TEST(TensorBasics, UndefinedByDefault) {
  const Tensor none;
  EXPECT_FALSE(none.defined());
  EXPECT_EQ(none.to_string(), "Tensor(undefined)");
}

TEST(TensorBasics, DescribesItself) {
  const Tensor tensor = Tensor::empty({3, 4});
  EXPECT_TRUE(tensor.defined());
  EXPECT_EQ(tensor.to_string(), "Tensor(float32, (3, 4), cpu)");
  EXPECT_EQ(tensor.numel(), 12);
  EXPECT_EQ(tensor.nbytes(), 48U);
  EXPECT_EQ(tensor.rank(), 2U);
  EXPECT_TRUE(tensor.is_contiguous());
  EXPECT_FALSE(tensor.requires_grad());
  EXPECT_TRUE(tensor.with_requires_grad(true).requires_grad());
}

TEST(TensorBasics, OfCopiesValuesOfEveryType) {
  EXPECT_EQ(Tensor::of({1.5F, 2.5F}).dtype(), DType::float32);
  EXPECT_EQ(Tensor::of<long long>({1}).dtype(), DType::int64);
  EXPECT_EQ(Tensor::of<unsigned long>({1}).dtype(), DType::uint64);
  EXPECT_EQ(Tensor::of<short>({1}).dtype(), DType::int16);
  EXPECT_EQ(Tensor::of<signed char>({1}).dtype(), DType::int8);
  EXPECT_EQ(Tensor::of<bool>({true, false}).dtype(), DType::boolean);
  EXPECT_EQ(Tensor::of<std::complex<double>>({{1, 2}}).dtype(), DType::complex128);
  const Tensor tensor = Tensor::of({3, 1, 2});
  const auto values = tensor.values<int>();
  EXPECT_THAT(std::vector<int>(values.begin(), values.end()), testing::ElementsAre(3, 1, 2));
}

// What would refer into a temporary is handed out by value.
static_assert(std::is_same_v<decltype(std::declval<Tensor>().shape()), Shape>);
static_assert(std::is_same_v<decltype(std::declval<Tensor>().strides()), Strides>);
static_assert(std::is_same_v<decltype(std::declval<Tensor>().dtype()), DType>);
static_assert(std::is_same_v<decltype(std::declval<Tensor>().buffer()), Buffer>);

TEST(TensorBasics, ReadOnlyMemoryHasNoValuesToWrite) {
  static char text[] = "do not touch";
  const Tensor tensor(Buffer::wrap(text, 12, nullptr, true), DType::uint8, Shape{12});
  EXPECT_EQ(tensor.values<const std::uint8_t>()[0], 'd');
  const auto error = test::error_of([&] { return tensor.values<std::uint8_t>(); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
}

TEST(TensorBasics, ValuesAreCheckedFirst) {
  const Tensor tensor = counting<std::int64_t>({3, 4});
  EXPECT_EQ(code_of([&] { (void)tensor.values<float>(); }), ErrorCode::kDTypeMismatch);
  const Tensor turned = tensor.transpose(0, 1);
  EXPECT_EQ(code_of([&] { (void)turned.values<std::int64_t>(); }), ErrorCode::kShapeMismatch);
  const Tensor odd(Buffer::allocate(9), DType::int64, {1}, {1}, 1);
  EXPECT_EQ(code_of([&] { (void)odd.values<std::int64_t>(); }), ErrorCode::kShapeMismatch);
}

TEST(TensorConstruction, AcceptsWhatLiesInside) {
  const Buffer buffer = Buffer::allocate(100);
  EXPECT_EQ(Tensor(buffer, DType::float32, {25}).nbytes(), 100U);
  EXPECT_EQ(Tensor(buffer, DType::float32, {5, 5}, {1, 5}).numel(), 25);
  EXPECT_EQ(Tensor(buffer, DType::float32, {2}, {24}).numel(), 2);
  EXPECT_EQ(Tensor(buffer, DType::uint8, {1000}, {0}, 99).numel(), 1000) << "stride 0 repeats";
  EXPECT_EQ(Tensor(buffer, DType::float32, {1}, {kMax}, 96).numel(), 1) << "no second element to be outside";
  EXPECT_EQ(Tensor(buffer, DType::float32, {0, kMax}, {kMax, kMax}, 100).numel(), 0);
  EXPECT_EQ(Tensor(buffer, DType::float32, {}, {}, 96).numel(), 1);
}

TEST(TensorConstruction, RefusesWhatDoesNot) {
  const Buffer buffer = Buffer::allocate(100);
  const auto make = [&](DType dtype, Shape shape, Strides strides, std::size_t offset) {
    return code_of([&] { Tensor(buffer, dtype, shape, strides, offset); });
  };
  EXPECT_EQ(make(DType::float32, {26}, {1}, 0), ErrorCode::kShapeMismatch);
  EXPECT_EQ(make(DType::float32, {25}, {1}, 1), ErrorCode::kShapeMismatch);
  EXPECT_EQ(make(DType::float32, {2}, {25}, 0), ErrorCode::kShapeMismatch);
  EXPECT_EQ(make(DType::float32, {2}, {kMax}, 0), ErrorCode::kShapeMismatch);
  EXPECT_EQ(make(DType::float32, {3, 3}, {kMax / 2, kMax / 2}, 0), ErrorCode::kShapeMismatch);
  EXPECT_EQ(make(DType::uint8, {0}, {1}, 101), ErrorCode::kShapeMismatch);
  EXPECT_EQ(make(DType::uint8, {}, {}, 100), ErrorCode::kShapeMismatch);
  EXPECT_EQ(make(DType::uint8, {1}, {1}, std::numeric_limits<std::size_t>::max()), ErrorCode::kShapeMismatch);
  EXPECT_EQ(make(DType::uint8, {-1}, {1}, 0), ErrorCode::kInvalidArgument);
  EXPECT_EQ(make(DType::uint8, {2}, {-1}, 1), ErrorCode::kInvalidArgument);
  EXPECT_EQ(make(DType::uint8, {2, 2}, {1}, 0), ErrorCode::kInvalidArgument);
  EXPECT_EQ(make(DType::float32, {kMax}, {0}, 0), ErrorCode::kLimit);
  EXPECT_EQ(make(DType::uint8, {kMax, 2}, {0, 0}, 0), ErrorCode::kLimit);
  EXPECT_EQ(code_of([] { Tensor::empty({-1}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([] { Tensor::empty({kMax}); }), ErrorCode::kOutOfMemory);
  EXPECT_EQ(code_of([] { Tensor::empty({kMax, kMax}); }), ErrorCode::kOutOfMemory);
  EXPECT_EQ(code_of([] { Tensor::empty({1LL << 50}, DType::uint8); }), ErrorCode::kOutOfMemory);
}

TEST(TensorViews, SelectTakesOneIndex) {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    const Tensor tensor = counting<std::int64_t>(random_shape(random, 1));
    const std::size_t dim = random() % tensor.rank();
    const std::int64_t size = tensor.shape()[dim];
    const std::int64_t index = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * size)) - size;
    const Tensor view = tensor.select(dim, index);
    EXPECT_TRUE(view.buffer().shares_memory_with(tensor.buffer()));
    EXPECT_EQ(view.rank(), tensor.rank() - 1);
    for_each_index(view.shape(), [&](const std::vector<std::int64_t>& i) {
      std::vector<std::int64_t> full = i;
      full.insert(full.begin() + static_cast<std::ptrdiff_t>(dim), index < 0 ? index + size : index);
      ASSERT_EQ(at(view, i), at(tensor, full));
    });
  }
}

TEST(TensorViews, SelectOutsideIsRefused) {
  const Tensor tensor = counting<std::int64_t>({3, 4});
  EXPECT_EQ(code_of([&] { (void)tensor[3]; }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(code_of([&] { (void)tensor[-4]; }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(code_of([&] { tensor.select(2, 0); }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(code_of([&] { (void)counting<std::int64_t>({0})[0]; }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(code_of([&] { (void)counting<std::int64_t>({})[0]; }), ErrorCode::kIndexOutOfRange);
}

TEST(TensorViews, SliceIsPythons) {
  const Tensor tensor = counting<std::int64_t>({10});
  const auto sliced = [&](std::int64_t start, std::int64_t stop, std::int64_t step) {
    const Tensor view = tensor.slice(0, start, stop, step);
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < view.numel(); ++i) out.push_back(at(view, {i}));
    return out;
  };
  using Values = std::vector<std::int64_t>;
  EXPECT_EQ(sliced(2, 5, 1), (Values{2, 3, 4}));
  EXPECT_EQ(sliced(-3, kMax, 1), (Values{7, 8, 9}));
  EXPECT_EQ(sliced(-100, 2, 1), (Values{0, 1}));
  EXPECT_EQ(sliced(0, -8, 1), (Values{0, 1}));
  EXPECT_EQ(sliced(5, 2, 1), Values{});
  EXPECT_EQ(sliced(100, 200, 1), Values{});
  EXPECT_EQ(sliced(1, 10, 4), (Values{1, 5, 9}));
  EXPECT_EQ(sliced(9, 10, kMax), (Values{9}));
  EXPECT_EQ(sliced(0, 10, 9), (Values{0, 9}));
  EXPECT_EQ(sliced(-kMax - 1, kMax, 1).size(), 10U);
  EXPECT_EQ(code_of([&] { tensor.slice(0, 0, 1, 0); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { tensor.slice(0, 0, 1, -1); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { tensor.slice(1, 0, 1); }), ErrorCode::kIndexOutOfRange);
}

TEST(TensorViews, SliceOfAnyDimension) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const Tensor tensor = counting<std::int64_t>(random_shape(random, 1));
    const std::size_t dim = random() % tensor.rank();
    const std::int64_t start = random() % 6;
    const std::int64_t step = 1 + random() % 3;
    const Tensor view = tensor.slice(dim, start, random() % 7, step);
    EXPECT_LE(view.byte_offset(), tensor.nbytes());
    for_each_index(view.shape(), [&](std::vector<std::int64_t> i) {
      const std::int64_t value = at(view, i);
      i[dim] = start + i[dim] * step;
      ASSERT_EQ(value, at(tensor, i));
    });
  }
}

TEST(TensorViews, StridesOfEmptyTensorsDoNotOverflow) {
  const Tensor tensor(Buffer::allocate(8), DType::int64, {0, 10}, {1, kMax / 2});
  EXPECT_EQ(tensor.slice(1, 0, 10, 5).shape(), (Shape{0, 2}));
  EXPECT_EQ(tensor.select(1, 9).shape(), Shape{0});
}

TEST(TensorViews, PermuteMovesDimensions) {
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    const Tensor tensor = counting<std::int64_t>(random_shape(random));
    std::vector<std::size_t> order(tensor.rank());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    const Tensor view = tensor.permute(order);
    for_each_index(view.shape(), [&](const std::vector<std::int64_t>& i) {
      std::vector<std::int64_t> original(i.size());
      for (std::size_t d = 0; d < i.size(); ++d) original[order[d]] = i[d];
      ASSERT_EQ(at(view, i), at(tensor, original));
    });
  }
  const Tensor tensor = counting<std::int64_t>({2, 3});
  EXPECT_EQ(tensor.transpose(0, 1).shape(), (Shape{3, 2}));
  EXPECT_FALSE(tensor.transpose(0, 1).is_contiguous());
  using Order = std::vector<std::size_t>;
  for (const Order& order : {Order{0}, Order{0, 0}, Order{0, 2}, Order{0, 1, 2}}) {
    EXPECT_EQ(code_of([&] { tensor.permute(order); }), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(code_of([&] { tensor.transpose(0, 2); }), ErrorCode::kIndexOutOfRange);
}

TEST(TensorViews, ContiguityIgnoresStridesThatDoNotMatter) {
  const Buffer buffer = Buffer::allocate(1000);
  EXPECT_TRUE(Tensor(buffer, DType::uint8, {1, 5}, {77, 1}).is_contiguous());
  EXPECT_TRUE(Tensor(buffer, DType::uint8, {5, 1, 2}, {2, 99, 1}).is_contiguous());
  EXPECT_TRUE(Tensor(buffer, DType::uint8, {0, 5}, {1, 1}).is_contiguous());
  EXPECT_FALSE(Tensor(buffer, DType::uint8, {5}, {2}).is_contiguous());
  EXPECT_FALSE(Tensor(buffer, DType::uint8, {2, 2}, {1, 2}).is_contiguous());
  EXPECT_FALSE(Tensor(buffer, DType::uint8, {2}, {0}).is_contiguous());
}

TEST(TensorViews, DimensionsCountFromTheEndToo) {
  const Tensor tensor = counting<std::int64_t>({2, 3, 4});
  EXPECT_EQ(tensor.size(-1), 4);
  EXPECT_EQ(tensor.size(0), 2);
  EXPECT_EQ(tensor.select(-1, 2).shape(), (Shape{2, 3}));
  EXPECT_EQ(at(tensor.select(-1, 2), {1, 1}), 18);
  EXPECT_EQ(tensor.slice(-2, 1, 3).shape(), (Shape{2, 2, 4}));
  EXPECT_EQ(tensor.transpose(-1, -2).shape(), (Shape{2, 4, 3}));
  EXPECT_EQ(at(tensor.transpose(-1, -2), {1, 3, 2}), at(tensor, {1, 2, 3}));
  EXPECT_EQ(tensor.permute({-1, 0, 1}).shape(), (Shape{4, 2, 3}));
  for (const std::int64_t outside : {-4, 3}) {
    EXPECT_EQ(code_of([&] { static_cast<void>(tensor.size(outside)); }), ErrorCode::kIndexOutOfRange);
    EXPECT_EQ(code_of([&] { static_cast<void>(tensor.select(outside, 0)); }), ErrorCode::kIndexOutOfRange);
    EXPECT_EQ(code_of([&] { static_cast<void>(tensor.slice(outside, 0, 1)); }), ErrorCode::kIndexOutOfRange);
    EXPECT_EQ(code_of([&] { static_cast<void>(tensor.transpose(0, outside)); }), ErrorCode::kIndexOutOfRange);
  }
  EXPECT_EQ(code_of([&] { static_cast<void>(tensor.permute({0, -3, 1})); }), ErrorCode::kInvalidArgument);
  EXPECT_THAT(test::error_of([&] { static_cast<void>(tensor.transpose(-4, 0)); })->message(),
              testing::HasSubstr("dimension -4 "));
}

TEST(TensorView, IsTheMemoryOfTheProgram) {
  std::vector<float> memory = {1, 2, 3, 4, 5, 6};
  const Tensor tensor = Tensor::view(memory, {2, 3});
  tensor.at<float>(1, 2) = 9;
  EXPECT_EQ(memory[5], 9);
  EXPECT_EQ(tensor.data(), reinterpret_cast<const std::byte*>(memory.data()));
  EXPECT_EQ(Tensor::view(std::span(memory).first(2)).shape(), Shape{2});
  EXPECT_EQ(code_of([&] { static_cast<void>(Tensor::view(memory, {2, 2})); }), ErrorCode::kShapeMismatch);
  EXPECT_EQ(code_of([&] { static_cast<void>(Tensor::view(memory, {-1, 6})); }), ErrorCode::kInvalidArgument);
  const std::vector<float>& fixed = memory;
  EXPECT_TRUE(Tensor::view(fixed).read_only());
  EXPECT_TRUE(Tensor::view(std::span<float>()).defined());
}

TEST(TensorAdopt, KeepsTheVectorsElements) {
  std::vector<int> values = {1, 2, 3, 4};
  const int* const first = values.data();
  EXPECT_EQ(code_of([&] { static_cast<void>(Tensor::adopt(std::move(values), {3})); }), ErrorCode::kShapeMismatch);
  ASSERT_EQ(values.size(), 4U);  // NOLINT(bugprone-use-after-move): it was refused first
  const Tensor tensor = Tensor::adopt(std::move(values), {2, 2});
  EXPECT_EQ(reinterpret_cast<const int*>(tensor.data()), first);
  EXPECT_EQ(tensor.at<int>(1, 0), 3);
  EXPECT_FALSE(tensor.read_only());
  EXPECT_EQ(Tensor::adopt(std::vector<double>{}).shape(), Shape{0});
}

TEST(DTypeOf, IsThatOfTheCppType) {
  EXPECT_EQ(DType::of<float>(), DType::float32);
  EXPECT_EQ(DType::of<const std::int8_t>(), DType::int8);
  EXPECT_EQ(DType::of<unsigned long long>(), DType::uint64);
  EXPECT_EQ(DType::of<bfloat16>(), DType::bfloat16);
  EXPECT_EQ(std::hash<DType>()(DType::of<float>()), std::hash<DType>()(DType::float32));
  EXPECT_NE(std::hash<DType>()(DType::float16), std::hash<DType>()(DType::float32));
  EXPECT_NE(std::hash<Device>()(Device("cuda:1")), std::hash<Device>()(Device("cuda:0")));
}

TEST(Tensor, AnIndexBelowZeroOfAnUnsignedNumberIsNotTheLast) {
  const Tensor tensor = Tensor::of({1, 2, 3});
  const std::size_t none = 0;
  const Tensor last = tensor[-1];
  EXPECT_EQ(last.values<int>()[0], 3);
  EXPECT_EQ(tensor.at<int>(std::int8_t{-1}), 3);
  for (const auto& wrong : std::vector<std::function<void()>>{[&] { static_cast<void>(tensor[none - 1]); },
                                                              [&] { static_cast<void>(tensor.at<int>(none - 1)); }}) {
    const auto error = test::error_of(wrong);
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error->message(), testing::HasSubstr("-1"));
  }
}

}  // namespace
}  // namespace penstock
