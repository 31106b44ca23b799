// Rows of arrays are copied by runs, without a look at each. What comes of it is what the samples by themselves are.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>

#include "data/dataset_impl.h"
#include "data/support.h"
#include "penstock/mix.h"
#include "penstock/save.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

bool is_even(const Dataset& dataset, std::vector<std::int64_t> indices) {
  data::Scratch scratch;
  return dataset.impl().even_rows(indices, scratch).has_value();
}

std::vector<std::int64_t> counted(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(end - begin));
  std::iota(out.begin(), out.end(), begin);
  return out;
}

/// Batches in this order are made of the dataset's samples.
void expect_samples(const Dataset& dataset, const std::vector<std::int64_t>& order, std::int64_t batch_size,
                    const std::string& what) {
  DataLoader loader(
      dataset,
      {.batch_size = batch_size, .sampler = sampler::subset(order), .num_workers = 0, .collate = collate::samples()});
  DataLoader stacked(dataset, {.batch_size = batch_size, .sampler = sampler::subset(order), .num_workers = 0});
  std::size_t at = 0;
  while (const auto batch = loader.next()) {
    const Value rows = stacked.next()->value;
    for (std::int64_t i = 0; i < batch->size(); ++i, ++at) {
      const Value sample = dataset.get(order[at]);
      ASSERT_EQ(test::bits_of(batch->value[static_cast<std::size_t>(i)]), test::bits_of(sample)) << what << " " << at;
      const bool is_tensor = sample.is(Value::Kind::kTensor);
      for (std::size_t part = 0; part < (is_tensor ? 1 : sample.size()); ++part) {
        const Value& stack = is_tensor ? rows : rows[part];
        const Value& own = is_tensor ? sample : sample[part];
        ASSERT_TRUE(Tensor::identical(stack.as_tensor()[i], own.as_tensor())) << what << " " << at;
      }
    }
  }
  EXPECT_EQ(at, order.size());
}

void expect_samples_in_any_order(const Dataset& dataset, const std::string& what) {
  std::vector<std::int64_t> order = counted(0, dataset.size());
  expect_samples(dataset, order, 64, what);
  expect_samples(dataset, order, dataset.size(), what);
  std::mt19937 random(3);
  std::shuffle(order.begin(), order.end(), random);
  expect_samples(dataset, order, 50, what);
  for (std::int64_t& index : order) index = index / 7 * 7 % dataset.size();  // again and again
  expect_samples(dataset, order, 33, what);
}

TEST(EvenRows, GiveTheSamplesOfEveryComposition) {
  for (const std::int64_t width : {0, 1, 3, 13, 64, 700, 3000}) {
    const Dataset a = rows(test::numbered_rows(150, width));
    const Dataset b = rows(test::numbered_tensor({150, 2, 3}, DType::int16, 5));
    const Dataset turned = rows(test::numbered_tensor({4, 150}, DType::float32, 6).transpose(0, 1));
    const std::string what = std::to_string(width);
    expect_samples_in_any_order(a, what);
    expect_samples_in_any_order(zip({a, b, turned}), what + " in a zip");
    expect_samples_in_any_order(concat({a, take(a, 40), skip(a, 90)}), what + " in a row");
    expect_samples_in_any_order(subset(zip({a, repeat(take(b, 50), 3)}), {5, 6, 7, 8, 1, 1, 149, 0}), what + " chosen");
    expect_samples_in_any_order(mix({a, skip(a, 3)}, {2, 1}), what + " mixed");
  }
}

TEST(EvenRows, GiveTheSamplesOfFilesMappedAndRead) {
  const test::TemporaryFolder folder;
  save(test::numbered_rows(400, 37), folder / "a.npy");
  for (const bool mmap : {true, false}) {
    const Dataset file = rows(folder / "a.npy", {}, mmap);
    expect_samples_in_any_order(zip({file, file}), mmap ? "mapped" : "read");
    expect_samples_in_any_order(concat({file, file}), mmap ? "mapped" : "read");
  }
}

TEST(EvenRows, AreSuchWhereverNoFunctionOrFileComesBetween) {
  const Dataset a = rows(test::numbered_rows(20, 3));
  const Dataset both = concat({a, a});
  EXPECT_TRUE(is_even(a, {3, 4}));
  EXPECT_TRUE(is_even(zip({a, subset(a, counted(0, 20))}), {3, 4}));
  EXPECT_TRUE(is_even(both, {20, 39, 25}));
  EXPECT_TRUE(is_even(skip(repeat(both, 3), 5), {16, 17}));
  EXPECT_FALSE(is_even(both, {19, 20})) << "of two arrays";
  EXPECT_FALSE(is_even(zip({a, dataset(20, [](std::int64_t i) { return Value::integer(i); })}), {3, 4}));
}

TEST(EvenRows, PadAndKeepApartAsOthers) {
  const Dataset a = rows(test::numbered_rows(30, 5));
  for (const Collate& collate : {collate::pad(), collate::pad_to(7), collate::ragged()}) {
    DataLoader even(a, {.batch_size = 10, .num_workers = 0, .collate = collate});
    DataLoader other(dataset(30, [&](std::int64_t i) { return a.get(i); }),
                     {.batch_size = 10, .num_workers = 0, .collate = collate});
    EXPECT_EQ(test::rest_of_epoch(even), test::rest_of_epoch(other));
  }
}

TEST(EvenRows, NameTheFirstThatIsGone) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "a.npy";
  save(test::numbered_rows(1000, 1024), path);
  const Dataset file = rows(path, {}, true);
  std::filesystem::resize_file(path, 500 * 1024 * test::numbered_rows(1, 1).dtype().itemsize());
  DataLoader loader(file, {.batch_size = 1000, .num_workers = 0});
  const auto error = test::error_of([&] { loader.next(); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->what(), HasSubstr("sample 499 (")) << "whose last bytes are in the page that is gone";
  EXPECT_EQ(error->path(), path);
}

}  // namespace
}  // namespace penstock
