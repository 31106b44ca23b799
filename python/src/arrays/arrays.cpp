#include "arrays/arrays.h"

#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/view.h"
#include "interpreter/convert.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

/// The bytes that a tensor spans, as one flat buffer: what arrays are made over.
struct Memory {
  Tensor tensor;

  std::size_t extent() const { return *core::view_span(tensor.shape(), tensor.strides(), tensor.dtype().itemsize()); }
};

int get_memory(PyObject* self, Py_buffer* view, int flags) noexcept {
  static char nothing = 0;
  const Memory& memory = *nb::inst_ptr<Memory>(self);
  const std::size_t bytes = memory.extent();
  void* data = bytes == 0 ? &nothing : static_cast<void*>(memory.tensor.data());
  return PyBuffer_FillInfo(view, self, data, static_cast<Py_ssize_t>(bytes), memory.tensor.read_only() ? 1 : 0, flags);
}

void require_host(const Tensor& tensor, const char* what) {
  if (tensor.device().type == DeviceType::kCpu) return;
  throw Error(ErrorCode::kDeviceMismatch,
              core::format("{} needs memory of the CPU, found a tensor on {}; copy it with .to(\"cpu\")", what,
                           tensor.device().to_string()));
}

/// A structure's descr as a Python object; it is a literal, never code.
nb::object descr_object(const DType& dtype) {
  return nb::module_::import_("ast").attr("literal_eval")(text_from(dtype.numpy_descr()));
}

/// bfloat16 and float8 exist in NumPy by the package ml_dtypes only.
nb::object extension_dtype(const DType& dtype) {
  if (dtype.is_floating()) {
    try {
      return nb::module_::import_("ml_dtypes").attr(dtype.name().c_str());
    } catch (const nb::python_error& error) {
      if (!error.matches(PyExc_ImportError) && !error.matches(PyExc_AttributeError)) throw;
    }
  }
  const std::string& name = dtype.name();
  if (name.size() == 4 && (name[0] == '<' || name[0] == '>') && (name[1] == 'f' || name[1] == 'c')) {
    throw Error(
        ErrorCode::kDTypeMismatch,
        core::format("{} is a long double, which differs between machines and is raw bytes to Penstock; load the "
                     "file with penstock.numpy.load, or take .view_bytes().numpy().view('{}')",
                     name, name));
  }
  const std::string hint = dtype.is_floating()  ? "install ml_dtypes, convert with .to(\"float32\")"
                           : dtype.is_complex() ? "convert with .to(\"complex64\")"
                                                : "take .view_bytes().numpy()";
  throw Error(ErrorCode::kDTypeMismatch, core::format("NumPy has no type for {}; {}{}", dtype.name(), hint,
                                                      dtype.is_floating() ? " or take .view_bytes().numpy()" : ""));
}

nb::object numpy_dtype(const DType& dtype) {
  const std::string descr = dtype.numpy_descr();
  if (descr.empty()) return extension_dtype(dtype);
  if (dtype.code() != DType::Code::kStructured) return text_from(descr);
  return nb::module_::import_("numpy.lib.format").attr("descr_to_dtype")(descr_object(dtype));
}

constexpr std::pair<DType::Code, const char*> kBufferFormats[] = {
    {DType::Code::kBool, "?"},       {DType::Code::kUInt8, "B"},       {DType::Code::kUInt16, "H"},
    {DType::Code::kUInt32, "I"},     {DType::Code::kUInt64, "Q"},      {DType::Code::kInt8, "b"},
    {DType::Code::kInt16, "h"},      {DType::Code::kInt32, "i"},       {DType::Code::kInt64, "q"},
    {DType::Code::kFloat16, "e"},    {DType::Code::kFloat32, "f"},     {DType::Code::kFloat64, "d"},
    {DType::Code::kComplex64, "Zf"}, {DType::Code::kComplex128, "Zd"},
};

/// Null where buffers have none.
const char* buffer_format(DType::Code code) noexcept {
  for (const auto& [known, format] : kBufferFormats) {
    if (known == code) return format;
  }
  return nullptr;
}

/// What a Py_buffer points to.
struct BufferSizes {
  std::vector<Py_ssize_t> shape;
  std::vector<Py_ssize_t> strides;
};

