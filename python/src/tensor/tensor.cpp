// The members of Tensor for Python, in groups: facts, exports, numbers, views, copies. Arithmetic is bound in
// elementwise.cpp and its neighbours.

#include "penstock/tensor.h"

#include <nanobind/stl/complex.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <optional>
#include <utility>

#include "archive/materialise.h"
#include "arrays/arrays.h"
#include "arrays/cuda_array.h"
#include "arrays/dlpack.h"
#include "arrays/elements.h"
#include "arrays/foreign.h"
#include "bindings.h"
#include "call/arguments.h"
#include "core/counted.h"
#include "core/format.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "interpreter/interrupt.h"
#include "interpreter/typed.h"
#include "penstock/error.h"
#include "tensor/indexing.h"
#include "tensor/transfer_warnings.h"

namespace penstock::python {
namespace {

/// Bytes from which a copy takes long enough to look for signals meanwhile.
constexpr std::size_t kLongCopy = std::size_t{64} << 20;

template <class Work>
Tensor copied(const Tensor& tensor, Work work) {
  auto [out, warnings] = interruptible(tensor.nbytes() >= kLongCopy, [tensor, work](std::stop_token) {
    CollectedWarnings collected;
    Tensor made = work(tensor);
    return std::pair(std::move(made), collected.take());
  });
  issue_transfer_warnings(warnings);
  return out;
}

/// `made` of what the object `self` is; that object itself where it is the same tensor.
Typed<Tensor> itself_or(nb::handle self, Tensor made) {
  const auto& tensor = nb::cast<const Tensor&>(self);
  const bool same = made.data() == tensor.data() && made.buffer().shares_memory_with(tensor.buffer()) &&
                    made.dtype() == tensor.dtype() && made.shape() == tensor.shape() &&
                    made.strides() == tensor.strides() && made.requires_grad() == tensor.requires_grad();
  return same ? nb::borrow(self) : nb::cast(std::move(made));
}

/// What Tensor.to is asked for.
struct Target {
  std::optional<Device> device;
  std::optional<DType> dtype;
};

/// Of a tensor, a dtype or a device, in whatever spelling.
Target target_from(nb::handle target) {
  if (nb::isinstance<Tensor>(target)) {
    const auto& like = nb::cast<const Tensor&>(target);
    return {like.device(), like.dtype()};
  }
  if (const std::optional<DType> dtype = try_dtype_from(target)) return {std::nullopt, *dtype};
  try {
    return {device_from(target), std::nullopt};
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    throw Error(
        ErrorCode::kInvalidArgument,
        core::format("found {}, expected a dtype such as \"float16\" or a device such as \"cpu\"", shown(target)));
  }
}

Target target_from(nb::handle target, nb::handle dtype, nb::handle device) {
  Target out = target.is_none() ? Target{} : target_from(target);
  if (target.is_none() && dtype.is_none() && device.is_none()) {
    throw Error(ErrorCode::kInvalidArgument, "found nothing to convert to, expected a dtype, a device or a tensor");
  }
  if ((out.dtype && !dtype.is_none()) || (out.device && !device.is_none())) {
    throw Error(ErrorCode::kInvalidArgument, core::format("found two {} to convert to, expected one",
                                                          out.dtype && !dtype.is_none() ? "dtypes" : "devices"));
  }
  if (!dtype.is_none()) out.dtype = dtype_from(dtype);
  if (!device.is_none()) out.device = device_from(device);
  return out;
}

Tensor converted(const Tensor& tensor, const Target& to, const TransferOptions& options) {
  return copied(tensor, [to, options](const Tensor& from) {
    return from.to(to.device.value_or(from.device()), to.dtype.value_or(from.dtype()), options);
  });
}

/// "cuda", the index of a CUDA device, or nothing for the current one.
Device cuda_device_from(nb::handle device) {
  if (device.is_none()) return current_device(DeviceType::kCuda);
  const Device out = numbered_device_from(device);
  if (out.type == DeviceType::kCuda) return out;
  throw Error(ErrorCode::kInvalidArgument, core::format("found device {}, expected a CUDA device", out.to_string()));
}

Tensor reshape(const Tensor& tensor, const nb::tuple& sizes) {
  const bool nested = sizes.size() == 1 && !PyIndex_Check(sizes[0].ptr());
  return tensor.reshape(nested ? shape_argument(sizes[0]) : shape_argument(sizes));
}

std::size_t dim_from(const Tensor& tensor, std::int64_t dim) {
  const auto rank = static_cast<std::int64_t>(tensor.rank());
  if (dim < -rank || dim >= rank) {
    throw Error(ErrorCode::kIndexOutOfRange,
                core::format("found dimension {} for a tensor of shape {}, expected {} to {}", dim,
                             tensor.shape().to_string(), -rank, rank - 1));
  }
  return static_cast<std::size_t>(dim < 0 ? dim + rank : dim);
}

Tensor permute(const Tensor& tensor, const nb::tuple& dims) {
  std::vector<std::size_t> order;
  for (const std::int64_t dim : integers_argument(dims, "dims")) order.push_back(dim_from(tensor, dim));
  return tensor.permute(order);
}

Tensor transpose(const Tensor& tensor, std::int64_t a, std::int64_t b) {
  return tensor.transpose(dim_from(tensor, a), dim_from(tensor, b));
}

nb::bytes to_bytes(const Tensor& tensor) {
  const Tensor host = copied(tensor, [](const Tensor& from) { return from.to(Device{}).contiguous(); });
  return nb::bytes(reinterpret_cast<const char*>(host.data()), host.nbytes());
}

Tensor tensor_from_bytes(const DType& dtype, nb::handle shape, const nb::bytes& bytes, bool requires_grad) {
  const Tensor out = Tensor::empty(shape_argument(shape), dtype);
  if (out.nbytes() != bytes.size()) {
    throw Error(ErrorCode::kCorrupt,
                core::format("found {} for a tensor of {}", core::counted(bytes.size(), "byte"), out.nbytes()));
  }
  std::memcpy(out.data(), bytes.c_str(), bytes.size());
  return out.with_requires_grad(requires_grad);
}

nb::tuple get_state(const Tensor& tensor) {
  return nb::make_tuple(tensor.dtype(), tuple_of(tensor.shape()), to_bytes(tensor), tensor.requires_grad());
}

void set_state(Tensor& self, const nb::tuple& state) {
  if (state.size() != 4) throw Error(ErrorCode::kCorrupt, "found no state of a Tensor in the pickle");
  new (&self) Tensor(
      tensor_from_bytes(nb::cast<DType>(state[0]), state[1], nb::cast<nb::bytes>(state[2]), nb::cast<bool>(state[3])));
}

Anything array(const Tensor& tensor, nb::handle dtype, nb::handle copy) {
  nb::object out = to_numpy(tensor);
  if (!dtype.is_none()) out = out.attr("astype")(dtype, nb::arg("copy") = false);
  if (copy.is(Py_True)) out = out.attr("copy")();
  return out;
}

bool equal(const Tensor& tensor, nb::handle other) {
  const std::optional<Tensor> array = array_from(other);
  if (!array) return false;
  const ReleasedGil released;
  return Tensor::identical(tensor, *array);
}

// --- numbers ---

Typed<int> integer_index(const Tensor& tensor) {
  if (tensor.rank() != 0 || !tensor.dtype().is_integer()) {
    throw nb::type_error("only a 0-d tensor of an integer dtype can be used as an index");
  }
  return to_item(tensor);
}

/// As torch has it.
Typed<nb::str> to_text(nb::handle self, nb::handle spec) {
  const auto& tensor = nb::cast<const Tensor&>(self);
  if (tensor.rank() > 0) return nb::module_::import_("builtins").attr("object").attr("__format__")(self, spec);
  PyObject* const text = PyObject_Format(to_item(tensor).ptr(), spec.ptr());
  if (text == nullptr) nb::raise_python_error();
  return nb::steal(text);
}

nb::object as_number(const Tensor& tensor, PyObject* (*convert)(PyObject*)) {
  nb::object number = nb::steal(convert(to_item(tensor).ptr()));
  if (!number.is_valid()) nb::raise_python_error();
  return number;
}

Typed<std::complex<double>> as_complex(const Tensor& tensor) {
  return nb::borrow(reinterpret_cast<PyObject*>(&PyComplex_Type))(to_item(tensor));
}

bool truth(const Tensor& tensor) {
  const int value = PyObject_IsTrue(to_item(tensor).ptr());
  if (value < 0) nb::raise_python_error();
  return value != 0;
}

// --- rows ---

std::int64_t length(const Tensor& tensor) {
  if (tensor.rank() == 0) throw nb::type_error("len() of a 0-d tensor");
  return tensor.shape()[0];
}

struct RowIterator {
  Tensor tensor;
  std::int64_t next = 0;

