#include "penstock/promote.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/support.h"
#include "penstock/ops.h"

namespace penstock {
namespace {

using test::TemporaryFolder;

TEST(Promote, FilesOfMixedTypesHaveTheTypeOfAll) {
  TemporaryFolder folder;
  const std::vector<DType> types = {DType::uint8, DType::int16, DType::float32, DType::boolean};
  std::vector<Tensor> tensors;
  for (const DType& type : types) tensors.push_back(Tensor::of<std::int32_t>({0, 1, 1}).to(type));
  test::write_tensors(folder, tensors, ".npy");
  const Dataset mixed = files(folder.path().string());
  DType common = types[0];
  for (const DType& type : types) common = promote_types(common, type);
  const Dataset one = promote(mixed);
  DataLoader loader(one, {.batch_size = 4});
  const Batch batch = *loader.next();
  EXPECT_EQ(batch.tensor().dtype(), common);
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(test::bits_of(Value::tensor(batch.tensor()[i])),
              test::bits_of(Value::tensor(tensors[static_cast<std::size_t>(i)].to(common))));
  }
  EXPECT_EQ(promote(subset(mixed, {1})).get(0).as_tensor().dtype(), DType::int16) << "one type stays";
}

TEST(Promote, GoesByKeys) {
  const auto sample = [](DType x, DType y) {
    return Value::dict({{"x", Value::tensor(Tensor::zeros(Shape{2}, x))},
                        {"y", Value::tensor(Tensor::zeros(Shape{2}, y))},
                        {"name", Value::string("a")}});
  };
  const Dataset mixed = promote(dataset(std::vector<Value>{sample(DType::uint8, DType::int64),  //
                                                           sample(DType::float64, DType::int64)}));
  EXPECT_EQ(mixed.get(0)["x"].as_tensor().dtype(), DType::float64);
  EXPECT_EQ(mixed.get(0)["y"].as_tensor().dtype(), DType::int64);
  const auto pair = [](DType x) {
    return Value::tuple({Value::tensor(Tensor::zeros(Shape{2}, x)), Value::tensor(Tensor::zeros(Shape{2}))});
  };
  EXPECT_EQ(test::code_of([&] {
              promote(dataset(std::vector<Value>{pair(DType::uint8), pair(DType::float64)}));
            }),
            ErrorCode::kUnsupported);
  EXPECT_EQ(test::code_of([&] { promote(rows(Tensor::zeros(Shape{2})).map([](const Tensor& t) { return t; })); }),
            ErrorCode::kUnsupported);
  const Dataset by_place = concat({rows(Tensor::zeros(Shape{2})), rows(Tensor::zeros(Shape{2}, DType::float64))});
  const auto beside = [&](DType label) { return zip({by_place, zip({{"label", rows(Tensor::zeros({4}, label))}})}); };
  EXPECT_EQ(test::code_of([&] { promote(beside(DType::int64)); }), ErrorCode::kUnsupported)
      << "a cast without a key is one of all tensors";
  EXPECT_EQ(promote(beside(DType::float64)).get(0)[0].as_tensor().dtype(), DType::float64);
  EXPECT_EQ(promote(dataset(std::vector<Value>{})).size(), 0);
}

}  // namespace
}  // namespace penstock
