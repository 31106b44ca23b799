// PTX instructions against values worked out by hand from the rules of the ISA document (the sections that
// instructions.h and convert.h name).

#include "simulator/ptx/instructions.h"

#include <gtest/gtest.h>

#include <bit>

#include "simulator/ptx/convert.h"

namespace penstock::simulator::ptx {
namespace {

constexpr std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
constexpr std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
constexpr Mode kRn{Round::kNearest};
constexpr Mode kRz{Round::kZero};
constexpr Mode kRm{Round::kDown};
constexpr Mode kRp{Round::kUp};
constexpr std::uint32_t kInf = 0x7F800000;
constexpr std::uint32_t kNan = 0x7FC00001;
constexpr std::uint32_t kTiny = 1;  // 2^-149, subnormal

// 1 + 2^-24 lies half-way between 1 and the next number, 1 + 2^-23.
TEST(PtxArithmetic, RoundsAsItIsTold) {
  const std::uint32_t half = bits(0x1p-24F);
  EXPECT_EQ((add<F32, kRn>(bits(1.0F), half)), bits(1.0F));
  EXPECT_EQ((add<F32, kRz>(bits(1.0F), half)), bits(1.0F));
  EXPECT_EQ((add<F32, kRm>(bits(1.0F), half)), bits(1.0F));
  EXPECT_EQ((add<F32, kRp>(bits(1.0F), half)), bits(0x1.000002p0F));
  EXPECT_EQ((sub<F32, kRz>(bits(-1.0F), half)), bits(-1.0F));
  EXPECT_EQ((sub<F32, kRm>(bits(-1.0F), half)), bits(-0x1.000002p0F));
  EXPECT_EQ((sub<F32, kRp>(bits(-1.0F), half)), bits(-1.0F));
  // (1 + 2^-23)^2 = 1 + 2^-22 + 2^-46.
  const std::uint32_t next = bits(0x1.000002p0F);
  EXPECT_EQ((mul<F32, kRn>(next, next)), bits(0x1.000004p0F));
  EXPECT_EQ((mul<F32, kRp>(next, next)), bits(0x1.000006p0F));
  EXPECT_EQ((fdiv<F64, kRz>(bits(1.0), bits(3.0))), 0x3FD5555555555555U);
  EXPECT_EQ((fdiv<F64, kRp>(bits(1.0), bits(3.0))), 0x3FD5555555555556U);
  EXPECT_EQ((sqrt<F64, kRn>(bits(2.0))), 0x3FF6A09E667F3BCDU);
  EXPECT_EQ((sqrt<F64, kRm>(bits(2.0))), 0x3FF6A09E667F3BCCU);
  EXPECT_EQ((rcp<F64, kRn>(bits(-0.0))), bits(-std::numeric_limits<double>::infinity()));
}

TEST(PtxArithmetic, FusesOnlyWhereItIsTold) {
  const std::uint32_t next = bits(0x1.000002p0F);
  const std::uint32_t product = bits(-0x1.000004p0F);
  EXPECT_EQ((add<F32, kRn>(mul<F32, kRn>(next, next), product)), bits(0.0F));
  EXPECT_EQ((fma<F32, kRn>(next, next, product)), bits(0x1p-46F));
}

TEST(PtxArithmetic, FlushesAndSaturates) {
  constexpr Mode kFtz{Round::kNearest, true};
  constexpr Mode kSat{Round::kNearest, false, true};
  EXPECT_EQ((add<F32, kRn>(kTiny, kTiny)), 2U);
  EXPECT_EQ((add<F32, kFtz>(kTiny, kTiny)), bits(0.0F));
  EXPECT_EQ((mul<F32, kFtz>(bits(0x1p-100F), bits(-0x1p-40F))), bits(-0.0F));
  EXPECT_EQ((mul<F32, kRn>(bits(0x1p-100F), bits(0x1p-40F))), bits(0x1p-140F));
  EXPECT_EQ((add<F32, kSat>(bits(1.0F), bits(1.0F))), bits(1.0F));
  EXPECT_EQ((sub<F32, kSat>(bits(1.0F), bits(3.0F))), bits(0.0F));
  EXPECT_EQ((add<F32, kSat>(kNan, bits(1.0F))), bits(0.0F));
}

TEST(PtxArithmetic, GivesOneNanInSinglePrecisionAndKeepsDoubles) {
  EXPECT_EQ((add<F32, kRn>(kNan, bits(1.0F))), kCanonicalNan);
  EXPECT_EQ((sub<F32, kRn>(kInf, kInf)), kCanonicalNan);
  EXPECT_EQ((add<F64, kRn>(0x7FF8000000000123U, bits(1.0))), 0x7FF8000000000123U);
}

TEST(PtxArithmetic, MinimumAndMaximumPassOverNan) {
  EXPECT_EQ((max<F32>(kNan, bits(1.0F))), bits(1.0F));
  EXPECT_EQ((min<F32>(bits(1.0F), kNan)), bits(1.0F));
  EXPECT_EQ((max<F32>(kNan, kNan)), kCanonicalNan);
  EXPECT_EQ((max<F32>(bits(-0.0F), bits(0.0F))), bits(0.0F));
  EXPECT_EQ((min<F32>(bits(0.0F), bits(-0.0F))), bits(-0.0F));
  EXPECT_EQ((max<S32>(0xFFFFFFFFU, 1)), 1U);
  EXPECT_EQ((max<U32>(0xFFFFFFFFU, 1)), 0xFFFFFFFFU);
}

TEST(PtxArithmetic, IntegersWrapOrSaturate) {
  EXPECT_EQ((add<U16>(0xFFFF, 2)), 1U);
  EXPECT_EQ((sub<S64>(0, 1)), ~std::uint64_t{0});
  EXPECT_EQ((add<S32, Mode{Round::kNone, false, true}>(0x7FFFFFFF, 1)), 0x7FFFFFFFU);
  EXPECT_EQ((sub<S32, Mode{Round::kNone, false, true}>(0x80000000, 1)), 0x80000000U);
  EXPECT_EQ((mul_lo<S32>(0xFFFFFFFF, 3)), 0xFFFFFFFDU);
  EXPECT_EQ((mul_hi<S32>(0xFFFFFFFF, 3)), 0xFFFFFFFFU);
  EXPECT_EQ((mul_hi<U32>(0xFFFFFFFF, 3)), 2U);
  EXPECT_EQ((mul_wide<U32>(0xFFFFFFFF, 0xFFFFFFFF)), 0xFFFFFFFE00000001U);
  EXPECT_EQ((mul_wide<S16>(0xFFFF, 2)), 0xFFFFFFFEU);
  EXPECT_EQ((mad_lo<S32>(3, 4, 0xFFFFFFFF)), 11U);
  EXPECT_EQ((abs<S32>(0x80000000)), 0x80000000U);
  EXPECT_EQ((abs<S16>(0xFFFF)), 1U);
  EXPECT_EQ((neg<S64>(1)), ~std::uint64_t{0});
}

TEST(PtxArithmetic, DividesTowardsZeroAndStopsWherePtxSaysNothing) {
  EXPECT_EQ((div<S32>(static_cast<std::uint32_t>(-7), 2, 1)), static_cast<std::uint32_t>(-3));
  EXPECT_EQ((rem<S32>(static_cast<std::uint32_t>(-7), 2, 1)), static_cast<std::uint32_t>(-1));
  EXPECT_EQ((div<U32>(0xFFFFFFF9, 2, 1)), 0x7FFFFFFCU);
  EXPECT_THROW((div<U64>(1, 0, 17)), Fault);
  EXPECT_THROW((rem<S64>(1, 0, 17)), Fault);
  EXPECT_THROW((div<S32>(0x80000000, 0xFFFFFFFF, 17)), Fault);
  try {
    div<U32>(1, 0, 17);
  } catch (const Fault& fault) {
    EXPECT_EQ(fault.line, 17);
  }
}

TEST(PtxArithmetic, DivisionsThatAreNotExact) {
  EXPECT_EQ((div_full<F32, kRn>(bits(1.0F), bits(4.0F))), bits(0.25F));
  EXPECT_EQ((div_full<F32, kRn>(bits(0x1p127F), bits(0x1p127F))), bits(1.0F));
  // Beyond 2^126 the reciprocal is zero.
  EXPECT_EQ((div_approx<F32, kRn>(bits(1.0F), bits(0x1p127F))), bits(0.0F));
  EXPECT_EQ((div_approx<F32, kRn>(kInf, bits(0x1p127F))), kCanonicalNan);
  EXPECT_EQ((div_approx<F32, kRn>(bits(6.0F), bits(-2.0F))), bits(-3.0F));
}

TEST(PtxArithmetic, ApproximateFunctionsAtTheEndsOfTheirTables) {
  EXPECT_EQ((approximate<kRn, power_of_two>(0xFF800000)), bits(0.0F));
  EXPECT_EQ((approximate<kRn, power_of_two>(kInf)), kInf);
  EXPECT_EQ((approximate<kRn, power_of_two>(bits(-3.0F))), bits(0.125F));
  EXPECT_EQ((approximate<kRn, log_of_two>(bits(-0.0F))), 0xFF800000);
  EXPECT_EQ((approximate<kRn, log_of_two>(bits(-1.0F))), kCanonicalNan);
  EXPECT_EQ((approximate<kRn, log_of_two>(bits(8.0F))), bits(3.0F));
  EXPECT_EQ((approximate<kRn, reciprocal>(bits(-0.0F))), 0xFF800000);
  EXPECT_EQ((approximate<kRn, reciprocal>(kInf)), bits(0.0F));
  EXPECT_EQ((approximate<kRn, reciprocal_root>(bits(4.0F))), bits(0.5F));
  EXPECT_EQ((approximate<kRn, reciprocal_root>(bits(-0.0F))), 0xFF800000);
  EXPECT_EQ((approximate<kRn, root>(bits(-0.0F))), bits(-0.0F));
  EXPECT_EQ((approximate<kRn, sine>(kInf)), kCanonicalNan);
  EXPECT_EQ((approximate<kRn, cosine>(bits(-0.0F))), bits(1.0F));
  EXPECT_EQ((approximate<kRn, hyperbolic_tangent>(0xFF800000)), bits(-1.0F));
}

TEST(PtxLogic, ShiftsBeyondTheWidth) {
  EXPECT_EQ((shl<B32>(1, 31)), 0x80000000U);
  EXPECT_EQ((shl<B32>(1, 32)), 0U);
  EXPECT_EQ((shl<B32>(1, 0xFFFFFFFF)), 0U);
  EXPECT_EQ((shr<U32>(0x80000000, 40)), 0U);
  EXPECT_EQ((shr<B16>(0x8000, 15)), 1U);
  EXPECT_EQ((shr<S32>(0x80000000, 4)), 0xF8000000U);
  EXPECT_EQ((shr<S32>(0x80000000, 99)), 0xFFFFFFFFU);
  EXPECT_EQ((shr<S64>(std::uint64_t{1} << 62, 99)), 0U);
}

TEST(PtxLogic, FieldsOfBits) {
  EXPECT_EQ((bfe<U32>(0xABCD1234, 8, 8)), 0x12U);
  EXPECT_EQ((bfe<U32>(0xABCD1234, 8, 0)), 0U);
  EXPECT_EQ((bfe<U32>(0xABCD1234, 28, 16)), 0xAU);
  EXPECT_EQ((bfe<U32>(0xABCD1234, 256 + 8, 256 + 8)), 0x12U);
  EXPECT_EQ((bfe<S32>(0x00000080, 0, 8)), 0xFFFFFF80U);
  EXPECT_EQ((bfe<S32>(0x80000000, 28, 16)), 0xFFFFFFF8U);
  EXPECT_EQ((clz<B64>(1)), 63U);
  EXPECT_EQ((clz<B32>(0)), 32U);
  EXPECT_EQ((popc<B64>(~std::uint64_t{0})), 64U);
  EXPECT_EQ((not_<Pred>(true)), false);
  EXPECT_EQ((not_<B16>(0x00FF)), 0xFF00U);
}

TEST(PtxComparison, OfNan) {
  const std::uint32_t one = bits(1.0F);
  EXPECT_FALSE((setp<F32, Compare::kEq>(kNan, kNan)));
  EXPECT_FALSE((setp<F32, Compare::kNe>(kNan, one)));
  EXPECT_FALSE((setp<F32, Compare::kLt>(kNan, one)));
  EXPECT_FALSE((setp<F32, Compare::kGe>(one, kNan)));
  EXPECT_TRUE((setp<F32, Compare::kEqu>(kNan, one)));
  EXPECT_TRUE((setp<F32, Compare::kNeu>(kNan, kNan)));
  EXPECT_TRUE((setp<F32, Compare::kLtu>(one, kNan)));
  EXPECT_TRUE((setp<F32, Compare::kLeu>(one, kNan)));
  EXPECT_TRUE((setp<F32, Compare::kGtu>(one, kNan)));
  EXPECT_TRUE((setp<F32, Compare::kGeu>(one, kNan)));
  EXPECT_TRUE((setp<F32, Compare::kNan>(one, kNan)));
  EXPECT_FALSE((setp<F32, Compare::kNum>(one, kNan)));
  EXPECT_TRUE((setp<F32, Compare::kNum>(one, one)));
}

TEST(PtxComparison, OfNumbers) {
  EXPECT_TRUE((setp<F32, Compare::kEq>(bits(0.0F), bits(-0.0F))));
  EXPECT_TRUE((setp<S16, Compare::kLt>(0xFFFF, 0)));
  EXPECT_FALSE((setp<U16, Compare::kLt>(0xFFFF, 0)));
  EXPECT_TRUE((setp<S64, Compare::kLe>(5, 5)));
  EXPECT_FALSE((setp<F64, Compare::kLtu>(bits(2.0), bits(1.0))));
  EXPECT_TRUE((setp<F32, Compare::kEq, Mode{Round::kNone, true}>(kTiny, bits(0.0F))));
}

TEST(PtxConversion, FloatsToIntegersInEveryRounding) {
  const auto all = [](float x) {
    return std::array{cvt<S32, F32, kRn>(bits(x)), cvt<S32, F32, kRz>(bits(x)), cvt<S32, F32, kRm>(bits(x)),
                      cvt<S32, F32, kRp>(bits(x))};
  };
  const auto of = [](int n, int z, int m, int p) {
    return std::array{static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(z), static_cast<std::uint32_t>(m),
                      static_cast<std::uint32_t>(p)};
  };
  EXPECT_EQ(all(2.5F), of(2, 2, 2, 3));
  EXPECT_EQ(all(3.5F), of(4, 3, 3, 4));
  EXPECT_EQ(all(-2.5F), of(-2, -2, -3, -2));
  EXPECT_EQ(all(-0.75F), of(-1, 0, -1, 0));
  EXPECT_EQ(all(0.5F), of(0, 0, 0, 1));
}

TEST(PtxConversion, FloatsBeyondTheIntegers) {
  EXPECT_EQ((cvt<S32, F32, kRz>(bits(3e9F))), 0x7FFFFFFFU);
  EXPECT_EQ((cvt<S32, F32, kRz>(0xFF800000)), 0x80000000U);
  EXPECT_EQ((cvt<U32, F32, kRz>(bits(-1.0F))), 0U);
  EXPECT_EQ((cvt<U32, F32, kRz>(bits(-0.5F))), 0U);
  EXPECT_EQ((cvt<S64, F64, kRz>(bits(1e19))), 0x7FFFFFFFFFFFFFFFU);
  EXPECT_EQ((cvt<S64, F32, kRz>(bits(-0x1p63F))), 0x8000000000000000U);
  EXPECT_EQ((cvt<U8, F32, kRz>(bits(300.0F))), 255U);
  EXPECT_EQ((cvt<S8, F32, kRz>(bits(-300.0F))), 0x80U);
}

TEST(PtxConversion, NanToIntegers) {
  EXPECT_EQ((cvt<S32, F32, kRz>(kNan)), 0U);
  EXPECT_EQ((cvt<U16, F32, kRz>(kNan)), 0U);
  EXPECT_EQ((cvt<S64, F32, kRz>(kNan)), 0x8000000000000000U);
  EXPECT_EQ((cvt<U64, F32, kRz>(kNan)), 0x8000000000000000U);
  EXPECT_EQ((cvt<S32, F64, kRz>(0x7FF8000000000000U)), 0x80000000U);
}

TEST(PtxConversion, IntegersToFloats) {
  EXPECT_EQ((cvt<F32, U32, kRn>(0xFFFFFFFF)), bits(0x1p32F));
  EXPECT_EQ((cvt<F32, U32, kRz>(0xFFFFFFFF)), bits(0x1.fffffep31F));
  EXPECT_EQ((cvt<F32, S32, kRn>(0xFFFFFFFF)), bits(-1.0F));
  EXPECT_EQ((cvt<F32, S32, kRm>(static_cast<std::uint32_t>(-16777217))), bits(-16777218.0F));
  // 2^24 + 1 lies half-way: to even.
  EXPECT_EQ((cvt<F32, S64, kRn>(16777217)), bits(16777216.0F));
  EXPECT_EQ((cvt<F32, U64, kRp>(16777217)), bits(16777218.0F));
  // Rounded once, not to double precision first: 2^60 + 2^36 + 1 is above the half.
  EXPECT_EQ((cvt<F32, U64, kRn>((std::uint64_t{1} << 60) + (std::uint64_t{1} << 36) + 1)), bits(0x1.000002p60F));
  EXPECT_EQ((cvt<F64, U64, kRn>(~std::uint64_t{0})), bits(0x1p64));
  EXPECT_EQ((cvt<F32, S16, kRn>(0x8000)), bits(-32768.0F));
}

TEST(PtxConversion, BetweenFloats) {
  EXPECT_EQ((cvt<F64, F32>(kTiny)), bits(0x1p-149));
  EXPECT_EQ((cvt<F32, F64, kRn>(bits(1.0 + 0x1p-24))), bits(1.0F));
  EXPECT_EQ((cvt<F32, F64, kRp>(bits(1.0 + 0x1p-24))), bits(0x1.000002p0F));
  EXPECT_EQ((cvt<F32, F64, kRz>(bits(1e300))), bits(std::numeric_limits<float>::max()));
  EXPECT_EQ((cvt<F32, F64, kRn>(bits(1e300))), kInf);
  EXPECT_EQ((cvt<F32, F64, Mode{Round::kNearest, true}>(bits(0x1p-140))), bits(0.0F));
  EXPECT_EQ((cvt<F32, F32, kRm>(bits(-2.5F))), bits(-3.0F));
  EXPECT_EQ((cvt<F32, F32, Mode{Round::kNone, false, true}>(bits(7.0F))), bits(1.0F));
}

TEST(PtxConversion, BetweenIntegers) {
  EXPECT_EQ((cvt<S64, S8>(0xFF)), ~std::uint64_t{0});
  EXPECT_EQ((cvt<S64, U8>(0xFF)), 255U);
  EXPECT_EQ((cvt<U16, U32>(0x12345678)), 0x5678U);
  EXPECT_EQ((cvt<S8, S32, Mode{Round::kNone, false, true}>(300)), 127U);
  EXPECT_EQ((cvt<U8, S32, Mode{Round::kNone, false, true}>(static_cast<std::uint32_t>(-5))), 0U);
  EXPECT_EQ((extend<S8, std::uint16_t>(0x80)), 0xFF80U);
  EXPECT_EQ((extend<U8, std::uint16_t>(0x80)), 0x0080U);
}

}  // namespace
}  // namespace penstock::simulator::ptx
