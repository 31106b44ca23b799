// Products by a device's own library.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "ops/device_ops.h"
#include "ops/kernel_layout.h"

namespace penstock::ops {
namespace {

using device::MatrixOperand;
using device::MatrixProduct;

/// How the matrices in the last two dimensions lie; nothing where a library cannot take them so.
std::optional<MatrixOperand> operand_of(const Tensor& tensor) {
  const std::size_t rank = tensor.rank();
  const std::int64_t rows = tensor.shape()[rank - 2];
  const std::int64_t columns = tensor.shape()[rank - 1];
  const std::int64_t down = tensor.strides()[rank - 2];
  const std::int64_t across = tensor.strides()[rank - 1];
  if (reinterpret_cast<std::uintptr_t>(tensor.data()) % tensor.dtype().itemsize() != 0) return std::nullopt;
  // Of a single row or column only the one stride between its elements counts.
  if ((across == 1 || columns == 1) && (down >= columns || rows == 1)) {
    return MatrixOperand{tensor.data(), false, rows == 1 ? columns : down, 0};
  }
  if ((down == 1 || rows == 1) && (across >= rows || columns == 1)) {
    return MatrixOperand{tensor.data(), true, columns == 1 ? rows : across, 0};
  }
  return std::nullopt;
}

/// The tensor, or a copy, whose matrices a library takes.
Tensor suitable(Launcher& launcher, const Tensor& tensor) {
  if (operand_of(tensor)) return tensor;
  Tensor out = Tensor::empty(tensor.shape(), tensor.dtype(), tensor.device());
  copy_on_device(launcher, tensor, out);
  return out;
}

/// Rows of a batch times one matrix are the rows of one product, where they follow each other in memory.
void join_rows(MatrixProduct& p) {
  const bool one_b = p.b.batch_stride == 0 && p.to_batch_stride == p.rows * p.columns;
  const bool counts = p.rows <= std::numeric_limits<std::int32_t>::max() / p.batch;
  if (p.batch == 1 || !one_b || p.a.by_column || !counts) return;
  if (p.rows == 1 && p.a.batch_stride >= p.depth) {
    p.a.stride = p.a.batch_stride;
  } else if (p.a.batch_stride != p.rows * p.a.stride) {
    return;
  }
  p.rows *= p.batch;
  p.batch = 1;
}

/// The dimension that a library's own batch goes along.
unsigned longest(const KernelShape& batch) {
  return static_cast<unsigned>(std::max_element(batch.sizes, batch.sizes + batch.rank) - batch.sizes);
}

/// Adds the products of a batch to `out`: one with a batch of its own for each entry of the other dimensions.
class Batches {
 public:
  Batches(const KernelLayout& layout, const MatrixProduct& first, std::int64_t width)
      : layout_(layout), first_(first), width_(width), along_(longest(layout.shape)) {}

  std::vector<MatrixProduct> products() const {
    if (layout_.shape.rank == 0) return {first_};
    const auto size = static_cast<std::uint64_t>(layout_.shape.sizes[along_]);
    std::vector<MatrixProduct> out;
    for (std::uint64_t entry = 0; entry < layout_.shape.count / size; ++entry) out.push_back(product_at(entry));
    return out;
  }

 private:
  MatrixProduct product_at(std::uint64_t entry) const {
    MatrixProduct out = first_;
    std::int64_t step = first_.rows * first_.columns;
    for (unsigned d = layout_.shape.rank; d-- > 0; step *= layout_.shape.sizes[d]) {
      const std::int64_t a_step = layout_.steps[0].steps[d];
      const std::int64_t b_step = layout_.steps[1].steps[d];
      if (d == along_) {
        out.batch = layout_.shape.sizes[d];
        out.a.batch_stride = a_step / width_;
        out.b.batch_stride = b_step / width_;
        out.to_batch_stride = step;
        continue;
      }
      const auto size = static_cast<std::uint64_t>(layout_.shape.sizes[d]);
      const auto at = static_cast<std::int64_t>(entry % size);
      entry /= size;
      out.a.data += at * a_step;
      out.b.data += at * b_step;
      out.to += at * step * width_;
    }
    join_rows(out);
    return out;
  }

  const KernelLayout& layout_;
  const MatrixProduct& first_;
  const std::int64_t width_;
  const unsigned along_;
};

}  // namespace

bool multiply_by_library(Launcher& launcher, const Tensor& a, const Tensor& b, const Shape& batch, const Tensor& out) {
  const std::array<Tensor, 2> operands = {suitable(launcher, a), suitable(launcher, b)};
  const KernelLayout layout = make_batch_layout(batch, operands);
  MatrixProduct product;
  product.type = out.dtype().code();
  product.rows = a.shape()[a.rank() - 2];
  product.depth = a.shape()[a.rank() - 1];
  product.columns = b.shape()[b.rank() - 1];
  product.a = *operand_of(operands[0]);
  product.b = *operand_of(operands[1]);
  product.to = out.data();
  const auto width = static_cast<std::int64_t>(out.dtype().itemsize());
  return launcher.multiply(Batches(layout, product, width).products(), operands, std::span(&out, 1));
}

}  // namespace penstock::ops
