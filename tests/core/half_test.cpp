#include "penstock/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <type_traits>

namespace penstock {
namespace {

static_assert(sizeof(float16) == 2 && sizeof(bfloat16) == 2);
static_assert(std::is_trivially_copyable_v<float16> && std::is_trivially_copyable_v<bfloat16>);
static_assert(!std::is_convertible_v<float, float16> && !std::is_convertible_v<int, bfloat16>, "rounding is asked for");
static_assert(float(float16(1.5F)) == 1.5F && float(bfloat16(-3.0F)) == -3.0F, "also when compiling");

template <class Half>
void expect_every_value_comes_back() {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const Half half = Half::from_bits(static_cast<std::uint16_t>(bits));
    const float value = half;
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float(Half(value)))) << bits;
    } else {
      EXPECT_EQ(Half(value).bits, bits);
    }
  }
}

TEST(Half, EveryFloat16ComesBack) { expect_every_value_comes_back<float16>(); }
TEST(Half, EveryBFloat16ComesBack) { expect_every_value_comes_back<bfloat16>(); }

/// Of the two neighbours of a value in between, the nearer, and of equally near ones that with an even last bit.
template <class Half>
void expect_nearest(std::uint16_t below) {
  const float low = Half::from_bits(below);
  const float high = Half::from_bits(static_cast<std::uint16_t>(below + 1));
  const float middle = (low + high) / 2;
  EXPECT_EQ(Half(middle).bits, below % 2 == 0 ? below : below + 1);
  EXPECT_EQ(Half(std::nextafter(middle, low)).bits, below);
  EXPECT_EQ(Half(std::nextafter(middle, high)).bits, below + 1);
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
  for (const std::uint16_t below :
       std::initializer_list<std::uint16_t>{0x0001, 0x03FF, 0x0400, 0x3BFF, 0x3C00, 0x3C01, 0x7BFE}) {
    expect_nearest<float16>(below);
    expect_nearest<bfloat16>(below);
  }
}

TEST(Half, LimitsAreThoseOfIeee) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(float(float16(65519.0F)), 65504.0F);
  EXPECT_EQ(float(float16(65520.0F)), kInfinity);
  EXPECT_EQ(float(float16(-1e30F)), -kInfinity);
  EXPECT_EQ(float16(-0.0F).bits, 0x8000);
  EXPECT_EQ(float(float16(std::ldexp(1.0F, -24))), std::ldexp(1.0F, -24));
  EXPECT_EQ(float16(std::ldexp(1.0F, -26)).bits, 0);
  EXPECT_EQ(bfloat16(std::numeric_limits<float>::quiet_NaN()).bits, 0x7FC0);
  EXPECT_EQ(float(bfloat16(std::numeric_limits<float>::max())), kInfinity);
}

}  // namespace
}  // namespace penstock
