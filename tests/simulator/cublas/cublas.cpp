// The entry points of a cuBLAS that holds its callers to its documentation, and to what ours promise besides: each
// product has its stream set just before, by the same thread.

#include "simulator/cublas.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>

#include "simulator/cublas/driver.h"
#include "simulator/cublas/product.h"
#include "simulator/cublas/rules.h"
#include "simulator/cublas/types.h"
#include "simulator/engine_lock.h"

namespace penstock::simulator {
namespace {

constexpr std::size_t kWorkspace = std::size_t{4} << 20;  ///< of device memory that each handle takes

struct Handle {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  CUdeviceptr workspace = 0;
  CUstream stream = nullptr;
  int math = 0;
  std::thread::id streamed_by;  ///< who set the stream for the next product
};

/// All that the library knows. Never destroyed: handles may be used until the very end.
struct Library {
  std::mutex mutex;
  std::map<cublasHandle_t, Handle> handles;
  std::uintptr_t next_handle = 0x7100'0000'0000;
  std::uint64_t products = 0;
  bool starts = true;
  int status = kBlasSuccess;    ///< what each product gives
  std::uint64_t countdown = 0;  ///< to the one product that gives
  int status_once = kBlasSuccess;
};

Library* make_library() {
  auto* const made = new Library;
  const char* const text = std::getenv("PENSTOCK_SIM_CUBLAS");
  const std::string wanted = text == nullptr ? "" : text;
  made->starts = wanted != "not_initialized";
  made->status = wanted == "refuse" ? int{kBlasNotSupported} : std::atoi(wanted.c_str());
  return made;
}

Library& library() {
  static Library* const kLibrary = make_library();
  return *kLibrary;
}

/// Holds the library's mutex, unseen by ThreadSanitizer: callers order their calls themselves.
class Lock {
 public:
  Lock() : lock_(library().mutex) {}

 private:
  Unseen unseen_;
  std::unique_lock<std::mutex> lock_;
};

cublasStatus_t report(const std::string& text, cublasStatus_t status) {
  find_blas_driver()->report(("cuBLAS: " + text).c_str());
  return status;
}

CUcontext current_context() {
  CUcontext context = nullptr;
  return find_blas_driver()->current(&context) == kSuccess ? context : nullptr;
}

/// The handle, if it may be used here: alive, and its context is the current one. Needs the lock.
Handle* find_handle(cublasHandle_t given, const char* call) {
  const auto found = library().handles.find(given);
  if (found == library().handles.end()) {
    report(std::string(call) + " of a handle that is not alive", 0);
    return nullptr;
  }
  if (found->second.context == current_context()) return &found->second;
  report(std::string(call) + " where its handle's context is not the current one", 0);
  return nullptr;
}

CUresult load_kernel(const BlasDriver& driver, Handle& handle) {
  char ptx[256];
  std::snprintf(ptx, sizeof(ptx),
                ".version 6.4\n.target sm_52\n.address_size 64\n"
                ".visible .entry %s(\n.param .align 8 .b8 %s_param_0[%zu]\n)\n{\nret;\n}\n",
                kProductEntry, kProductEntry, sizeof(SimProduct));
  driver.add_kernel(kProductEntry, run_product);
  if (const CUresult result = driver.module_load(&handle.module, ptx); result != kSuccess) return result;
  return driver.module_function(&handle.kernel, handle.module, kProductEntry);
}

/// The status asked for by a test, if the next product has one. Needs the lock.
int status_wanted() {
  Library& l = library();
  if (l.countdown > 0 && --l.countdown == 0) return l.status_once;
  return l.status;
}

bool may_run(Handle& handle, const char* call) {
  const bool streamed = handle.streamed_by == std::this_thread::get_id();
  handle.streamed_by = {};
  if (!streamed) report(std::string(call) + " without cublasSetStream_v2 before it in this thread", 0);
  return streamed;
}

cublasStatus_t start(const Handle& handle, SimProduct product) {
  product.rounds_sums = (handle.math & kMathFullReduction) == 0 && element_bytes(product.type) == 2;
  void* arguments[] = {&product};
  const CUresult result =
      find_blas_driver()->launch(handle.kernel, 1, 1, 1, 32, 1, 1, 0, handle.stream, arguments, nullptr);
  return result == kSuccess ? kBlasSuccess : kBlasExecutionFailed;
}

}  // namespace

PENSTOCK_SIM_API cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  const BlasDriver* const driver = find_blas_driver();
  if (handle == nullptr) return kBlasInvalidValue;
  const CUcontext context = driver == nullptr ? nullptr : current_context();
  if (context == nullptr) return kBlasNotInitialized;
  const Lock lock;
  Library& l = library();
  if (!l.starts) return kBlasNotInitialized;
  Handle made;
  made.context = context;
  if (driver->allocate(&made.workspace, kWorkspace) != kSuccess) return kBlasAllocFailed;
  if (load_kernel(*driver, made) != kSuccess) {
    driver->free(made.workspace);
    return kBlasNotInitialized;
  }
  *handle = reinterpret_cast<cublasHandle_t>(l.next_handle += 16);
  l.handles.emplace(*handle, made);
  return kBlasSuccess;
}

