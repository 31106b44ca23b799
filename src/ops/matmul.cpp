// A product is cut into panels of a fixed number of rows, which threads compute one by one. The size of a panel does
// not depend on the number of threads, so neither does any bit of the result. Operands that a kernel cannot read as
// they lie are copied first. On a device, its library computes the product if it has one, otherwise our kernels do.

#include <algorithm>
#include <array>
#include <optional>

#include "core/checked.h"
#include "core/format.h"
#include "ops/blocks.h"
#include "ops/device_ops.h"
#include "ops/gemm.h"
#include "ops/operands.h"
#include "ops/promotion.h"
#include "penstock/error.h"
#include "penstock/ops.h"

namespace penstock {
namespace {

/// Rows of a product that are computed at a time: as many whatever the number of threads, so that threads do not change
/// a bit.
constexpr std::int64_t kPanel = 256;

[[noreturn]] void throw_shapes(const Tensor& a, const Tensor& b) {
  throw Error(
      ErrorCode::kShapeMismatch,
      core::format("matmul of shapes {} and {}: the last dimension of the first and the last but one of the second "
                   "were expected to be equal",
                   a.shape().to_string(), b.shape().to_string()));
}

void require_operands(const Tensor& a, const Tensor& b) {
  const std::array<ops::Argument, 2> arguments = {{{"a", a}, {"b", b}}};
  ops::require_same_device("matmul", arguments);
  ops::require_numeric(a.dtype(), "matmul");
  if (a.dtype() != b.dtype()) {
    throw Error(ErrorCode::kDTypeMismatch, core::format("matmul of {} and {}: equal dtypes were expected; convert one "
                                                        "with to()",
                                                        a.dtype().name(), b.dtype().name()));
  }
  if (a.dtype() == DType::boolean) {
    throw Error(ErrorCode::kUnsupported, "matmul has no meaning for bool; convert with to()");
  }
  if (a.rank() == 0 || b.rank() == 0) throw_shapes(a, b);
}

/// Every matrix of it can be handed to Gemm: aligned, with a stride of 1 in a row or a column and no repetition.
Tensor suitable(const Tensor& tensor) {
  const std::size_t rank = tensor.rank();
  const std::int64_t rows = tensor.shape()[rank - 2];
  const std::int64_t columns = tensor.shape()[rank - 1];
  const std::int64_t down = tensor.strides()[rank - 2];
  const std::int64_t across = tensor.strides()[rank - 1];
  const bool by_row = across == 1 && (down >= columns || rows == 1);
  const bool by_column = down == 1 && (across >= rows || columns == 1);
  const std::size_t alignment = std::min<std::size_t>(tensor.dtype().itemsize(), 8);
  const bool aligned = reinterpret_cast<std::uintptr_t>(tensor.data()) % alignment == 0;
  return (by_row || by_column) && aligned ? tensor : tensor.clone();
}

/// One matrix of a batch. A single row or column has any stride.
ops::MatrixView view_of(const Tensor& matrix) {
  ops::MatrixView view{matrix.data(), matrix.shape()[0], matrix.shape()[1], matrix.strides()[0], matrix.strides()[1]};
  if (view.columns == 1 && view.row_stride != 1) {
    view.column_stride = 1;
  } else if (view.rows == 1 && view.column_stride != 1) {
    view.row_stride = 1;
  }
  if (view.column_stride == 1) view.row_stride = std::max(view.row_stride, view.columns);
  if (view.column_stride != 1) view.column_stride = std::max(view.column_stride, view.rows);
  return view;
}

/// The product that is wanted: batches of (rows x depth) times (depth x columns).
struct Product {
  Tensor a;
  Tensor b;
  Shape batch;
  Shape result;
  std::int64_t rows;
  std::int64_t depth;
  std::int64_t columns;
};

Shape batch_of(const Tensor& tensor) { return Shape(tensor.shape().dims().first(tensor.rank() - 2)); }

Product plan(const Tensor& a, const Tensor& b) {
  Product out{a, b, {}, {}, 1, 0, 1};
  if (a.rank() == 1) out.a = a.reshape({1, a.shape()[0]});
  if (b.rank() == 1) out.b = b.reshape({b.shape()[0], 1});
  out.rows = out.a.shape()[out.a.rank() - 2];
  out.depth = out.a.shape()[out.a.rank() - 1];
  out.columns = out.b.shape()[out.b.rank() - 1];
  if (out.b.shape()[out.b.rank() - 2] != out.depth) throw_shapes(a, b);
  out.batch = broadcast_shapes(batch_of(out.a), batch_of(out.b));
  out.result = out.batch;
  if (a.rank() > 1) out.result.push_back(out.rows);
  if (b.rank() > 1) out.result.push_back(out.columns);
  return out;
}

/// The matrix of batch entry `index`, counted in C order over `batch`.
Tensor matrix_at(const Tensor& tensor, const Shape& batch, std::int64_t index) {
  Tensor out = tensor;
  const std::size_t missing = batch.rank() + 2 - tensor.rank();
  for (std::size_t d = batch.rank(); d-- > missing;) {
    const std::int64_t at = index % batch[d];
    index /= batch[d];
    const std::size_t dim = d - missing;
    out = out.select(dim, tensor.shape()[dim] == 1 ? 0 : at);
  }
  return out;
}

/// The product in the type of the operands, into `out` of shape (batch, rows, columns).
void multiply(const Product& product, const Tensor& out) {
  const ops::Gemm gemm = ops::gemm_for(out.dtype().code());
  const Tensor a = suitable(product.a);
  const Tensor b = suitable(product.b);
  const std::int64_t panels = (product.rows + kPanel - 1) / kPanel;
  const std::int64_t cost = std::min(product.rows, kPanel) * product.columns * (product.depth / 8 + 1);
  const std::size_t width = out.dtype().itemsize();
  ops::for_each_range(product.batch.numel() * panels, cost, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t entry = task / panels;
      const std::int64_t first = task % panels * kPanel;
      const std::int64_t rows = std::min(kPanel, product.rows - first);
      const Tensor left = matrix_at(a, product.batch, entry).slice(0, first, first + rows);
      const Tensor right = matrix_at(b, product.batch, entry);
      const std::int64_t place = (entry * product.rows + first) * product.columns;
      gemm(view_of(left), view_of(right), out.data() + static_cast<std::size_t>(place) * width);
    }
  });
}

