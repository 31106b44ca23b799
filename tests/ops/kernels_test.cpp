// The device kernels against the CPU's loops, bit by bit: compiled for the host from the same source, and launched by
// the code that launches them on devices.

#include "ops/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "ops/device_ops.h"
#include "ops/promotion.h"
#include "penstock/ops.h"
#include "penstock/random.h"
#include "support/errors.h"
#include "support/host_kernels.h"
#include "support/tensors.h"

namespace penstock::ops {
namespace {

/// Runs kernels at once in host memory, as so many threads, the last one first.
class HostLauncher final : public Launcher {
 public:
  void launch(std::string_view kernel, const void* parameters, std::uint64_t count, std::span<const Tensor>,
              std::span<const Tensor>) override {
    ASSERT_GT(count, 0U) << kernel;
    kernel.remove_prefix(kernel.find('/') + 1);
    const auto* found = std::find_if(test::kHostKernels.begin(), test::kHostKernels.end(),
                                     [kernel](const test::HostKernel& known) { return known.name == kernel; });
    ASSERT_NE(found, test::kHostKernels.end()) << kernel;
    constexpr std::uint64_t threads = 37;
    for (std::uint64_t thread = threads; thread-- > 0;) found->run(parameters, thread, threads);
    ++launches;
  }

  int launches = 0;
};

constexpr std::array kReals = {DType::Code::kBool,           DType::Code::kUInt8,          DType::Code::kUInt16,
                               DType::Code::kUInt32,         DType::Code::kUInt64,         DType::Code::kInt8,
                               DType::Code::kInt16,          DType::Code::kInt32,          DType::Code::kInt64,
                               DType::Code::kFloat16,        DType::Code::kBFloat16,       DType::Code::kFloat32,
                               DType::Code::kFloat64,        DType::Code::kFloat8E4M3FN,   DType::Code::kFloat8E5M2,
                               DType::Code::kFloat8E4M3FNUZ, DType::Code::kFloat8E5M2FNUZ, DType::Code::kFloat8E8M0FNU};
constexpr std::array kComplexes = {DType::Code::kComplex32, DType::Code::kComplex64, DType::Code::kComplex128};

/// Numbers about zero, of every size and sign that the type has: NaN, infinities and subnormals among them.
Tensor sample(const Shape& shape, const DType& dtype, std::uint64_t seed) {
  Generator generator(seed);
  const Tensor moderate = randn(shape, generator, DType::float64) * 5;
  const Tensor any = test::numbered_tensor(shape, dtype, seed);
  const Tensor out = moderate.to(dtype);
  for (std::int64_t i = 0; i < out.numel(); i += 3) {
    std::memcpy(out.data() + static_cast<std::size_t>(i) * dtype.itemsize(),
                any.data() + static_cast<std::size_t>(i) * dtype.itemsize(), dtype.itemsize());
  }
  return out;
}

/// The parts of contiguous complex numbers.
Tensor parts_of(const Tensor& tensor) {
  const DType part = real_type(tensor.dtype());
  const Shape shape{2 * tensor.numel()};
  return Tensor(tensor.buffer(), part, shape, shape.contiguous_strides());
}

/// Equal but for the bits of NaNs, which processors choose.
bool same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (Tensor::identical(a, b)) return true;
  if (a.dtype().is_complex()) return same(parts_of(a), parts_of(b));
  if (!a.dtype().is_floating()) return false;
  const Tensor x = a.to(DType::float64);
  const Tensor y = b.to(DType::float64);
  return sum((x == y) + ((x != x) * (y != y))).item<std::int64_t>() == a.numel();
}

TEST(Kernels, ConvertEveryPair) {
  HostLauncher launcher;
  std::vector<DType::Code> all(kReals.begin(), kReals.end());
  all.insert(all.end(), kComplexes.begin(), kComplexes.end());
  for (const DType::Code from : all) {
    const Tensor source = sample({7, 50}, from, 3).slice(1, 0, 50, 2);
    for (const DType::Code to : all) {
      const Tensor expected = source.to(DType(to)).contiguous();
      const Tensor found = Tensor::zeros(source.shape(), DType(to));
      cast_on_device(launcher, source, found);
      if (found.dtype().is_complex()) {
        EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.nbytes()), 0) << DType(from) << " " << DType(to);
      } else {
        EXPECT_TRUE(same(found, expected)) << DType(from) << " to " << DType(to);
      }
    }
  }
}