PENSTOCK_SIM_API cublasStatus_t cublasDestroy_v2(cublasHandle_t given) {
  const Lock lock;
  const Handle* const handle = find_handle(given, "cublasDestroy_v2");
  if (handle == nullptr) return kBlasNotInitialized;
  find_blas_driver()->synchronize();
  find_blas_driver()->module_unload(handle->module);
  find_blas_driver()->free(handle->workspace);
  library().handles.erase(given);
  return kBlasSuccess;
}

PENSTOCK_SIM_API cublasStatus_t cublasSetStream_v2(cublasHandle_t given, CUstream stream) {
  const Lock lock;
  Handle* const handle = find_handle(given, "cublasSetStream_v2");
  if (handle == nullptr) return kBlasNotInitialized;
  CUcontext context = nullptr;
  if (find_blas_driver()->stream_context(stream, &context) != kSuccess || context != handle->context) {
    return report("cublasSetStream_v2 with a stream of another context", kBlasInvalidValue);
  }
  handle->stream = stream;
  handle->streamed_by = std::this_thread::get_id();
  return kBlasSuccess;
}

PENSTOCK_SIM_API cublasStatus_t cublasSetMathMode(cublasHandle_t given, int mode) {
  const Lock lock;
  Handle* const handle = find_handle(given, "cublasSetMathMode");
  if (handle == nullptr) return kBlasNotInitialized;
  if ((mode & ~kMathFullReduction) != 0) return report("a math mode that is not the default", kBlasInvalidValue);
  handle->math = mode;
  return kBlasSuccess;
}

PENSTOCK_SIM_API cublasStatus_t cublasGetProperty(int type, int* value) {
  if (type < 0 || type > 2 || value == nullptr) return kBlasInvalidValue;
  *value = type == 0 ? 13 : 0;
  return kBlasSuccess;
}

PENSTOCK_SIM_API const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case kBlasSuccess:
      return "CUBLAS_STATUS_SUCCESS";
    case kBlasNotInitialized:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case kBlasAllocFailed:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case kBlasInvalidValue:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case kBlasExecutionFailed:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case kBlasNotSupported:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "an unknown status";
  }
}

PENSTOCK_SIM_API cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t given, int op_a, int op_b, int m, int n,
                                                           int k, const void* alpha, const void* a, int a_type, int lda,
                                                           long long stride_a, const void* b, int b_type, int ldb,
                                                           long long stride_b, const void* beta, void* c, int c_type,
                                                           int ldc, long long stride_c, int batch, int compute,
                                                           int algorithm) {
  constexpr const char* kCall = "cublasGemmStridedBatchedEx";
  const Lock lock;
  Handle* const handle = find_handle(given, kCall);
  if (handle == nullptr || !may_run(*handle, kCall)) return kBlasNotInitialized;
  if (const int wanted = status_wanted(); wanted != kBlasSuccess) return wanted;
  const BlasCall call{op_a,   op_b, m,        n,    k, alpha,  a,   a_type,   lda,   stride_a, b,
                      b_type, ldb,  stride_b, beta, c, c_type, ldc, stride_c, batch, compute,  algorithm};
  if (!are_types_supported(call)) return kBlasNotSupported;
  if (const std::string wrong = broken_rule(call); !wrong.empty()) return report(wrong, kBlasInvalidValue);
  if (m == 0 || n == 0 || batch == 0) return kBlasSuccess;
  ++library().products;
  return start(*handle, as_product(call));
}

PENSTOCK_SIM_API void penstockSimCublasFail(int status) {
  const Lock lock;
  library().status = status;
}

PENSTOCK_SIM_API void penstockSimCublasFailOnce(std::uint64_t nth, int status) {
  const Lock lock;
  library().countdown = nth;
  library().status_once = status;
}

PENSTOCK_SIM_API std::uint64_t penstockSimCublasProducts() {
  const Lock lock;
  return library().products;
}

PENSTOCK_SIM_API std::uint64_t penstockSimCublasHandles() {
  const Lock lock;
  return library().handles.size();
}

// Tests find the functions by name and trust the header for their types.
template <class Declared, class Defined>
constexpr bool kIs = std::is_same_v<Declared, Defined>;
static_assert(kIs<BlasGemm, decltype(cublasGemmStridedBatchedEx)>);
static_assert(kIs<PenstockSimCublasFail, decltype(penstockSimCublasFail)>);
static_assert(kIs<PenstockSimCublasFailOnce, decltype(penstockSimCublasFailOnce)>);
static_assert(kIs<PenstockSimCublasProducts, decltype(penstockSimCublasProducts)>);
static_assert(kIs<PenstockSimCublasHandles, decltype(penstockSimCublasHandles)>);

}  // namespace penstock::simulator