/// Halves are multiplied in float32, which is rounded once.
Tensor multiply_on_host(Product product) {
  const DType given = product.a.dtype();
  const DType type = given == DType::complex32 || given.is_floating() ? ops::compute_type(given) : given;
  product.a = product.a.to(type);
  product.b = product.b.to(type);
  const Tensor out = Tensor::empty(product.result, type);
  multiply(product, out);
  return out.to(given);
}

/// By the device's library, or nothing.
std::optional<Tensor> multiply_by_library(ops::Launcher& launcher, const Product& product) {
  if (!launcher.multiplies(product.a.dtype().code())) return std::nullopt;
  const Tensor out = Tensor::empty(product.result, product.a.dtype(), product.a.device());
  if (!ops::multiply_by_library(launcher, product.a, product.b, product.batch, out)) return std::nullopt;
  return out;
}

Tensor multiply_on_its_device(Product product) {
  const Device device = product.a.device();
  const DType given = product.a.dtype();
  const auto launcher = ops::launcher_for(device);
  if (const auto done = multiply_by_library(*launcher, product)) return *done;
  const DType type = given.is_floating() ? ops::compute_type(given) : DType::int64;
  if (type != given) {
    product.a = product.a.to(type);
    product.b = product.b.to(type);
    if (const auto done = multiply_by_library(*launcher, product)) return done->to(given);
  }
  const Tensor out = Tensor::empty(product.result, type, device);
  ops::multiply_on_device(*launcher, product.a, product.b, product.batch, out);
  return out.to(given);
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  require_operands(a, b);
  ops::require_real_on_device("matmul", a.dtype(), a.device());
  const Product product = plan(a, b);
  if (product.depth == 0 || product.result.numel() == 0) return Tensor::zeros(product.result, a.dtype(), a.device());
  return ops::on_host(a) ? multiply_on_host(product) : multiply_on_its_device(product);
}

}  // namespace penstock
