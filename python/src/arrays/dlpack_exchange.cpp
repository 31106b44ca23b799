// DLPack's C exchange interface (DLPack 1.3, `__dlpack_c_exchange_api__`): a table of functions that a tensor type
// carries, so that another library's C++ gets at a tensor without a call of Python and without a capsule. We offer ours
// on penstock.Tensor, and take that of other types, which saves most of the time of importing a small tensor.
//
// The functions order no streams. For memory of a device the importer therefore asks for the exporter's current stream
// and counts the tensor as written there: our streams wait for that one before they use it.

#include <exception>

#include "arrays/dlpack.h"
#include "bindings.h"
#include "interpreter/convert.h"
#include "penstock/error.h"
#include "penstock/stream.h"

namespace penstock::python {
namespace {

using ManagedVersioned = DLManagedTensorVersioned;

constexpr const char* kExchangeName = "dlpack_exchange_api";

/// What a type offers as `__dlpack_c_exchange_api__`: functions that exchange tensors without calls of Python. They
/// throw nothing; all but the first return -1 with a Python error set. None of them orders streams.
struct ExchangeApi {
  std::uint32_t major;
  std::uint32_t minor;
  const ExchangeApi* previous;  ///< for an older major version, or null
  /// A new tensor like the prototype (type, shape, device). Errors go to `set_error`.
  int (*allocate)(DLTensor* prototype, ManagedVersioned** out, void* error_context,
                  void (*set_error)(void* error_context, const char* kind, const char* message));
  int (*export_object)(void* object, ManagedVersioned** out);
  int (*import_tensor)(ManagedVersioned* tensor, void** out_object);  ///< takes the tensor over
  int (*describe_object)(void* object, DLTensor* out);                ///< borrowed; null where there is none
  int (*current_stream)(std::int32_t device_type, std::int32_t device, void** out);
};

/// Runs `body` where no exception may leave: 0, or -1 with a Python error set.
template <class Body>
int guarded(const Body& body) noexcept {
  try {
    body();
    return 0;
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const nb::builtin_exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
  } catch (const Error& error) {
    set_python_error(error);
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_BufferError, error.what());
  }
  return -1;
}

const Tensor& tensor_of(void* object) { return nb::cast<const Tensor&>(nb::handle(static_cast<PyObject*>(object))); }

/// The consumer works on the thread's current stream, as the interface says: it waits for what was written, and the
/// memory is not used again before the consumer is done there.
void hand_to_current_stream(const Tensor& tensor) {
  if (tensor.device().type == DeviceType::kCpu) return;
  ops::hand_over(tensor, Stream::current(tensor.device()));
}

int allocate(DLTensor* prototype, ManagedVersioned** out, void* error_context,
             void (*set_error)(void*, const char*, const char*)) noexcept {
  try {
    const std::span<const std::int64_t> sizes(prototype->shape, static_cast<std::size_t>(prototype->ndim));
    *out = ops::export_versioned(Tensor::empty(sizes.empty() ? Shape() : Shape(sizes), ops::dtype_of(prototype->dtype),
                                               ops::device_of(prototype->device)),
                                 false);
    return 0;
  } catch (const std::bad_alloc&) {
    set_error(error_context, "MemoryError", "there is not enough memory for the tensor");
  } catch (const Error& error) {
    const bool memory = error.code() == ErrorCode::kOutOfMemory;
    set_error(error_context, memory ? "MemoryError" : "BufferError", error.what());
  } catch (const std::exception& error) {
    set_error(error_context, "BufferError", error.what());
  }
  return -1;
}

int export_object(void* object, ManagedVersioned** out) noexcept {
  return guarded([&] {
    const Tensor& tensor = tensor_of(object);
    hand_to_current_stream(tensor);
    *out = exported([&] { return ops::export_versioned(tensor, false); });
  });
}

int import_tensor(ManagedVersioned* tensor, void** out) noexcept {
  return guarded([&] { *out = nb::cast(imported(tensor)).release().ptr(); });
}

int describe_object(void* object, DLTensor* out) noexcept {
  return guarded([&] {
    const Tensor& tensor = tensor_of(object);
    // This form has no flag that would say so.
    if (tensor.read_only()) throw nb::buffer_error("the tensor is read-only, which a DLTensor cannot say; clone() it");
    hand_to_current_stream(tensor);
    exported([&] { return ops::describe_borrowed(tensor, *out); });
  });
}

int current_stream(std::int32_t device_type, std::int32_t device, void** out) noexcept {
  return guarded([&] {
    *out = device_type == dlpack::kCuda ? Stream::current(ops::device_of({device_type, device})).native() : nullptr;
  });
}

constexpr ExchangeApi kOurs = {dlpack::kMajor, dlpack::kMinor, nullptr,         allocate,
                               export_object,  import_tensor,  describe_object, current_stream};

/// The table that the object's type offers, of a version that we know; null where it offers none.
const ExchangeApi* api_of(nb::handle object) {
  const nb::object capsule = attribute_or(object.type(), "__dlpack_c_exchange_api__");
  if (PyCapsule_IsValid(capsule.ptr(), kExchangeName) == 0) return nullptr;
  const auto* api = static_cast<const ExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), kExchangeName));
  while (api != nullptr && api->major > dlpack::kMajor) api = api->previous;
  return api != nullptr && api->major == dlpack::kMajor ? api : nullptr;
}

/// Whether an attribute or a method without arguments says true.
bool says(nb::handle object, const char* name) {
  const nb::object told = attribute_or(object, name);
  return PyCallable_Check(told.ptr()) != 0 ? nb::object(told()).is(Py_True) : told.is(Py_True);
}

}  // namespace

nb::object exchange_capsule() {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): capsules are not const, their readers do not write
  return nb::steal(PyCapsule_New(const_cast<ExchangeApi*>(&kOurs), kExchangeName, nullptr));
}

std::optional<Tensor> tensor_by_exchange(nb::handle object) {
  const ExchangeApi* const api = api_of(object);
  if (api == nullptr) return std::nullopt;
  // The functions see the memory alone. What it does not say has to be refused by the object's own __dlpack__.
  for (const char* const name : {"requires_grad", "is_conj", "is_neg"}) {
    if (says(object, name)) return std::nullopt;
  }
  ManagedVersioned* managed = nullptr;
  if (api->export_object(object.ptr(), &managed) != 0) nb::raise_python_error();
  Tensor tensor = imported(managed);
  if (tensor.device().type == DeviceType::kCpu || tensor.numel() == 0) return tensor;
  void* stream = nullptr;
  if (api->current_stream(dlpack::kCuda, tensor.device().index, &stream) != 0) nb::raise_python_error();
  tensor.buffer().record_use(Stream::wrap(tensor.device(), stream), Buffer::Access::kWrite);
  return tensor;
}

}  // namespace penstock::python
