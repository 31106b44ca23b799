#include "interpreter/convert.h"

#include <limits>

#include "core/format.h"
#include "format/text/npy_dtype.h"
#include "interpreter/interrupt.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

/// Any str has bytes: lone surrogates that stand for bytes become those, and others the three bytes that are no UTF-8,
/// so that whoever looks the text up finds nothing and says so.
std::string bytes_of(nb::handle text) {
  for (const char* const surrogates : {"surrogateescape", "surrogatepass"}) {
    const nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", surrogates));
    if (bytes.is_valid()) {
      return {PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
    }
    if (PyErr_ExceptionMatches(PyExc_UnicodeEncodeError) == 0) nb::raise_python_error();
    PyErr_Clear();
  }
  return {};
}

std::string str_of(nb::handle object) { return bytes_of(nb::str(object)); }

/// As a ValueError is set of a path that no file can have (zero bytes, characters without a form); others are thrown as
/// they are.
[[noreturn]] void throw_no_path(nb::handle path) {
  if (PyErr_ExceptionMatches(PyExc_ValueError) == 0) nb::raise_python_error();
  const nb::python_error error;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("{} is not a path that a file can have: {}", shown(path), str_of(error.value())));
}

std::optional<DType> dtype_from_text(const std::string& text) {
  if (std::optional<DType> named = DType::from_name(text)) return named;
  try {
    const format::NpyType type = format::npy_type_from_string(text);
    if (!type.byte_swapped && !type.has_objects) return type.dtype;
  } catch (const Error&) {
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_type(nb::handle type) {
  if (type.is(&PyFloat_Type)) return DType::float64;
  if (type.is(&PyLong_Type)) return DType::int64;
  if (type.is(&PyBool_Type)) return DType::boolean;
  if (type.is(&PyComplex_Type)) return DType::complex128;
  return dtype_from_text(str_of(type.attr("__name__")));
}

}  // namespace

std::string path_from(nb::handle path) {
  PyObject* bytes = nullptr;
  if (PyUnicode_FSConverter(path.ptr(), &bytes) == 0) throw_no_path(path);
  const nb::object owner = nb::steal(bytes);
  return {PyBytes_AS_STRING(bytes), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes))};
}

std::string index_path_from(nb::handle index) {
  if (PyBool_Check(index.ptr())) return {};
  std::string path = path_from(index);
  if (path.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "index='' names no file; True keeps the index in the user's cache folder");
  }
  return path;
}

bool is_path(nb::handle object) {
  return PyUnicode_Check(object.ptr()) != 0 || PyBytes_Check(object.ptr()) != 0 || has_attribute(object, "__fspath__");
}

Device device_from(nb::handle device) {
  if (nb::isinstance<Device>(device)) return nb::cast<Device>(device);
  if (PyUnicode_Check(device.ptr()) || comes_from(device, "torch")) return {str_of(device)};
  throw Error(ErrorCode::kInvalidArgument,
              core::format("a device is written \"cpu\", \"cuda\" or \"cuda:1\"; found an object of type {}",
                           object_type(device)));
}

Device numbered_device_from(nb::handle device) {
  if (PyBool_Check(device.ptr()) || !PyIndex_Check(device.ptr())) return device_from(device);
  const std::int64_t index = integer_from(device);
  if (index >= 0 && index <= std::numeric_limits<int>::max()) return {DeviceType::kCuda, static_cast<int>(index)};
  throw Error(ErrorCode::kInvalidArgument, core::format("found device {}, expected 0 or more", index));
}

std::optional<DType> try_dtype_from(nb::handle dtype) {
  if (nb::isinstance<DType>(dtype)) return nb::cast<DType>(dtype);
  if (PyType_Check(dtype.ptr())) return dtype_from_type(dtype);
  if (PyUnicode_Check(dtype.ptr()) || comes_from(dtype, "torch") || comes_from(dtype, "numpy")) {
    return dtype_from_text(str_of(dtype));
  }
  return std::nullopt;
}

DType dtype_from(nb::handle dtype, const char* argument) {
  if (const std::optional<DType> found = try_dtype_from(dtype)) return *found;
  throw Error(ErrorCode::kInvalidArgument,
              core::format("{}={} names no dtype; write one such as \"float32\", \"bfloat16\" or \"int64\"", argument,
                           shown(dtype)));
}

std::size_t not_negative(std::int64_t value, const char* name) {
  if (value >= 0) return static_cast<std::size_t>(value);
  throw Error(ErrorCode::kInvalidArgument, core::format("found {}={}, expected 0 or more", name, value));
}

namespace {

/// As no exception is set but OverflowError; others are thrown as they are.
[[noreturn]] void throw_too_large(nb::handle index, const char* type) {
  if (PyErr_ExceptionMatches(PyExc_OverflowError) == 0) nb::raise_python_error();
  PyErr_Clear();
  // Python refuses to write out very long ones.
  const auto bits = nb::cast<std::size_t>(index.attr("bit_length")());
  const std::string number = bits > 128 ? core::format("an integer of {} bits", bits) : str_of(index);
  throw Error(ErrorCode::kInvalidArgument,
              core::format("{} does not fit {}; integers have 64 bits at most, floats are larger", number, type));
}

nb::object index_of(nb::handle object) {
  nb::object index = nb::steal(PyNumber_Index(object.ptr()));
  if (!index.is_valid()) nb::raise_python_error();
  return index;
}

}  // namespace

