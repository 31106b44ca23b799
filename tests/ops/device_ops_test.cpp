// Public operations on a device against the same on the CPU. Without a device, simulated or real, there is nothing to
// compare; PENSTOCK_LIBCUDA names a driver.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <functional>

#include "penstock/ops.h"
#include "penstock/random.h"
#include "penstock/stream.h"
#include "support/errors.h"
#include "support/tensors.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

class DeviceOps : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!is_available()) GTEST_SKIP() << "no device";
  }

  const Device device_{DeviceType::kCuda, 0};
};

Tensor sample(const Shape& shape, std::uint64_t seed, const DType& dtype = DType::float32) {
  Generator generator(seed);
  return (randn(shape, generator) * 4).to(dtype);
}

/// The same bits, on the device as on the CPU.
void expect_same(const Tensor& found, const Tensor& expected) {
  EXPECT_EQ(found.device().type, DeviceType::kCuda);
  EXPECT_TRUE(Tensor::identical(found, expected)) << found.to_string() << " " << expected.to_string();
}

TEST_F(DeviceOps, NumbersThatAreAddressesOfTheDeviceStayNumbers) {
  const Tensor there = full({8}, 0, DType::int64, device_);
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(there.data()));
  expect_same(full({4}, address, DType::int64, device_), full({4}, address, DType::int64));
  expect_same(there + address, full({8}, 0, DType::int64) + address);
}

TEST_F(DeviceOps, ElementwiseGivesTheBitsOfTheCpu) {
  using Work = std::function<Tensor(const Tensor&, const Tensor&)>;
  const std::array<Work, 9> all = {
      [](const Tensor& x, const Tensor& y) { return x + y; },
      [](const Tensor& x, const Tensor& y) { return x * y - 2.5; },
      [](const Tensor& x, const Tensor& y) { return 1 / (x * x + 1) + y; },
      [](const Tensor& x, const Tensor& y) { return x >= y; },
      [](const Tensor& x, const Tensor&) { return exp(-abs(x)); },
      [](const Tensor& x, const Tensor&) { return tanh(x) + relu(x); },
      [](const Tensor& x, const Tensor&) { return log(abs(x) + 0.5) / sqrt(abs(x)); },
      [](const Tensor& x, const Tensor&) { return x.transpose(0, 1) * 3; },
      [](const Tensor& x, const Tensor&) { return x.slice(1, 1, 9, 3) == 0; },
  };
  for (const DType::Code type : {DType::Code::kFloat32, DType::Code::kFloat16, DType::Code::kBFloat16,
                                 DType::Code::kFloat64, DType::Code::kInt32, DType::Code::kInt8}) {
    const Tensor x = sample({6, 10}, 1, DType(type));
    const Tensor y = sample({10}, 2, DType(type));
    for (std::size_t i = 0; i < all.size(); ++i) {
      SCOPED_TRACE(x.dtype().name() + " " + std::to_string(i));
      expect_same(all[i](x.to(device_), y.to(device_)), all[i](x, y));
    }
  }
}

TEST_F(DeviceOps, ReductionsGiveTheBitsOfTheCpu) {
  const Tensor x = sample({50, 130}, 3);
  const Tensor y = x.to(device_);
  expect_same(sum(y), sum(x));
  expect_same(sum(y, 0), sum(x, 0));
  expect_same(sum(y.transpose(0, 1), 0, true), sum(x.transpose(0, 1), 0, true));
  expect_same(mean(y, 1), mean(x, 1));
  expect_same(mean(y.to(DType::float16)), mean(x.to(DType::float16)));
  expect_same(max(y, 1).values, max(x, 1).values);
  expect_same(min(y, 0).indices, min(x, 0).indices);
  expect_same(argmax(y), argmax(x));
  expect_same(sum(y > 0), sum(x > 0));
  const Tensor large = sample({20000}, 4);
  expect_same(sum(large.to(device_)), sum(large));
  expect_same(argmax(large.to(device_)), argmax(large));
  expect_same(sum(Tensor::zeros({0, 3}, DType::float32, device_), 0), Tensor::zeros({3}));
}

