#pragma once

// Tensors as NumPy arrays and buffers, without a copy.

#include "interpreter/nanobind.h"
#include "penstock/tensor.h"

namespace penstock::python {

/// A NumPy array over the tensor's memory; imports numpy. TypeError for types NumPy has no name for.
nb::object to_numpy(const Tensor& tensor);
/// The dtype of such arrays; imports numpy. TypeError as above.
nb::object to_numpy_dtype(const DType& dtype);
/// The strides in bytes, as NumPy counts them.
nb::tuple byte_strides(const Tensor& tensor);
/// `Tensor.__array_interface__`; AttributeError where NumPy has no such type.
nb::dict array_interface(const Tensor& tensor);

/// bf_getbuffer of Tensor: numbers with struct's format letters; BufferError for other types.
int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept;
void release_buffer(PyObject* self, Py_buffer* view) noexcept;

/// Adds the internal type that arrays of to_numpy keep alive.
void bind_memory(nb::module_& module);

}  // namespace penstock::python
