// matmul on a device against the same on the CPU: by cuBLAS, which the simulated one counts, and by our own kernel.
// Numbers are small integers, so that sums are exact in every order and results have the bits of the CPU's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "device/backend.h"
#include "penstock/ops.h"
#include "penstock/random.h"
#include "penstock/stream.h"
#include "support/cublas.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/process.h"

namespace penstock {
namespace {

using Code = DType::Code;

constexpr int kExecutionFailed = 13;
constexpr int kNotSupported = 15;

Tensor sample(const Shape& shape, const DType& dtype, std::uint64_t seed) {
  Generator generator(seed);
  const Tensor real = randint(-3, 4, shape, generator, DType::int64);
  return real.to(dtype);
}

Tensor as_it_is(const Tensor& x) { return x; }
Tensor transposed(const Tensor& x) { return x.transpose(x.rank() - 2, x.rank() - 1); }
Tensor every_second(const Tensor& x) {
  return x.slice(x.rank() - 1, 1, x.shape()[x.rank() - 1], 2).slice(x.rank() - 2, 0, x.shape()[x.rank() - 2], 2);
}
Tensor every_second_row(const Tensor& x) { return x.slice(x.rank() - 2, 0, x.shape()[x.rank() - 2], 2); }
Tensor every_second_matrix(const Tensor& x) { return x.slice(0, 0, x.shape()[0], 2); }
Tensor third_column(const Tensor& x) { return x.select(x.rank() - 1, 2); }
Tensor third_column_alone(const Tensor& x) { return x.slice(x.rank() - 1, 2, 3); }
Tensor batch_inside(const Tensor& x) { return x.transpose(0, 1); }
Tensor repeated_row(const Tensor& x) { return {x.buffer(), x.dtype(), {4, x.shape()[0]}, {0, 1}, x.byte_offset()}; }

/// An operand: a view of a tensor of this shape.
struct Operand {
  Shape shape;
  Tensor (*view)(const Tensor&) = as_it_is;
};
struct Case {
  const char* name;
  Operand a;
  Operand b;
  std::uint64_t calls = 1;  ///< of cuBLAS
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"plain", {{5, 7}}, {{7, 3}}},
      {"larger and odd", {{67, 129}}, {{129, 35}}},
      {"one row", {{1, 7}}, {{7, 3}}},
      {"one column", {{5, 7}}, {{7, 1}}},
      {"depth of one", {{5, 1}}, {{1, 3}}},
      {"one element", {{1, 1}}, {{1, 1}}},
      {"vectors", {{7}}, {{7}}},
      {"vector and matrix", {{7}}, {{7, 3}}},
      {"matrix and vector", {{5, 7}}, {{7}}},
      {"strided vectors", {{7, 4}, third_column}, {{7, 5}, third_column}},
      {"column as a matrix", {{5, 7}}, {{7, 5}, third_column_alone}},
      {"column as a transposed matrix",
       {{7, 5}, [](const Tensor& x) { return transposed(third_column_alone(x)); }},
       {{7, 3}}},
      {"transposed a", {{7, 5}, transposed}, {{7, 3}}},
      {"transposed b", {{5, 7}}, {{3, 7}, transposed}},
      {"both transposed", {{7, 5}, transposed}, {{3, 7}, transposed}},
      {"sliced rows", {{10, 7}, every_second_row}, {{14, 3}, every_second_row}},
      {"sliced both ways", {{10, 14}, every_second}, {{14, 6}, every_second}},
      {"a repeated row", {{7}, repeated_row}, {{7, 3}}},
      {"batch", {{4, 5, 7}}, {{4, 7, 3}}},
      {"batch of transposed", {{4, 7, 5}, transposed}, {{4, 3, 7}, transposed}},
      {"batch times one", {{4, 5, 7}}, {{7, 3}}},
      {"batch of rows times one", {{4, 1, 7}}, {{7, 3}}},
      {"transposed batch times one", {{4, 7, 5}, transposed}, {{7, 3}}},
      {"one times batch", {{5, 7}}, {{4, 7, 3}}},
      {"vector times batch", {{7}}, {{4, 7, 3}}},
      {"every second of a batch", {{7, 5, 7}, every_second_matrix}, {{4, 7, 3}}},
      {"every second of a batch times one", {{7, 5, 7}, every_second_matrix}, {{7, 3}}},
      {"batch inside of rows", {{5, 4, 7}, batch_inside}, {{4, 7, 3}}},
      {"batch of two dimensions", {{2, 3, 5, 7}}, {{2, 3, 7, 4}}},
      {"batches across", {{3, 1, 5, 7}}, {{2, 7, 3}}, 2},
      {"batches across in three", {{3, 1, 2, 5, 7}}, {{4, 1, 7, 3}}, 6},
      {"inner batch times one each", {{3, 2, 5, 7}}, {{3, 1, 7, 4}}, 2},
      {"empty rows", {{0, 7}}, {{7, 3}}, 0},
      {"empty depth", {{5, 0}}, {{0, 3}}, 0},
      {"empty batch", {{0, 5, 7}}, {{7, 3}}, 0},
  };
  return all;
}

