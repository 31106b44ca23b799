// Each operation on elements in every combination of types, with values of every size and sign, in shapes that strides
// and broadcasting make awkward, and at sizes around what the threads of a launch divide among themselves.

#include <array>
#include <sstream>

#include "ops/device_ops.h"
#include "ops/kernels.h"
#include "ops/kernels/findings.h"
#include "ops/kernels/samples.h"
#include "ops/promotion.h"
#include "penstock/error.h"
#include "penstock/ops.h"
#include "penstock/random.h"
#include "support/tensors.h"

namespace penstock::test {
namespace {

using ops::BinaryOp;
using ops::Launcher;
using ops::Side;
using ops::UnaryOp;

constexpr std::array kReals = {DType::Code::kBool,           DType::Code::kUInt8,          DType::Code::kUInt16,
                               DType::Code::kUInt32,         DType::Code::kUInt64,         DType::Code::kInt8,
                               DType::Code::kInt16,          DType::Code::kInt32,          DType::Code::kInt64,
                               DType::Code::kFloat16,        DType::Code::kBFloat16,       DType::Code::kFloat32,
                               DType::Code::kFloat64,        DType::Code::kFloat8E4M3FN,   DType::Code::kFloat8E5M2,
                               DType::Code::kFloat8E4M3FNUZ, DType::Code::kFloat8E5M2FNUZ, DType::Code::kFloat8E8M0FNU};
constexpr std::array kComplexes = {DType::Code::kComplex32, DType::Code::kComplex64, DType::Code::kComplex128};

std::vector<DType::Code> all_types() {
  std::vector<DType::Code> all;
  for (const DType::Code type : kReals) all.push_back(type);
  for (const DType::Code type : kComplexes) all.push_back(type);
  return all;
}

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  ((out << parts << ' '), ...);
  return out.str();
}

/// Dimensions that kernels take.
constexpr std::size_t kRanks = 8;

/// Sizes at which the last thread, block or round of a launch has more or less to do.
std::vector<std::int64_t> sizes_around(std::int64_t threads) {
  return {1, 2, 31, 32, 33, threads - 1, threads, threads + 1, 2 * threads - 1, 2 * threads, 2 * threads + 1};
}

void convert_every_pair(Launcher& launcher, std::int64_t threads, Findings& findings) {
  for (const DType::Code from : all_types()) {
    const Tensor source = sample({7, 50}, DType(from), 3).slice(1, 0, 50, 2);
    for (const DType::Code to : all_types()) {
      const Tensor expected = source.to(DType(to)).contiguous();
      const Tensor found = Tensor::zeros(source.shape(), DType(to));
      ops::cast_on_device(launcher, source, found);
      findings.expect(same(found, expected), text("convert", DType(from), "to", DType(to)));
    }
  }
  for (const DType::Code from : all_types()) {
    for (const Tensor& values : {edges(DType(from)), patterns(DType(from))}) {
      for (const DType::Code to : all_types()) {
        const Tensor found = Tensor::zeros(values.shape(), DType(to));
        ops::cast_on_device(launcher, values, found);
        findings.expect(same(found, values.to(DType(to))),
                        text("convert", values.numel(), DType(from), "to", DType(to)));
      }
    }
  }
  for (std::size_t rank = 1; rank <= kRanks; ++rank) {
    const Tensor x = with_gaps(DType::float32, rank, 5);
    const Tensor found = with_gaps(DType::int16, rank, 6);
    ops::cast_on_device(launcher, x, found);
    findings.expect(Tensor::identical(found.contiguous(), x.to(DType::int16).contiguous()), text("rank", rank));
  }
  for (const std::int64_t size : sizes_around(threads)) {
    if (size <= 0) continue;
    const Tensor x = sample({size}, DType::float32, 5);
    const Tensor found = Tensor::zeros({size}, DType::int16);
    ops::cast_on_device(launcher, x, found);
    findings.expect(same(found, x.to(DType::int16)), text("convert", size, "elements"));
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

/// Does nothing where the types have no common one or the operation no meaning.
void binary(Launcher& launcher, const Tensor& a, const Tensor& b, BinaryOp op, Findings& findings) {
  Tensor expected;
  try {
    expected = on_host(op, a, b);
  } catch (const Error&) {
    return;
  }
  const DType result = result_type(a, b);
  const DType common = op == BinaryOp::kDivide ? ops::floating_type(result) : result;
  const std::array<Side, 2> sides = {Side{a, common.code()}, Side{b, common.code()}};
  const Tensor found = ops::binary_on_device(launcher, op, sides, expected.shape(), ops::compute_type(common),
                                             expected.dtype(), Device{});
  findings.expect(same(found, expected),
                  text("operation", static_cast<int>(op), "of", a.dtype(), a.shape(), "and", b.dtype(), b.shape()));
}

void binary_of(std::span<const DType::Code> left, std::span<const DType::Code> right, Launcher& launcher,
               Findings& findings) {
  for (const DType::Code first : left) {
    for (const DType::Code second : right) {
      const Tensor a = sample({5, 1, 9}, DType(first), 1).transpose(0, 2);
      const Tensor b = sample({4, 5}, DType(second), 2);
      const Tensor c = sample({300}, DType(first), 3);
      const Tensor d = sample({300}, DType(second), 4);
      const Tensor e = patterns(DType(first));
      binary(launcher, e, sample({e.numel()}, DType(second), 5), BinaryOp::kAdd, findings);
      for (const BinaryOp op : kBinary) {
        binary(launcher, a, b, op, findings);
        binary(launcher, c, d, op, findings);
      }
    }
  }
  for (std::size_t rank = 1; rank <= kRanks; ++rank) {
    binary(launcher, with_gaps(DType(left[0]), rank, 1), with_gaps(DType(right[0]), rank, 2), BinaryOp::kAdd, findings);
  }
}

void binary_of_reals(Launcher& launcher, std::int64_t threads, Findings& findings) {
  binary_of(kReals, kReals, launcher, findings);
  for (const std::int64_t size : sizes_around(threads)) {
    if (size <= 0) continue;
    binary(launcher, sample({size}, DType::float32, 1), sample({size}, DType::float32, 2), BinaryOp::kAdd, findings);
    binary(launcher, sample({size}, DType::int64, 1), sample({1}, DType::int64, 2), BinaryOp::kMultiply, findings);
  }
}

void unary_of_every_type(Launcher& launcher, std::int64_t threads, Findings& findings) {
  using Function = Tensor (*)(const Tensor&);
  constexpr std::array<std::pair<UnaryOp, Function>, 7> functions = {{{UnaryOp::kNegate, neg},
                                                                      {UnaryOp::kAbs, abs},
                                                                      {UnaryOp::kRelu, relu},
                                                                      {UnaryOp::kExp, exp},
                                                                      {UnaryOp::kLog, log},
                                                                      {UnaryOp::kSqrt, sqrt},
                                                                      {UnaryOp::kTanh, tanh}}};
  const auto check = [&](const Tensor& x, UnaryOp op, Function function) {
    const Tensor expected = function(x);
    const DType common = op < UnaryOp::kExp ? x.dtype() : ops::floating_type(x.dtype());
    const Tensor found =
        ops::unary_on_device(launcher, op, Side{x, common.code()}, ops::compute_type(common), expected.dtype());
    findings.expect(same(found, expected), text("function", static_cast<int>(op), "of", x.dtype(), x.shape()));
  };
  for (const DType::Code type : kReals) {
    const Tensor x = sample({11, 30}, DType(type), 4).transpose(0, 1);
    for (const auto& [op, function] : functions) {
      if (type == DType::Code::kBool && op < UnaryOp::kExp) continue;
      check(x, op, function);
      check(patterns(DType(type)), op, function);
      check(edges(DType(type)), op, function);
    }
  }
  for (const std::int64_t size : sizes_around(threads)) {
    if (size > 0) check(sample({size}, DType::float32, 6), UnaryOp::kNegate, neg);
  }
  for (std::size_t rank = 1; rank <= kRanks; ++rank) {
    check(with_gaps(DType::int32, rank, 1), UnaryOp::kAbs, abs);
  }
}

/// Sums of `view` along each dimension and all of it.
void sums_of(Launcher& launcher, const Tensor& view, Findings& findings) {
  for (std::int64_t dim = -1; dim < static_cast<std::int64_t>(view.rank()); ++dim) {
    const std::vector<std::int64_t> dims(dim < 0 ? 0 : 1, dim);
    const ops::Reduction reduction = ops::make_reduction(view, dims, false, "sum");
    // Kernels have the conversions of all types that sums are formed in, whichever of them `sum` takes.
    for (const DType& in : {DType::int64, DType::float32, DType::float64}) {
      findings.expect(same(ops::sum_on_device(launcher, reduction, in), ops::sum_as(reduction, in)),
                      text("sum", view.shape(), view.dtype(), dim, "in", in));
    }
  }
}

void sums_have_the_same_bits(Launcher& launcher, std::int64_t /*threads*/, Findings& findings) {
  for (const Shape& shape : {Shape{5}, Shape{33}, Shape{4097}, Shape{3, 5000}, Shape{5000, 3}, Shape{2, 70, 4, 5}}) {
    for (const DType::Code type : {DType::Code::kFloat32, DType::Code::kFloat64}) {
      Generator generator(6);
      const Tensor x = randn(shape, generator, DType::float64).to(DType(type));
      sums_of(launcher, x, findings);
      sums_of(launcher, x.transpose(0, x.rank() - 1), findings);
    }
  }
  for (const DType::Code type : kReals) {
    sums_of(launcher, edges(DType(type)), findings);
    sums_of(launcher, patterns(DType(type)), findings);
    Generator generator(7);
    const Tensor moderate = (randn({9, 40, 3}, generator, DType::float64) * 5).to(DType(type));
    sums_of(launcher, moderate.slice(1, 0, 40, 3).transpose(0, 2), findings);
  }
}

void extremes_are_the_first(Launcher& launcher, std::int64_t /*threads*/, Findings& findings) {
  for (const Shape& shape : {Shape{5}, Shape{9000}, Shape{3, 4200}, Shape{4200, 3}, Shape{6, 7, 8}}) {
    for (const DType::Code type : kReals) {
      const Tensor x = sample(shape, DType(type), 8);
      for (std::int64_t dim = -1; dim < static_cast<std::int64_t>(shape.rank()); ++dim) {
        const std::vector<std::int64_t> dims(dim < 0 ? 0 : 1, dim);
        for (const ops::Extreme extreme : {ops::Extreme::kMax, ops::Extreme::kMin}) {
          const ops::Reduction reduction = ops::make_reduction(x, dims, false, "max");
          const ops::ExtremeResults found = ops::extremes_on_device(launcher, reduction, extreme);
          const ops::ExtremeResults expected = ops::find_extremes(reduction, extreme);
          findings.expect(same(found.values, expected.values), text("extreme", shape, x.dtype()));
          findings.expect(Tensor::identical(found.indices, expected.indices), text("its place", shape, x.dtype()));
        }
      }
    }
  }
}

void product(Launcher& launcher, const Tensor& a, const Tensor& b, const Shape& batch, Findings& findings) {
  const Tensor expected = matmul(a, b);
  const Tensor found = Tensor::zeros(expected.shape(), expected.dtype());
  ops::multiply_on_device(launcher, a, b, batch, found);
  // The sign of a zero depends on the order of the sum.
  findings.expect(sum(found == expected).item<std::int64_t>() == expected.numel(),
                  text("product", a.shape(), b.shape(), a.dtype()));
}

/// Of whole numbers, whose sums are exact in any order.
void products(Launcher& launcher, std::span<const DType::Code> types, Findings& findings) {
  const Tensor a = (arange(0, 2 * 9 * 7).reshape({2, 1, 9, 7}) - 60);
  const Tensor b = (arange(0, 3 * 5 * 7).reshape({3, 5, 7}) - 50).transpose(1, 2);
  for (const DType::Code type : types) {
    product(launcher, a.to(DType(type)), b.to(DType(type)), Shape{2, 3}, findings);
    // Sizes around those of the tiles.
    for (const std::int64_t n : {1, 2, 3, 4, 5, 8, 9, 17}) {
      for (const std::int64_t depth : {1, 2, 3, 7}) {
        const Tensor left = (arange(0, n * depth).reshape({n, depth}) - n).to(DType(type));
        const Tensor right = (arange(0, depth * 5).reshape({depth, 5}) - 2).to(DType(type));
        product(launcher, left, right, Shape{}, findings);
        product(launcher, right.transpose(0, 1), left.transpose(0, 1), Shape{}, findings);
      }
    }
    for (std::size_t rank = 3; rank <= kRanks + 2; ++rank) {
      Shape batch;
      for (std::size_t d = 0; d + 2 < rank; ++d) batch.push_back(2);
      Shape many = batch;
      many.push_back(3);
      many.push_back(2);
      const Tensor left = (arange(0, many.numel()).reshape(many) - 5).to(DType(type));
      product(launcher, left, left.transpose(rank - 1, rank - 2), batch, findings);
    }
  }
}

void products_of_reals(Launcher& launcher, std::int64_t /*threads*/, Findings& findings) {
  constexpr std::array types = {DType::Code::kInt64, DType::Code::kFloat32, DType::Code::kFloat64};
  products(launcher, types, findings);
}

void copies(Launcher& launcher, std::int64_t threads, Findings& findings) {
  for (const DType::Code type : {DType::Code::kInt8, DType::Code::kFloat16, DType::Code::kFloat32,
                                 DType::Code::kFloat64, DType::Code::kComplex128, DType::Code::kFloat6E2M3}) {
    const DType dtype(type);
    const Tensor bytes = numbered_tensor({static_cast<std::int64_t>(dtype.itemsize()) * 60 + 1}, DType::uint8);
    for (const std::size_t offset : {0, 1}) {
      const Tensor x(bytes.buffer(), dtype, Shape{3, 4, 5}, Shape{3, 4, 5}.contiguous_strides(), offset);
      const std::array<std::size_t, 3> order = {2, 0, 1};
      const Tensor from = x.permute(order);
      const Tensor to = Tensor::zeros(from.shape(), dtype);
      ops::copy_on_device(launcher, from, to);
      findings.expect(Tensor::identical(from, to), text("copy", dtype, "at", offset));
    }
    for (std::size_t rank = 1; rank <= kRanks; ++rank) {
      const Tensor from = with_gaps(DType::int32, rank, 1);
      const Tensor to = with_gaps(DType::int32, rank, 2);
      ops::copy_on_device(launcher, from, to);
      findings.expect(Tensor::identical(from.contiguous(), to.contiguous()), text("copy of rank", rank));
    }
    for (const std::int64_t size : sizes_around(threads)) {
      if (size <= 0) continue;
      const Tensor from = numbered_tensor({size}, dtype, 3);
      const Tensor to = Tensor::zeros({size}, dtype);
      ops::copy_on_device(launcher, from, to);
      findings.expect(Tensor::identical(from, to), text("copy", size, "of", dtype));
    }
  }
}

void fills(Launcher& launcher, std::int64_t threads, Findings& findings) {
  for (const DType::Code type : {DType::Code::kInt8, DType::Code::kFloat16, DType::Code::kFloat32,
                                 DType::Code::kFloat64, DType::Code::kComplex128}) {
    const Tensor value = numbered_tensor({1}, DType(type), 9);
    const std::span bytes(value.data(), value.nbytes());
    for (const std::int64_t size : sizes_around(threads)) {
      if (size <= 0) continue;
      const Tensor filled = Tensor::zeros({size}, DType(type));
      ops::fill_on_device(launcher, filled, bytes);
      findings.expect(Tensor::identical(filled, index_select(value, 0, Tensor::zeros({size}, DType::int64))),
                      text("fill", size, DType(type)));
    }
    const Tensor columns = Tensor::zeros({3, 4}, DType(type));
    const Tensor expected = Tensor::zeros({3, 4}, DType(type));
    ops::fill_on_device(launcher, columns.slice(1, 0, 4, 2), bytes);
    ops::fill(expected.slice(1, 0, 4, 2), bytes);
    findings.expect(Tensor::identical(columns, expected), text("fill columns", DType(type)));
  }
}

void ranges(Launcher& launcher, std::int64_t threads, Findings& findings) {
  for (const std::int64_t size : sizes_around(threads)) {
    if (size <= 0) continue;
    const Tensor whole = arange(0, size) * 7 - 300;
    const Tensor parts = arange(0, size).to(DType::float64) * 37.3 - 400.1;
    for (const DType::Code type : kReals) {
      const Tensor found = Tensor::empty({size}, DType(type));
      ops::range_on_device(launcher, found, std::int64_t{-300}, std::int64_t{7});
      findings.expect(same(found, whole.to(DType(type))), text("range", size, DType(type)));
      ops::range_on_device(launcher, found, -400.1, 37.3);
      findings.expect(same(found, parts.to(DType(type))), text("range of fractions", size, DType(type)));
    }
  }
}

void selections(Launcher& launcher, std::int64_t /*threads*/, Findings& findings) {
  for (const DType::Code type : {DType::Code::kInt8, DType::Code::kInt16, DType::Code::kFloat32, DType::Code::kInt64,
                                 DType::Code::kComplex128}) {
    const Tensor x = numbered_tensor({3, 4, 5}, DType(type), 7);
    for (std::size_t dim = 0; dim < 3; ++dim) {
      const Tensor index = Tensor::of<std::int64_t>({2, 0, 2, 1});
      const Tensor expected = index_select(x, static_cast<std::int64_t>(dim), index);
      const Tensor found = Tensor::zeros(expected.shape(), DType(type));
      ops::select_on_device(launcher, x, dim, index, found);
      findings.expect(Tensor::identical(found, expected), text("select", DType(type), "along", dim));
    }
  }
}

/// Does nothing where the type does not hold the numbers.
void integers(Launcher& launcher, const DType& type, std::int64_t low, std::int64_t high, Findings& findings) {
  for (const std::uint64_t seed : {std::uint64_t{79}, ~std::uint64_t{0}}) {
    Generator generator(seed);
    Tensor expected;
    try {
      expected = randint(low, high, {33}, generator, type);
    } catch (const Error&) {
      return;
    }
    const Tensor found = Tensor::empty({33}, type);
    const auto range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    ops::draw_integers_on_device(launcher, found, {seed, 0}, low, range);
    findings.expect(same(found, expected), text("randint", low, high, type));
  }
}

void random_numbers(Launcher& launcher, std::int64_t threads, Findings& findings) {
  for (const DType::Code type : {DType::Code::kFloat32, DType::Code::kFloat16, DType::Code::kBFloat16}) {
    const int bits = type == DType::Code::kFloat32 ? 24 : type == DType::Code::kFloat16 ? 11 : 8;
    for (const std::int64_t size : {std::int64_t{1003}, 4 * threads + 1}) {
      Generator generator(77);
      const Tensor found = Tensor::empty({size}, DType(type));
      ops::draw_floats_on_device(launcher, found, {77, 0}, ops::Draw::kUniform, bits);
      findings.expect(Tensor::identical(found, rand({size}, generator, DType(type))), text("rand", DType(type)));
      ops::draw_floats_on_device(launcher, found, {77, generator.offset()}, ops::Draw::kNormal, bits);
      findings.expect(Tensor::identical(found, randn({size}, generator, DType(type))), text("randn", DType(type)));
    }
  }
  for (const ops::Draw kind : {ops::Draw::kUniform, ops::Draw::kNormal}) {
    Generator generator(78);
    const Tensor found = Tensor::empty({7, 11}, DType::float64);
    ops::draw_doubles_on_device(launcher, found, {78, 0}, kind);
    const bool uniform = kind == ops::Draw::kUniform;
    const Tensor expected =
        uniform ? rand({7, 11}, generator, DType::float64) : randn({7, 11}, generator, DType::float64);
    findings.expect(Tensor::identical(found, expected), uniform ? "rand of doubles" : "randn of doubles");
  }
  for (const DType::Code type : kReals) {
    for (const std::int64_t high : {1, 2, 100}) integers(launcher, DType(type), 0, high, findings);
  }
  for (const std::int64_t high :
       {std::int64_t{1} << 31, std::int64_t{1} << 32, (std::int64_t{1} << 32) + 1, INT64_MAX}) {
    integers(launcher, DType::int64, -5, high, findings);
  }
}

}  // namespace

const std::vector<KernelCheck>& kernel_checks() {
  static const std::vector<KernelCheck> kAll = {
      {"convert", "penstock_convert ", convert_every_pair},
      {"binary", "penstock_binary ", binary_of_reals},
      {"unary", "penstock_unary ", unary_of_every_type},
      {"sums", "penstock_sum_lanes penstock_join_sums ", sums_have_the_same_bits},
      {"extremes", "penstock_extreme_lanes penstock_join_extremes ", extremes_are_the_first},
      {"products", "penstock_matmul ", products_of_reals},
      {"copies", "penstock_copy ", copies},
      {"fills", "penstock_fill ", fills},
      {"ranges", "penstock_range ", ranges},
      {"selections", "penstock_select ", selections},
      {"random", "penstock_random ", random_numbers},
  };
  return kAll;
}

}  // namespace penstock::test