TEST_F(DeviceOps, MatmulIsNear) {
  const Tensor a = sample({3, 1, 20, 33}, 5);
  const Tensor b = sample({2, 33, 17}, 6);
  const Tensor difference = abs(matmul(a.to(device_), b.to(device_)).to(Device{}) - matmul(a, b));
  EXPECT_LT(max(difference).item<float>(), 1e-3F);
  const Tensor integers = sample({5, 7}, 7, DType::int8);
  expect_same(matmul(integers.to(device_), integers.to(device_).transpose(0, 1)),
              matmul(integers, integers.transpose(0, 1)));
  expect_same(matmul(Tensor::zeros({2, 0}, DType::float32, device_), Tensor::zeros({0, 3}, DType::float32, device_)),
              Tensor::zeros({2, 3}));
}

TEST_F(DeviceOps, JoiningAndChoosing) {
  const Tensor x = sample({4, 5}, 8, DType::int16);
  const Tensor y = sample({4, 3}, 9, DType::float32);
  const std::array<Tensor, 2> host = {x, y};
  const std::array<Tensor, 2> there = {x.to(device_), y.to(device_)};
  expect_same(cat(there, 1), cat(host, 1));
  const std::array<Tensor, 2> same = {there[0], there[0]};
  EXPECT_EQ(stack(same, 2).shape(), (Shape{4, 5, 2}));
  const Tensor index = Tensor::of<std::int64_t>({3, 0, 3});
  expect_same(index_select(there[0].transpose(0, 1), 1, index.to(device_)), index_select(x.transpose(0, 1), 1, index));
  EXPECT_EQ(test::code_of([&] { index_select(there[0], 0, Tensor::of<std::int64_t>({4}).to(device_)); }),
            ErrorCode::kIndexOutOfRange);
}

TEST_F(DeviceOps, CreationAndRandomNumbersGiveTheBitsOfTheCpu) {
  expect_same(full({3, 4}, 2.5, {}, device_), full({3, 4}, 2.5));
  expect_same(ones({7}, DType::bfloat16, device_), ones({7}, DType::bfloat16));
  expect_same(arange(5, -9, -2, {}, device_), arange(5, -9, -2));
  expect_same(arange(0, 2, 0.3, DType::float16, device_), arange(0, 2, 0.3, DType::float16));
  for (const DType::Code type :
       {DType::Code::kFloat16, DType::Code::kBFloat16, DType::Code::kFloat32, DType::Code::kFloat64}) {
    Generator one(5);
    Generator other(5);
    expect_same(rand({33}, one, DType(type), device_), rand({33}, other, DType(type)));
    expect_same(randn({3, 7}, one, DType(type), device_), randn({3, 7}, other, DType(type)));
    expect_same(randint(-4, 9, {5}, one, DType::int32, device_), randint(-4, 9, {5}, other, DType::int32));
    EXPECT_EQ(one.offset(), other.offset());
  }
}

TEST_F(DeviceOps, CastsAndCopiesOfStridedTensors) {
  const Tensor x = sample({4, 6}, 10).transpose(0, 1);
  const Tensor y = sample({4, 6}, 10).to(device_).transpose(0, 1);
  for (const DType::Code type : {DType::Code::kFloat16, DType::Code::kFloat8E4M3FN, DType::Code::kUInt8,
                                 DType::Code::kBool, DType::Code::kComplex64, DType::Code::kFloat64}) {
    expect_same(y.to(DType(type)).contiguous(), x.to(DType(type)).contiguous());
  }
  expect_same(y.contiguous(), x.contiguous());
  expect_same(y.to(DType::complex64).to(DType::boolean), x.to(DType::boolean).contiguous());
}

