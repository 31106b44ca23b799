// An exported tensor owns a handle on the memory and the sizes that consumers see. An imported one is checked before it
// is believed, and becomes the owner of a Buffer.

#include "ops/dlpack.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "core/checked.h"
#include "core/counted.h"
#include "core/format.h"
#include "core/refuse.h"
#include "device/backend.h"
#include "device/foreign_memory.h"
#include "penstock/dlpack.h"
#include "penstock/error.h"

namespace penstock {
namespace ops {
namespace {

struct DlpackRow {
  DType::Code code;
  DLDataType type;
};

constexpr DlpackRow kDlpackTypes[] = {
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

// --- out ---

/// What a tensor that is exported owns: the structure that consumers see, and the tensor whose memory and sizes it
/// describes.
template <class M>
struct Exported {
  M managed{};
  Tensor tensor;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
};

template <class M>
void release_exported(M* managed) {
  if (managed != nullptr) delete static_cast<Exported<M>*>(managed->manager_ctx);
}

/// All but where the sizes and strides lie.
void describe_memory(const Tensor& tensor, DLTensor& out) {
  out.data = tensor.data();
  out.device = dlpack_device(tensor.device());
  out.ndim = static_cast<std::int32_t>(tensor.rank());
  out.dtype = dlpack_type(tensor.dtype());
  out.byte_offset = 0;
}

template <class M>
std::unique_ptr<Exported<M>> exported(const Tensor& tensor) {
  auto out = std::make_unique<Exported<M>>();
  out->tensor = tensor;
  out->shape.assign(tensor.shape().begin(), tensor.shape().end());
  out->strides.assign(tensor.strides().begin(), tensor.strides().end());
  out->managed.manager_ctx = out.get();
  out->managed.deleter = release_exported<M>;
  describe_memory(out->tensor, out->managed.dl_tensor);
  out->managed.dl_tensor.shape = out->shape.data();
  out->managed.dl_tensor.strides = out->strides.data();
  return out;
}

// --- in ---

/// Where the first element lies. An offset to no memory leads nowhere.
std::byte* first_element(const DLTensor& from) {
  if (from.data == nullptr) return nullptr;
  if (from.byte_offset > std::numeric_limits<std::uintptr_t>::max() - reinterpret_cast<std::uintptr_t>(from.data)) {
    core::refuse(
        core::format("found a DLPack tensor {} bytes behind its address, where no memory is", from.byte_offset));
  }
  return static_cast<std::byte*>(from.data) + from.byte_offset;
}

Shape shape_from(const DLTensor& from) {
  if (from.ndim < 0) core::refuse(core::format("found a DLPack tensor of {} dimensions", from.ndim));
  if (from.ndim == 0) return {};
  if (from.shape == nullptr) core::refuse("found a DLPack tensor whose sizes are null");
  Shape shape(std::span<const std::int64_t>(from.shape, static_cast<std::size_t>(from.ndim)));
  if (std::ranges::none_of(shape.dims(), [](std::int64_t size) { return size < 0; })) return shape;
  core::refuse(core::format("found a DLPack tensor of shape {}, expected no size below 0", shape.to_string()));
}

/// In bytes; null strides are those of C order.
std::vector<std::int64_t> byte_strides_from(const DLTensor& from, const Shape& shape, std::size_t itemsize) {
  if (shape.numel() == 0) return std::vector<std::int64_t>(shape.rank());  // no element, so nothing lies anywhere
  const Strides strides = from.strides == nullptr || from.ndim == 0
                              ? shape.contiguous_strides()
                              : Strides(std::span<const std::int64_t>(from.strides, shape.rank()));
  std::vector<std::int64_t> out;
  for (const std::int64_t stride : strides) {
    const auto bytes = core::try_mul(stride, static_cast<std::int64_t>(itemsize));
    if (!bytes) core::refuse(core::format("found a DLPack tensor with stride {}, which no memory has", stride));
    out.push_back(*bytes);
  }
  return out;
}

template <class M>
Tensor imported(M* managed, bool read_only, ReleaseBy by) {
  // Owned from here on, so that an error below frees it too.
  const std::shared_ptr<M> owner(managed, [by](M* held) {
    const auto release = [held] { DlpackDeleter()(held); };
    by == nullptr ? release() : by(release);
  });
  const DLTensor& from = managed->dl_tensor;
  device::ForeignArray array{.dtype = dtype_of(from.dtype), .read_only = read_only, .device = device_of(from.device)};
  array.shape = shape_from(from);
  array.byte_strides = byte_strides_from(from, array.shape, array.dtype.itemsize());
  array.data = first_element(from);
  array.owner = owner;
  return device::tensor_over(array);
}

}  // namespace

DLDataType dlpack_type(const DType& dtype) {
  for (const DlpackRow& row : kDlpackTypes) {
    if (row.code == dtype.code()) return row.type;
  }
  throw Error(ErrorCode::kUnsupported, core::format("DLPack has no type for {}", dtype.name()));
}

DType dtype_of(const DLDataType& type) {
  for (const DlpackRow& row : kDlpackTypes) {
    if (row.type.code == type.code && row.type.bits == type.bits && row.type.lanes == type.lanes) return row.code;
  }
  throw Error(ErrorCode::kUnsupported,
              core::format("found DLPack type code {} of {} in {}, which Penstock has no dtype for", type.code,
                           core::counted(type.bits, "bit"), core::counted(type.lanes, "lane")));
}

DLDevice dlpack_device(Device device) { return {device::backend_for(device.type).dlpack_type(), device.index}; }

Device device_of(const DLDevice& device) {
  if (device.device_type == dlpack::kCpu || device.device_type == dlpack::kCudaHost) return {};
  if (device.device_type == dlpack::kCuda) return {DeviceType::kCuda, device.device_id};
  throw Error(ErrorCode::kNoDevice,
              core::format("found memory on DLPack device {}:{}, expected the CPU's or CUDA's; copy it there first "
                           "(.cpu())",
                           device.device_type, device.device_id));
}

void hand_over(const Tensor& tensor, const Stream& consumer) {
  if (tensor.device().type == DeviceType::kCpu) return;
  tensor.buffer().order_after_writes(consumer);
  tensor.buffer().record_use(consumer, Buffer::Access::kRead);
}

DLManagedTensorVersioned* export_versioned(const Tensor& tensor, bool copied) {
  auto out = exported<DLManagedTensorVersioned>(tensor);
  out->managed.major = dlpack::kMajor;
  out->managed.minor = dlpack::kMinor;
  out->managed.flags = (tensor.read_only() ? dlpack::kReadOnly : 0) | (copied ? dlpack::kIsCopied : 0);
  return &out.release()->managed;
}

DLManagedTensor* export_unversioned(const Tensor& tensor) {
  return &exported<DLManagedTensor>(tensor).release()->managed;
}

void describe_borrowed(const Tensor& tensor, DLTensor& out) {
  describe_memory(tensor, out);
  // DLPack's structure is not const; consumers may not write to these.
  out.shape = const_cast<std::int64_t*>(tensor.shape().begin());      // NOLINT(cppcoreguidelines-pro-type-const-cast)
  out.strides = const_cast<std::int64_t*>(tensor.strides().begin());  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

Tensor import_dlpack(DLManagedTensorVersioned* managed, ReleaseBy by) {
  if (managed == nullptr) core::refuse("found null, expected a DLPack tensor");
  const std::uint32_t major = managed->major;
  const bool padded =
      major == dlpack::kMajor && (managed->flags & dlpack::kIsPadded) != 0 && managed->dl_tensor.dtype.bits < 8;
  if (major == dlpack::kMajor && !padded) {
    return imported(managed, (managed->flags & dlpack::kReadOnly) != 0, by);
  }
  DlpackDeleter()(managed);  // of another version nothing else may be looked at
  throw Error(ErrorCode::kUnsupported,
              padded ? "found a DLPack tensor with values of less than a byte, each in a byte of its own"
                     : core::format("found a DLPack tensor of version {}, expected 1", major));
}

Tensor import_dlpack(DLManagedTensor* managed, ReleaseBy by) {
  if (managed == nullptr) core::refuse("found null, expected a DLPack tensor");
  return imported(managed, false, by);
}

namespace {

/// What the consumer gets, its memory handed over.
Tensor handed(const Tensor& tensor, const DlpackOptions& options) {
  if (!tensor.defined()) core::refuse("found an undefined tensor");
  const Tensor out = options.copy ? tensor.clone() : tensor;
  if (out.device().type == DeviceType::kCpu) return out;
  hand_over(out, options.stream ? *options.stream : Stream::current(out.device()));
  return out;
}

/// Where it was written is the caller's current stream, or was waited for there.
Tensor taken_over(Tensor tensor) {
  if (tensor.device().type == DeviceType::kCpu || tensor.numel() == 0) return tensor;
  tensor.buffer().record_use(Stream::current(tensor.device()), Buffer::Access::kWrite);
  return tensor;
}

}  // namespace
}  // namespace ops

void DlpackDeleter::operator()(DLManagedTensorVersioned* tensor) const noexcept {
  if (tensor != nullptr && tensor->deleter != nullptr) tensor->deleter(tensor);
}
void DlpackDeleter::operator()(DLManagedTensor* tensor) const noexcept {
  if (tensor != nullptr && tensor->deleter != nullptr) tensor->deleter(tensor);
}

DlpackTensor to_dlpack(const Tensor& tensor, const DlpackOptions& options) {
  return DlpackTensor(ops::export_versioned(ops::handed(tensor, options), options.copy));
}

UnversionedDlpackTensor to_dlpack_unversioned(const Tensor& tensor, const DlpackOptions& options) {
  if (tensor.read_only() && !options.copy) {
    core::refuse("the tensor is read-only, which DLPack before 1.0 cannot say; hand over a copy");
  }
  return UnversionedDlpackTensor(ops::export_unversioned(ops::handed(tensor, options)));
}

Tensor from_dlpack(DLManagedTensorVersioned* managed) { return ops::taken_over(ops::import_dlpack(managed)); }
Tensor from_dlpack(DLManagedTensor* managed) { return ops::taken_over(ops::import_dlpack(managed)); }

}  // namespace penstock
