#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "ops/kernels.h"
#include "penstock/error.h"
#include "support/errors.h"

namespace penstock::ops {
namespace {

using test::code_of;

DType bytes_wide(std::size_t width) {
  return DType::with_descr(DType::Code::kVoid, width, "|V" + std::to_string(width));
}

/// The bytes of every element in C order, found one by one.
std::vector<std::byte> gather(const Tensor& tensor) {
  std::vector<std::byte> out;
  const std::size_t width = tensor.dtype().itemsize();
  std::vector<std::int64_t> index(tensor.rank());
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    std::int64_t rest = i;
    std::int64_t offset = 0;
    for (std::size_t d = tensor.rank(); d-- > 0;) {
      offset += rest % tensor.shape()[d] * tensor.strides()[d];
      rest /= tensor.shape()[d];
    }
    const std::byte* element = tensor.data() + offset * static_cast<std::int64_t>(width);
    out.insert(out.end(), element, element + width);
  }
  return out;
}

/// A tensor of random bytes whose memory is laid out with gaps and in any order of dimensions.
Tensor scattered(std::mt19937& random, const Shape& shape, const DType& dtype) {
  std::vector<std::size_t> order(shape.rank());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  Strides strides = shape;
  std::int64_t step = 1 + random() % 2;
  std::int64_t last = 0;
  for (const std::size_t d : order) {
    strides[d] = step;
    last += (shape[d] - 1) * step;
    step = step * shape[d] + static_cast<std::int64_t>(random() % 3);
  }
  const std::size_t offset = random() % 5;
  const Buffer buffer = Buffer::allocate(offset + static_cast<std::size_t>(last + 1) * dtype.itemsize());
  for (std::size_t i = 0; i < buffer.size(); ++i) buffer.data()[i] = static_cast<std::byte>(random());
  return {buffer, dtype, shape, strides, offset};
}

TEST(Copy, AgreesWithOneElementAtATime) {
  std::mt19937 random(7);
  for (int round = 0; round < 600; ++round) {
    Shape shape;
    for (auto rank = random() % 5; rank > 0; --rank) shape.push_back(1 + random() % (random() % 4 == 0 ? 40 : 5));
    constexpr std::array<std::size_t, 9> kWidths = {1, 2, 3, 4, 5, 8, 12, 16, 20};
    const DType dtype = bytes_wide(kWidths[random() % kWidths.size()]);
    const Tensor from = scattered(random, shape, dtype);
    const Tensor to = scattered(random, shape, dtype);
    const std::vector<std::byte> expected = gather(from);
    copy(from, to);
    ASSERT_EQ(gather(to), expected) << shape << from.strides() << to.strides() << dtype;
    ASSERT_EQ(gather(from.clone()), expected);
    ASSERT_TRUE(Tensor::identical(from, to));
  }
}

TEST(Copy, LeavesTheGapsAlone) {
  const Buffer buffer = Buffer::allocate(10);
  std::fill_n(buffer.data(), 10, std::byte{7});
  copy(Tensor::zeros({3}, DType::uint8), Tensor(buffer, DType::uint8, {3}, {3}, 1));
  const std::vector<int> expected = {7, 0, 7, 7, 0, 7, 7, 0, 7, 7};
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(std::to_integer<int>(buffer.data()[i]), expected[i]);
}

TEST(Copy, RepeatsElementsOfStrideZero) {
  const Tensor one = Tensor::of<std::int32_t>({1, 2});
  const Tensor many(one.buffer(), DType::int32, {3, 2}, {0, 1});
  const Tensor repeated = many.contiguous();
  EXPECT_EQ(gather(repeated), gather(many));
  EXPECT_EQ(repeated.nbytes(), 24U);
}

/// Large enough for several threads, in both orders of memory.
TEST(Copy, LargeTensors) {
  for (const std::size_t width : {1U, 2U, 4U, 8U, 16U}) {
    const DType dtype = bytes_wide(width);
    const auto rows = static_cast<std::int64_t>(9'000'007 / width / 1003);
    const Tensor tensor = Tensor::empty({rows, 1003}, dtype);
    std::mt19937 random(8);
    for (std::size_t i = 0; i < tensor.nbytes(); i += 1 + random() % 7)
      tensor.data()[i] = static_cast<std::byte>(random());
    const Tensor copied = tensor.clone();
    ASSERT_EQ(std::memcmp(copied.data(), tensor.data(), tensor.nbytes()), 0);
    const Tensor turned = tensor.transpose(0, 1).contiguous();
    for (std::int64_t i = 0; i < rows; i += 37) {
      for (std::int64_t j = 0; j < 1003; ++j) {
        ASSERT_EQ(std::memcmp(turned.data() + (j * rows + i) * static_cast<std::int64_t>(width),
                              tensor.data() + (i * 1003 + j) * static_cast<std::int64_t>(width), width),
                  0);
      }
    }
  }
}

TEST(Copy, IsRefusedWhereItDoesNotFit) {
  EXPECT_EQ(code_of([] { copy(Tensor::zeros({2}), Tensor::zeros({3})); }), ErrorCode::kShapeMismatch);
  EXPECT_EQ(code_of([] { copy(Tensor::zeros({2}), Tensor::zeros({2}, DType::int32)); }), ErrorCode::kDTypeMismatch);
  static float constant = 0;
  const Tensor read_only(Buffer::wrap(&constant, 4, nullptr, true), DType::float32, {1});
  EXPECT_EQ(code_of([&] { copy(Tensor::zeros({1}), read_only); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([&] { negate(read_only); }), ErrorCode::kInvalidArgument);
  copy(read_only, Tensor::zeros({1}));
}

TEST(Copy, NothingIsCopiedOfEmptyTensors) {
  copy(Tensor::empty({0, 3}), Tensor::empty({0, 3}));
  const DType empty_text = DType::with_descr(DType::Code::kText, 0, "<U0");
  copy(Tensor::empty({5}, empty_text), Tensor::empty({5}, empty_text));
}

}  // namespace
}  // namespace penstock::ops
