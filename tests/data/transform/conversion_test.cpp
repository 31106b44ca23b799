#include "data/transform/conversion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <vector>

#include "penstock/dataset.h"
#include "penstock/error.h"
#include "penstock/loader.h"
#include "penstock/mix.h"
#include "penstock/ops.h"
#include "penstock/tensor.h"
#include "support/errors.h"

namespace penstock {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
std::vector<T> values_of(const Tensor& tensor) {
  const Tensor dense = tensor.contiguous();
  const auto span = dense.values<const T>();
  return {span.begin(), span.end()};
}

Tensor first_of(const Dataset& dataset) { return dataset.get(0).as_tensor(); }

template <class T>
Tensor row_of(const std::vector<T>& values, const Shape& shape) {
  return Tensor::of(std::span<const T>(values)).reshape(shape);
}

TEST(Transforms, BytesBecomeNormalizedFloats) {
  const Dataset images = rows(row_of<std::uint8_t>({0, 51, 255, 102}, {1, 2, 2}));
  const Tensor out = first_of(images.cast(DType::float32).scale(1 / 255.0).normalize({0.5, 0.25}, {0.5, 2}));
  EXPECT_EQ(out.shape(), (Shape{2, 2}));
  const float scale = static_cast<float>(1 / 255.0);
  EXPECT_THAT(values_of<float>(out), ElementsAre((0 * scale - 0.5F) / 0.5F, (51 * scale - 0.5F) / 0.5F,
                                                 (255 * scale - 0.25F) / 2, (102 * scale - 0.25F) / 2));
}

TEST(Transforms, MovesMayStandBeforeAndBehindArithmetic) {
  // Two pixels of three channels: (height 1, width 2, channel 3).
  const Dataset image = rows(row_of<float>({1, 2, 3, 4, 5, 6}, {1, 1, 2, 3}));
  const std::vector<double> mean = {1, 2, 3};
  const std::vector<double> std = {1, 2, 4};
  const auto expected = ElementsAre(0.F, 3.F, 0.F, 1.5F, 0.F, 0.75F);
  EXPECT_THAT(values_of<float>(first_of(image.permute({2, 0, 1}).normalize(mean, std))), expected);
  EXPECT_THAT(values_of<float>(first_of(image.normalize(mean, std, -1).permute({2, 0, 1}))), expected);
  EXPECT_THAT(values_of<float>(first_of(image.normalize(mean, std, 2).flip({2}))),
              ElementsAre(0.F, 0.F, 0.F, 0.75F, 1.5F, 3.F));
  EXPECT_THAT(values_of<float>(first_of(image.normalize(mean, std, 2).crop({1, 1}, {1, 2}))), ElementsAre(1.5F, 0.75F));
}

TEST(Transforms, PaddingTakesPartInWhatFollows) {
  const Dataset row = rows(row_of<float>({1, 2}, {1, 1, 2}));
  const Tensor out = first_of(row.pad({0, 1}, {1, 0}, 7).scale(2).flip({0}));
  EXPECT_EQ(out.shape(), (Shape{2, 3}));
  EXPECT_THAT(values_of<float>(out), ElementsAre(14.F, 14.F, 14.F, 14.F, 2.F, 4.F));
}

TEST(Transforms, PaddingOfOneColumnAlone) {
  const Dataset row = rows(row_of<std::int32_t>({1, 2, 3}, {1, 3, 1}));
  EXPECT_THAT(values_of<std::int32_t>(first_of(row.pad({1}, {1}, -1))), ElementsAre(-1, 1, -1, -1, 2, -1, -1, 3, -1));
}

TEST(Transforms, OneHotRows) {
  const Dataset labels = rows(row_of<std::uint8_t>({2, 0}, {1, 2}));
  const Tensor out = first_of(labels.one_hot(3));
  EXPECT_EQ(out.shape(), (Shape{2, 3}));
  EXPECT_THAT(values_of<std::int64_t>(out), ElementsAre(0, 0, 1, 1, 0, 0));
  const auto error = error_of([&] { labels.one_hot(2).get(0); });
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error->message(), HasSubstr("one_hot(2) found class 2"));
}