constexpr std::array kBinary = {BinaryOp::kAdd,   BinaryOp::kSubtract, BinaryOp::kMultiply, BinaryOp::kDivide,
                                BinaryOp::kEqual, BinaryOp::kNotEqual, BinaryOp::kLess,     BinaryOp::kLessEqual};

Tensor on_host(BinaryOp op, const Operand& a, const Operand& b) {
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSubtract:
      return a - b;
    case BinaryOp::kMultiply:
      return a * b;
    case BinaryOp::kDivide:
      return a / b;
    case BinaryOp::kEqual:
      return a == b;
    case BinaryOp::kNotEqual:
      return a != b;
    case BinaryOp::kLess:
      return a < b;
    default:
      return a <= b;
  }
}

TEST(Kernels, BinaryOfEveryPair) {
  HostLauncher launcher;
  for (const DType::Code left : kReals) {
    for (const DType::Code right : kReals) {
      const Tensor a = sample({5, 1, 9}, left, 1).transpose(0, 2);
      const Tensor b = sample({4, 5}, right, 2);
      for (const BinaryOp op : kBinary) {
        Tensor expected;
        try {
          expected = on_host(op, a, b);
        } catch (const Error&) {
          continue;  // no common type, or no meaning
        }
        const DType common = op == BinaryOp::kDivide ? floating_type(result_type(a, b)) : result_type(a, b);
        const std::array<Side, 2> sides = {Side{a, common.code()}, Side{b, common.code()}};
        const Tensor found =
            binary_on_device(launcher, op, sides, expected.shape(), compute_type(common), expected.dtype(), Device{});
        EXPECT_TRUE(same(found, expected)) << a.dtype() << " " << static_cast<int>(op) << " " << b.dtype();
      }
    }
  }
}

TEST(Kernels, UnaryOfEveryType) {
  HostLauncher launcher;
  using Function = Tensor (*)(const Tensor&);
  constexpr std::array<std::pair<UnaryOp, Function>, 7> functions = {{{UnaryOp::kNegate, neg},
                                                                      {UnaryOp::kAbs, abs},
                                                                      {UnaryOp::kRelu, relu},
                                                                      {UnaryOp::kExp, exp},
                                                                      {UnaryOp::kLog, log},
                                                                      {UnaryOp::kSqrt, sqrt},
                                                                      {UnaryOp::kTanh, tanh}}};
  std::vector<DType::Code> all(kReals.begin(), kReals.end());
  all.insert(all.end(), kComplexes.begin(), kComplexes.end());
  for (const DType::Code type : all) {
    const Tensor x = sample({11, 30}, type, 4).transpose(0, 1);
    for (const auto& [op, function] : functions) {
      if (type == DType::Code::kBool && op < UnaryOp::kExp) continue;
      if (x.dtype().is_complex() && op == UnaryOp::kRelu) continue;
      const Tensor expected = function(x);
      const DType common = op < UnaryOp::kExp ? x.dtype() : floating_type(x.dtype());
      const Tensor found =
          unary_on_device(launcher, op, Side{x, common.code()}, compute_type(common), expected.dtype());
      EXPECT_TRUE(same(found, expected)) << x.dtype() << " " << static_cast<int>(op);
    }
  }
}

