#include "dlpack.h"

#include <cstring>
#include <vector>

#include "bindings.h"
#include "convert.h"
#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "device/backend.h"
#include "dlpack_abi.h"
#include "foreign_memory.h"
#include "gil.h"
#include "penstock/error.h"
#include "penstock/stream.h"
#include "torch_memory.h"

namespace penstock::python {
namespace {

using dlpack::DataType;
using dlpack::DLTensor;
using dlpack::Managed;
using dlpack::ManagedVersioned;

struct TypeRow {
  DType::Code code;
  DataType type;
};

constexpr TypeRow kTypes[] = {
    {DType::Code::kBool, {dlpack::kBool, 8, 1}},
    {DType::Code::kUInt8, {dlpack::kUInt, 8, 1}},
    {DType::Code::kUInt16, {dlpack::kUInt, 16, 1}},
    {DType::Code::kUInt32, {dlpack::kUInt, 32, 1}},
    {DType::Code::kUInt64, {dlpack::kUInt, 64, 1}},
    {DType::Code::kInt8, {dlpack::kInt, 8, 1}},
    {DType::Code::kInt16, {dlpack::kInt, 16, 1}},
    {DType::Code::kInt32, {dlpack::kInt, 32, 1}},
    {DType::Code::kInt64, {dlpack::kInt, 64, 1}},
    {DType::Code::kFloat16, {dlpack::kFloat, 16, 1}},
    {DType::Code::kBFloat16, {dlpack::kBFloat, 16, 1}},
    {DType::Code::kFloat32, {dlpack::kFloat, 32, 1}},
    {DType::Code::kFloat64, {dlpack::kFloat, 64, 1}},
    {DType::Code::kComplex32, {dlpack::kComplex, 32, 1}},
    {DType::Code::kComplex64, {dlpack::kComplex, 64, 1}},
    {DType::Code::kComplex128, {dlpack::kComplex, 128, 1}},
    {DType::Code::kFloat8E4M3FN, {dlpack::kFloat8E4M3FN, 8, 1}},
    {DType::Code::kFloat8E5M2, {dlpack::kFloat8E5M2, 8, 1}},
    {DType::Code::kFloat8E4M3FNUZ, {dlpack::kFloat8E4M3FNUZ, 8, 1}},
    {DType::Code::kFloat8E5M2FNUZ, {dlpack::kFloat8E5M2FNUZ, 8, 1}},
    {DType::Code::kFloat8E8M0FNU, {dlpack::kFloat8E8M0FNU, 8, 1}},
    {DType::Code::kFloat4E2M1FNx2, {dlpack::kFloat4E2M1FN, 4, 2}},
};

[[noreturn]] void refuse(const std::string& message) { throw nb::buffer_error(message.c_str()); }

DataType dlpack_type(const DType& dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.code == dtype.code()) return row.type;
  }
  refuse(core::format("DLPack has no type for {}; export .view_bytes() or take .numpy()", dtype.name()));
}

DType type_of(const DataType& type) {
  for (const TypeRow& row : kTypes) {
    if (row.type.code == type.code && row.type.bits == type.bits && row.type.lanes == type.lanes) return row.code;
  }
  throw Error(ErrorCode::kUnsupported,
              core::format("found DLPack type code {} of {} in {}, which Penstock has no dtype for", type.code,
                           core::counted(type.bits, "bit"), core::counted(type.lanes, "lane")));
}

// --- out ---

dlpack::DLDevice device_of(const Tensor& tensor) {
  const Device device = tensor.device();
  return {device::backend_for(device.type).dlpack_type(), device.index};
}

/// What a capsule owns: the structure that consumers see, and the tensor whose memory and sizes it describes.
template <class M>
struct Export {
  M managed{};
  Tensor tensor;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
};

template <class M>
void release(M* managed) {
  if (managed != nullptr) delete static_cast<Export<M>*>(managed->context);
}

template <class M>
constexpr const char* kName = std::is_same_v<M, Managed> ? dlpack::kLegacyName : dlpack::kVersionedName;

/// Frees what no consumer took: a taken capsule has another name.
template <class M>
void destroy_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kName<M>) == 0) return;
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, kName<M>));
  managed->deleter(managed);
}

/// All but where the sizes and strides lie.
void describe_memory(const Tensor& tensor, DLTensor& out) {
  out.data = tensor.data();
  out.device = device_of(tensor);
  out.ndim = static_cast<std::int32_t>(tensor.rank());
  out.dtype = dlpack_type(tensor.dtype());
  out.byte_offset = 0;
}

template <class M>
std::unique_ptr<Export<M>> make_export(const Tensor& tensor) {
  auto out = std::make_unique<Export<M>>();
  out->tensor = tensor;
  out->shape.assign(tensor.shape().begin(), tensor.shape().end());
  out->strides.assign(tensor.strides().begin(), tensor.strides().end());
  out->managed.context = out.get();
  out->managed.deleter = release<M>;
  describe_memory(out->tensor, out->managed.tensor);
  out->managed.tensor.shape = out->shape.data();
  out->managed.tensor.strides = out->strides.data();
  return out;
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
  tensor.buffer().order_after_writes(consumer);
  tensor.buffer().record_use(consumer, Buffer::Access::kRead);
}

// --- in ---

Device device_of_memory(const dlpack::DLDevice& device) {
  if (device.type == dlpack::kCpu || device.type == dlpack::kCudaHost) return {};
  if (device.type == dlpack::kCuda) return {DeviceType::kCuda, device.id};
  throw Error(ErrorCode::kNoDevice,
              core::format("found memory on DLPack device {}:{}, expected the CPU's or CUDA's; copy it there first "
                           "(.cpu())",
                           device.type, device.id));
}