TEST(Transforms, ClampKeepsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> out = values_of<float>(first_of(rows(row_of<float>({-2, nan, 5}, {1, 3})).clamp(-1, 1)));
  EXPECT_EQ(out[0], -1);
  EXPECT_TRUE(std::isnan(out[1]));
  EXPECT_EQ(out[2], 1);
}

TEST(Transforms, AStrictCastRefusesWhatDoesNotFit) {
  struct Case {
    double value;
    DType to;
    bool fits;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  const Case cases[] = {{300, DType::uint8, false},
                        {255.9, DType::uint8, true},
                        {-0.9, DType::uint8, true},
                        {-1, DType::uint8, false},
                        {std::nan(""), DType::int32, false},
                        {9223372036854775808.0, DType::int64, false},
                        {-9223372036854775808.0, DType::int64, true},
                        {18446744073709551616.0, DType::uint64, false},
                        {1e300, DType::float32, false},
                        {infinity, DType::float32, true},
                        {infinity, DType::int8, false},
                        {65536, DType::float16, false},
                        {464, DType::float8_e4m3fn, true},
                        {464.1, DType::float8_e4m3fn, false},
                        {-500, DType::float8_e4m3fn, false},
                        {infinity, DType::float8_e4m3fn, false},
                        {infinity, DType::float8_e5m2, true},
                        {infinity, DType::float8_e5m2fnuz, false},
                        {std::nan(""), DType::float8_e4m3fn, true},
                        {-1, DType::float8_e8m0fnu, false},
                        {0, DType::float8_e8m0fnu, true},
                        {2, DType::boolean, true}};
  for (const Case& one : cases) {
    const Dataset dataset = rows(row_of<double>({1, one.value}, {1, 2}));
    SCOPED_TRACE(one.to.name());
    EXPECT_NO_THROW(dataset.cast(one.to).get(0));
    if (one.fits) {
      EXPECT_NO_THROW(dataset.cast(one.to, true).get(0)) << one.value;
      continue;
    }
    const auto error = error_of([&] { dataset.cast(one.to, true).get(0); });
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error->message(), HasSubstr("sample 0"));
    EXPECT_THAT(error->message(), HasSubstr("strict cast from float64"));
  }
}

TEST(Transforms, AStrictCastRefusesAnImaginaryPartThatHasNoPlace) {
  using Complex = std::complex<double>;
  for (const DType& to : {DType::float32, DType::int32}) {
    EXPECT_NO_THROW(rows(row_of<Complex>({{1, 0}, {2, 0}}, {1, 2})).cast(to, true).get(0));
    const Dataset dataset = rows(row_of<Complex>({{1, 0}, {2, 3}}, {1, 2}));
    EXPECT_NO_THROW(dataset.cast(to).get(0));
    EXPECT_NO_THROW(dataset.cast(DType::complex64, true).get(0));
    const auto error = error_of([&] { dataset.cast(to, true).get(0); });
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error->message(), HasSubstr("real part 2"));
  }
}

TEST(Transforms, EachKeyHasAPart) {
  const Value sample = Value::dict({{"a", Value::dict({{"image", Value::tensor(row_of<float>({1, 2}, {2}))}})},
                                    {"mask", Value::tensor(row_of<float>({3, 4}, {2}))}});
  const Dataset samples = dataset(std::vector<Value>{sample});
  EXPECT_NO_THROW(samples.scale(2, {"image", "mask"}).get(0));
  const auto wrong = error_of([&] { samples.scale(2, {"image", "maks"}).get(0); });
  EXPECT_EQ(wrong->code(), ErrorCode::kKeyNotFound);
  EXPECT_THAT(wrong->message(), ::testing::AllOf(HasSubstr("'maks'"), HasSubstr("did you mean 'mask'")));
  EXPECT_THAT(error_of([&] { samples.scale(2, {"a"}).get(0); })->message(), HasSubstr("the dict right around it"));
}

