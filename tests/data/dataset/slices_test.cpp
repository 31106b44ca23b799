#include "data/dataset/slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "data/support.h"
#include "penstock/lengths.h"
#include "penstock/windows.h"
#include "support/served_folder.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

using Numbers = std::vector<std::int64_t>;

constexpr std::int64_t kLargestRow = std::numeric_limits<std::int64_t>::max();

/// Slice i of the array is sample i, alone and in batches of any order.
void expect_slices(const Dataset& dataset, const Tensor& array, const Numbers& starts, const Numbers& lengths) {
  ASSERT_EQ(dataset.size(), std::ssize(starts));
  const auto expected = [&](std::size_t i) {
    return test::bits_of(Value::tensor(array.slice(0, starts[i], starts[i] + lengths[i])));
  };
  for (std::size_t i = 0; i < starts.size(); ++i) {
    EXPECT_EQ(test::bits_of(dataset.get(static_cast<std::int64_t>(i))), expected(i)) << i;
  }
  DataLoader loader(dataset,
                    {.batch_size = 3, .shuffle = true, .num_workers = 2, .collate = collate::ragged(), .seed = 5});
  std::int64_t seen = 0;
  for (const Batch& batch : loader) {
    for (std::size_t i = 0; i < batch.indices.size(); ++i, ++seen) {
      EXPECT_EQ(test::bits_of(batch.value[i]), expected(static_cast<std::size_t>(batch.indices[i])));
    }
  }
  EXPECT_EQ(seen, dataset.size());
}

TEST(Slices, AreThoseOfTheArrayHoweverItLies) {
  const Tensor array = test::numbered_rows(20, 3);
  const Numbers starts = {7, 0, 19, 5, 20, 3, 0};
  const Numbers lengths = {4, 20, 1, 0, 0, 4, 2};
  expect_slices(slices(rows(array), starts, lengths), array, starts, lengths);
  test::TemporaryFolder folder;
  for (const char* extension : {".npy", ".safetensors", ".pt"}) {
    const std::string path = folder / (std::string("a") + extension);
    save(array, path, {.sync = false});
    for (const bool mmap : {true, false}) {
      expect_slices(slices(rows(path, {}, mmap), starts, lengths), array, starts, lengths);
    }
  }
  const Tensor turned = test::numbered_rows(3, 20).transpose(0, 1);
  expect_slices(slices(rows(turned), starts, lengths), turned, starts, lengths);
  const Tensor flat = array.reshape({60});
  expect_slices(slices(rows(flat), starts, lengths), flat, starts, lengths);
  const Tensor deep = array.reshape({20, 1, 3, 1});
  expect_slices(slices(rows(deep), starts, lengths), deep, starts, lengths);
  const Tensor hollow = Tensor::zeros({20, 0}, DType::int32);
  expect_slices(slices(rows(hollow), starts, lengths), hollow, starts, lengths);
}

TEST(Slices, OfSeveralArraysCountRowsFromArrayToArray) {
  const Tensor array = test::numbered_rows(20, 3);
  const Dataset many = concat({rows(array.slice(0, 0, 8)), rows(array.slice(0, 8, 8)), rows(array.slice(0, 8, 20))});
  const Numbers starts = {7, 0, 19, 8, 20, 9, 8};
  const Numbers lengths = {1, 8, 1, 0, 0, 11, 12};
  expect_slices(slices(many, starts, lengths), array, starts, lengths);
  expect_slices(slices(many, {3, 5, 12}), array, {0, 3, 8}, {3, 5, 12});
}

