#include "penstock/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/philox.h"
#include "support/errors.h"

namespace penstock {
namespace {

/// The vectors published with Random123 for Philox4x32-10: counter, key, words.
TEST(Philox, PublishedVectors) {
  const ops::RandomWords zero = ops::philox(0, 0);
  EXPECT_EQ(zero.a, 0x6627E8D5U);
  EXPECT_EQ(zero.b, 0xE169C58DU);
  EXPECT_EQ(zero.c, 0xBC57AC4CU);
  EXPECT_EQ(zero.d, 0x9B00DBD8U);
}

TEST(Philox, HighProduct) {
  EXPECT_EQ(ops::multiply_high(UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
  EXPECT_EQ(ops::multiply_high(std::uint64_t{1} << 63, 6), 3U);
  EXPECT_EQ(ops::multiply_high(0x123456789ABCDEFU, 0xFEDCBA987654321U), 0x121FA00AD77D74U);
}

TEST(Random, TheSameSeedGivesTheSameNumbers) {
  Generator one(42);
  Generator other(42);
  EXPECT_TRUE(Tensor::identical(randn({3, 5}, one), randn({15}, other).reshape({3, 5})));
  EXPECT_EQ(one.offset(), 4U);
  other.set_offset(0);
  EXPECT_FALSE(Tensor::identical(rand({15}, one), rand({15}, other)));
}

TEST(Random, EmptyTakesNothing) {
  Generator generator(1);
  EXPECT_EQ(rand({0, 3}, generator).numel(), 0);
  EXPECT_EQ(generator.offset(), 0U);
}

TEST(Random, AnyNumberOfThreadsGivesTheSameNumbers) {
  Generator generator(9);
  const Tensor whole = rand({2'000'000}, generator, DType::float64);
  Generator tail(9);
  tail.set_offset(999'990);
  EXPECT_TRUE(Tensor::identical(whole.slice(0, 1'999'980, 2'000'000), rand({20}, tail, DType::float64)));
}

TEST(Random, WrongTypesAndRanges) {
  Generator generator(1);
  EXPECT_EQ(test::code_of([&] { return rand({1}, generator, DType::int32); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { return randint(3, 3, {1}, generator); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { return randint(-1, 3, {1}, generator, DType::uint8); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(generator.offset(), 0U);
}

}  // namespace
}  // namespace penstock
