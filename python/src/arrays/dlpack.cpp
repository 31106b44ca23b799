#include "arrays/dlpack.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "arrays/torch_memory.h"
#include "bindings.h"
#include "core/format.h"
#include "interpreter/convert.h"
#include "interpreter/gil.h"
#include "penstock/error.h"
#include "penstock/stream.h"

namespace penstock::python {
namespace {

inline constexpr const char* kUnversionedName = "dltensor";
inline constexpr const char* kUnversionedUsedName = "used_dltensor";
inline constexpr const char* kVersionedName = "dltensor_versioned";
inline constexpr const char* kVersionedUsedName = "used_dltensor_versioned";

[[noreturn]] void refuse(const std::string& message) { throw nb::buffer_error(message.c_str()); }

// --- out ---

template <class M>
constexpr const char* kName = std::is_same_v<M, DLManagedTensor> ? kUnversionedName : kVersionedName;

/// Frees what no consumer took: a taken capsule has another name.
template <class M>
void destroy_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kName<M>) == 0) return;
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, kName<M>));
  managed->deleter(managed);
}

template <class M>
nb::object make_capsule(M* managed) {
  PyObject* capsule = PyCapsule_New(managed, kName<M>, destroy_capsule<M>);
  if (capsule != nullptr) return nb::steal(capsule);
  managed->deleter(managed);
  nb::raise_python_error();
}

bool speaks_versioned(nb::handle max_version) {
  return !max_version.is_none() && nb::cast<int>(nb::object(max_version[0])) >= 1;
}

void require_device(const Tensor& tensor, nb::handle wanted) {
  if (wanted.is_none()) return;
  const nb::object have = dlpack_device(tensor);
  const nb::object asked = nb::make_tuple(nb::int_(nb::object(wanted[0])), nb::int_(nb::object(wanted[1])));
  if (!have.equal(asked)) {
    refuse(core::format("the consumer asked for DLPack device {}, the tensor is on {}; move it with .to() first",
                        nb::str(asked).c_str(), tensor.device().to_string()));
  }
}

/// Lets the consumer's stream see what was written: None and 1 are the default stream, 2 the thread's own, -1 none.
void hand_over(const Tensor& tensor, nb::handle stream) {
  const std::int64_t value = stream.is_none() ? 1 : nb::cast<std::int64_t>(stream);
  if (tensor.device().type == DeviceType::kCpu) {
    if (!stream.is_none() && value != -1) {
      refuse(core::format("a tensor on the CPU has no stream {}; pass None", value));
    }
    return;
  }
  if (value == 0) refuse("stream 0 could mean two streams; pass 1 for the default stream or 2 for the thread's own");
  if (value < -1) refuse(core::format("{} is not a stream; pass -1 to wait for nothing", value));
  // Work that the consumer submits later to the default stream is over before the memory is used again.
  tensor.buffer().record_use(Stream::default_of(tensor.device()), Buffer::Access::kRead);
  if (value == -1) return;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the protocol has streams as numbers
  const Stream consumer = Stream::wrap(tensor.device(), reinterpret_cast<void*>(static_cast<std::uintptr_t>(value)));
  ops::hand_over(tensor, consumer);
}

// --- in ---

template <class M>
M* take_managed(nb::handle capsule, const char* used_name) {
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule.ptr(), kName<M>));
  if (managed == nullptr || PyCapsule_SetName(capsule.ptr(), used_name) != 0) nb::raise_python_error();
  return managed;
}

Tensor from_capsule(nb::handle capsule) {
  const nb::ft_object_guard alone(capsule);  // another thread may want to take it too
  if (PyCapsule_IsValid(capsule.ptr(), kVersionedName) != 0) {
    return imported(take_managed<DLManagedTensorVersioned>(capsule, kVersionedUsedName));
  }
  if (PyCapsule_IsValid(capsule.ptr(), kUnversionedName) != 0) {
    return imported(take_managed<DLManagedTensor>(capsule, kUnversionedUsedName));
  }
  throw Error(ErrorCode::kInvalidArgument, "found no DLPack capsule, or one that was taken already");
}