  Tensor take() {
    if (next >= tensor.shape()[0]) throw nb::stop_iteration();
    return tensor.select(0, next++);
  }
};

RowIterator iterate(const Tensor& tensor) {
  if (tensor.rank() == 0) throw nb::type_error("iteration over a 0-d tensor");
  return {tensor};
}

using Class = nb::class_<Tensor>;

void bind_facts(Class& tensor) {
  tensor.def_prop_ro(
      "shape", [](const Tensor& t) { return tuple_of(t.shape()); }, "Sizes of the dimensions, outermost first.");
  tensor.def_prop_ro(
      "strides", [](const Tensor& t) { return tuple_of(t.strides()); }, "Steps from element to element, in elements.");
  tensor.def_prop_ro(
      "dtype", [](const Tensor& self) { return self.dtype(); }, "The element type.");
  tensor.def_prop_ro("device", &Tensor::device, "Where the memory lies.");
  tensor.def_prop_ro("is_cuda", &Tensor::is_cuda, "Whether the memory is that of a CUDA device.");
  tensor.def("_is_pinned", &Tensor::is_pinned);
  tensor.def_prop_ro("nbytes", &Tensor::nbytes, "Bytes of all elements.");
  tensor.def_prop_ro("ndim", &Tensor::rank, "Number of dimensions.");
  tensor.def_prop_ro("requires_grad", &Tensor::requires_grad,
                     "A mark that a `.pt` keeps; Penstock computes no gradients.");
  tensor.def_prop_ro("read_only", &Tensor::read_only,
                     "Whether the memory may not be written, as that of a mapped file.");
  tensor.def("_numel", &Tensor::numel);
  tensor.def("_is_contiguous", &Tensor::is_contiguous);
}

void bind_exports(Class& tensor) {
  tensor.def("_numpy", to_numpy);
  tensor.def("__array__", array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none());
  tensor.def_prop_ro("__array_interface__", array_interface);
  tensor.def_prop_ro(
      "__cuda_array_interface__", cuda_array_interface,
      "Memory of a CUDA device as Numba and CuPy describe it (version 3). Its stream is the current one, "
      "which waits for what was written.");
  tensor.def(
      "__dlpack__", to_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
      nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none(),
      "A DLPack capsule over the same memory; a copy with `copy=True`. BufferError for what DLPack cannot express: "
      "text, dates and structures, and read-only memory towards consumers that know no read-only.");
  tensor.attr("__dlpack_c_exchange_api__") = exchange_capsule();
  tensor.def("__dlpack_device__", dlpack_device);
  tensor.def("_tobytes", to_bytes);
  tensor.def("_tolist", to_list);
  tensor.def("_item", to_item);
  tensor.def("_view_bytes", archive::as_bytes);
}

void bind_numbers(Class& tensor) {
  tensor.def("__float__", [](const Tensor& t) -> Typed<double> { return as_number(t, PyNumber_Float); });
  tensor.def("__int__", [](const Tensor& t) -> Typed<int> { return as_number(t, PyNumber_Long); });
  tensor.def("__complex__", as_complex);
  tensor.def("__index__", integer_index);
  tensor.def("__bool__", truth);
  tensor.def("__len__", length);
}

void bind_views(Class& tensor) {
  tensor.def("__getitem__", nb::overload_cast<const Tensor&, nb::handle>(index), nb::arg("key").none(),
             "A view: integers, slices with positive steps, Ellipsis and None.");
  tensor.def("__iter__", iterate);
  tensor.def("_reshape", reshape);
  tensor.def("_permute", permute);
  tensor.def("_transpose", transpose, nb::arg("dim0"), nb::arg("dim1"));
}

void bind_copies(Class& tensor) {
  tensor.def(
      "_to",
      [](nb::handle self, nb::handle target, nb::handle dtype, nb::handle device, bool non_blocking, bool copy) {
        const Target to = target_from(target, dtype, device);
        return itself_or(self, converted(nb::cast<const Tensor&>(self), to, {non_blocking, copy}));
      },
      nb::arg("target").none(), nb::arg("dtype").none(), nb::arg("device").none(), nb::arg("non_blocking"),
      nb::arg("copy"));
  tensor.def(
      "_cuda",
      [](nb::handle self, nb::handle device, bool non_blocking) {
        const Target to = {cuda_device_from(device), std::nullopt};
        return itself_or(self, converted(nb::cast<const Tensor&>(self), to, {.non_blocking = non_blocking}));
      },
      nb::arg("device").none(), nb::arg("non_blocking"));
  tensor.def("_pin_memory", [](nb::handle self) {
    return itself_or(self, copied(nb::cast<const Tensor&>(self), [](const Tensor& from) { return from.pin_memory(); }));
  });
  tensor.def("_cpu", [](nb::handle self) {
    return itself_or(self, copied(nb::cast<const Tensor&>(self), [](const Tensor& from) { return from.to(Device{}); }));
  });
  tensor.def("_contiguous", [](nb::handle self) {
    return itself_or(self, copied(nb::cast<const Tensor&>(self), [](const Tensor& from) { return from.contiguous(); }));
  });
  tensor.def("_clone", [](const Tensor& t) { return copied(t, [](const Tensor& from) { return from.clone(); }); });
  tensor.def("_equal", equal, nb::arg("other").none());
  tensor.def("__copy__", [](const Tensor& t) { return t; });
  tensor.def(
      "__deepcopy__", [](const Tensor& t, nb::handle) { return t.clone().with_requires_grad(t.requires_grad()); },
      nb::arg("memo").none());
  tensor.def("__reduce__", reduced_by_state);
  tensor.def("__getstate__", get_state);
  tensor.def("__setstate__", set_state);
  tensor.def("__repr__", to_repr);
  tensor.def("__format__", to_text, nb::arg("spec"),
             "As the number it holds where it has no dimensions, so that f\"{loss:.3f}\" works; else as `repr`.");
}

}  // namespace

void bind_tensor(nb::module_& module) {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                                {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                                {0, nullptr}};
  Class tensor(module, "Tensor", nb::sig("class Tensor(TensorMethods)"), nb::type_slots(slots),
               nb::is_weak_referenceable(), "Tensor()\n--\n\n");
  bind_facts(tensor);
  bind_exports(tensor);
  bind_numbers(tensor);
  bind_views(tensor);
  bind_copies(tensor);
  nb::class_<RowIterator>(module, "_RowIterator", "The rows of a tensor, one by one.")
      .def("__iter__", itself<RowIterator>)
      .def("__next__", &RowIterator::take, nb::lock_self());
  bind_memory(module);
  module.def(
      "asarray",
      [](nb::handle data, nb::handle dtype, nb::handle device) {
        const std::optional<Tensor> array = array_from(data);
        const Tensor found = array ? *array : tensor_from(data, dtype);
        const Tensor typed = dtype.is_none() ? found : found.to(dtype_from(dtype));
        return device.is_none() ? typed : typed.to(device_from(device));
      },
      nb::arg("data").none(), nb::arg("dtype").none(), nb::arg("device").none());
  module.def(
      "tensor",
      [](nb::handle data, nb::handle dtype, nb::handle device) {
        const Tensor host = tensor_from(data, dtype);
        return device.is_none() ? host : host.to(device_from(device));
      },
      nb::arg("data").none(), nb::arg("dtype").none(), nb::arg("device").none());
}

}  // namespace penstock::python