TEST(Slices, OverTheEndsOfArraysArePutTogether) {
  const Tensor array = test::numbered_rows(40, 3);
  test::TemporaryFolder folder;
  const test::ServedFolder served(folder.path());
  save(array.slice(0, 0, 8), folder / "0.npy", {.sync = false});
  save(array.slice(0, 20, 40), folder / "1.npy", {.sync = false});
  const Dataset memory = rows(array.slice(0, 8, 20));
  const Numbers starts = {7, 0, 19, 8, 20, 3, 8, 40, 6, 0};
  const Numbers lengths = {2, 40, 21, 0, 0, 30, 12, 0, 1, 8};
  for (const bool mmap : {true, false}) {
    const Dataset many = concat(
        {rows(folder / "0.npy", {}, mmap), memory, rows(array.slice(0, 9, 9)), rows(folder / "1.npy", {}, mmap)});
    expect_slices(slices(many, starts, lengths), array, starts, lengths);
  }
  const Dataset far = concat({rows(served.url("0.npy")), memory, rows(served.url("1.npy"))});
  expect_slices(slices(far, starts, lengths), array, starts, lengths);
  EXPECT_EQ(slices(far, starts, lengths).describe(1), served.url("0.npy") + "[0:] to " + served.url("1.npy") + "[:20]");
  const auto over = test::error_of([&] { slices(far, {39}, {2}); });
  EXPECT_EQ(over->code(), ErrorCode::kIndexOutOfRange);
  const Dataset cut = concat({rows(array.slice(0, 0, 20)), rows(folder / "0.npy", {}, true)});
  std::filesystem::resize_file(folder / "0.npy", 130);
  const auto error = test::error_of([&] { slices(cut, {19}, {6}).get(0); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->path(), folder / "0.npy");
}

TEST(Slices, OneBehindTheOtherTakeHalfTheIndex) {
  const Tensor array = test::numbered_rows(9, 2);
  const Dataset joined = slices(rows(array), {4, 0, 3, 2});
  expect_slices(joined, array, {0, 4, 4, 7}, {4, 0, 3, 2});
  EXPECT_FALSE(joined.impl().slices()->table.lengths().defined());
  EXPECT_THAT(test::values_of<std::int64_t>(joined.impl().slices()->table.starts()), ElementsAre(0, 4, 4, 7, 9));
  const Dataset given = slices(rows(array), {2, 4, 4}, {2, 0, 1});
  EXPECT_FALSE(given.impl().slices()->table.lengths().defined());
  expect_slices(given, array, {2, 4, 4}, {2, 0, 1});
  const Dataset apart = slices(rows(array), {0, 4}, {3, 1});
  EXPECT_EQ(apart.impl().slices()->table.starts().numel(), 2);
  EXPECT_EQ(slices(rows(array), Numbers{}, Numbers{}).size(), 0);
}

TEST(Slices, AreKnownWithoutReading) {
  test::TemporaryFolder folder;
  save(test::numbered_rows(50, 2), folder / "a.npy", {.sync = false});
  const Dataset read = slices(rows(folder / "a.npy", {}, false), {0, 10, 40}, {10, 30, 5});
  std::filesystem::resize_file(folder / "a.npy", 128);
  EXPECT_THAT(lengths(read), ElementsAre(10, 30, 5));
  EXPECT_THAT(lengths(read.cast(DType::float32)), ElementsAre(10, 30, 5));
  EXPECT_EQ(sampler::length_buckets(read, {.boundaries = {20}, .batch_size = 2}).size(), 2);
  EXPECT_THAT(read.describe(1), HasSubstr("a.npy[10:40]"));
  EXPECT_EQ(test::code_of([&] { read.get(2); }), ErrorCode::kTruncated);
}

TEST(Slices, ArePadded) {
  const Dataset some = slices(rows(test::numbered_rows(6, 1).reshape({6})), {1, 3, 2});
  const Value batch = DataLoader(some, {.batch_size = 3, .collate = collate::pad({.value = -1})}).next()->value;
  const Tensor padded = batch.is(Value::Kind::kTensor) ? batch.as_tensor() : batch[0].as_tensor();
  EXPECT_THAT(test::values_of<std::int32_t>(padded), ElementsAreArray({0, -1, -1, 1000, 2000, 3000, 4000, 5000, -1}));
}

TEST(Slices, OutsideOfTheArrayAreRefused) {
  const Dataset ten = rows(test::numbered_rows(10, 1));
  const std::vector<std::array<Numbers, 2>> outside = {
      {Numbers{0, 8}, Numbers{1, 3}},
      {Numbers{-1}, Numbers{2}},
      {Numbers{11}, Numbers{0}},
      {Numbers{3}, Numbers{-1}},
      {Numbers{1}, Numbers{kLargestRow}},
      {Numbers{kLargestRow}, Numbers{1}},
      {Numbers{0, 1}, Numbers{1, kLargestRow}},
      {Numbers{0, 5}, Numbers{5, -2}},
      {Numbers{std::numeric_limits<std::int64_t>::min()}, Numbers{0}},
  };
  for (std::size_t i = 0; i < outside.size(); ++i) {
    const auto error = test::error_of([&] { slices(ten, outside[i][0], outside[i][1]); });
    ASSERT_TRUE(error) << i;
    EXPECT_EQ(error->code(), ErrorCode::kIndexOutOfRange) << i;
  }
  const auto error = test::error_of([&] { slices(ten, {0, 8}, {1, 3}); });
  EXPECT_THAT(error->message(), AllOf(HasSubstr("slice 1"), HasSubstr("row 8"), HasSubstr("array has 10")));
  EXPECT_EQ(test::code_of([&] { slices(ten, {0, 1}, {1}); }), ErrorCode::kShapeMismatch);
  EXPECT_EQ(test::code_of([&] { slices(ten, {4, 5}); }), ErrorCode::kShapeMismatch);
  EXPECT_EQ(test::code_of([&] { slices(ten, {4, 7}); }), ErrorCode::kShapeMismatch);
  EXPECT_EQ(test::code_of([&] { slices(ten, {4, -1, 7}); }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(test::code_of([&] { slices(ten, {kLargestRow, kLargestRow}); }), ErrorCode::kIndexOutOfRange);
}

TEST(Slices, AreOfRowsAlone) {
  const Dataset ten = rows(test::numbered_rows(10, 1));
  for (const Dataset& other : {ten.cast(DType::float32), subset(ten, {0, 1}), zip(ten, ten), slices(ten, {10})}) {
    const auto error = test::error_of([&] { slices(other, {0}, {1}); });
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error->message(), HasSubstr("rows()"));
  }
}

TEST(Slices, TablesOfAnotherFormAreRefused) {
  const Dataset ten = rows(test::numbered_rows(10, 1));
  const auto of = [](const Numbers& numbers) { return Tensor::of(std::span<const std::int64_t>(numbers)); };
  EXPECT_EQ(data::sliced(ten, of({0, 4, 10}), {}).size(), 2);
  EXPECT_EQ(test::code_of([&] { data::sliced(ten, of({}), {}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { data::sliced(ten, of({0, 11}), {}); }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(test::code_of([&] { data::sliced(ten, of({4, 3}), {}); }), ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(test::code_of([&] {
              data::sliced(ten, of({4, std::numeric_limits<std::int64_t>::min()}), {});
            }),
            ErrorCode::kIndexOutOfRange);
  EXPECT_EQ(test::code_of([&] { data::sliced(ten, of({0}).to(DType::int32), {}); }), ErrorCode::kDTypeMismatch);
}

}  // namespace
}  // namespace penstock
