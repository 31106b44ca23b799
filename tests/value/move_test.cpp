#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "penstock/value.h"
#include "support/errors.h"

namespace penstock {
namespace {

Value nested(const Tensor& shared) {
  return Value::dict(
      {{"a", Value::tensor(shared)},
       {"b", Value::list({Value::tensor(shared.slice(0, 1, 4)), Value::integer(7)})},
       {"empty", Value::tensor(Tensor::empty({0, 3}))},
       {"turned", Value::tensor(Tensor::of<double>({1, 2, 3, 4, 5, 6}).reshape({2, 3}).transpose(0, 1))}});
}

TEST(ValueTo, WhatIsThereAlreadyIsTheSameValue) {
  const Value value = nested(Tensor::of<int>({1, 2, 3, 4}));
  EXPECT_TRUE(value.to(Device{}).same_node(value));
  EXPECT_TRUE(Value::integer(1).to(Device{}).is(Value::Kind::kInt));
}

TEST(ValueTo, ACopyKeepsSharingStridesAndMarks) {
  const Tensor shared = Tensor::of<int>({1, 2, 3, 4}).with_requires_grad(true);
  const Value value = nested(shared);
  const Value copy = value.to(Device{}, {.copy = true});
  const Tensor a = copy["a"].as_tensor();
  const Tensor b = copy["b"][0].as_tensor();
  EXPECT_FALSE(a.buffer().shares_memory_with(shared.buffer()));
  EXPECT_TRUE(Tensor::identical(a, shared));
  EXPECT_TRUE(a.requires_grad());
  EXPECT_EQ(b.data(), a.data() + sizeof(int));
  EXPECT_EQ(copy["b"][1].as_int(), 7);
  EXPECT_EQ(copy["empty"].as_tensor().shape(), (Shape{0, 3}));
  const Tensor turned = copy["turned"].as_tensor();
  EXPECT_TRUE(Tensor::identical(turned, value["turned"].as_tensor()));
  EXPECT_EQ(turned.strides(), value["turned"].as_tensor().strides());
}

TEST(ValueTo, ManyTensorsOfEverySizeArrive) {
  std::vector<Value> items;
  for (std::int64_t size = 1; size < 3'000'000; size = size * 3 + 1) {
    Tensor tensor = Tensor::empty({size}, DType::uint8);
    for (std::int64_t i = 0; i < size; ++i) tensor.data()[i] = static_cast<std::byte>(i * 31 + size);
    items.push_back(Value::tensor(tensor));
  }
  const Value value = Value::list(std::move(items));
  const Value copy = value.to(Device{}, {.copy = true});
  for (std::size_t i = 0; i < value.size(); ++i) {
    EXPECT_TRUE(Tensor::identical(copy[i].as_tensor(), value[i].as_tensor())) << i;
  }
}

TEST(ValueTo, ALargeCopyStaysOnTheHost) {
  const Tensor large = Tensor::zeros({20 << 20}, DType::uint8);
  const Value copied = Value::tensor(large).to(Device{}, {.copy = true});
  EXPECT_TRUE(Tensor::identical(copied.as_tensor(), large));
  EXPECT_FALSE(copied.as_tensor().buffer().shares_memory_with(large.buffer()));
}

TEST(ValueTo, RefusesWhatIsNotLoadedAndAbsentDevices) {
  EXPECT_EQ(test::code_of([] { Value::entry(0).to(Device{}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([] { Value::integer(1).to(Device(DeviceType::kCuda, 9999)); }), ErrorCode::kNoDevice);
}

}  // namespace
}  // namespace penstock
