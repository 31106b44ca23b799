#pragma once

/// Tensors for Eigen and from it, for programs that have Eigen (3.3 or later); penstock.h leaves this header out.
/// `to_eigen<float>(tensor)` is an Eigen::Map over the same memory, `from_eigen(matrix)` a tensor.

#include <Eigen/Core>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "penstock/detail/view.h"
#include "penstock/tensor.h"

namespace penstock {

namespace detail {
/// The DType of an Eigen scalar; halves are Eigen's own, with the same bits.
template <class Element>
DType eigen_dtype() {
  using T = std::remove_cv_t<Element>;
  if constexpr (std::same_as<T, Eigen::half>) {
    return DType::float16;
#if EIGEN_VERSION_AT_LEAST(3, 4, 0)
  } else if constexpr (std::same_as<T, Eigen::bfloat16>) {
    return DType::bfloat16;
#endif
  } else {
    return DType::of<T>();
  }
}

template <class Element, int kRows, int kColumns>
using EigenMap = Eigen::Map<
    std::conditional_t<std::is_const_v<Element>,
                       const Eigen::Matrix<std::remove_const_t<Element>, kRows, kColumns,
                                           kColumns == 1 ? Eigen::ColMajor : Eigen::RowMajor>,
                       Eigen::Matrix<Element, kRows, kColumns, kColumns == 1 ? Eigen::ColMajor : Eigen::RowMajor>>,
    Eigen::Unaligned, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;

}  // namespace detail

/// A tensor of two dimensions as an Eigen matrix, of any strides: `to_eigen<float>(weights) * x`. The map may be
/// written to, unless `Element` is const, and is valid while a handle on the memory lives; so a temporary refuses to
/// give it. `Element` is the tensor's own type (kDTypeMismatch), Eigen::half for float16 and Eigen::bfloat16 for
/// bfloat16. kShapeMismatch for another number of dimensions and for an address that is not aligned for it,
/// kDeviceMismatch for device memory, kInvalidArgument for read-only memory unless `Element` is const.
template <class Element>
detail::EigenMap<Element, Eigen::Dynamic, Eigen::Dynamic> to_eigen(const Tensor& tensor) {
  std::byte* const data = detail::elements_of_view(
      tensor, {detail::eigen_dtype<Element>(), alignof(Element), !std::is_const_v<Element>, "Eigen matrix", 2});
  const auto index = [](std::int64_t n) { return static_cast<Eigen::Index>(n); };
  return {reinterpret_cast<Element*>(data), index(tensor.shape()[0]), index(tensor.shape()[1]),
          Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>(index(tensor.strides()[0]), index(tensor.strides()[1]))};
}
template <class Element>
void to_eigen(const Tensor&& tensor) = delete;

/// A tensor of one dimension as a column vector, by the same rules.
template <class Element>
detail::EigenMap<Element, Eigen::Dynamic, 1> to_eigen_vector(const Tensor& tensor) {
  std::byte* const data = detail::elements_of_view(
      tensor, {detail::eigen_dtype<Element>(), alignof(Element), !std::is_const_v<Element>, "Eigen vector", 1});
  const auto index = [](std::int64_t n) { return static_cast<Eigen::Index>(n); };
  return {reinterpret_cast<Element*>(data), index(tensor.shape()[0]), 1,
          Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>(0, index(tensor.strides()[0]))};
}
template <class Element>
void to_eigen_vector(const Tensor&& tensor) = delete;

/// A new tensor, in C order, of the values of a matrix, array or expression: of two dimensions, or of one where Eigen
/// knows at compile time that it is a vector.
template <class Derived>
Tensor from_eigen(const Eigen::DenseBase<Derived>& values) {
  using Element = typename Derived::Scalar;
  constexpr bool kIsVector = Derived::IsVectorAtCompileTime != 0;
  const auto rows = static_cast<std::int64_t>(values.rows());
  const auto columns = static_cast<std::int64_t>(values.cols());
  const DType dtype = detail::eigen_dtype<Element>();
  Tensor out = Tensor::empty(kIsVector ? Shape{rows * columns} : Shape{rows, columns}, dtype);
  using Flat = Eigen::Array<Element, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Eigen::Map<Flat>(reinterpret_cast<Element*>(out.data()), values.rows(), values.cols()) = values.derived().array();
  return out;
}

/// A tensor of the elements of a matrix or array that is moved from, which are not copied: `from_eigen(std::move(m))`.
/// Its strides are those that the matrix had: Eigen's are in Fortran order by default.
template <class Derived>
requires(std::same_as<Derived, std::remove_cvref_t<Derived>>&&
             std::derived_from<Derived, Eigen::PlainObjectBase<Derived>>) Tensor from_eigen(Derived&& values) {
  using Element = typename Derived::Scalar;
  const auto owner = std::make_shared<Derived>(std::move(values));
  const DType dtype = detail::eigen_dtype<Element>();
  const auto rows = static_cast<std::int64_t>(owner->rows());
  const auto columns = static_cast<std::int64_t>(owner->cols());
  const Buffer memory = Buffer::wrap(owner->data(), static_cast<std::size_t>(owner->size()) * sizeof(Element), owner);
  if constexpr (Derived::IsVectorAtCompileTime != 0) {
    return Tensor(memory, dtype, Shape{rows * columns});
  } else if constexpr (Derived::IsRowMajor != 0) {
    return Tensor(memory, dtype, Shape{rows, columns});
  } else {
    const Shape shape{rows, columns};
    return Tensor(memory, dtype, shape, shape.fortran_strides());
  }
}

}  // namespace penstock