TEST(Transforms, WhatDoesNotSuitASampleNamesIt) {
  const Dataset bytes = rows(row_of<std::uint8_t>({1, 2, 3, 4}, {2, 2}));
  struct Case {
    Dataset dataset;
    ErrorCode code;
    const char* says;
  };
  const Case cases[] = {
      {bytes.scale(2), ErrorCode::kDTypeMismatch, "scale wants float16"},
      {bytes.normalize({0}, {1}), ErrorCode::kDTypeMismatch, "cast to one of them first"},
      {bytes.cast(DType::float32).normalize({0, 0, 0}, {1, 1, 1}), ErrorCode::kShapeMismatch, "3 channels"},
      {bytes.permute({1, 0}), ErrorCode::kShapeMismatch, "permute"},
      {bytes.permute({0, 0}), ErrorCode::kInvalidArgument, "twice"},
      {bytes.center_crop({3}), ErrorCode::kShapeMismatch, "center_crop asks for [0, 3)"},
      {bytes.crop({1}, {2}), ErrorCode::kShapeMismatch, "crop asks for [1, 3)"},
      {bytes.random_crop({3}), ErrorCode::kShapeMismatch, "random_crop"},
      {bytes.flip({1}), ErrorCode::kShapeMismatch, "flip names dimension 1"},
      {bytes.pad({1}, {1}, 256), ErrorCode::kInvalidArgument, "pad with 256"},
      {bytes.pad({1}, {1}, 0.5), ErrorCode::kInvalidArgument, "pad with 0.5"},
      {bytes.clamp(-1, 3), ErrorCode::kInvalidArgument, "-1 is not a number of that type"},
      {bytes.cast(DType::float32).one_hot(3), ErrorCode::kDTypeMismatch, "one_hot wants class numbers"},
      {bytes.cast(DType::float32, false, {"image"}), ErrorCode::kKeyNotFound, "'image'"},
      {strings({"a", "b"}).cast(DType::float32), ErrorCode::kInvalidArgument, "no tensor"},
  };
  for (const Case& one : cases) {
    const auto error = error_of([&] { one.dataset.get(1); });
    EXPECT_EQ(error->code(), one.code) << error->what();
    EXPECT_THAT(error->message(), HasSubstr(one.says));
    EXPECT_THAT(error->message(), HasSubstr("sample 1"));
  }
}

TEST(Transforms, ArgumentsAreChecked) {
  const Dataset dataset = rows(row_of<float>({1, 2}, {1, 2}));
  EXPECT_THROW(dataset.scale(std::nan("")), Error);
  EXPECT_THROW(dataset.normalize({}, {}), Error);
  EXPECT_THROW(dataset.normalize({1, 2}, {1, 2, 3}), Error);
  EXPECT_THROW(dataset.normalize({0}, {0}), Error);
  EXPECT_THROW(dataset.normalize({0}, {-1}), Error);
  EXPECT_THROW(dataset.clamp(std::nan(""), 1), Error);
  EXPECT_THROW(dataset.clamp(0, std::nan("")), Error);
  EXPECT_THROW(dataset.clamp(2, 1), Error);
  EXPECT_THROW(dataset.crop({0}, {1, 1}), Error);
  EXPECT_THROW(dataset.crop({-1}, {1}), Error);
  EXPECT_THROW(dataset.center_crop({-1}), Error);
  EXPECT_THROW(dataset.center_crop({}), Error);
  EXPECT_THROW(dataset.center_crop({1}, {0, 1}), Error);
  EXPECT_THROW(dataset.random_flip({}, 1.5), Error);
  EXPECT_THROW(dataset.pad({1}, {1, 2}), Error);
  EXPECT_THROW(dataset.pad({std::numeric_limits<std::int64_t>::max()}, {1}).get(0), Error);
  EXPECT_THROW(dataset.one_hot(0), Error);
}