TEST(Kernels, SumsHaveTheSameBits) {
  HostLauncher launcher;
  for (const Shape& shape :
       {Shape{5}, Shape{33}, Shape{4097}, Shape{3, 5000}, Shape{5000, 3}, Shape{2, 70, 4, 5}, Shape{70000}}) {
    for (const DType::Code type : {DType::Code::kFloat32, DType::Code::kFloat16, DType::Code::kFloat64,
                                   DType::Code::kInt8, DType::Code::kBool}) {
      Generator generator(6);
      const Tensor x = randn(shape, generator).to(DType(type));
      const DType in = x.dtype().is_floating() ? compute_type(x.dtype()) : DType::int64;
      for (std::int64_t dim = -1; dim < static_cast<std::int64_t>(shape.rank()); ++dim) {
        const std::vector<std::int64_t> dims(dim < 0 ? 0 : 1, dim);
        for (const Tensor& view : {x, x.transpose(0, x.rank() - 1)}) {
          const Reduction reduction = make_reduction(view, dims, false, "sum");
          EXPECT_TRUE(Tensor::identical(sum_on_device(launcher, reduction, in), sum_as(reduction, in)))
              << shape << " " << x.dtype() << " " << dim;
        }
      }
    }
  }
}

TEST(Kernels, ExtremesAreTheFirst) {
  HostLauncher launcher;
  for (const Shape& shape : {Shape{5}, Shape{9000}, Shape{3, 4200}, Shape{4200, 3}, Shape{6, 7, 8}}) {
    for (const DType::Code type : kReals) {
      const Tensor x = sample(shape, type, 8);
      for (std::int64_t dim = -1; dim < static_cast<std::int64_t>(shape.rank()); ++dim) {
        const std::vector<std::int64_t> dims(dim < 0 ? 0 : 1, dim);
        for (const Extreme extreme : {Extreme::kMax, Extreme::kMin}) {
          const Reduction reduction = make_reduction(x, dims, false, "max");
          const ExtremeResults found = extremes_on_device(launcher, reduction, extreme);
          const ExtremeResults expected = find_extremes(reduction, extreme);
          EXPECT_TRUE(same(found.values, expected.values)) << shape << " " << x.dtype();
          EXPECT_TRUE(Tensor::identical(found.indices, expected.indices)) << shape << " " << x.dtype();
        }
      }
    }
  }
}

TEST(Kernels, MatmulOfIntegersAndFloats) {
  HostLauncher launcher;
  const Tensor a = (arange(0, 2 * 9 * 7).reshape({2, 1, 9, 7}) - 60);
  const Tensor b = (arange(0, 3 * 5 * 7).reshape({3, 5, 7}) - 50).transpose(1, 2);
  for (const DType::Code type : {DType::Code::kInt64, DType::Code::kFloat32, DType::Code::kFloat64}) {
    const Tensor expected = matmul(a.to(DType(type)), b.to(DType(type)));  // exact in any order
    const Tensor found = Tensor::zeros(expected.shape(), DType(type));
    multiply_on_device(launcher, a.to(DType(type)), b.to(DType(type)), Shape{2, 3}, found);
    EXPECT_TRUE(Tensor::identical(found, expected)) << DType(type);
  }
}

TEST(Kernels, CopiesOfEveryWidthStrideAndAlignment) {
  HostLauncher launcher;
  for (const DType::Code type : {DType::Code::kInt8, DType::Code::kFloat16, DType::Code::kFloat32,
                                 DType::Code::kFloat64, DType::Code::kComplex128, DType::Code::kFloat6E2M3}) {
    const DType dtype(type);
    const Tensor bytes = test::numbered_tensor({static_cast<std::int64_t>(dtype.itemsize()) * 60 + 1}, DType::uint8);
    for (const std::size_t offset : {0, 1}) {
      const Tensor x(bytes.buffer(), dtype, Shape{3, 4, 5}, Shape{3, 4, 5}.contiguous_strides(), offset);
      const std::array<std::size_t, 3> order = {2, 0, 1};
      const Tensor from = x.permute(order);
      const Tensor to = Tensor::zeros(from.shape(), dtype);
      copy_on_device(launcher, from, to);
      EXPECT_TRUE(Tensor::identical(from, to)) << dtype << " at " << offset;
    }
  }
}

