#pragma once

/// Operations on tensors, for small work on what was loaded. Names and rules are PyTorch's: broadcasting, type
/// promotion, result types. Every result is a new contiguous tensor on the operands' device. Operands on two devices
/// are kDeviceMismatch, because nothing is moved silently; a number, or a tensor without dimensions in host memory,
/// goes with every device. Types are bool, integers, floats and, on the host, complex numbers: devices compute with
/// real numbers alone. kUnsupported when an operation has no meaning for a type, or is not there on a device. Halves
/// and float8 are computed in float32 and rounded once. All functions may be called from any thread.

#include <complex>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>

#include "penstock/device.h"
#include "penstock/dtype.h"
#include "penstock/flag.h"
#include "penstock/shape.h"
#include "penstock/tensor.h"

namespace penstock {

/// A number of no particular width: in type promotion it counts only by its kind. A value.
class Scalar {
 public:
  /// kUnsigned: an integer of 2^63 or more.
  enum class Kind : std::uint8_t { kBool, kInteger, kUnsigned, kReal, kComplex };

  // NOLINTBEGIN(google-explicit-constructor): a number is a scalar
  /// Takes bool itself only; pointers do not convert, and characters are no numbers.
  template <std::same_as<bool> T>
  Scalar(T value) noexcept : kind_(Kind::kBool), integer_(value ? 1 : 0) {}
  template <detail::Number T>
  Scalar(T value) noexcept
      : kind_(value > 0 && static_cast<std::uint64_t>(value) > std::numeric_limits<std::int64_t>::max()
                  ? Kind::kUnsigned
                  : Kind::kInteger),
        integer_(static_cast<std::int64_t>(value)) {}
  template <std::floating_point T>
  Scalar(T value) noexcept : real_(static_cast<double>(value)) {}
  template <std::floating_point T>
  Scalar(std::complex<T> value) noexcept : kind_(Kind::kComplex), real_(value) {}
  // NOLINTEND(google-explicit-constructor)

  Kind kind() const noexcept { return kind_; }
  bool is_integral() const noexcept { return kind_ <= Kind::kUnsigned; }
  std::int64_t integer() const noexcept { return integer_; }          ///< of kBool and kInteger; of kUnsigned less 2^64
  const std::complex<double> real() const noexcept { return real_; }  ///< of kReal and kComplex
  double to_double() const noexcept {
    if (kind_ == Kind::kUnsigned) return static_cast<double>(static_cast<std::uint64_t>(integer_));
    return is_integral() ? static_cast<double>(integer_) : real_.real();
  }
  /// As a tensor without dimensions of bool, int64, uint64, float64 or complex128.
  Tensor to_tensor() const;

 private:
  Kind kind_ = Kind::kReal;
  std::int64_t integer_ = 0;
  std::complex<double> real_;
};

/// What an operator takes: a tensor or a number. Only for parameters: it refers to the tensor that it was given.
class Operand {
 public:
  // NOLINTBEGIN(google-explicit-constructor): both are operands
  Operand(const Tensor& tensor) noexcept : tensor_(&tensor), number_(false) {}
  Operand(const Scalar& number) noexcept : number_(number) {}
  template <class T>
  requires(std::floating_point<T> || detail::Number<T> || std::same_as<T, bool>) Operand(T number)
  noexcept : number_(number) {}
  template <std::floating_point T>
  Operand(std::complex<T> number) noexcept : number_(number) {}
  // NOLINTEND(google-explicit-constructor)

  /// Null for a number.
  const Tensor* tensor() const noexcept { return tensor_; }
  const Scalar& number() const noexcept { return number_; }

