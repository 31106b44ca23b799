#include "tensor/indexing.h"

#include <algorithm>
#include <optional>
#include <type_traits>

#include "core/counted.h"
#include "core/format.h"
#include "interpreter/convert.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

[[noreturn]] void throw_bad_index(nb::handle item) {
  throw Error(ErrorCode::kIndexOutOfRange,
              core::format("found an object of type {} among the indices, expected integers, slices, Ellipsis or None; "
                           "index .numpy() to choose elements by a list or a mask",
                           object_type(item)));
}

/// An integer, also a NumPy one or a tensor of one; nothing for a bool (a mask elsewhere) and other objects.
std::optional<std::int64_t> index_from(nb::handle item) {
  if (PyBool_Check(item.ptr()) || !PyIndex_Check(item.ptr())) return std::nullopt;
  const nb::object index = nb::steal(PyNumber_Index(item.ptr()));
  if (!index.is_valid()) {
    PyErr_Clear();
    return std::nullopt;
  }
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) {
    throw Error(ErrorCode::kIndexOutOfRange, core::format("index {} is out of range", nb::str(index).c_str()));
  }
  return value;
}

IndexStep slice_step(nb::handle slice, std::size_t dim, std::int64_t size) {
  Py_ssize_t start = 0;
  Py_ssize_t stop = 0;
  Py_ssize_t step = 1;
  if (PySlice_Unpack(slice.ptr(), &start, &stop, &step) != 0) nb::raise_python_error();
  if (step < 1) {
    throw Error(ErrorCode::kInvalidArgument,
                core::format("found a slice with step {}, expected 1 or more; reverse with .numpy()[::-1]", step));
  }
  PySlice_AdjustIndices(size, &start, &stop, step);
  return {IndexStep::Kind::kSlice, dim, start, std::max(start, stop), step};
}

/// Dimensions that a key takes up.
std::size_t consumed(const nb::tuple& key) {
  std::size_t count = 0;
  bool ellipsis = false;
  for (const nb::handle item : key) {
    if (item.is(Py_Ellipsis)) {
      if (ellipsis)
        throw Error(ErrorCode::kIndexOutOfRange, "found two Ellipsis among the indices, expected one at most");
      ellipsis = true;
    } else if (!item.is_none()) {
      ++count;
    }
  }
  return count;
}

Tensor with_new_axis(const Tensor& tensor, std::size_t dim) {
  std::vector<std::int64_t> shape(tensor.shape().begin(), tensor.shape().end());
  std::vector<std::int64_t> strides(tensor.strides().begin(), tensor.strides().end());
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim), 1);
  strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(dim), 1);
  return Tensor(tensor.buffer(), tensor.dtype(), Shape(std::span<const std::int64_t>(shape)),
                Strides(std::span<const std::int64_t>(strides)), tensor.byte_offset())
      .with_requires_grad(tensor.requires_grad());
}

/// One integer in the place of dimension 0, the commonest index of all.
std::optional<std::int64_t> single_integer(nb::handle key) {
  return PyLong_CheckExact(key.ptr()) ? index_from(key) : std::nullopt;
}

template <class T>
T stepped(T tensor, const std::vector<IndexStep>& steps) {
  for (const IndexStep& step : steps) {
    switch (step.kind) {
      case IndexStep::Kind::kSelect:
        tensor = tensor.select(step.dim, step.start);
        break;
      case IndexStep::Kind::kSlice:
        tensor = tensor.slice(step.dim, step.start, step.stop, step.step);
        break;
      case IndexStep::Kind::kNewAxis:
        if constexpr (std::is_same_v<T, Tensor>) {
          tensor = with_new_axis(tensor, step.dim);
        } else {
          throw Error(ErrorCode::kIndexOutOfRange,
                      "found None among the indices of a tensor that is not loaded; load it, then add the dimension");
        }
        break;
    }
  }
  return tensor;
}

}  // namespace

std::vector<IndexStep> index_steps(nb::handle key, const Shape& shape) {
  const nb::tuple items = PyTuple_Check(key.ptr()) ? nb::borrow<nb::tuple>(key) : nb::make_tuple(key);
  const std::size_t taken = consumed(items);
  if (taken > shape.rank()) {
    throw Error(ErrorCode::kIndexOutOfRange,
                core::format("found {} for a tensor of shape {}, expected {} at most",
                             core::counted(taken, "index", "indices"), shape.to_string(), shape.rank()));
  }
  std::vector<IndexStep> steps;
  std::size_t from = 0;  // dimension of the tensor
  std::size_t dim = 0;   // dimension of the result
  for (const nb::handle item : items) {
    if (item.is(Py_Ellipsis)) {
      from += shape.rank() - taken;
      dim += shape.rank() - taken;
    } else if (item.is_none()) {
      steps.push_back({IndexStep::Kind::kNewAxis, dim++});
    } else if (PySlice_Check(item.ptr())) {
      const IndexStep step = slice_step(item, dim++, shape[from]);
      const bool everything = step.start == 0 && step.stop == shape[from] && step.step == 1;
      if (!everything) steps.push_back(step);
      ++from;
    } else if (const std::optional<std::int64_t> value = index_from(item)) {
      steps.push_back({IndexStep::Kind::kSelect, dim, *value});
      ++from;
    } else {
      throw_bad_index(item);
    }
  }
  return steps;
}

Tensor index(const Tensor& tensor, nb::handle key) {
  if (tensor.rank() > 0) {
    if (const std::optional<std::int64_t> row = single_integer(key)) return tensor.select(0, *row);
  }
  return stepped(tensor, index_steps(key, tensor.shape()));
}

LazyTensor index(const LazyTensor& tensor, nb::handle key) { return stepped(tensor, index_steps(key, tensor.shape())); }

}  // namespace penstock::python
