#include "ops/transfer.h"

#include <gtest/gtest.h>

#include "penstock/error.h"
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

}  // namespace
}  // namespace penstock
