// Tensors from nested Python lists.

#include <complex>
#include <cstring>

#include "arrays/elements.h"
#include "arrays/foreign.h"
#include "core/counted.h"
#include "core/format.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"
#include "ops/promotion.h"
#include "penstock/error.h"
#include "penstock/ops.h"

namespace penstock::python {
namespace {

/// What most leaves are; told apart without a look at what other interfaces an object has.
bool is_plain_number(nb::handle object) {
  return PyLong_CheckExact(object.ptr()) || PyFloat_CheckExact(object.ptr()) || PyBool_Check(object.ptr()) ||
         PyComplex_CheckExact(object.ptr());
}

bool is_list(nb::handle object) { return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()); }

/// A list, or an array in a list.
bool is_sequence(nb::handle object) {
  if (is_list(object)) return true;
  if (is_plain_number(object) || is_numpy_scalar(object)) return false;
  const std::optional<Tensor> array = array_from(object);
  return array && array->rank() > 0;
}

/// The sizes of the first element of the first element ...: what all others must have too.
Shape nested_shape(nb::handle data) {
  Shape shape;
  nb::object level = nb::borrow(data);
  while (is_sequence(level)) {
    const auto size = static_cast<std::int64_t>(nb::len(level));
    shape.push_back(size);
    if (size == 0) break;
    level = level[nb::int_(0)];
  }
  return shape;
}

/// Refuses at once what the leaves would have no memory for: lists that hold each other several times are any number of
/// values, and take no memory themselves.
void require_memory(const Shape& shape) {
  constexpr std::int64_t kFew = std::int64_t{1} << 20;
  if (shape.numel() > kFew) Tensor::empty(shape, DType::complex128);  // 8 bytes for the object, 8 or more for its value
}

/// All leaves in order. The recursion is as deep as the shape has dimensions.
void flatten(nb::handle data, const Shape& shape, std::size_t dim, std::vector<nb::object>& out) {
  const bool leaf = dim == shape.rank();
  if (leaf == is_sequence(data) || (!leaf && static_cast<std::int64_t>(nb::len(data)) != shape[dim])) {
    throw Error(ErrorCode::kShapeMismatch,
                core::format("found {} at depth {}, expected {} as in the first element: the lists must nest evenly",
                             is_sequence(data) ? core::format("a list of {}", nb::len(data)) : "a single value", dim,
                             leaf ? "a single value" : core::format("a list of {}", shape[dim])));
  }
  if (leaf) {
    out.push_back(nb::borrow(data));
    yield_at(out.size());
    return;
  }
  for (const nb::handle item : nb::iter(data)) flatten(item, shape, dim + 1, out);
}

enum class NumberKind : std::uint8_t { kBool, kInteger, kReal, kComplex };

NumberKind kind_of(nb::handle leaf) {
  if (PyBool_Check(leaf.ptr())) return NumberKind::kBool;
  if (PyLong_Check(leaf.ptr())) return NumberKind::kInteger;
  if (PyFloat_Check(leaf.ptr())) return NumberKind::kReal;
  if (PyComplex_Check(leaf.ptr())) return NumberKind::kComplex;
  if (PyIndex_Check(leaf.ptr())) return NumberKind::kInteger;
  if (has_attribute(leaf, "__float__")) return NumberKind::kReal;
  throw Error(ErrorCode::kDTypeMismatch,
              core::format("found an object of type {} among the values, expected numbers", object_type(leaf)));
}

/// The widest kind; of no values, real.
NumberKind common_kind(const std::vector<nb::object>& leaves) {
  NumberKind kind = leaves.empty() ? NumberKind::kReal : NumberKind::kBool;
  for (const nb::object& leaf : leaves) kind = std::max(kind, kind_of(leaf));
  return kind;
}

DType number_type(NumberKind kind) {
  switch (kind) {
    case NumberKind::kBool:
      return DType::boolean;
    case NumberKind::kInteger:
      return DType::int64;
    case NumberKind::kReal:
      return DType::float32;
    default:
      return DType::complex64;
  }
}

/// The types of leaves: an array's own, and of a Python number what torch.tensor makes of it. A class of NumPy's
/// scalars is looked at once for all leaves of it in a row.
class LeafTypes {
 public:
  DType of(nb::handle leaf) {
    if (is_plain_number(leaf)) return number_type(kind_of(leaf));
    if (Py_TYPE(leaf.ptr()) == scalar_) return scalar_type_;
    const std::optional<Tensor> array = array_from(leaf);
    if (!array) return number_type(kind_of(leaf));
    if (is_numpy_scalar(leaf)) {
      scalar_ = Py_TYPE(leaf.ptr());
      scalar_type_ = array->dtype();
    }
    return array->dtype();
  }

