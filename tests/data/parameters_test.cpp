// What programs hand over where a variable is not set, and where `i - 1` of an unsigned number passes below zero.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "data/support.h"
#include "penstock/async.h"
#include "penstock/penstock.h"

namespace penstock {
namespace {

using Calls = std::vector<std::function<void()>>;

void expect_refused(const Calls& calls, const char* says) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto error = test::error_of(calls[i]);
    ASSERT_TRUE(error) << "call " << i;
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument) << "call " << i << ": " << error->what();
    EXPECT_THAT(error->message(), testing::HasSubstr(says)) << "call " << i;
  }
}

TEST(Parameters, ANullPointerIsNoPathAndNoKey) {
  const char* const unset = nullptr;
  const Tensor tensor = Tensor::of({1, 2});
  const Value dict = {{"a", 1}};
  const Dataset dataset = rows(tensor);
  const Archive archive;
  const WritableArchive writable;
  expect_refused({
                     [&] { load(unset); },
                     [&] { load_tensor(unset); },
                     [&] { load_async(unset).get(); },
                     [&] { save_async(dict, unset).get(); },
                     [&] { open(unset); },
                     [&] { open_writable(unset); },
                     [&] { open_source(unset); },
                     [&] { open_source(unset, RemoteOptions()); },
                     [&] { raw(unset, {.dtype = DType::int8}); },
                     [&] { save(tensor, unset); },
                     [&] { save(dict, unset); },
                     [&] { Writer{unset}; },
                     [&] { files(unset); },
                     [&] { rows(unset); },
                     [&] { rows("x.npz", unset); },
                     [&] { packed(unset); },
                     [&] { pack(dataset, unset); },
                     [&] { shards(unset); },
                     [&] { documents(unset); },
                     [&] { with_labels(dataset, unset); },
                     [&] { LoaderPosition::from_json(unset); },
                     [&] { archive[unset]; },
                     [&] { archive.contains(unset); },
                     [&] { archive.part(unset); },
                     [&] { archive.with_prefix(unset); },
                     [&] { writable[unset]; },
                     [&] { dict[unset]; },
                     [&] { dict.find(unset); },
                     [&] { dict.contains(unset); },
                     [&] { dict.with(unset, 1); },
                     [&] { dict.value_or(unset, 1); },
                     [&] { dict.value_or("b", unset); },
                     [&] { Tensor::of({"a", unset}); },
                     [&] { DType::from_name(unset); },
                     [&] { Batch(dict, {0})[unset]; },
                 },
                 "null pointer");
}

TEST(Parameters, AnUnsignedNumberBelowZeroIsNotTheLast) {
  const std::size_t none = 0;
  const Tensor tensor = test::numbered_tensor(Shape{2, 3}, DType::int32, 0);
  const Dataset dataset = rows(tensor);
  const SampleStream samples = stream(dataset);
  const Value list = std::vector<Value>{1, 2};
  expect_refused({
                     [&] { tensor.select(0, none - 1); },
                     [&] { tensor.select(none - 1, 0); },
                     [&] { tensor.slice(0, 0, none - 1); },
                     [&] { tensor.size(none - 1); },
                     [&] { tensor.transpose(0, none - 1); },
                     [&] {
                       tensor.permute({0, none - 1});
                     },
                     [&] { sum(tensor, none - 1); },
                     [&] {
                       mean(tensor, {0, none - 1});
                     },
                     [&] { argmax(tensor, none - 1); },
                     [&] {
                       cat({tensor, tensor}, none - 1);
                     },
                     [&] { dataset.get(none - 1); },
                     [&] { dataset[none - 1]; },
                     [&] { dataset.describe(none - 1); },
                     [&] { dataset.normalize({0}, {1}, none - 1); },
                     [&] { take(dataset, none - 1); },
                     [&] { skip(dataset, none - 1); },
                     [&] { repeat(dataset, none - 1); },
                     [&] { windows(dataset, none - 1); },
                     [&] { samples.take(none - 1); },
                     [&] { samples.repeat(none - 1); },
                     [&] { samples.shuffle(none - 1); },
                     [&] { list[none - 1]; },
                     [&] { list.with(none - 1, 3); },
                     [&] { DataLoader(dataset, {.batch_size = none - 1}); },
                     [&] { sampler::random(5, {.num_samples = none - 1}); },
                     [&] { collate::pad_to(none - 1); },
                 },
                 "is -1 where");
  EXPECT_EQ(tensor.select(1, -1).at<int>(1), tensor.at<int>(1, 2));
  EXPECT_EQ(tensor.size(-1), 3);
  EXPECT_EQ(dataset.describe(-1), dataset.describe(1));
}

}  // namespace
}  // namespace penstock