TEST(Kernels, FillRangeAndSelect) {
  HostLauncher launcher;
  const Tensor filled = Tensor::empty({3, 4}, DType::float32);
  fill_on_device(launcher, filled, std::as_bytes(std::span("\0\0\x80\x3F", 4)));
  EXPECT_TRUE(Tensor::identical(filled, ones({3, 4})));
  const Tensor columns = Tensor::zeros({3, 4}, DType::float32);
  fill_on_device(launcher, columns.slice(1, 0, 4, 2), std::as_bytes(std::span("\0\0\x80\x3F", 4)));
  EXPECT_EQ(sum(columns).item<float>(), 6);

  const Tensor integers = Tensor::empty({20}, DType::int16);
  range_on_device(launcher, integers, std::int64_t{-3}, std::int64_t{7});
  EXPECT_TRUE(Tensor::identical(integers, arange(-3, 137, 7, DType::int16)));
  const Tensor reals = Tensor::empty({20}, DType::float32);
  range_on_device(launcher, reals, 0.1, 0.3);
  EXPECT_TRUE(Tensor::identical(reals, arange(0.1, 6.1, 0.3)));

  const Tensor x = arange(0, 60, 1, DType::int16).reshape({3, 4, 5});
  const Tensor indices = Tensor::of<std::int64_t>({3, 0, 3});
  for (std::size_t dim = 0; dim < 2; ++dim) {
    const Tensor index = dim == 0 ? Tensor::of<std::int64_t>({2, 0, 2}) : indices;
    const Tensor expected = index_select(x, static_cast<std::int64_t>(dim), index);
    const Tensor found = Tensor::zeros(expected.shape(), DType::int16);
    select_on_device(launcher, x, dim, index, found);
    EXPECT_TRUE(Tensor::identical(found, expected));
  }
}

TEST(Kernels, RandomNumbersAreThoseOfTheCpu) {
  HostLauncher launcher;
  for (const DType::Code type : {DType::Code::kFloat32, DType::Code::kFloat16, DType::Code::kBFloat16}) {
    const int bits = type == DType::Code::kFloat32 ? 24 : type == DType::Code::kFloat16 ? 11 : 8;
    Generator generator(77);
    const Tensor found = Tensor::empty({1003}, DType(type));
    draw_floats_on_device(launcher, found, {77, 0}, Draw::kUniform, bits);
    EXPECT_TRUE(Tensor::identical(found, rand({1003}, generator, DType(type))));
    draw_floats_on_device(launcher, found, {77, generator.offset()}, Draw::kNormal, bits);
    EXPECT_TRUE(Tensor::identical(found, randn({1003}, generator, DType(type))));
  }
  Generator generator(78);
  const Tensor doubles = Tensor::empty({7, 11}, DType::float64);
  draw_doubles_on_device(launcher, doubles, {78, 0}, Draw::kNormal);
  EXPECT_TRUE(Tensor::identical(doubles, randn({7, 11}, generator, DType::float64)));
  const Tensor integers = Tensor::empty({9}, DType::int32);
  draw_integers_on_device(launcher, integers, {78, generator.offset()}, -5, 100);
  EXPECT_TRUE(Tensor::identical(integers, randint(-5, 95, {9}, generator, DType::int32)));
}

TEST(Kernels, TooManyDimensionsAreRefused) {
  HostLauncher launcher;
  Shape shape;
  Strides strides;
  std::int64_t stride = 1 << 20;
  for (int d = 0; d < 10; ++d, stride /= 4) {
    shape.push_back(2);
    strides.push_back(stride);
  }
  const Tensor x(Buffer::allocate(std::size_t{1} << 22), DType::uint8, shape, strides);
  const Side side{x, DType::Code::kUInt8};
  EXPECT_EQ(test::code_of([&] { unary_on_device(launcher, UnaryOp::kNegate, side, DType::uint8, DType::uint8); }),
            ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace penstock::ops
