#include "arrays/foreign.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "arrays/dlpack.h"
#include "arrays/torch_memory.h"
#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/text.h"
#include "core/view.h"
#include "device/backend.h"
#include "device/foreign_memory.h"
#include "format/text/npy_dtype.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"
#include "ops/kernels.h"
#include "penstock/error.h"
#include "penstock/load.h"
#include "penstock/stream.h"

namespace penstock::python {
namespace {

std::vector<std::int64_t> contiguous_byte_strides(const Shape& shape, std::size_t itemsize) {
  const Strides strides = shape.contiguous_strides();
  std::vector<std::int64_t> out(strides.begin(), strides.end());
  for (std::int64_t& stride : out) {
    stride =
        core::checked_mul(stride, static_cast<std::int64_t>(itemsize), "the distance between two rows of an array");
  }
  return out;
}

std::byte* address_from(nb::handle number) {
  void* const address = PyLong_AsVoidPtr(number.ptr());
  if (address == nullptr && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return static_cast<std::byte*>(address);
}

[[noreturn]] void throw_masked() {
  throw Error(ErrorCode::kUnsupported,
              "found a masked array, whose mask would be lost; take its filled() values, or data and mask each");
}

/// NumPy's masked arrays hand over their elements as if all counted.
bool is_masked(nb::handle object) {
  return has_attribute(object, "mask") && has_attribute(object, "filled") && has_attribute(object, "fill_value");
}

// --- __array_interface__ (NumPy) ---

struct InterfaceType {
  DType dtype;
  bool byte_swapped = false;
};

/// A structure's fields: any list but the one unnamed field that simple types have, also that of none.
bool is_structure(nb::handle descr) {
  if (!PyList_Check(descr.ptr())) return false;
  const auto fields = nb::borrow<nb::list>(descr);
  if (fields.size() != 1) return true;
  const nb::object name = nb::borrow(fields[0])[0];
  return !PyUnicode_Check(name.ptr()) || PyUnicode_GetLength(name.ptr()) > 0;
}

InterfaceType interface_type(nb::handle object, const nb::dict& interface) {
  const std::string typestr = nb::str(nb::object(interface["typestr"])).c_str();
  const nb::object own = attribute_or(object, "dtype");
  if (nb::str(attribute_or(own, "kind", nb::str(""))).equal(nb::str("T"))) {
    throw Error(ErrorCode::kUnsupported,
                "found an array of NumPy's StringDType, whose text lies outside of the array; give it a text dtype "
                "with a width, such as .astype('U80')");
  }
  if (typestr.find('O') != std::string::npos || nb::bool_(attribute_or(own, "hasobject", nb::bool_(false)))) {
    throw Error(ErrorCode::kUnsafe,
                "found an array of Python objects, which only pickling could hold; give it a numeric "
                "or text dtype with .astype()");
  }
  const nb::object descr = interface.contains("descr") ? nb::object(interface["descr"]) : nb::none();
  if (typestr.find('V') != std::string::npos && is_structure(descr)) {
    std::size_t itemsize = 0;
    const char* const end = typestr.data() + typestr.size();
    if (typestr.size() < 3 || std::from_chars(typestr.data() + 2, end, itemsize).ptr != end) {
      throw Error(ErrorCode::kUnsupported,
                  core::format("found the type {}, expected '|V' and a size", core::quoted(typestr)));
    }
    return {DType::with_descr(DType::Code::kStructured, itemsize, nb::repr(descr).c_str())};
  }
  // ml_dtypes' types call themselves raw bytes here.
  const std::string name = own.is_none() ? "" : nb::str(attribute_or(own, "name", nb::str(""))).c_str();
  const format::NpyType type = format::npy_type_from_string(typestr);
  const std::optional<DType> named = DType::from_name(name);
  // Theirs of the same name may lie unpacked, an element in a byte of its own.
  if (named && named->numpy_descr().empty() && named->itemsize() == type.dtype.itemsize()) return {*named};
  return {type.dtype, type.byte_swapped};
}

Tensor native(const Tensor& tensor, bool byte_swapped) {
  if (!byte_swapped || tensor.dtype().swap_width() <= 1) return tensor;
  Tensor copy = tensor.clone();
  ops::swap_bytes(std::span(copy.data(), copy.nbytes()), copy.dtype().swap_width());
  return copy;
}

/// What both interfaces say in the same way, of an array of that type at `data`, which is (address, read-only).
device::ForeignArray described(nb::handle object, const nb::dict& interface, const DType& dtype,
                               const nb::object& data) {
  device::ForeignArray array;
  array.dtype = dtype;
  array.shape = shape_from(nb::object(interface["shape"]));
  const nb::object strides = interface.contains("strides") ? nb::object(interface["strides"]) : nb::none();
  array.byte_strides =
      strides.is_none() ? contiguous_byte_strides(array.shape, array.dtype.itemsize()) : integers_from(strides);
  array.data = address_from(nb::object(data[0]));
  array.read_only = nb::cast<bool>(nb::bool_(nb::object(data[1])));
  // The interface may own what it describes (an object that makes it anew each time).
  array.owner = keep_alive(nb::make_tuple(object, interface));
  return array;
}

void require_unmasked(const nb::dict& interface) {
  if (interface.contains("mask") && !nb::object(interface["mask"]).is_none()) throw_masked();
}

Tensor from_interface(nb::handle object, const nb::dict& interface) {
  require_unmasked(interface);
  const InterfaceType type = interface_type(object, interface);
  const nb::object data = interface.contains("data") ? nb::object(interface["data"]) : nb::none();
  if (!PyTuple_Check(data.ptr())) {
    throw Error(ErrorCode::kUnsupported, core::format("found an __array_interface__ without an address in an object of "
                                                      "type {}; pass numpy.asarray of it",
                                                      object_type(object)));
  }
  return native(device::tensor_over(described(object, interface, type.dtype, data)), type.byte_swapped);
}

// --- __cuda_array_interface__ (Numba, CuPy) ---

Device device_of_pointer(const std::byte* data) {
  const std::optional<int> index = device::backend_for(DeviceType::kCuda).device_of(data);
  return index ? Device(DeviceType::kCuda, *index) : current_device(DeviceType::kCuda);
}

/// Later work of ours waits for what the producer has submitted to its stream; without one there is nothing to wait
/// for.
void order_after(nb::handle stream, const Tensor& tensor) {
  if (stream.is_none()) return;
  const auto value = nb::cast<std::uintptr_t>(nb::int_(nb::borrow(stream)));
  if (value == 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "found stream 0 in a __cuda_array_interface__, which could mean two streams; 1 or 2 was expected");
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the protocol gives the stream as a number
  const Stream producer = Stream::wrap(tensor.device(), reinterpret_cast<void*>(value));
  tensor.buffer().record_use(producer, Buffer::Access::kWrite);
}

Tensor from_cuda_interface(nb::handle object, const nb::dict& interface) {
  require_unmasked(interface);
  const InterfaceType type = interface_type(object, interface);
  if (type.byte_swapped) {
    throw Error(ErrorCode::kUnsupported, "found device memory in the other byte order, expected this machine's");
  }
  device::ForeignArray array = described(object, interface, type.dtype, nb::object(interface["data"]));
  array.device = device_of_pointer(array.data);
  Tensor tensor = device::tensor_over(array);
  if (interface.contains("stream") && tensor.numel() != 0) order_after(nb::object(interface["stream"]), tensor);
  return tensor;
}

// --- the buffer protocol ---

DType buffer_type(const Py_buffer& view) {
  const std::string format = view.format == nullptr ? "B" : view.format;
  const std::string_view letters = std::string_view(format).substr(format.find_first_not_of("@=<|") == 1 ? 1 : 0);
  const auto size = static_cast<std::size_t>(view.itemsize);
  const auto sized = [&](char kind) {
    return DType::from_name(core::format("{}{}", kind == 'i' ? "int" : "uint", 8 * size));
  };
  std::optional<DType> out;
  if (letters == "?") out = DType::boolean;
  if (letters == "e") out = DType::float16;
  if (letters == "f") out = DType::float32;
  if (letters == "d") out = DType::float64;
  if (letters == "Zf") out = DType::complex64;
  if (letters == "Zd") out = DType::complex128;
  if (letters == "c") out = DType::uint8;
  if (letters.size() == 1 && std::string_view("bhilqn").find(letters) != std::string_view::npos) out = sized('i');
  if (letters.size() == 1 && std::string_view("BHILQN").find(letters) != std::string_view::npos) out = sized('u');
  if (out && out->itemsize() == size) return *out;
  throw Error(ErrorCode::kUnsupported,
              core::format("found a buffer of format '{}', expected numbers in this machine's byte order", format));
}

struct BufferView {
  Py_buffer view{};
  ~BufferView() {
    let_go_with_gil([this] { PyBuffer_Release(&view); });
  }
};

Tensor from_buffer(nb::handle object) {
  Py_buffer view;
  if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_STRIDED_RO | PyBUF_FORMAT) != 0) nb::raise_python_error();
  auto owner = std::make_shared<BufferView>();
  owner->view = view;
  device::ForeignArray array;
  array.dtype = buffer_type(view);
  const auto rank = static_cast<std::size_t>(view.ndim);
  // Who lends memory in C order may leave both out, as ctypes does the strides, whatever was asked for.
  const Py_ssize_t length = view.len / std::max<Py_ssize_t>(view.itemsize, 1);
  for (std::size_t dim = 0; dim < rank; ++dim) array.shape.push_back(view.shape == nullptr ? length : view.shape[dim]);
  array.byte_strides = view.strides == nullptr ? contiguous_byte_strides(array.shape, array.dtype.itemsize())
                                               : std::vector<std::int64_t>(view.strides, view.strides + rank);
  array.data = static_cast<std::byte*>(view.buf);
  array.read_only = view.readonly != 0;
  array.owner = owner;
  return device::tensor_over(array);
}

// --- which one ---

bool wants_gradient(nb::handle object) {
  const nb::object flag = attribute_or(object, "requires_grad");
  return flag.is(Py_True);
}

// A NumPy scalar's interface describes an array that is already gone; the array that __array__ makes stays.
bool is_array_scalar(nb::handle object, const nb::dict& interface) {
  return nb::len(nb::object(interface["shape"])) == 0 && has_attribute(object, "__array__");
}

/// torch's lazy conjugates and negatives as they read; their memory has something else.
nb::object resolved(nb::object object) {
  if (has_lazy_bit(object, "is_conj")) object = object.attr("resolve_conj")();
  return has_lazy_bit(object, "is_neg") ? nb::object(object.attr("resolve_neg")()) : object;
}

/// What its library refuses to hand over (a sparse or quantized tensor, a device of no memory) is an error of ours,
/// which says where the object lies.
Tensor from_dlpack(nb::handle object) {
  try {
    const bool gradient = wants_gradient(object);
    return tensor_from_dlpack(resolved(gradient ? object.attr("detach")() : nb::borrow(object)))
        .with_requires_grad(gradient);
  } catch (nb::python_error& error) {
    const auto is = [&](PyObject* type) { return error.matches(type); };
    if (!is(PyExc_BufferError) && !is(PyExc_ValueError) && !is(PyExc_TypeError) && !is(PyExc_RuntimeError)) throw;
    // Behind the first line torch tells where in its own code that was.
    const std::string why = nb::str(error.value()).c_str();
    throw Error(ErrorCode::kUnsupported,
                core::format("found an object of type {} that does not hand over its elements ({}); make it a plain "
                             "strided array first",
                             object_type(object), why.substr(0, why.find('\n'))));
  }
}

std::optional<Tensor> foreign_array(nb::handle object) {
  const nb::object interface = attribute_or(object, "__array_interface__");
  if (PyDict_Check(interface.ptr())) {
    if (is_masked(object)) throw_masked();
    const auto described = nb::borrow<nb::dict>(interface);
    if (!is_array_scalar(object, described)) return from_interface(object, described);
    const nb::object array = object.attr("__array__")();
    return from_interface(array, nb::borrow<nb::dict>(array.attr("__array_interface__")));
  }
  require_memory(object);
  if (has_attribute(object, "__dlpack__")) return from_dlpack(object);
  const nb::object on_device = attribute_or(object, "__cuda_array_interface__");
  if (PyDict_Check(on_device.ptr())) return from_cuda_interface(object, nb::borrow<nb::dict>(on_device));
  if (PyObject_CheckBuffer(object.ptr()) != 0) return from_buffer(object);
  if (has_attribute(object, "__array__")) {
    const nb::object array = object.attr("__array__")();
    const nb::object own = attribute_or(array, "__array_interface__");
    if (PyDict_Check(own.ptr())) return from_interface(array, nb::borrow<nb::dict>(own));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Tensor> array_from(nb::handle object) {
  if (nb::isinstance<Tensor>(object)) return nb::cast<Tensor>(object);
  if (PyType_Check(object.ptr())) return std::nullopt;
  return foreign_array(object);
}

Tensor memory_from(nb::handle object) {
  if (std::optional<Tensor> memory = array_from(object)) return *std::move(memory);
  throw Error(ErrorCode::kDTypeMismatch, "found no memory of tensors");
}

}  // namespace penstock::python
