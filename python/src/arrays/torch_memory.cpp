#include "arrays/torch_memory.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>

#include "bindings.h"
#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/view.h"
#include "interpreter/convert.h"
#include "penstock/error.h"

namespace penstock::python {
namespace {

std::string text_of(nb::handle object) { return nb::str(object).c_str(); }

/// What tensors are asked for, as Python's own names, which take longer to make than to look up.
struct Asked {
  PyObject* const data_ptr = PyUnicode_InternFromString("data_ptr");
  PyObject* const device = PyUnicode_InternFromString("device");
  PyObject* const element_size = PyUnicode_InternFromString("element_size");
  PyObject* const is_nested = PyUnicode_InternFromString("is_nested");
  PyObject* const layout = PyUnicode_InternFromString("layout");
  PyObject* const nbytes = PyUnicode_InternFromString("nbytes");
  PyObject* const numel = PyUnicode_InternFromString("numel");
  PyObject* const shape = PyUnicode_InternFromString("shape");
  PyObject* const storage_offset = PyUnicode_InternFromString("storage_offset");
  PyObject* const stride = PyUnicode_InternFromString("stride");
  PyObject* const type = PyUnicode_InternFromString("type");
  PyObject* const untyped_storage = PyUnicode_InternFromString("untyped_storage");
};

const Asked& names() {
  static const Asked all;
  return all;
}

nb::object attribute(nb::handle object, PyObject* name) { return checked(PyObject_GetAttr(object.ptr(), name)); }
nb::object called(nb::handle object, PyObject* name) { return checked(PyObject_CallMethodNoArgs(object.ptr(), name)); }
template <class Number>
Number number(nb::handle object, PyObject* name) {
  return nb::cast<Number>(called(object, name));
}

/// Elements in a byte, of the types that are packed.
std::int64_t packed_in_a_byte(nb::handle tensor) {
  const nb::object dtype = tensor.attr("dtype");
  const std::string name = text_of(dtype);
  return name == "torch.quint4x2" ? 2 : name == "torch.quint2x4" ? 4 : 1;
}

/// Bytes from the storage's begin to behind the last element; nothing when that does not fit in 63 bits.
std::optional<std::uint64_t> reach_of(nb::handle tensor) {
  Shape shape = shape_from(attribute(tensor, names().shape));
  Strides strides = shape_from(called(tensor, names().stride));
  const auto itemsize = number<std::uint64_t>(tensor, names().element_size);
  const std::int64_t packed = itemsize == 1 ? packed_in_a_byte(tensor) : 1;
  if (packed > 1 && shape.rank() > 0) {
    std::int64_t& last = shape[shape.rank() - 1];
    last = last / packed + (last % packed != 0 ? 1 : 0);
    strides = shape.contiguous_strides();
  }
  const auto span = core::view_span(shape, strides, itemsize);
  const auto before = core::try_mul(number<std::uint64_t>(tensor, names().storage_offset), itemsize);
  return span && before ? core::try_add(*span, *before) : std::nullopt;
}

std::string no_memory(nb::handle tensor) {
  return core::format(
      "found a tensor of class {} on {} that has no memory, so that there are no elements to read or "
      "write; use one that has (of zero and functional tensors, .clone() in plain torch code)",
      object_type(tensor), text_of(nb::object(tensor.attr("device"))));
}

/// "meta", and the claimed device beside it: a fake tensor says that it is on the cpu.
bool lies_nowhere(nb::handle tensor, nb::handle storage) {
  const std::string where = text_of(attribute(attribute(storage, names().device), names().type));
  return where == "meta" || where != text_of(attribute(attribute(tensor, names().device), names().type));
}

std::optional<std::string> short_storage(nb::handle tensor, nb::handle storage) {
  const auto reach = reach_of(tensor);
  const auto bytes = number<std::uint64_t>(storage, names().nbytes);
  if (reach && *reach <= bytes) return std::nullopt;
  return core::format(
      "found a tensor of shape {} whose storage is shorter than it reaches: {}, and its elements "
      "need {}; the storage was freed or resized, so give it its memory back first",
      shape_from(attribute(tensor, names().shape)).to_string(), core::counted(bytes, "byte"),
      reach ? std::to_string(*reach) : "more than 2^63");
}

std::optional<std::string> strided_fault(nb::handle tensor) {
  const nb::object storage = called(tensor, names().untyped_storage);
  if (lies_nowhere(tensor, storage)) return no_memory(tensor);
  if (auto fault = short_storage(tensor, storage)) return fault;
  if (number<std::uint64_t>(storage, names().data_ptr) == 0) return no_memory(tensor);
  return std::nullopt;
}

/// By its class, because some tensors raise when they are asked what they have.
bool is_torch_tensor(nb::handle object) {
  return !PyType_Check(object.ptr()) && has_attribute(object.type(), "untyped_storage") &&
         has_attribute(object.type(), "layout");
}

/// What `look` says of a tensor that has strides and elements; `otherwise` where the tensor does not answer.
template <class Look>
std::optional<std::string> asked(nb::handle object, const Look& look, const Look& otherwise) {
  if (!is_torch_tensor(object)) return std::nullopt;
  try {
    if (text_of(attribute(object, names().layout)) != "torch.strided") return std::nullopt;
    if (attribute(object, names().is_nested).is(Py_True)) return std::nullopt;
    if (number<std::int64_t>(object, names().numel) == 0) return std::nullopt;
    return look(object);
  } catch (nb::python_error& error) {
    // Tensors of transforms (vmap, grad) and zero tensors refuse to say where they lie.
    if (!error.matches(PyExc_Exception)) throw;
  } catch (const nb::cast_error&) {  // Sizes that are symbols, not numbers.
  } catch (const Error&) {           // The same, where a whole shape was asked for.
  }
  return otherwise(object);
}

}  // namespace

std::optional<std::string> memory_fault(nb::handle object) {
  using Look = std::optional<std::string> (*)(nb::handle);
  return asked<Look>(object, strided_fault, [](nb::handle tensor) { return std::optional(no_memory(tensor)); });
}

std::optional<std::string> storage_fault(nb::handle object) {
  using Look = std::optional<std::string> (*)(nb::handle);
  const Look look = [](nb::handle tensor) -> std::optional<std::string> {
    const nb::object storage = called(tensor, names().untyped_storage);
    return lies_nowhere(tensor, storage) ? std::nullopt : short_storage(tensor, storage);
  };
  return asked<Look>(object, look, [](nb::handle) { return std::optional<std::string>(); });
}

void require_memory(nb::handle object) {
  if (const auto fault = memory_fault(object)) throw Error(ErrorCode::kUnsupported, *fault);
}

void forbid_resizing(nb::handle object) {
  if (!is_torch_tensor(object) || text_of(nb::object(object.attr("device"))) != "cpu") return;
  const nb::module_ torch = nb::module_::import_("torch");
  const nb::object bytes = torch.attr("empty")(0, nb::arg("dtype") = torch.attr("uint8"), nb::arg("device") = "cpu");
  bytes.attr("set_")(object.attr("untyped_storage")()).attr("numpy")();
}

void bind_torch_memory(nb::module_& module) {
  module.def("_memory_fault", memory_fault, nb::arg("object").none(),
             "Why the elements of a torch tensor cannot be touched; None where they can.");
  module.def("_storage_fault", storage_fault, nb::arg("object").none(),
             "That a torch tensor's storage is shorter than it reaches; None where it is not.");
}

}  // namespace penstock::python
