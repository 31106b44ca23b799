#include "data/collate/padding.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "penstock/tensor.h"
#include "support/errors.h"

namespace penstock::data {
namespace {

/// numpy.pad's own words: where the element at `at` of a padded row of `own` comes from; -1 for the constant.
std::int64_t source_of(std::int64_t at, std::int64_t own, PadMode mode) {
  if (at < own) return at;
  if (mode == PadMode::kConstant) return -1;
  if (mode == PadMode::kReplicate) return own - 1;
  std::int64_t step = -1;  // walk back and forth between the ends
  std::int64_t position = own - 1;
  for (std::int64_t i = own; i <= at; ++i) {
    if (position + step < 0 || position + step >= own) step = -step;
    position += step;
  }
  return position;
}

TEST(Padding, IsNumpysReflection) {
  // numpy.pad(numpy.arange(4), (0, 9), mode="reflect") and of arange(2)
  const std::vector<std::int64_t> four = {0, 1, 2, 3, 2, 1, 0, 1, 2, 3, 2, 1, 0};
  const std::vector<std::int64_t> two = {0, 1, 0, 1, 0, 1};
  for (const auto& [own, expected] : {std::pair(std::int64_t{4}, four), std::pair(std::int64_t{2}, two)}) {
    std::vector<std::int64_t> row(expected.size());
    for (std::int64_t i = 0; i < own; ++i) row[static_cast<std::size_t>(i)] = i;
    const auto length = static_cast<std::int64_t>(row.size());
    fill_padding({.slot = Shape{length}, .mode = PadMode::kReflect}, Shape{own}, 8,
                 reinterpret_cast<std::byte*>(row.data()));
    EXPECT_EQ(row, expected);
  }
}

TEST(Padding, FillsEveryDimensionInEveryMode) {
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t rank = 1 + random() % 4;
    Shape shape;
    for (std::size_t d = 0; d < rank; ++d) shape.push_back(static_cast<std::int64_t>(random() % 4));
    const std::size_t dim = random() % rank;
    const auto mode = static_cast<PadMode>(random() % 3);
    const std::int64_t least = mode == PadMode::kReflect ? 2 : mode == PadMode::kReplicate ? 1 : 0;
    shape[dim] = least + static_cast<std::int64_t>(random() % 4);
    const std::int64_t own = shape[dim];
    const std::int64_t length = own + static_cast<std::int64_t>(random() % 10);
    const std::size_t itemsize = std::size_t{1} << random() % 5;
    Padding padding{.slot = shape, .mode = mode};
    padding.slot[dim] = length;
    for (std::size_t b = 0; b < itemsize; ++b)
      padding.value[b] = static_cast<std::byte>(random() % 2 == 0 ? 0 : 200 + b);

    std::int64_t outer = 1;
    std::int64_t inner = 1;
    for (std::size_t d = 0; d < rank; ++d) (d < dim ? outer : d > dim ? inner : inner) *= d == dim ? 1 : shape[d];
    std::vector<std::byte> slot(static_cast<std::size_t>(outer * length * inner) * itemsize, std::byte{0xEE});
    const auto element = [&](std::int64_t o, std::int64_t at, std::int64_t i) {
      return slot.data() + static_cast<std::size_t>((o * length + at) * inner + i) * itemsize;
    };
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t at = 0; at < own; ++at) {
        for (std::int64_t i = 0; i < inner; ++i) {
          for (std::size_t b = 0; b < itemsize; ++b) element(o, at, i)[b] = static_cast<std::byte>(random());
        }
      }
    }
    fill_padding(padding, shape, itemsize, slot.data());
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t at = own; at < length; ++at) {
        for (std::int64_t i = 0; i < inner; ++i) {
          const std::int64_t from = source_of(at, own, mode);
          const std::byte* expected = from < 0 ? padding.value.data() : element(o, from, i);
          ASSERT_EQ(std::memcmp(element(o, at, i), expected, itemsize), 0)
              << shape << " dim " << dim << " to " << length << " mode " << static_cast<int>(mode);
        }
      }
    }
  }
}

/// Where the element at `index` of a padded tensor comes from, along every dimension; false for the constant.
bool source_index(Shape& index, const Shape& own, PadMode mode) {
  for (std::size_t d = 0; d < own.rank(); ++d) {
    const std::int64_t from = source_of(index[d], own[d], mode);
    if (from < 0) return false;
    index[d] = from;
  }
  return true;
}