class DeviceProducts : public test::WithDevice {
 protected:
  void SetUp() override {
    test::WithDevice::SetUp();
    counted_ = test::has_simulated_cublas();
  }
  std::uint64_t products() const { return counted_ ? test::cublas_products() : 0; }
  bool has_cublas() const { return counted_; }

  void expect_same(const Tensor& found, const Tensor& expected) const {
    EXPECT_EQ(found.device(), device);
    // Without the sign of zeros, which the order of a sum decides.
    EXPECT_TRUE(Tensor::identical(found.cpu() + 0, expected + 0)) << found.to_string() << " " << expected.to_string();
  }
  /// Each case of a type; `calls` times each case's calls of cuBLAS.
  void expect_cases(Code code, std::uint64_t calls) const {
    for (const Case& c : cases()) {
      SCOPED_TRACE(DType(code).name() + " " + c.name);
      const Tensor a = sample(c.a.shape, DType(code), 1);
      const Tensor b = sample(c.b.shape, DType(code), 2);
      const std::uint64_t before = products();
      expect_same(matmul(c.a.view(a.to(device)), c.b.view(b.to(device))), matmul(c.a.view(a), c.b.view(b)));
      if (counted_) {
        EXPECT_EQ(products() - before, c.calls * calls);
      }
    }
  }

 private:
  bool counted_ = false;
};

TEST_F(DeviceProducts, AreCublass) {
  const Tensor a = sample({5, 7}, DType::float32, 1);
  const std::uint64_t before = products();
  expect_same(matmul(a.to(device), a.to(device).transpose(0, 1)), matmul(a, a.transpose(0, 1)));
  if (has_cublas()) {
    EXPECT_EQ(products(), before + 1);
  }
}

TEST_F(DeviceProducts, OfFloats) {
  for (const Code code : {Code::kFloat32, Code::kFloat64, Code::kFloat16, Code::kBFloat16}) expect_cases(code, 1);
}

TEST_F(DeviceProducts, OfFloatsThatAreConverted) { expect_cases(Code::kFloat8E4M3FN, 1); }

TEST_F(DeviceProducts, OfIntegersAreOurKernels) {
  for (const Code code : {Code::kInt8, Code::kInt32, Code::kInt64, Code::kUInt8}) expect_cases(code, 0);
}

TEST_F(DeviceProducts, OfOperandsThatAreNotAligned) {
  for (const Code code : {Code::kFloat16, Code::kFloat32, Code::kFloat64}) {
    const Tensor a = sample({5, 7}, DType(code), 1);
    const Tensor bytes = Tensor::empty({static_cast<std::int64_t>(a.nbytes()) + 1}, DType::uint8);
    std::memset(bytes.data(), 0, 1);
    std::memcpy(bytes.data() + 1, a.data(), a.nbytes());
    const Tensor there = bytes.to(device);
    const Tensor odd(there.buffer(), DType(code), a.shape(), a.strides(), there.byte_offset() + 1);
    expect_same(matmul(odd, a.to(device).transpose(0, 1)), matmul(a, a.transpose(0, 1)));
  }
}

/// Sums are float32's until the end: in between a half would lose the 1.
TEST_F(DeviceProducts, RoundOnce) {
  const Tensor ones_of_four = ones({4, 1});
  const Tensor small = Tensor::of<float>({2047, 2, 0, -2048}).reshape({1, 4});
  const Tensor smaller = Tensor::of<float>({255, 2, 0, -256}).reshape({1, 4});
  for (const auto& [code, row] : {std::pair(Code::kFloat16, small), std::pair(Code::kBFloat16, smaller)}) {
    const Tensor found = matmul(row.to(DType(code)).to(device), ones_of_four.to(DType(code)).to(device));
    EXPECT_EQ(found.cpu().to(DType::float32).item<float>(), 1.0F) << DType(code);
  }
}