 private:
  const PyTypeObject* scalar_ = nullptr;
  DType scalar_type_ = DType::float32;
};

/// The type that all leaves promote to; of no leaves, float32.
DType common_type(const std::vector<nb::object>& leaves) {
  if (leaves.empty()) return DType::float32;
  LeafTypes types;
  DType common = types.of(leaves.front());
  for (const nb::object& leaf : leaves) {
    const DType type = types.of(leaf);
    if (type != common) common = promote_types(common, type);
  }
  return common;
}

double real_of(const nb::object& leaf) {
  const double value = PyFloat_AsDouble(leaf.ptr());
  if (value == -1 && PyErr_Occurred()) nb::raise_python_error();
  return value;
}

std::complex<double> complex_of(const nb::object& leaf) {
  const Py_complex value = PyComplex_AsCComplex(leaf.ptr());
  if (value.real == -1 && PyErr_Occurred()) nb::raise_python_error();
  return {value.real, value.imag};
}

template <class T, class Read>
Tensor filled(const Shape& shape, const DType& dtype, const std::vector<nb::object>& leaves, Read read) {
  Tensor out = Tensor::empty(shape, dtype);
  std::byte* to = out.data();
  for (const nb::object& leaf : leaves) {
    const T value = static_cast<T>(read(leaf));
    std::memcpy(to, &value, sizeof(T));
    to += sizeof(T);
  }
  return out;
}

Tensor from_leaves(const Shape& shape, const std::vector<nb::object>& leaves, const DType& type) {
  switch (common_kind(leaves)) {
    case NumberKind::kBool:
      return filled<bool>(shape, DType::boolean, leaves, [](const nb::object& leaf) { return leaf.is(Py_True); });
    case NumberKind::kInteger:
      // Floats hold what no integer does.
      if (type.is_floating()) return filled<double>(shape, DType::float64, leaves, real_of);
      if (type == DType::uint64) return filled<std::uint64_t>(shape, type, leaves, unsigned_from);
      return filled<std::int64_t>(shape, DType::int64, leaves, integer_from);
    case NumberKind::kReal:
      return filled<double>(shape, DType::float64, leaves, real_of);
    default:
      return filled<std::complex<double>>(shape, DType::complex128, leaves, complex_of);
  }
}

/// An array without dimensions as Python's number.
nb::object number_of(const nb::object& leaf) {
  if (is_plain_number(leaf) || is_numpy_scalar(leaf)) return leaf;
  const std::optional<Tensor> array = array_from(leaf);
  return array ? to_item(*array) : leaf;
}

/// A cast that loses a number, or the imaginary part of one, would do so silently. Floats may become infinite.
void require_in_range(const std::vector<nb::object>& leaves, const DType& dtype) {
  for (const nb::object& leaf : leaves) {
    switch (kind_of(leaf)) {
      case NumberKind::kBool:
        break;
      case NumberKind::kInteger:
        if (!dtype.is_integer()) break;
        ops::require_in_range(dtype == DType::uint64 ? Scalar(unsigned_from(leaf)) : Scalar(integer_from(leaf)), dtype);
        break;
      case NumberKind::kReal:
        ops::require_in_range(real_of(leaf), dtype);
        break;
      default:
        ops::require_in_range(complex_of(leaf), dtype);
    }
  }
}

/// Beside floats, integers become float64 on their way, which does not hold all of 64 bits.
void put_integers(const std::vector<nb::object>& leaves, const Tensor& out) {
  std::byte* to = out.data();
  for (const nb::object& leaf : leaves) {
    if (kind_of(leaf) == NumberKind::kInteger) {
      const std::uint64_t bits =
          out.dtype() == DType::uint64 ? unsigned_from(leaf) : static_cast<std::uint64_t>(integer_from(leaf));
      std::memcpy(to, &bits, sizeof bits);
    }
    to += sizeof(std::uint64_t);
  }
}

}  // namespace

Tensor tensor_from(nb::handle data, nb::handle dtype) {
  const std::optional<DType> wanted = dtype.is_none() ? std::nullopt : std::optional(dtype_from(dtype));
  if (!is_list(data)) {
    if (const std::optional<Tensor> array = array_from(data)) {
      const Tensor converted = wanted ? array->to(*wanted) : *array;
      return converted.buffer().shares_memory_with(array->buffer()) ? converted.clone() : converted;
    }
  }
  const Shape shape = nested_shape(data);
  require_memory(shape);
  std::vector<nb::object> leaves;
  flatten(data, shape, 0, leaves);
  // A list's length and what it gives are two things, and other threads may change it.
  if (static_cast<std::int64_t>(leaves.size()) != shape.numel()) {
    throw Error(ErrorCode::kShapeMismatch,
                core::format("found {} in lists whose lengths promise shape {}: they changed meanwhile, or say "
                             "something else than they give",
                             core::counted(leaves.size(), "value"), shape.to_string()));
  }
  const DType type = wanted ? *wanted : common_type(leaves);
  for (nb::object& leaf : leaves) leaf = number_of(leaf);
  Tensor out = from_leaves(shape, leaves, type).to(type);
  if (!wanted) return out;
  require_in_range(leaves, type);
  const bool has_floats = common_kind(leaves) == NumberKind::kReal;
  if (has_floats && (type == DType::int64 || type == DType::uint64)) put_integers(leaves, out);
  return out;
}

}  // namespace penstock::python