Shape index_of(std::int64_t n, const Shape& shape) {
  Shape index = shape;
  for (std::size_t d = shape.rank(); d-- > 0; n /= shape[d]) index[d] = n % shape[d];
  return index;
}

std::size_t offset_of(const Shape& index, const Shape& shape) {
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < shape.rank(); ++d) offset = offset * shape[d] + index[d];
  return static_cast<std::size_t>(offset);
}

TEST(Padding, SeveralDimensionsAreAsNumpyPadsThem) {
  std::mt19937 random(9);
  for (int round = 0; round < 1000; ++round) {
    const auto mode = static_cast<PadMode>(random() % 3);
    const std::int64_t least = mode == PadMode::kReflect ? 2 : mode == PadMode::kReplicate ? 1 : 0;
    Shape own;
    Padding padding{.mode = mode, .value = {std::byte{200}, std::byte{201}}};
    for (std::size_t d = 0; d < 1 + random() % 4; ++d) {
      own.push_back(least + static_cast<std::int64_t>(random() % 3));
      padding.slot.push_back(own[d] + static_cast<std::int64_t>(random() % 5));
    }
    std::vector<std::uint16_t> slot(static_cast<std::size_t>(padding.slot.numel()), 0xEEEE);
    for (std::int64_t n = 0; n < own.numel(); ++n) {
      slot[offset_of(index_of(n, own), padding.slot)] = static_cast<std::uint16_t>(n);
    }
    fill_padding(padding, own, sizeof(std::uint16_t), reinterpret_cast<std::byte*>(slot.data()));
    for (std::int64_t n = 0; n < padding.slot.numel(); ++n) {
      Shape index = index_of(n, padding.slot);
      const bool from = source_index(index, own, mode);
      const std::size_t expected = from ? offset_of(index, own) : 200 + 201 * 256;
      ASSERT_EQ(slot[static_cast<std::size_t>(n)], expected)
          << own << " to " << padding.slot << ", mode " << static_cast<int>(mode);
    }
  }
}

TEST(Padding, LeavesAFullSlotAlone) {
  std::vector<std::byte> slot(8, std::byte{7});
  fill_padding({.slot = Shape{8}}, Shape{8}, 1, slot.data());
  EXPECT_EQ(slot, std::vector<std::byte>(8, std::byte{7}));
  fill_padding({.slot = Shape{0}, .mode = PadMode::kReflect}, Shape{0}, 1, slot.data());
  EXPECT_EQ(slot, std::vector<std::byte>(8, std::byte{7}));
}

template <class T>
T value_of(double value, const DType& dtype) {
  T out;
  std::memcpy(&out, element_bytes(value, dtype).data(), sizeof(T));
  return out;
}

TEST(Padding, ValuesBecomeElements) {
  EXPECT_EQ(value_of<float>(1.5, DType::float32), 1.5f);
  EXPECT_EQ(value_of<std::int8_t>(-128, DType::int8), -128);
  EXPECT_EQ(value_of<std::uint8_t>(255, DType::uint8), 255);
  EXPECT_EQ(value_of<std::int64_t>(-1, DType::int64), -1);
  EXPECT_EQ(value_of<bool>(1, DType::boolean), true);
  EXPECT_EQ(value_of<std::uint16_t>(1, DType::float16), 0x3c00);
  EXPECT_EQ(value_of<std::uint16_t>(1, DType::bfloat16), 0x3f80);
  EXPECT_TRUE(std::signbit(value_of<float>(-0.0, DType::float32)));
  EXPECT_TRUE(std::isnan(value_of<double>(std::numeric_limits<double>::quiet_NaN(), DType::float64)));
  const DType text = DType::with_descr(DType::Code::kText, 20, "<U5");
  EXPECT_EQ(element_bytes(0, text), (std::array<std::byte, 16>{}));
}

TEST(Padding, RefusesValuesTheTypeDoesNotHave) {
  const DType text = DType::with_descr(DType::Code::kText, 20, "<U5");
  for (const auto& [value, dtype] :
       {std::pair(0.5, DType::int32), std::pair(-1.0, DType::uint8), std::pair(256.0, DType::uint8),
        std::pair(128.0, DType::int8), std::pair(2.0, DType::boolean), std::pair(1.0, text),
        std::pair(0x1p63, DType::int64)}) {
    EXPECT_EQ(test::code_of([&, to = dtype, from = value] { element_bytes(from, to); }), ErrorCode::kDTypeMismatch)
        << value << dtype;
  }
}

}  // namespace
}  // namespace penstock::data