TEST_F(DeviceProducts, TakeOurKernelWhereCublasRefuses) {
  if (!has_cublas()) GTEST_SKIP() << "PENSTOCK_LIBCUBLAS names no simulated cuBLAS";
  test::fail_cublas(kNotSupported);
  for (const Code code : {Code::kFloat32, Code::kFloat64, Code::kFloat16}) expect_cases(code, 0);
  test::fail_cublas(0);
}

/// As with a type that the processor is too old for.
TEST_F(DeviceProducts, OfHalvesTakeFloatsWhereCublasRefusesHalves) {
  if (!has_cublas()) GTEST_SKIP() << "PENSTOCK_LIBCUBLAS names no simulated cuBLAS";
  const Tensor a = sample({5, 7}, DType::bfloat16, 1);
  const std::uint64_t before = products();
  test::fail_cublas_once(1, kNotSupported);
  expect_same(matmul(a.to(device), a.to(device).transpose(0, 1)), matmul(a, a.transpose(0, 1)));
  EXPECT_EQ(products(), before + 1);
}

TEST_F(DeviceProducts, TakeOurKernelWhereCublasRefusesTheSecondOfABatch) {
  if (!has_cublas()) GTEST_SKIP() << "PENSTOCK_LIBCUBLAS names no simulated cuBLAS";
  const Tensor a = sample({3, 1, 5, 7}, DType::float32, 1);
  const Tensor b = sample({2, 7, 3}, DType::float32, 2);
  test::fail_cublas_once(2, kNotSupported);
  expect_same(matmul(a.to(device), b.to(device)), matmul(a, b));
}

TEST_F(DeviceProducts, ThatFailAreErrors) {
  if (!has_cublas()) GTEST_SKIP() << "PENSTOCK_LIBCUBLAS names no simulated cuBLAS";
  const Tensor x = sample({3, 3}, DType::float32, 1).to(device);
  test::fail_cublas_once(1, kExecutionFailed);
  EXPECT_EQ(test::code_of([&] { matmul(x, x); }), ErrorCode::kDeviceFailed);
}

TEST_F(DeviceProducts, WaitForTheirOperands) {
  const Tensor a = sample({5, 5}, DType::float32, 1);
  const Stream writer(device);
  const Stream other(device);
  Tensor twice;
  Tensor product;
  {
    const StreamGuard guard(writer);
    twice = a.to(device) * 2;
  }
  {
    const StreamGuard guard(other);
    product = matmul(twice, twice);
  }
  expect_same(product, matmul(a * 2, a * 2));
}

TEST_F(DeviceProducts, KeepTheirOperands) {
  const Tensor a = sample({5, 5}, DType::float32, 1);
  const Stream other(device);
  Tensor product;
  {
    const Tensor there = a.to(device);
    const StreamGuard guard(other);
    product = matmul(there, there);
  }
  const Tensor again = Tensor::zeros({5, 5}, DType::float32, device);
  expect_same(product, matmul(a, a));
}

TEST_F(DeviceProducts, OfManyThreads) {
  const Tensor a = sample({9, 9}, DType::float32, 1);
  const Tensor expected = matmul(a, a);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const StreamGuard guard{Stream(device)};
      const Tensor there = a.to(device);
      for (int i = 0; i < 10; ++i) expect_same(matmul(there, there), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Runs in processes of its own only.
TEST_F(DeviceProducts, DISABLED_OfFloatsAreOurKernels) {
  for (const Code code : {Code::kFloat32, Code::kFloat64, Code::kFloat16, Code::kBFloat16}) expect_cases(code, 0);
}

TEST_F(DeviceProducts, AreRightWithoutCublas) {
  if (!has_cublas()) GTEST_SKIP() << "PENSTOCK_LIBCUBLAS names no simulated cuBLAS";
  for (const char* const environment :
       {"PENSTOCK_LIBCUBLAS=", "PENSTOCK_SIM_CUBLAS=not_initialized", "PENSTOCK_SIM_CUBLAS=refuse"}) {
    const test::Ended ended = test::run_again(environment, "DeviceProducts.DISABLED_OfFloatsAreOurKernels");
    EXPECT_EQ(ended.status, 0) << ended.output;
  }
}

}  // namespace
}  // namespace penstock