TEST(Transforms, ChainsOnChainsAndZips) {
  const Dataset base = rows(row_of<std::uint8_t>({1, 2, 3, 4}, {2, 2}));
  const Dataset floats = base.cast(DType::float32);
  const Dataset both = zip({{"x", floats}, {"y", base}}).cast(DType::float64, false, {"x"}).scale(2, {"x"});
  const Value sample = both.get(1);
  EXPECT_THAT(values_of<double>(sample["x"].as_tensor()), ElementsAre(6., 8.));
  EXPECT_THAT(values_of<std::uint8_t>(sample["y"].as_tensor()), ElementsAre(3, 4));
}

TEST(Transforms, AChainGivesWhatItsStagesGiveOneByOne) {
  const std::vector<Dataset (*)(const Dataset&)> stages = {
      [](const Dataset& before) { return before.cast(DType::float32); },
      [](const Dataset& before) {
        return before.permute({2, 0, 1});
      },
      [](const Dataset& before) {
        return before.pad({1, 0}, {0, 2}, 7);
      },
      [](const Dataset& before) {
        return before.normalize({1, 2}, {2, 4});
      },
      [](const Dataset& before) {
        return before.center_crop({2, 3});
      },
      [](const Dataset& before) { return before.flip({-1}); },
      [](const Dataset& before) { return before.clamp(-1, 2); },
      [](const Dataset& before) {
        return before.permute({1, 2, 0});
      },
      [](const Dataset& before) { return before.cast(DType::int16); },
  };
  std::vector<std::int32_t> values(2 * 3 * 2 * 2);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i) - 4;
  Dataset chain = rows(row_of<std::int32_t>(values, {2, 3, 2, 2}));
  Dataset apart = chain;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    chain = stages[i](chain);
    apart = rows(DataLoader(stages[i](apart), {.batch_size = 2}).next()->tensor());
    const Tensor batch = DataLoader(chain, {.batch_size = 2}).next()->tensor();
    EXPECT_TRUE(Tensor::identical(batch, DataLoader(apart, {.batch_size = 2}).next()->tensor())) << i;
  }
}

TEST(Transforms, TheStageIsToldThatATensorDoesNotSuit) {
  const Dataset base = rows(row_of<std::uint8_t>({1, 2, 3, 4}, {2, 2}));
  const auto error = error_of([&] { base.cast(DType::float32).center_crop({9}).scale(2).get(1); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("center_crop asks for"));
  const Dataset named = zip({{"x", base}, {"y", base}}).cast(DType::float32, false, {"x"}).scale(2, {"z"});
  EXPECT_EQ(test::code_of([&] { named.get(0); }), ErrorCode::kKeyNotFound);
}

TEST(Transforms, RandomStepsAreTheSameForAnyNumberOfWorkers) {
  std::vector<float> values(64 * 64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Dataset cropped = rows(row_of<float>(values, {16, 16, 16})).random_crop({4, 4}).random_flip();
  const auto epoch = [&](std::size_t workers, std::uint64_t seed, std::uint64_t number) {
    DataLoader loader(cropped, {.batch_size = 16, .num_workers = workers, .seed = seed});
    loader.set_epoch(number);
    return values_of<float>(loader.next()->value.as_tensor());
  };
  const std::vector<float> first = epoch(0, 7, 0);
  EXPECT_EQ(epoch(2, 7, 0), first);
  EXPECT_NE(epoch(2, 7, 1), first);
  EXPECT_NE(epoch(2, 8, 0), first);
}

TEST(Transforms, RandomNumbersAreThoseOfTheIndexWhereTheyAreDrawn) {
  std::vector<float> values(64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Dataset row = rows(row_of<float>(values, {1, 64}));
  // A cast draws nothing, so it makes no difference on which side of repeat() it is.
  const auto starts = [](const Dataset& dataset) {
    DataLoader loader(dataset, {.batch_size = 8, .seed = 3});
    return values_of<float>(loader.next()->value.as_tensor());
  };
  const std::vector<float> drawn = starts(repeat(row.cast(DType::float64), 8).random_crop({1}).cast(DType::float32));
  EXPECT_EQ(drawn, starts(repeat(row, 8).random_crop({1})));
  EXPECT_NE(drawn, std::vector<float>(8, drawn.front()));
}

}  // namespace
}  // namespace penstock