 private:
  const Tensor* tensor_ = nullptr;
  Scalar number_;
};

// --- types and shapes ---

/// The type that holds the values of both, by PyTorch's table. kDTypeMismatch for pairs that it does not have: float8
/// goes only with itself, unsigned integers wider than a byte only with themselves and with floats.
DType promote_types(const DType& a, const DType& b);
/// The type two operands are computed in: tensors with dimensions count before those without, those before numbers.
DType result_type(const Operand& a, const Operand& b);
/// The shape that both are broadcast to; kShapeMismatch.
Shape broadcast_shapes(const Shape& a, const Shape& b);

// --- elementwise ---

// Integers wrap around. For bool, + is "or", * is "and", and - is kUnsupported. The quotient of integers is float32.
Tensor operator+(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a, const Operand& b);
Tensor operator*(const Operand& a, const Operand& b);
Tensor operator/(const Operand& a, const Operand& b);
// The result is bool. Comparisons with NaN are false, except !=. Complex numbers have == and != only.
Tensor operator==(const Operand& a, const Operand& b);
Tensor operator!=(const Operand& a, const Operand& b);
Tensor operator<(const Operand& a, const Operand& b);
Tensor operator<=(const Operand& a, const Operand& b);
Tensor operator>(const Operand& a, const Operand& b);
Tensor operator>=(const Operand& a, const Operand& b);

/// In place: a's memory is changed, for every handle and view on it; a keeps its type and shape. The result of `a + b`
/// must have a's shape (kShapeMismatch) and a type of no higher kind than a's: bool, integer, float, complex
/// (kDTypeMismatch; a float is not rounded into an integer silently). kInvalidArgument for read-only memory and for a
/// tensor that repeats elements (stride 0).
Tensor& operator+=(Tensor& a, const Operand& b);
Tensor& operator-=(Tensor& a, const Operand& b);
Tensor& operator*=(Tensor& a, const Operand& b);
Tensor& operator/=(Tensor& a, const Operand& b);

Tensor operator-(const Tensor& tensor);
inline Tensor neg(const Tensor& tensor) { return -tensor; }
// The result for integers and bool is float32. Results are at most 3 units in the last place from the exact value, for
// float32, float64 and each part of complex64 and complex128. Special values and branch cuts of complex numbers are
// those of ISO C, annex G.
Tensor exp(const Tensor& tensor);
Tensor log(const Tensor& tensor);
Tensor sqrt(const Tensor& tensor);
Tensor tanh(const Tensor& tensor);
/// max(x, 0); NaN stays NaN.
Tensor relu(const Tensor& tensor);
/// For complex numbers, the modulus, in the real type.
Tensor abs(const Tensor& tensor);

// --- reductions ---

/// Negative dims count from the end; kIndexOutOfRange outside, kInvalidArgument for one named twice. `keepdim` leaves
/// reduced dims with size 1. Sums of integers and bool are int64; halves are added up in float32. The order of
/// summation is fixed (docs/design/operations.md), so results have the same bits on every device, for all strides and
/// any number of threads.
Tensor sum(const Tensor& tensor);
Tensor sum(const Tensor& tensor, Integer dim, Flag keepdim = false);
Tensor sum(const Tensor& tensor, std::span<const std::int64_t> dims, Flag keepdim = false);
inline Tensor sum(const Tensor& tensor, std::initializer_list<Integer> dims, Flag keepdim = false) {
  const Shape named(dims);
  return sum(tensor, named.dims(), keepdim);
}
/// The sum divided by the number of elements; NaN when there are none. kUnsupported for integers and bool.
Tensor mean(const Tensor& tensor);
Tensor mean(const Tensor& tensor, Integer dim, Flag keepdim = false);
Tensor mean(const Tensor& tensor, std::span<const std::int64_t> dims, Flag keepdim = false);
inline Tensor mean(const Tensor& tensor, std::initializer_list<Integer> dims, Flag keepdim = false) {
  const Shape named(dims);
  return mean(tensor, named.dims(), keepdim);
}

struct Extremum {
  Tensor values;
  Tensor indices;  ///< int64; the first of equal values
};
/// NaN counts as the greatest and as the least. kInvalidArgument when there is no element to choose from.
Tensor max(const Tensor& tensor);
Extremum max(const Tensor& tensor, Integer dim, Flag keepdim = false);
Tensor min(const Tensor& tensor);
Extremum min(const Tensor& tensor, Integer dim, Flag keepdim = false);
/// The index of the greatest element in C order, or along `dim`; int64. The first of equal values counts.
Tensor argmax(const Tensor& tensor);
Tensor argmax(const Tensor& tensor, Integer dim, Flag keepdim = false);

// --- products, joining, choosing ---

/// Products of vectors, matrices and batches of them; leading dimensions are broadcast. Both operands have one type
/// (kDTypeMismatch). Halves and float8 are added up in float32. The library that multiplies (Eigen, cuBLAS) decides the
/// order of summation.
Tensor matmul(const Tensor& a, const Tensor& b);
/// Joins tensors along `dim`, in the promoted type. Vectors of size 0 are skipped.
Tensor cat(std::span<const Tensor> tensors, Integer dim = 0);
inline Tensor cat(std::initializer_list<Tensor> tensors, Integer dim = 0) {
  return cat(std::span<const Tensor>(tensors.begin(), tensors.size()), dim);
}
/// Joins tensors of one shape along a new `dim`. For the rule that makes batches, see `collate::stack` in collate.h.
Tensor stack(std::span<const Tensor> tensors, Integer dim = 0);
inline Tensor stack(std::initializer_list<Tensor> tensors, Integer dim = 0) {
  return stack(std::span<const Tensor>(tensors.begin(), tensors.size()), dim);
}
/// The entries of `dim` that `index` (int32 or int64, one dimension) names; kIndexOutOfRange. On a device this waits
/// for `index`, which is checked before anything is read.
Tensor index_select(const Tensor& tensor, Integer dim, const Tensor& index);

// --- creation; besides these Tensor::empty, Tensor::zeros and Tensor::of ---

Tensor ones(const Shape& shape, DType dtype = DType::float32, Device device = {});
/// Without `dtype`: bool, int64, float32 or complex64, by the kind of `value`. kInvalidArgument when an integer type
/// does not hold it, or a real one its imaginary part.
Tensor full(const Shape& shape, const Scalar& value, std::optional<DType> dtype = {}, Device device = {});
/// start, start + step, ... before stop. Without `dtype`: int64 when all are integers, float32 otherwise. Elements are
/// start + i * step in int64 or double, rounded once. kInvalidArgument for a step of 0 or in the other direction.
Tensor arange(const Scalar& start, const Scalar& stop, const Scalar& step = 1, std::optional<DType> dtype = {},
              Device device = {});

}  // namespace penstock
