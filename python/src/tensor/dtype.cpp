#include "penstock/dtype.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <string>
#include <tuple>

#include "arrays/arrays.h"
#include "bindings.h"
#include "core/format.h"
#include "format/text/npy_dtype.h"
#include "interpreter/convert.h"
#include "penstock/device.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

/// Equal to another DType and to whatever names it: "float32", torch.float32, numpy.dtype("float32").
Typed<bool> dtype_equal(const DType& dtype, nb::handle other) {
  const std::optional<DType> found = try_dtype_from(other);
  if (found) return nb::bool_(*found == dtype);
  if (PyUnicode_Check(other.ptr())) return nb::bool_(dtype.name() == nb::borrow<nb::str>(other).c_str());
  return nb::borrow(Py_NotImplemented);
}

// What pickles hold of a dtype: how to read the text, the item size, the text.
constexpr const char* kNamed = "named";
constexpr const char* kDescr = "descr";
constexpr const char* kStructure = "structure";
constexpr const char* kOpaque = "opaque";

using State = std::tuple<std::string, std::size_t, std::string>;

State state_of(const DType& dtype) {
  const std::string name = dtype.name();
  if (DType::from_name(name) == dtype) return {kNamed, dtype.itemsize(), name};
  if (dtype.code() == DType::Code::kStructured) return {kStructure, dtype.itemsize(), dtype.numpy_descr()};
  if (dtype.code() == DType::Code::kOpaque) return {kOpaque, dtype.itemsize(), name};
  return {kDescr, dtype.itemsize(), dtype.numpy_descr()};
}

DType from_state(const State& state) {
  const auto& [kind, itemsize, text] = state;
  if (kind == kNamed) return dtype_from(text_from(text));
  if (kind == kDescr) return format::npy_type_from_string(text).dtype;
  return DType::with_descr(kind == kStructure ? DType::Code::kStructured : DType::Code::kOpaque, itemsize, text);
}

void bind_dtype_class(nb::module_& module) {
  nb::class_<DType>(module, "DType", "DType(name)\n--\n\n")
      .def(
          "__init__", [](DType* self, nb::handle name) { new (self) DType(dtype_from(name, "name")); }, nb::arg("name"))
      .def_prop_ro("name", &DType::name, "\"float32\", \"str160\", \"datetime64[ns]\", or a structure's descr.")
      .def_prop_ro("itemsize", &DType::itemsize, "Bytes an element.")
      .def_prop_ro("numpy_descr", &DType::numpy_descr, "NumPy's descr, \"<f4\"; empty where NumPy has no such type.")
      .def_prop_ro(
          "dtype", [](const DType& dtype) -> Anything { return to_numpy_dtype(dtype); },
          "NumPy's type, where `numpy.dtype` looks for it. Imports NumPy.")
      .def_prop_ro("is_floating", &DType::is_floating)
      .def_prop_ro("is_complex", &DType::is_complex)
      .def_prop_ro("is_integer", &DType::is_integer)
      .def_prop_ro("is_signed", &DType::is_signed)
      .def_prop_ro("is_numeric", &DType::is_numeric, "Whether `Tensor.to` converts values of it.")
      .def("__eq__", dtype_equal, nb::arg("other").none())
      .def("__hash__", [](const DType& dtype) { return nb::hash(text_from(dtype.name())); })
      .def("__str__", &DType::name)
      .def("__repr__",
           [](const DType& dtype) {
             return core::format("penstock.DType({})", nb::repr(text_from(dtype.name())).c_str());
           })
      .def("__reduce__", reduced_by_state)
      .def("__getstate__", state_of)
      .def("__setstate__", [](DType& self, const State& state) { new (&self) DType(from_state(state)); });
}

Typed<bool> device_equal(const Device& device, nb::handle other) {
  if (nb::isinstance<Device>(other)) return nb::bool_(nb::cast<Device>(other) == device);
  if (!PyUnicode_Check(other.ptr()) && !comes_from(other, "torch")) return nb::borrow(Py_NotImplemented);
  try {
    return nb::bool_(device_from(other) == device);
  } catch (const Error&) {
    return nb::bool_(false);
  }
}

void bind_device_class(nb::module_& module) {
  nb::class_<Device>(module, "Device", "Device(device)\n--\n\n")
      .def(
          "__init__", [](Device* self, nb::handle device) { new (self) Device(device_from(device)); },
          nb::arg("device"))
      .def_prop_ro("type", [](const Device& device) { return device.type == DeviceType::kCuda ? "cuda" : "cpu"; })
      .def_prop_ro("index", [](const Device& device) { return device.index; })
      .def("__eq__", device_equal, nb::arg("other").none())
      .def("__hash__", [](const Device& device) { return nb::hash(text_from(device.to_string())); })
      .def("__str__", &Device::to_string)
      .def("__repr__",
           [](const Device& device) { return core::format("penstock.device.Device(\"{}\")", device.to_string()); })
      .def("__reduce__", reduced_by_state)
      .def("__getstate__", &Device::to_string)
      .def("__setstate__", [](Device& self, const std::string& text) { new (&self) Device(text); });
}

}  // namespace

void bind_dtype(nb::module_& module) {
  bind_dtype_class(module);
  bind_device_class(module);
}

}  // namespace penstock::python
