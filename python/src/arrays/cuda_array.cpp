#include "arrays/cuda_array.h"

#include "arrays/arrays.h"
#include "core/format.h"
#include "interpreter/convert.h"
#include "penstock/stream.h"

namespace penstock::python {
namespace {

constexpr int kVersion = 3;
constexpr std::uintptr_t kDefaultStream = 1;

bool has_name(const DType& dtype) {
  return !dtype.numpy_descr().empty() && (dtype.is_numeric() || dtype == DType::boolean);
}

[[noreturn]] void refuse(const Tensor& tensor) {
  if (!tensor.is_cuda()) {
    throw nb::attribute_error(
        "__cuda_array_interface__ describes memory of a CUDA device, and this tensor is on the cpu");
  }
  throw nb::attribute_error(
      core::format("__cuda_array_interface__ has no type for {}; use DLPack, or take .view_bytes()",
                   tensor.dtype().name())
          .c_str());
}

/// The calling thread's stream, which waits for the tensor's writes and counts as its user; and so does the default
/// stream, to which consumers submit more.
std::uintptr_t hand_over(const Tensor& tensor) {
  const Stream stream = Stream::current(tensor.device());
  tensor.buffer().order_after_writes(stream);
  tensor.buffer().record_use(stream, Buffer::Access::kRead);
  tensor.buffer().record_use(Stream::default_of(tensor.device()), Buffer::Access::kRead);
  return stream.native() == nullptr ? kDefaultStream : reinterpret_cast<std::uintptr_t>(stream.native());
}

}  // namespace

nb::dict cuda_array_interface(const Tensor& tensor) {
  if (!tensor.is_cuda() || !has_name(tensor.dtype())) refuse(tensor);
  const auto address = tensor.numel() == 0 ? std::uintptr_t{0} : reinterpret_cast<std::uintptr_t>(tensor.data());
  nb::dict out;
  out["version"] = kVersion;
  out["shape"] = tuple_of(tensor.shape());
  out["strides"] = tensor.is_contiguous() ? nb::object(nb::none()) : byte_strides(tensor);
  out["typestr"] = text_from(tensor.dtype().numpy_descr());
  out["data"] = nb::make_tuple(address, tensor.read_only());
  out["stream"] = hand_over(tensor);
  return out;
}

}  // namespace penstock::python
