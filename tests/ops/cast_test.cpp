#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "ops/cast_golden.h"
#include "ops/convert.h"
#include "ops/kernels.h"
#include "ops/small_float.h"
#include "penstock/error.h"
#include "support/errors.h"

namespace penstock::ops {
namespace {

using test::code_of;

std::vector<std::byte> from_hex(std::string_view hex) {
  std::vector<std::byte> out;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const bool left_out = hex[i] == '-';
    out.push_back(left_out ? std::byte{0}
                           : static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return out;
}

std::string to_hex(const std::byte* bytes, std::size_t count) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    const auto byte = std::to_integer<std::size_t>(bytes[i]);
    out += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return out;
}

DType type_of(std::string_view name) { return DType::from_name(name).value(); }

std::string_view elements_of(std::string_view type) {
  for (const golden::Inputs& inputs : golden::kInputs) {
    if (inputs.type == type) return inputs.elements;
  }
  return {};
}

/// Compares each answer; `repeat` gives the same elements again, so that vector loops and their tails both see them.
void compare(const golden::Cast& cast, std::size_t repeat) {
  const DType from = type_of(cast.from);
  const DType to = type_of(cast.to);
  const std::vector<std::byte> once = from_hex(elements_of(cast.from));
  std::vector<std::byte> given;
  for (std::size_t i = 0; i < repeat; ++i) given.insert(given.end(), once.begin(), once.end());
  const std::size_t count = given.size() / from.itemsize();
  std::vector<std::byte> answer(count * to.itemsize());
  convert(from.code(), given.data(), to.code(), answer.data(), count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t digits = 2 * to.itemsize();
    const std::string_view expected = cast.answers.substr(i * digits % cast.answers.size(), digits);
    if (expected.starts_with('-')) continue;
    ASSERT_EQ(to_hex(answer.data() + i * to.itemsize(), to.itemsize()), expected)
        << cast.from << " to " << cast.to << ", element "
        << to_hex(given.data() + i * from.itemsize(), from.itemsize());
  }
}

TEST(Cast, AnswersAsTorchDoesBitForBit) {
  for (const golden::Cast& cast : golden::kCasts) {
    ASSERT_FALSE(cast.answers.empty());
    compare(cast, 1);
    compare(cast, 3);
  }
}

TEST(Cast, EveryFloat8CodeIsTheFloatThatTorchSays) {
  std::vector<std::byte> codes(256);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i);
  for (const golden::Inputs& decoded : golden::kDecoded) {
    std::vector<std::byte> floats(256 * 4);
    convert(type_of(decoded.type).code(), codes.data(), DType::Code::kFloat32, floats.data(), codes.size());
    ASSERT_EQ(to_hex(floats.data(), floats.size()), decoded.elements) << decoded.type;
  }
}

TEST(Cast, EveryNumericTypeIsInTheGoldenTable) {
  for (int code = 0; code <= static_cast<int>(DType::Code::kOpaque); ++code) {
    const DType type(static_cast<DType::Code>(code));
    if (type.is_numeric()) {
      EXPECT_FALSE(elements_of(type.name()).empty()) << type;
    }
  }
}

TEST(Cast, NaNBecomesTheOneNaNOfBFloat16) {
  for (const float value : {std::nanf(""), -std::nanf(""), std::bit_cast<float>(0x7F800001U)}) {
    EXPECT_EQ(BFloat16::encode(value).bits, 0x7FC0);
  }
}

/// All halves and many floats: the processor's instructions and our arithmetic agree.
TEST(Cast, HalfArithmeticAgreesWithTheProcessor) {
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  std::vector<float> floats(halves.size());
  convert(DType::Code::kFloat16, reinterpret_cast<const std::byte*>(halves.data()), DType::Code::kFloat32,
          reinterpret_cast<std::byte*>(floats.data()), halves.size());
  for (std::size_t i = 0; i < halves.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(Float16::decode({float16::from_bits(halves[i])})),
              std::bit_cast<std::uint32_t>(floats[i]))
        << i;
  }
  std::mt19937 random(5);
  std::vector<float> values;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const std::uint32_t near = std::bit_cast<std::uint32_t>(floats[i]);
    for (const std::uint32_t bits :
         {near - 1, near + 1, near + 0x1000, near + 0xFFF, near + 0x1001, static_cast<std::uint32_t>(random())}) {
      values.push_back(std::bit_cast<float>(bits));
    }
  }
  std::vector<std::uint16_t> encoded(values.size());
  convert(DType::Code::kFloat32, reinterpret_cast<const std::byte*>(values.data()), DType::Code::kFloat16,
          reinterpret_cast<std::byte*>(encoded.data()), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(Float16::encode(values[i]).bits, encoded[i]) << std::bit_cast<std::uint32_t>(values[i]);
  }
}

template <class Small>
void expect_round_trip() {
  for (unsigned code = 0; code < 256; ++code) {
    const float value = Small::decode({static_cast<std::uint8_t>(code)});
    if (std::isnan(value)) continue;
    ASSERT_EQ(Small::encode(value).bits, code) << value;
  }
}

TEST(Cast, EveryFloat8ComesBack) {
  expect_round_trip<Float8E4M3FN>();
  expect_round_trip<Float8E5M2>();
  expect_round_trip<Float8E4M3FNUZ>();
  expect_round_trip<Float8E5M2FNUZ>();
  for (unsigned code = 1; code < 255; ++code) {
    ASSERT_EQ(Float8E8M0FNU::encode(Float8E8M0FNU::decode({static_cast<std::uint8_t>(code)})).bits, code);
  }
}