TEST_F(DeviceOps, MixedDevicesAreNamed) {
  const Tensor here = ones({2, 2});
  const Tensor there = here.to(device_);
  const auto product = test::error_of([&] { return matmul(there, here); });
  ASSERT_TRUE(product);
  EXPECT_EQ(product->code(), ErrorCode::kDeviceMismatch);
  EXPECT_EQ(
      product->message(),
      "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! (matmul: a, "
      "b)");
  const auto total = test::error_of([&] { return here + there; });
  ASSERT_TRUE(total);
  EXPECT_THAT(total->message(), HasSubstr("cpu and cuda:0! (add: a, b)"));
  const std::array<Tensor, 2> both = {here, there};
  EXPECT_EQ(test::code_of([&] { return cat(both); }), ErrorCode::kDeviceMismatch);
}

TEST_F(DeviceOps, ComplexNumbersAreStoredAndNotComputedWith) {
  const std::complex<double> number(0.3, -1.7);
  for (const DType::Code code : {DType::Code::kComplex32, DType::Code::kComplex64, DType::Code::kComplex128}) {
    const DType dtype(code);
    const Tensor x =
        (sample({5, 5}, 20, DType::float64) + sample({5, 5}, 21, DType::float64) * std::complex(0.0, 1.0)).to(dtype);
    const Tensor u = x.to(device_);
    expect_same(u, x);
    expect_same(u.transpose(0, 1).contiguous(), x.transpose(0, 1).contiguous());
    expect_same(u.to(DType::complex128), x.to(DType::complex128));
    expect_same(u[1].slice(0, 0, 5, 2), x[1].slice(0, 0, 5, 2));
    const Tensor rows = Tensor::of<std::int64_t>({3, 0});
    const Tensor there = rows.to(device_);
    expect_same(index_select(u, 0, there), index_select(x, 0, rows));
    const auto says = [&](const char* name, const std::function<Tensor()>& operation) {
      const auto error = test::error_of(operation);
      ASSERT_TRUE(error) << name;
      EXPECT_EQ(error->code(), ErrorCode::kUnsupported) << name;
      EXPECT_EQ(error->message(), std::string(name) + " of " + dtype.name() + " on " + device_.to_string() +
                                      ": devices compute with real numbers alone; move the tensor to the host by "
                                      "cpu(), or compute with torch");
    };
    says("add", [&] { return u + u; });
    says("div", [&] { return u / 2; });
    says("mul", [&] { return ones({5, 5}, DType::int8, device_) * u; });
    says("eq", [&] { return u == u; });
    says("ne", [&] { return u != number; });
    says("neg", [&] { return -u; });
    says("abs", [&] { return abs(u); });
    says("exp", [&] { return exp(u); });
    says("sum", [&] { return sum(u); });
    says("mean", [&] { return mean(u, 0); });
    says("matmul", [&] { return matmul(u, u); });
    says("add", [&] { return u.slice(0, 0, 0) + 1; });
  }
  EXPECT_EQ(test::code_of([&] { return sample({3}, 50).to(device_) * number; }), ErrorCode::kUnsupported);
}

/// A tensor without dimensions in host memory goes with every device, as in PyTorch.
TEST_F(DeviceOps, NumbersGoEverywhere) {
  const Tensor x = sample({5}, 11, DType::float16);
  const Tensor number = Tensor::of<double>({0.1}).reshape({});
  expect_same(x.to(device_) * number, x * number);
  expect_same(number - x.to(device_), number - x);
  expect_same(Tensor::of<std::uint8_t>({1, 2}).to(device_) + 300, Tensor::of<std::uint8_t>({1, 2}) + 300);
}

TEST_F(DeviceOps, WorkGoesToTheCurrentStream) {
  const Stream stream(device_);
  const Tensor x = sample({1000}, 12);
  Tensor y;
  {
    const StreamGuard guard(stream);
    y = x.to(device_) * 2 + 1;
  }
  // Another stream waits for the writes of the first.
  expect_same(y - 1, x * 2 + 1 - 1);
}

}  // namespace
}  // namespace penstock
