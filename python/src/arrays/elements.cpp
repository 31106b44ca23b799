#include "arrays/elements.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "core/format.h"
#include "interpreter/convert.h"
#include "interpreter/interrupt.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

template <class T>
T load(const std::byte* address) {
  T out;
  std::memcpy(&out, address, sizeof(T));
  return out;
}

template <class T>
nb::object signed_at(const std::byte* address, std::size_t) {
  return checked(PyLong_FromLongLong(load<T>(address)));
}

template <class T>
nb::object unsigned_at(const std::byte* address, std::size_t) {
  return checked(PyLong_FromUnsignedLongLong(load<T>(address)));
}

template <class T>
nb::object float_at(const std::byte* address, std::size_t) {
  return checked(PyFloat_FromDouble(static_cast<double>(load<T>(address))));
}

template <class T>
nb::object complex_at(const std::byte* address, std::size_t) {
  return checked(
      PyComplex_FromDoubles(static_cast<double>(load<T>(address)), static_cast<double>(load<T>(address + sizeof(T)))));
}

nb::object bool_at(const std::byte* address, std::size_t) { return nb::bool_(load<std::uint8_t>(address) != 0); }

nb::object raw_at(const std::byte* address, std::size_t size) {
  return checked(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(address), static_cast<Py_ssize_t>(size)));
}

// NumPy's S and U types are padded with zeros, which are no part of the value.
nb::object bytes_at(const std::byte* address, std::size_t size) {
  while (size > 0 && address[size - 1] == std::byte{0}) --size;
  return raw_at(address, size);
}

nb::object text_at(const std::byte* address, std::size_t size) {
  std::vector<Py_UCS4> letters(size / sizeof(Py_UCS4));
  std::memcpy(letters.data(), address, letters.size() * sizeof(Py_UCS4));
  while (!letters.empty() && letters.back() == 0) letters.pop_back();
  for (const Py_UCS4 letter : letters) {
    if (letter > 0x10FFFF) {
      throw Error(ErrorCode::kCorrupt,
                  core::format("found {:#x} in a text, which is not a Unicode code point; take .view_bytes()", letter));
    }
  }
  return checked(
      PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, letters.data(), static_cast<Py_ssize_t>(letters.size())));
}

using ElementReader = nb::object (*)(const std::byte* address, std::size_t size);

constexpr std::pair<DType::Code, ElementReader> kReaders[] = {
    {DType::Code::kBool, bool_at},
    {DType::Code::kUInt8, unsigned_at<std::uint8_t>},
    {DType::Code::kBits8, unsigned_at<std::uint8_t>},
    {DType::Code::kUInt16, unsigned_at<std::uint16_t>},
    {DType::Code::kBits16, unsigned_at<std::uint16_t>},
    {DType::Code::kUInt32, unsigned_at<std::uint32_t>},
    {DType::Code::kUInt64, unsigned_at<std::uint64_t>},
    {DType::Code::kInt8, signed_at<std::int8_t>},
    {DType::Code::kInt16, signed_at<std::int16_t>},
    {DType::Code::kInt32, signed_at<std::int32_t>},
    {DType::Code::kInt64, signed_at<std::int64_t>},
    {DType::Code::kDateTime64, signed_at<std::int64_t>},
    {DType::Code::kTimeDelta64, signed_at<std::int64_t>},
    {DType::Code::kFloat32, float_at<float>},
    {DType::Code::kFloat64, float_at<double>},
    {DType::Code::kComplex64, complex_at<float>},
    {DType::Code::kComplex128, complex_at<double>},
    {DType::Code::kBytes, bytes_at},
    {DType::Code::kText, text_at},
    {DType::Code::kVoid, raw_at},
};

/// Null where a type has no reader of its own.
ElementReader reader_for(DType::Code code) noexcept {
  const auto* const found = std::ranges::find(kReaders, code, &std::pair<DType::Code, ElementReader>::first);
  return found == std::end(kReaders) ? nullptr : found->second;
}

[[noreturn]] void throw_no_elements(const DType& dtype) {
  throw Error(ErrorCode::kUnsupported,
              core::format("elements of type {} have no Python form; take .numpy() or .view_bytes()", dtype.name()));
}

class ListBuilder {
 public:
  explicit ListBuilder(const Tensor& tensor)
      : tensor_(tensor), reader_(reader_for(tensor.dtype().code())), itemsize_(tensor.dtype().itemsize()) {}

  /// Recursion is as deep as the tensor has dimensions, 64 at most.
  nb::object build(std::size_t dim, const std::byte* address) {
    if (dim == tensor_.rank()) {
      yield_at(++count_);
      return reader_(address, itemsize_);
    }
    const std::int64_t size = tensor_.shape()[dim];
    const std::ptrdiff_t step = tensor_.strides()[dim] * static_cast<std::ptrdiff_t>(itemsize_);
    nb::object list = checked(PyList_New(size));
    for (std::int64_t i = 0; i < size; ++i) {
      PyList_SET_ITEM(list.ptr(), i, build(dim + 1, address + i * step).release().ptr());
    }
    return list;
  }

 private:
  const Tensor& tensor_;
  ElementReader reader_;
  std::size_t itemsize_;
  std::size_t count_ = 0;
};

}  // namespace

// Told by the name of a base, as NumPy may not be there to ask.
bool is_numpy_scalar(nb::handle object) {
  PyObject* bases = Py_TYPE(object.ptr())->tp_mro;
  for (Py_ssize_t i = 0; bases != nullptr && i < PyTuple_GET_SIZE(bases); ++i) {
    const PyObject* base = PyTuple_GET_ITEM(bases, i);
    if (std::strcmp(reinterpret_cast<const PyTypeObject*>(base)->tp_name, "numpy.generic") == 0) return true;
  }
  return false;
}

bool has_elements(const DType& dtype) noexcept { return dtype.is_numeric() || reader_for(dtype.code()) != nullptr; }

Tensor on_host(const Tensor& tensor) {
  if (tensor.device().type == DeviceType::kCpu) return tensor;
  const ReleasedGil released;
  return tensor.to(Device{});
}

Tensor readable(const Tensor& tensor) {
  Tensor host = on_host(tensor);
  if (reader_for(host.dtype().code()) != nullptr) return host;
  if (!host.dtype().is_numeric()) throw_no_elements(host.dtype());
  return host.to(host.dtype().is_complex() ? DType::complex64 : DType::float32);
}

nb::object element_at(const std::byte* address, const DType& dtype) {
  return reader_for(dtype.code())(address, dtype.itemsize());
}

nb::object to_list(const Tensor& tensor) {
  const Tensor host = readable(tensor);
  return ListBuilder(host).build(0, host.data());
}

nb::object to_item(const Tensor& tensor) {
  if (tensor.numel() != 1) {
    throw Error(
        ErrorCode::kShapeMismatch,
        core::format("found a tensor of shape {}, expected one element; use .tolist()", tensor.shape().to_string()));
  }
  const Tensor host = readable(tensor);
  return element_at(host.data(), host.dtype());
}

}  // namespace penstock::python