/// Every float8 cast picks the nearest value, and the even code of two equally near ones.
template <class Small>
void expect_nearest(unsigned last_finite) {
  for (unsigned code = 0; code < last_finite; ++code) {
    const float low = Small::decode({static_cast<std::uint8_t>(code)});
    const float high = Small::decode({static_cast<std::uint8_t>(code + 1)});
    const float middle = (low + high) / 2;
    ASSERT_EQ(Small::encode(middle).bits, code % 2 == 0 ? code : code + 1) << middle;
    ASSERT_EQ(Small::encode(std::nextafter(middle, low)).bits, code);
    ASSERT_EQ(Small::encode(std::nextafter(middle, high)).bits, code + 1);
  }
}

TEST(Cast, Float8RoundsToNearestEven) {
  expect_nearest<Float8E4M3FN>(0x7E);
  expect_nearest<Float8E5M2>(0x7B);
  expect_nearest<Float8E4M3FNUZ>(0x7F);
  expect_nearest<Float8E5M2FNUZ>(0x7F);
}

TEST(Cast, UnalignedMemoryIsFine) {
  for (const golden::Cast& cast : golden::kCasts) {
    const DType from = type_of(cast.from);
    const DType to = type_of(cast.to);
    std::vector<std::byte> given = from_hex(elements_of(cast.from));
    const std::size_t count = given.size() / from.itemsize();
    std::vector<std::byte> expected(count * to.itemsize());
    convert(from.code(), given.data(), to.code(), expected.data(), count);
    given.insert(given.begin(), std::byte{0});
    std::vector<std::byte> answer(expected.size() + 1);
    convert(from.code(), given.data() + 1, to.code(), answer.data() + 1, count);
    ASSERT_EQ(std::memcmp(answer.data() + 1, expected.data(), expected.size()), 0) << cast.from << " " << cast.to;
  }
}

/// Shape, and a view of a random tensor of it that is not contiguous.
Tensor random_view(std::mt19937& random, const DType& dtype) {
  Shape shape;
  for (auto rank = 1 + random() % 4; rank > 0; --rank) shape.push_back(1 + random() % 9);
  Tensor tensor = Tensor::empty(shape, dtype);
  for (std::size_t i = 0; i < tensor.nbytes(); ++i) tensor.data()[i] = static_cast<std::byte>(random() % 100);
  if (random() % 2 == 0) tensor = tensor.transpose(random() % tensor.rank(), random() % tensor.rank());
  const std::size_t dim = random() % tensor.rank();
  if (random() % 2 == 0) tensor = tensor.slice(dim, random() % 2, 100, 1 + random() % 2);
  return tensor;
}

TEST(Cast, StridedTensorsAnswerAsContiguousOnes) {
  std::mt19937 random(6);
  for (int round = 0; round < 300; ++round) {
    const Tensor view = random_view(random, DType::int16);
    const Tensor expected = view.clone().to(DType::float64);
    EXPECT_TRUE(Tensor::identical(view.to(DType::float64), expected));
    const Tensor backwards = Tensor::empty(view.shape(), DType::float64);
    const Tensor spread = backwards.rank() > 1
                              ? Tensor(backwards.buffer(), DType::float64, view.shape(), view.shape().fortran_strides())
                              : backwards;
    cast(view, spread);
    EXPECT_TRUE(Tensor::identical(spread, expected));
  }
}

TEST(Cast, LargeTensorsAreSharedByThreads) {
  constexpr std::int64_t kRows = 3001;
  constexpr std::int64_t kColumns = 1999;
  const Tensor tensor = Tensor::empty({kRows, kColumns}, DType::int32);
  const auto values = tensor.values<std::int32_t>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i);
  const Tensor straight = tensor.to(DType::float64);
  const Tensor turned = tensor.transpose(0, 1).to(DType::float64);
  const auto a = straight.values<double>();
  const auto b = turned.values<double>();
  for (std::size_t i = 0; i < values.size(); i += 97) ASSERT_EQ(a[i], static_cast<double>(i));
  for (std::size_t r = 0; r < kRows; r += 13) {
    for (std::size_t c = 0; c < kColumns; ++c) ASSERT_EQ(b[c * kRows + r], static_cast<double>(r * kColumns + c));
  }
}

TEST(Cast, RefusesWhatIsNoNumber) {
  const Tensor text = Tensor::empty({2}, DType::with_descr(DType::Code::kText, 8, "<U2"));
  EXPECT_EQ(code_of([&] { text.to(DType::float32); }), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of([&] { Tensor::zeros({2}).to(text.dtype()); }), ErrorCode::kUnsupported);
  EXPECT_EQ(code_of([&] { Tensor::zeros({2}, DType::Code::kQInt8).to(DType::float32); }), ErrorCode::kUnsupported);
  EXPECT_TRUE(Tensor::identical(text.to(text.dtype()), text)) << "the same type needs no conversion";
  EXPECT_EQ(code_of([&] { cast(Tensor::zeros({2}), Tensor::zeros({3}, DType::int8)); }), ErrorCode::kShapeMismatch);
  static int readable = 0;
  const Tensor constant(Buffer::wrap(&readable, 4, nullptr, true), DType::int32, {1});
  EXPECT_EQ(code_of([&] { cast(Tensor::zeros({1}), constant); }), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::ops