/// The stream that our work on the producer's memory goes to, as DLPack writes it; None for memory of the CPU.
nb::object our_stream(nb::handle object) {
  const nb::object where = attribute_or(object, "__dlpack_device__");
  if (where.is_none()) return nb::none();
  const nb::object device = where();
  if (nb::cast<int>(nb::object(nb::int_(nb::object(device[0])))) != dlpack::kCuda) return nb::none();
  const int index = nb::cast<int>(nb::object(nb::int_(nb::object(device[1]))));
  const void* const native = Stream::current(Device(DeviceType::kCuda, index)).native();
  return nb::int_(native == nullptr ? std::uintptr_t{1} : reinterpret_cast<std::uintptr_t>(native));
}

/// The producer's capsule in the newest form it knows.
nb::object ask(nb::handle object) {
  const nb::object stream = our_stream(object);
  try {
    return object.attr("__dlpack__")(nb::arg("stream") = stream,
                                     nb::arg("max_version") = nb::make_tuple(dlpack::kMajor, dlpack::kMinor));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return stream.is_none() ? object.attr("__dlpack__")() : object.attr("__dlpack__")(nb::arg("stream") = stream);
}

/// The tensor with the strides that torch itself tells of dimensions of size 1, for which DLPack has none. They decide
/// whether torch takes an image for a channels-last one.
Tensor with_strides_of(nb::handle object, const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  const nb::object told = std::ranges::find(shape, 1) == shape.end() ? nb::none() : attribute_or(object, "stride");
  if (PyCallable_Check(told.ptr()) == 0) return tensor;
  const std::vector<std::int64_t> steps = integers_from(told());
  if (steps.size() != shape.rank()) return tensor;
  Strides strides = tensor.strides();
  for (std::size_t d = 0; d < steps.size(); ++d) {
    if (shape[d] == 1 && steps[d] >= 0) strides[d] = steps[d];
  }
  return {tensor.buffer(), tensor.dtype(), shape, std::move(strides), tensor.byte_offset()};
}

}  // namespace

TupleOf<int, int> dlpack_device(const Tensor& tensor) {
  const DLDevice device = ops::dlpack_device(tensor.device());
  return nb::make_tuple(device.device_type, device.device_id);
}

Anything to_dlpack(const Tensor& tensor, nb::handle stream, nb::handle max_version, nb::handle dl_device,
                   nb::handle copy) {
  require_device(tensor, dl_device);
  const bool copied = copy.is(Py_True);
  const bool versioned = speaks_versioned(max_version);
  if (tensor.read_only() && !copied && !versioned) {
    refuse("the tensor is read-only, which this consumer's DLPack cannot express; pass copy=True or export .clone()");
  }
  const Tensor exported_tensor = copied ? tensor.clone() : tensor;
  hand_over(exported_tensor, stream);
  return exported([&] {
    return versioned ? make_capsule(ops::export_versioned(exported_tensor, copied))
                     : make_capsule(ops::export_unversioned(exported_tensor));
  });
}

Tensor tensor_from_dlpack(nb::handle object) {
  if (PyCapsule_CheckExact(object.ptr())) return from_capsule(object);
  if (!has_attribute(object, "__dlpack__")) {
    throw nb::type_error(
        core::format("from_dlpack() takes an object with __dlpack__; found {}", object_type(object)).c_str());
  }
  require_memory(object);
  if (std::optional<Tensor> tensor = tensor_by_exchange(object)) return with_strides_of(object, *tensor);
  // torch itself refuses lazy conjugates, and forgets lazy negatives.
  if (has_lazy_bit(object, "is_neg")) refuse("the tensor is negated when it is read only; export .resolve_neg() of it");
  Tensor tensor = from_capsule(ask(object));
  // The producer made our current stream wait; our other streams, those of copies, wait for that one.
  if (tensor.device().type != DeviceType::kCpu && tensor.numel() != 0)
    tensor.buffer().record_use(Stream::current(tensor.device()), Buffer::Access::kWrite);
  return with_strides_of(object, tensor);
}

bool has_lazy_bit(nb::handle object, const char* name) {
  const nb::object asked = attribute_or(object, name);
  return PyCallable_Check(asked.ptr()) != 0 && nb::object(asked()).is(Py_True);
}

void bind_dlpack(nb::module_& module) { module.def("from_dlpack", tensor_from_dlpack, nb::arg("object").none()); }

}  // namespace penstock::python
