#include "ops/transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "penstock/error.h"
#include "penstock/ops.h"
#include "penstock/stream.h"
#include "penstock/transfer.h"
#include "support/devices.h"
#include "support/errors.h"

namespace penstock {
namespace {

bool same_memory(const Tensor& a, const Tensor& b) { return a.data() == b.data(); }

TEST(TensorTo, TheSameTensorWhenNothingChanges) {
  const Tensor tensor = Tensor::of<float>({1, 2, 3});
  EXPECT_TRUE(same_memory(tensor.to(Device{}), tensor));
  EXPECT_TRUE(same_memory(tensor.cpu(), tensor));
  EXPECT_FALSE(tensor.is_cuda());
  const Tensor copy = tensor.to("cpu", {.copy = true});
  EXPECT_FALSE(same_memory(copy, tensor));
  EXPECT_TRUE(Tensor::identical(copy, tensor));
}

TEST(TensorTo, TakesTypeAndDeviceOfAnother) {
  const Tensor tensor = Tensor::of<float>({1, 2, 3});
  const Tensor wide = tensor.to(Tensor::empty({1}, DType::float64));
  EXPECT_TRUE(Tensor::identical(wide, Tensor::of<double>({1, 2, 3})));
  EXPECT_TRUE(same_memory(tensor.to(wide.to(tensor)), tensor));
  EXPECT_FALSE(same_memory(tensor.to(tensor, {.copy = true}), tensor));
}

TEST(TensorCopyTo, FillsTheTarget) {
  const Tensor from = Tensor::of<int>({1, 2, 3});
  const Tensor to = Tensor::zeros({3}, DType::int32);
  EXPECT_TRUE(from.copy_to(to).done());
  EXPECT_TRUE(Tensor::identical(from, to));
}

TEST(TensorCopyTo, RefusesWhatDoesNotFit) {
  const Tensor from = Tensor::of<int>({1, 2, 3, 4});
  EXPECT_EQ(test::code_of([&] { from.copy_to(Tensor::empty({4})); }), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(test::code_of([&] { from.copy_to(Tensor::empty({2, 2}, DType::int32)); }), ErrorCode::kShapeMismatch);
  const Tensor turned = Tensor::empty({2, 2}, DType::int32).transpose(0, 1);
  EXPECT_EQ(test::code_of([&] { from.reshape({2, 2}).copy_to(turned); }), ErrorCode::kShapeMismatch);
  int fixed[4] = {};
  const Tensor read_only(Buffer::wrap(fixed, sizeof fixed, nullptr, true), DType::int32, {4});
  EXPECT_EQ(test::code_of([&] { from.copy_to(read_only); }), ErrorCode::kInvalidArgument);
}

TEST(TensorCuda, AnAbsentDeviceIsNoDevice) {
  const Tensor tensor = Tensor::of<int>({1});
  EXPECT_EQ(test::code_of([&] { return tensor.cuda(9999); }), ErrorCode::kNoDevice);
  if (!is_available()) {
    EXPECT_EQ(test::code_of([&] { return tensor.pin_memory(); }), ErrorCode::kNoDevice);
  }
}

class CountedTransfer : public test::WithDevice {};

TEST_F(CountedTransfer, ThereAndBack) {
  const Tensor host = test::pattern(1000);
  const TransferScope scope;
  const Tensor there = host.to(device);
  EXPECT_EQ(scope.stats().host_to_device.copies, 1U);
  EXPECT_EQ(scope.stats().host_to_device.bytes, 1000U);
  EXPECT_EQ(scope.stats().host_to_device.waits, 1U);
  EXPECT_EQ(scope.stats().device_to_host.copies, 0U);
  EXPECT_TRUE(Tensor::identical(there.cpu(), host));
  EXPECT_EQ(scope.stats().device_to_host.copies, 1U);
  EXPECT_EQ(scope.stats().device_to_host.bytes, 1000U);
  EXPECT_EQ(scope.stats().device_to_host.waits, 1U);
  EXPECT_EQ(scope.stats().total().copies, 2U);
}

TEST_F(CountedTransfer, ItemsAndNothing) {
  const Tensor value = Tensor::of<float>({2.5F}).to(device);
  const TransferScope scope(TransferScope::Threads::kCurrent);
  EXPECT_EQ(value.item<float>(), 2.5F);
  EXPECT_EQ(scope.stats().device_to_host.bytes, 4U);
  static_cast<void>(Tensor::empty({0, 3}).to(device));
  static_cast<void>(value.to(device));
  EXPECT_EQ(scope.stats().host_to_device.copies, 0U);
}

TEST_F(CountedTransfer, WhatIsNotWaitedForIsNoWait) {
  const Tensor pinned = test::pattern(4096).pin_memory();
  const TransferScope scope;
  const Tensor there = pinned.to(device, {.non_blocking = true});
  EXPECT_EQ(scope.stats().host_to_device.copies, 1U);
  EXPECT_EQ(scope.stats().host_to_device.waits, 0U);
  const Tensor back(Buffer::allocate_pinned(4096), DType::uint8, {4096});
  const Event copied = there.copy_to(back);
  EXPECT_EQ(scope.stats().device_to_host.copies, 1U);
  EXPECT_EQ(scope.stats().device_to_host.waits, 0U);
  copied.synchronize();
  static_cast<void>(there.copy_to(Tensor::empty({4096}, DType::uint8)));
  EXPECT_EQ(scope.stats().device_to_host.waits, 1U);
}

TEST_F(CountedTransfer, BetweenDevices) {
  if (device_count() < 2) GTEST_SKIP() << "one device";
  const Tensor there = test::pattern(100).to(device);
  const TransferScope scope;
  const Tensor other = there.to(Device(DeviceType::kCuda, 1));
  EXPECT_EQ(scope.stats().peer_to_peer.copies, 1U);
  EXPECT_EQ(scope.stats().peer_to_peer.bytes, 100U);
  EXPECT_EQ(scope.stats().total().waits, 0U);
  synchronize(other.device());
}

class PingPongOfTensors : public test::WithDevice {
 protected:
  void SetUp() override {
    WithDevice::SetUp();
    set_transfer_warning_handler([this](const TransferWarning& warning) { warnings.push_back(warning); });
  }
  void TearDown() override { set_transfer_warning_handler({}); }

  std::vector<TransferWarning> warnings;
};

TEST_F(PingPongOfTensors, ToWarnsOnce) {
  Tensor tensor = Tensor::zeros({7, 3}, DType::int16);
  for (int trip = 0; trip < 10; ++trip) {
    EXPECT_EQ(warnings.size(), trip < TransferWarning::kRoundTrips ? 0U : 1U);
    tensor = tensor.to(device).cpu();
  }
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].shape, (Shape{7, 3}));
  EXPECT_EQ(warnings[0].dtype, DType::int16);
  EXPECT_EQ(warnings[0].device, device);
}

TEST_F(PingPongOfTensors, CopyToWarnsOnce) {
  const Tensor host = Tensor::zeros({100});
  const Tensor there = Tensor::empty({100}, DType::float32, device);
  for (int trip = 0; trip < 10; ++trip) {
    host.copy_to(there).synchronize();
    there.copy_to(host).synchronize();
  }
  EXPECT_EQ(warnings.size(), 1U);
}

TEST_F(PingPongOfTensors, ATrainingLoopHasNone) {
  Tensor weight = Tensor::zeros({4}).to(device);
  for (int step = 0; step < 50; ++step) {
    const Tensor batch = Tensor::zeros({4}).to(device);
    weight = weight + batch;
    EXPECT_EQ(sum(weight).item<float>(), 0.0F);
    static_cast<void>(weight.cpu());
  }
  EXPECT_TRUE(warnings.empty());
}

TEST(TensorCopyFrom, WritesToRowsColumnsAndSlices) {
  const Tensor table = Tensor::zeros({3, 4}, DType::int32);
  table[1].copy_from(Tensor::of<int>({1, 2, 3, 4}));
  table.select(1, 0).copy_from(Tensor::of<int>({7, 8, 9}));
  table.slice(0, 2, 3).slice(1, 1, 4, 2).copy_from(Tensor::of<int>({5, 6}).reshape({1, 2}));
  EXPECT_TRUE(Tensor::identical(table, Tensor::of<int>({7, 0, 0, 0, 8, 2, 3, 4, 9, 5, 0, 6}).reshape({3, 4})));
  // From a strided view as well, and to a single element.
  table[0].slice(0, 1, 4).copy_from(table.select(1, 0));
  table[2][3].copy_from(Tensor::of<int>({42})[0]);
  EXPECT_TRUE(Tensor::identical(table, Tensor::of<int>({7, 7, 8, 9, 8, 2, 3, 4, 9, 5, 0, 42}).reshape({3, 4})));
}

TEST(TensorCopyFrom, MayBeOfTheSameMemory) {
  const Tensor row = Tensor::of<int>({1, 2, 3, 4, 5});
  row.slice(0, 1, 5).copy_from(row.slice(0, 0, 4));
  EXPECT_TRUE(Tensor::identical(row, Tensor::of<int>({1, 1, 2, 3, 4})));
  const Tensor square = Tensor::of<int>({1, 2, 3, 4}).reshape({2, 2});
  square.copy_from(square.transpose(0, 1));
  EXPECT_TRUE(Tensor::identical(square, Tensor::of<int>({1, 3, 2, 4}).reshape({2, 2})));
}

TEST(TensorCopyFrom, RefusesWhatDoesNotFit) {
  const Tensor to = Tensor::zeros({2}, DType::int32);
  EXPECT_EQ(test::code_of([&] { to.copy_from(Tensor::of<int>({1})); }), ErrorCode::kShapeMismatch);
  EXPECT_EQ(test::code_of([&] { to.copy_from(Tensor::of<float>({1, 2})); }), ErrorCode::kDTypeMismatch);
  EXPECT_EQ(test::code_of([&] { to.copy_from(Tensor()); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(test::code_of([&] { Tensor().copy_from(to); }), ErrorCode::kInvalidArgument);
  const std::vector<int> fixed = {1, 2};
  EXPECT_EQ(test::code_of([&] { Tensor::view(fixed).copy_from(to); }), ErrorCode::kInvalidArgument);
  const Tensor repeated(to.buffer(), DType::int32, {2}, {0});
  EXPECT_EQ(test::code_of([&] { repeated.copy_from(Tensor::of<int>({1, 2})); }), ErrorCode::kInvalidArgument);
}

TEST(TensorCopyTo, NamesWhatWritesToAView) {
  const Tensor table = Tensor::zeros({3, 2}, DType::int32);
  const Tensor column = Tensor::of<int>({1, 2, 3});
  const std::string message = test::error_of([&] { column.copy_to(table.select(1, 0)); })->message();
  EXPECT_THAT(message, testing::HasSubstr("target.copy_from(source)"));
  EXPECT_THAT(message, testing::Not(testing::HasSubstr("contiguous()")));
}

}  // namespace
}  // namespace penstock