const char* buffer_refusal(const Tensor& tensor, int flags) noexcept {
  if (tensor.device().type != DeviceType::kCpu)
    return "the tensor is not in memory of the CPU; copy it with .to(\"cpu\")";
  if (buffer_format(tensor.dtype().code()) == nullptr) {
    return "buffers have no format for this dtype; take .view_bytes() or .numpy()";
  }
  if (tensor.read_only() && (flags & PyBUF_WRITABLE) != 0) return "the tensor is read-only; take .clone()";
  const bool strided = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
  const bool wants_c = (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS || !strided;
  if (wants_c && !tensor.is_contiguous()) return "the tensor is not contiguous; take .contiguous()";
  const bool is_f = tensor.rank() <= 1 || tensor.strides() == tensor.shape().fortran_strides();
  const bool wants_f = (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS;
  if (wants_f && !is_f) return "the tensor is not in Fortran order";
  const bool wants_any = (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS;
  if (wants_any && !is_f && !tensor.is_contiguous()) return "the tensor is not contiguous; take .contiguous()";
  return nullptr;
}

}  // namespace

nb::tuple byte_strides(const Tensor& tensor) {
  const auto itemsize = static_cast<std::int64_t>(tensor.dtype().itemsize());
  Shape bytes = tensor.strides();
  for (std::size_t dim = 0; dim < bytes.rank(); ++dim) bytes[dim] *= itemsize;
  return tuple_of(bytes);
}

std::unique_ptr<BufferSizes> buffer_sizes(const Tensor& tensor) {
  auto sizes = std::make_unique<BufferSizes>();
  const auto itemsize = static_cast<Py_ssize_t>(tensor.dtype().itemsize());
  for (std::size_t dim = 0; dim < tensor.rank(); ++dim) {
    sizes->shape.push_back(tensor.shape()[dim]);
    sizes->strides.push_back(tensor.strides()[dim] * itemsize);
  }
  return sizes;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  static char nothing = 0;
  const Tensor& tensor = *nb::inst_ptr<Tensor>(self);
  view->obj = nullptr;
  if (const char* refusal = buffer_refusal(tensor, flags)) {
    PyErr_SetString(PyExc_BufferError, refusal);
    return -1;
  }
  std::unique_ptr<BufferSizes> sizes;
  try {
    sizes = buffer_sizes(tensor);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
    return -1;
  }
  const auto itemsize = static_cast<Py_ssize_t>(tensor.dtype().itemsize());
  view->buf = tensor.nbytes() == 0 ? &nothing : static_cast<void*>(tensor.data());
  view->len = static_cast<Py_ssize_t>(tensor.nbytes());
  view->readonly = tensor.read_only() ? 1 : 0;
  view->itemsize = itemsize;
  view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(buffer_format(tensor.dtype().code())) : nullptr;
  view->ndim = static_cast<int>(tensor.rank());
  view->shape = (flags & PyBUF_ND) == PyBUF_ND ? sizes->shape.data() : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? sizes->strides.data() : nullptr;
  view->suboffsets = nullptr;
  view->internal = sizes.release();
  Py_INCREF(self);
  view->obj = self;
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) noexcept { delete static_cast<BufferSizes*>(view->internal); }

nb::object to_numpy_dtype(const DType& dtype) {
  return nb::module_::import_("numpy").attr("dtype")(numpy_dtype(dtype));
}

nb::object to_numpy(const Tensor& tensor) {
  require_host(tensor, "a NumPy array");
  const nb::object numpy = nb::module_::import_("numpy");
  const nb::object dtype = numpy_dtype(tensor.dtype());
  const nb::tuple shape = tuple_of(tensor.shape());
  // No memory to share, and not by zeros(), which gives text the width 1.
  if (tensor.dtype().itemsize() == 0) return numpy.attr("ndarray")(shape, dtype);
  return numpy.attr("ndarray")(shape, dtype, nb::cast(Memory{tensor}), 0, byte_strides(tensor));
}

nb::dict array_interface(const Tensor& tensor) {
  const std::string descr = tensor.dtype().numpy_descr();
  if (tensor.device().type != DeviceType::kCpu || descr.empty()) {
    throw nb::attribute_error("__array_interface__ describes memory of the CPU in NumPy's own types");
  }
  const bool structured = tensor.dtype().code() == DType::Code::kStructured;
  nb::dict out;
  out["version"] = 3;
  out["shape"] = tuple_of(tensor.shape());
  out["strides"] = byte_strides(tensor);
  out["typestr"] = text_from(structured ? core::format("|V{}", tensor.dtype().itemsize()) : descr);
  if (structured) out["descr"] = descr_object(tensor.dtype());
  out["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(tensor.data()), tensor.read_only());
  return out;
}

void bind_memory(nb::module_& module) {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_memory)}, {0, nullptr}};
  nb::class_<Memory>(module, "_Memory", "The memory of a tensor, for arrays made over it.", nb::type_slots(slots));
}

}  // namespace penstock::python