template <class M>
ForeignArray describe(M* managed, bool read_only) {
  // Owned from here on, so that an error below frees it too.
  std::shared_ptr<M> owner(managed, [](M* held) {
    if (held->deleter != nullptr && interpreter_is_usable()) held->deleter(held);
  });
  const DLTensor& from = managed->tensor;
  ForeignArray out;
  out.device = device_of_memory(from.device);
  out.owner = owner;
  out.read_only = read_only;
  out.dtype = type_of(from.dtype);
  // An offset to no memory leads nowhere.
  if (from.data != nullptr) out.data = static_cast<std::byte*>(from.data) + from.byte_offset;
  if (from.ndim > 0) out.shape = Shape(std::span<const std::int64_t>(from.shape, static_cast<std::size_t>(from.ndim)));
  const auto itemsize = static_cast<std::int64_t>(out.dtype.itemsize());
  const Strides strides = from.strides == nullptr || from.ndim == 0
                              ? out.shape.contiguous_strides()
                              : Strides(std::span<const std::int64_t>(from.strides, out.shape.rank()));
  for (const std::int64_t stride : strides) {
    const auto bytes = core::try_mul(stride, itemsize);
    if (!bytes) throw Error(ErrorCode::kInvalidArgument, core::format("found a DLPack tensor with stride {}", stride));
    out.byte_strides.push_back(*bytes);
  }
  return out;
}

template <class M>
M* take_managed(nb::handle capsule, const char* used_name) {
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule.ptr(), kName<M>));
  if (managed == nullptr || PyCapsule_SetName(capsule.ptr(), used_name) != 0) nb::raise_python_error();
  return managed;
}

Tensor from_capsule(nb::handle capsule) {
  const nb::ft_object_guard alone(capsule);  // another thread may want to take it too
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::kVersionedName) != 0) {
    return import_versioned(take_managed<ManagedVersioned>(capsule, dlpack::kVersionedUsedName));
  }
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::kLegacyName) != 0) {
    return tensor_over(describe(take_managed<Managed>(capsule, dlpack::kLegacyUsedName), false));
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

}  // namespace

nb::tuple dlpack_device(const Tensor& tensor) {
  const dlpack::DLDevice device = device_of(tensor);
  return nb::make_tuple(device.type, device.id);
}

nb::object to_dlpack(const Tensor& tensor, nb::handle stream, nb::handle max_version, nb::handle dl_device,
                     nb::handle copy) {
  require_device(tensor, dl_device);
  const bool copied = copy.is(Py_True);
  const bool versioned = speaks_versioned(max_version);
  if (tensor.read_only() && !copied && !versioned) {
    refuse("the tensor is read-only, which this consumer's DLPack cannot express; pass copy=True or export .clone()");
  }
  const Tensor exported = copied ? tensor.clone() : tensor;
  hand_over(exported, stream);
  if (!versioned) return make_capsule(&make_export<Managed>(exported).release()->managed);
  return make_capsule(export_versioned(exported, copied));
}

ManagedVersioned* export_versioned(const Tensor& tensor, bool copied) {
  auto content = make_export<ManagedVersioned>(tensor);
  content->managed.major = dlpack::kMajor;
  content->managed.minor = dlpack::kMinor;
  content->managed.flags = (tensor.read_only() ? dlpack::kReadOnly : 0) | (copied ? dlpack::kIsCopied : 0);
  return &content.release()->managed;
}

Tensor import_versioned(ManagedVersioned* managed) {
  if (managed->major == dlpack::kMajor)
    return tensor_over(describe(managed, (managed->flags & dlpack::kReadOnly) != 0));
  const std::uint32_t major = managed->major;
  if (managed->deleter != nullptr) managed->deleter(managed);
  throw Error(ErrorCode::kUnsupported, core::format("found a DLPack tensor of version {}, expected 1", major));
}

void describe_borrowed(const Tensor& tensor, DLTensor& out) {
  describe_memory(tensor, out);
  // DLPack's structure is not const; consumers may not write to these.
  out.shape = const_cast<std::int64_t*>(tensor.shape().begin());      // NOLINT(cppcoreguidelines-pro-type-const-cast)
  out.strides = const_cast<std::int64_t*>(tensor.strides().begin());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

DType dtype_from_dlpack(const DataType& type) { return type_of(type); }

Device device_from_dlpack(const dlpack::DLDevice& device) { return device_of_memory(device); }

Tensor tensor_from_dlpack(nb::handle object) {
  if (PyCapsule_CheckExact(object.ptr())) return from_capsule(object);
  if (!has_attribute(object, "__dlpack__")) {
    throw nb::type_error(
        core::format("from_dlpack() takes an object with __dlpack__; found {}", object_type(object)).c_str());
  }
  require_memory(object);
  if (std::optional<Tensor> tensor = tensor_by_exchange(object)) return *std::move(tensor);
  // torch itself refuses lazy conjugates, and forgets lazy negatives.
  if (has_lazy_bit(object, "is_neg")) refuse("the tensor is negated when it is read only; export .resolve_neg() of it");
  Tensor tensor = from_capsule(ask(object));
  // The producer made our current stream wait; our other streams, those of copies, wait for that one.
  if (tensor.device().type != DeviceType::kCpu && tensor.numel() != 0)
    tensor.buffer().record_use(Stream::current(tensor.device()), Buffer::Access::kWrite);
  return tensor;
}

bool has_lazy_bit(nb::handle object, const char* name) {
  const nb::object asked = attribute_or(object, name);
  return PyCallable_Check(asked.ptr()) != 0 && nb::object(asked()).is(Py_True);
}

void bind_dlpack(nb::module_& module) { module.def("from_dlpack", tensor_from_dlpack, nb::arg("object").none()); }

}  // namespace penstock::python