std::int64_t integer_from(nb::handle object) {
  const nb::object index = index_of(object);
  const long long value = PyLong_AsLongLong(index.ptr());
  if (value == -1 && PyErr_Occurred()) throw_too_large(index, "int64");
  return value;
}

std::uint64_t unsigned_from(nb::handle object) {
  const nb::object index = index_of(object);
  const unsigned long long value = PyLong_AsUnsignedLongLong(index.ptr());
  if (value == static_cast<unsigned long long>(-1) && PyErr_Occurred()) throw_too_large(index, "uint64");
  return value;
}

std::optional<std::vector<std::int64_t>> plain_integers_from(nb::handle sequence) {
  std::vector<std::int64_t> out;
  if (PyRange_Check(sequence.ptr())) {
    const std::int64_t start = integer_from(sequence.attr("start"));
    const std::int64_t step = integer_from(sequence.attr("step"));
    out.resize(static_cast<std::size_t>(nb::len(sequence)));
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = start + static_cast<std::int64_t>(i) * step;
    return out;
  }
  if (!PyList_CheckExact(sequence.ptr())) return std::nullopt;
  const nb::object items = checked(PyList_GetSlice(sequence.ptr(), 0, PY_SSIZE_T_MAX));  // which nobody else changes
  const auto size = static_cast<std::size_t>(PyList_GET_SIZE(items.ptr()));
  out.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    PyObject* const item = PyList_GET_ITEM(items.ptr(), static_cast<Py_ssize_t>(i));
    int overflow = 0;
    const long long value = PyLong_CheckExact(item) ? PyLong_AsLongLongAndOverflow(item, &overflow) : -1;
    if (overflow != 0 || !PyLong_CheckExact(item)) return std::nullopt;
    out.push_back(value);
  }
  return out;
}

std::vector<std::int64_t> integers_from(nb::handle sequence) {
  if (std::optional<std::vector<std::int64_t>> plain = plain_integers_from(sequence)) return *std::move(plain);
  std::vector<std::int64_t> out;
  const Py_ssize_t hint = PyObject_LengthHint(sequence.ptr(), 0);
  if (hint < 0) nb::raise_python_error();
  out.reserve(static_cast<std::size_t>(hint));
  for (const nb::handle item : nb::iter(sequence)) {
    out.push_back(integer_from(item));
    yield_at(out.size());
  }
  return out;
}

Shape shape_from(nb::handle shape) { return Shape(std::span<const std::int64_t>(integers_from(shape))); }

std::string name_from(nb::handle text) {
  if (PyUnicode_Check(text.ptr()) == 0) {
    throw nb::type_error(core::format("a name is a str; found {}", object_type(text)).c_str());
  }
  return bytes_of(text);
}

nb::str text_from(std::string_view utf8) {
  const auto size = static_cast<Py_ssize_t>(utf8.size());
  nb::object text = nb::steal(PyUnicode_DecodeUTF8(utf8.data(), size, "surrogateescape"));
  if (!text.is_valid()) nb::raise_python_error();
  return nb::borrow<nb::str>(text);
}

Typed<nb::str> path_text(std::string_view path) {
  return nb::steal(PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

nb::object reduced_by_state(nb::handle self) {
  return nb::make_tuple(nb::module_::import_("copyreg").attr("__newobj__"), nb::make_tuple(self.type()),
                        self.attr("__getstate__")());
}

nb::object checked(PyObject* object) {
  if (object == nullptr) nb::raise_python_error();
  return nb::steal(object);
}

Sizes tuple_of(const Shape& shape) {
  nb::object out = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.rank())));
  if (!out.is_valid()) nb::raise_python_error();
  for (std::size_t dim = 0; dim < shape.rank(); ++dim) {
    PyTuple_SET_ITEM(out.ptr(), static_cast<Py_ssize_t>(dim), nb::int_(shape[dim]).release().ptr());
  }
  return nb::borrow<nb::tuple>(out);
}

std::shared_ptr<const void> keep_alive(nb::object object) {
  PyObject* kept = object.release().ptr();
  return {kept, [](const void* pointer) {
            let_go_with_gil([pointer] { Py_DECREF(static_cast<PyObject*>(const_cast<void*>(pointer))); });
          }};
}

nb::object attribute_or(nb::handle object, const char* name, nb::object otherwise) {
  nb::object found = nb::steal(PyObject_GetAttrString(object.ptr(), name));
  if (found.is_valid()) return found;
  if (PyErr_ExceptionMatches(PyExc_Exception) == 0) nb::raise_python_error();
  PyErr_Clear();
  return otherwise;
}

bool has_attribute(nb::handle object, const char* name) { return attribute_or(object, name, {}).is_valid(); }

std::string shown(nb::handle object) {
  return nb::str(nb::module_::import_("penstock._text").attr("shown")(object)).c_str();
}

std::string object_type(nb::handle object) {
  const std::string name = nb::str(object.type().attr("__qualname__")).c_str();
  const nb::object module = attribute_or(object.type(), "__module__");
  const std::string prefix = PyUnicode_Check(module.ptr()) ? nb::borrow<nb::str>(module).c_str() : "";
  return prefix.empty() || prefix == "builtins" ? name : prefix + '.' + name;
}

bool comes_from(nb::handle object, std::string_view library) {
  const nb::object module = attribute_or(object.type(), "__module__");
  if (!PyUnicode_Check(module.ptr())) return false;
  const std::string_view name = nb::borrow<nb::str>(module).c_str();
  return name == library || (name.starts_with(library) && name[library.size()] == '.');
}

}  // namespace penstock::python
