// Products of matrices are given to cuBLAS if the machine has it; otherwise our own kernels compute them. Each context
// has one handle, used under a lock, because its stream is set before each call. What cuBLAS keeps must be destroyed
// before its own statics are, so its handles are closed by a function that runs at exit before them.

#include "device/cuda/products.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>

#include "core/format.h"
#include "device/backend.h"
#include "device/cuda/cublas.h"
#include "penstock/error.h"

namespace penstock::device::cuda {
namespace {

/// cuBLAS in one context. Calls with the handle are made under the mutex, since each needs its stream set before.
struct Handle {
  ContextPtr context;
  std::mutex mutex;
  cublasHandle_t handle = nullptr;  ///< null where there is none
  std::string why_not;
};
using HandlePtr = std::shared_ptr<Handle>;

/// The process's handles. Never destroyed itself; close() is called before cuBLAS's own statics are.
class Handles {
 public:
  HandlePtr of(const ContextPtr& context, const Cublas& cublas);
  void close() noexcept;

 private:
  std::mutex mutex_;
  std::map<int, HandlePtr> handles_;  // by the device's index
  bool closed_ = false;
};

Handles& handles() {
  static Handles& all = *new Handles;
  return all;
}

struct Closer {
  ~Closer() { handles().close(); }
};

cublasStatus_t try_to_create(const Cublas& cublas, Handle& out) {
  cublasStatus_t status = cublas.create(&out.handle);
  if (status == kBlasSuccess) {
    status = cublas.set_math_mode(out.handle, kBlasSumsInFull);
    if (status == kBlasSuccess) return status;
    cublas.destroy(out.handle);
  }
  out.handle = nullptr;
  return status;
}

/// Without memory for its workspace cuBLAS says one of two things, of which one has other causes too.
bool is_for_want_of_memory(const Context& context, cublasStatus_t status) {
  constexpr std::uint64_t kPlenty = std::uint64_t{512} << 20;
  if (status != kBlasAllocFailed && status != kBlasNotInitialized) return false;
  return backend_for(DeviceType::kCuda).stats(context.index()).free_bytes < kPlenty;
}

/// False where there was nothing to empty.
bool empty_cache(const Context& context) {
  const MemoryStats now = backend_for(DeviceType::kCuda).stats(context.index());
  if (now.reserved_bytes <= now.in_use_bytes) return false;
  backend_for(DeviceType::kCuda).empty_cache(context.index());
  return true;
}

/// Callers have the context current. Whether the outcome is for good: memory may be there another time.
bool create(const Cublas& cublas, Handle& out) {
  cublasStatus_t status = try_to_create(cublas, out);
  bool wanted_memory = is_for_want_of_memory(*out.context, status);
  if (wanted_memory && empty_cache(*out.context)) {
    status = try_to_create(cublas, out);
    wanted_memory = is_for_want_of_memory(*out.context, status);
  }
  if (status == kBlasSuccess) return true;
  out.why_not = core::format("{} does not start here: it gives {}{}", cublas.path, cublas.describe(status),
                             wanted_memory ? ", with little memory of the device free" : "");
  return !wanted_memory;
}

HandlePtr Handles::of(const ContextPtr& context, const Cublas& cublas) {
  const std::scoped_lock lock(mutex_);
  if (const auto known = handles_.find(context->index()); known != handles_.end()) return known->second;
  auto made = std::make_shared<Handle>();
  if (closed_) {
    made->why_not = "the process is ending";
    return made;
  }
  made->context = context;
  const Current current(*context);
  if (!create(cublas, *made)) return made;
  // After cuBLAS has registered what it destroys when the process ends, so that this comes before.
  static const Closer closer;
  return handles_.emplace(context->index(), std::move(made)).first->second;
}

void Handles::close() noexcept {
  // A lock that is held belongs to a thread that will not let it go, or to another process.
  if (!usable()) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  closed_ = true;
  for (const auto& [index, handle] : handles_) {
    const std::unique_lock calls(handle->mutex, std::try_to_lock);
    if (!calls || handle->handle == nullptr) continue;
    quietly_in(*handle->context, [&handle = handle](const Driver&) { find_cublas()->destroy(handle->handle); });
    handle->handle = nullptr;
  }
  handles_.clear();
}

struct Type {
  DType::Code code;
  int data;
  int compute;
};
constexpr std::array kTypes = {
    Type{DType::Code::kFloat16, kBlasFloat16, kBlasComputeFloat32},
    Type{DType::Code::kBFloat16, kBlasBFloat16, kBlasComputeFloat32},
    Type{DType::Code::kFloat32, kBlasFloat32, kBlasComputeFloat32},
    Type{DType::Code::kFloat64, kBlasFloat64, kBlasComputeFloat64},
};

const Type* find_type(DType::Code code) {
  const auto* const found =
      std::find_if(kTypes.begin(), kTypes.end(), [code](const Type& t) { return t.code == code; });
  return found != kTypes.end() ? found : nullptr;
}

/// cuBLAS counts in 32 bits.
bool fits(const MatrixProduct& p) {
  const std::int64_t largest = std::max({p.rows, p.depth, p.columns, p.batch, p.a.stride, p.b.stride});
  return largest <= std::numeric_limits<std::int32_t>::max();
}

// cuBLAS's factors: the product is taken once, and what is there before not at all.
constexpr std::array kFloats = {1.0F, 0.0F};
constexpr std::array kDoubles = {1.0, 0.0};

/// In cuBLAS's order, column by column, our rows are columns: what it sees of a row-major matrix is the transpose, and
/// it is asked for transposed(b) times transposed(a), whose columns are the rows of a times b.
cublasStatus_t call(const Cublas& cublas, cublasHandle_t handle, const Type& type, const MatrixProduct& p) {
  const auto number = [](std::int64_t value) { return static_cast<int>(value); };
  const auto form = [](const MatrixOperand& operand) { return operand.by_column ? kBlasTransposed : kBlasAsItIs; };
  const bool doubles = type.compute == kBlasComputeFloat64;
  const void* const one = doubles ? static_cast<const void*>(&kDoubles[0]) : &kFloats[0];
  const void* const zero = doubles ? static_cast<const void*>(&kDoubles[1]) : &kFloats[1];
  return cublas.multiply(handle, form(p.b), form(p.a), number(p.columns), number(p.rows), number(p.depth), one,
                         p.b.data, type.data, number(p.b.stride), p.b.batch_stride, p.a.data, type.data,
                         number(p.a.stride), p.a.batch_stride, zero, p.to, type.data, number(p.columns),
                         p.to_batch_stride, number(p.batch), type.compute, kBlasAnyAlgorithm);
}

/// Whether it was done; false for what another way of computing can help against.
bool is_done(const Cublas& cublas, cublasStatus_t status, const char* name) {
  switch (status) {
    case kBlasSuccess:
      return true;
    case kBlasAllocFailed:
    case kBlasInvalidValue:
    case kBlasArchMismatch:
    case kBlasNotSupported:
      return false;
    default:
      throw Error(ErrorCode::kDeviceFailed, core::format("cuBLAS's {} gives {}", name, cublas.describe(status)));
  }
}

}  // namespace

bool multiplies(const ContextPtr& context, DType::Code type) {
  const Cublas* const cublas = find_cublas();
  if (find_type(type) == nullptr || cublas == nullptr) return false;
  const HandlePtr handle = handles().of(context, *cublas);
  const std::scoped_lock lock(handle->mutex);
  return handle->handle != nullptr;
}

bool multiply(const ContextPtr& context, CUstream stream, const MatrixProduct& product) {
  const Cublas* const cublas = find_cublas();
  const Type* const type = find_type(product.type);
  if (cublas == nullptr || type == nullptr || !fits(product)) return false;
  const HandlePtr handle = handles().of(context, *cublas);
  const Current current(*context);
  const std::scoped_lock lock(handle->mutex);
  if (handle->handle == nullptr) return false;
  return is_done(*cublas, cublas->set_stream(handle->handle, stream), "cublasSetStream_v2") &&
         is_done(*cublas, call(*cublas, handle->handle, *type, product), "cublasGemmStridedBatchedEx");
}

ProductLibrary product_library(const ContextPtr& context) {
  const Cublas* const cublas = find_cublas();
  const auto none = [](std::string_view reason) {
    return ProductLibrary{{}, core::format("there is no cuBLAS: {}; name one by PENSTOCK_LIBCUBLAS", reason)};
  };
  if (cublas == nullptr) return none(why_no_cublas());
  const HandlePtr handle = handles().of(context, *cublas);
  const std::scoped_lock lock(handle->mutex);
  if (handle->handle == nullptr) return none(handle->why_not);
  return {cublas->description(), {}};
}

}  // namespace penstock::device::cuda
