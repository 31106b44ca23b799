// What the simulated cuBLAS refuses or reports, and that it computes in its stream's order.

#include "simulator/cublas.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <thread>

#include "simulator/cublas/types.h"
#include "simulator/driver_fixture.h"

namespace penstock::simulator {
namespace {

void* cublas() {
  static void* const kLibrary = [] {
    ::setenv("PENSTOCK_LIBCUDA", PENSTOCK_SIMULATED_CUDA, 0);
    library();
    return ::dlopen(PENSTOCK_SIMULATED_CUBLAS, RTLD_NOW | RTLD_LOCAL);
  }();
  return kLibrary;
}

template <class F>
F* blas(const char* name) {
  return reinterpret_cast<F*>(::dlsym(cublas(), name));
}

using Create = cublasStatus_t(cublasHandle_t*);
using Destroy = cublasStatus_t(cublasHandle_t);
using SetStream = cublasStatus_t(cublasHandle_t, CUstream);
using SetMathMode = cublasStatus_t(cublasHandle_t, int);

/// The arguments of a product of matrices of two rows and columns; a test changes one.
struct Arguments {
  cublasHandle_t handle;
  int op_a = kBlasN, op_b = kBlasN, m = 2, n = 2, k = 2;
  float one = 1, zero = 0;
  const void* alpha = &one;
  CUdeviceptr a = 0, b = 0, c = 0;
  int type = kR32F, c_type = kR32F, lda = 2, ldb = 2, ldc = 2;
  long long stride_c = 0;
  int batch = 1, compute = kCompute32F, algorithm = kGemmDefault;
};

class CublasTest : public SimulatorTest {
 protected:
  void SetUp() override {
    SimulatorTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_NE(cublas(), nullptr);
    ASSERT_EQ(blas<Create>("cublasCreate_v2")(&handle_), kBlasSuccess);
    stream_ = make_stream();
  }
  void TearDown() override {
    if (handle_ != nullptr) {
      EXPECT_EQ(blas<Destroy>("cublasDestroy_v2")(handle_), kBlasSuccess);
    }
    SimulatorTest::TearDown();
  }

  Arguments arguments() {
    Arguments out;
    out.handle = handle_;
    const std::array<float, 4> values = {1, 2, 3, 4};
    for (CUdeviceptr* matrix : {&out.a, &out.b, &out.c}) {
      *matrix = allocate(sizeof(values));
      to_device(*matrix, values.data(), sizeof(values), stream_);
    }
    EXPECT_EQ(synchronize(stream_), kSuccess);
    return out;
  }
  cublasStatus_t set_stream() { return blas<SetStream>("cublasSetStream_v2")(handle_, stream_); }
  static cublasStatus_t multiply(const Arguments& x) {
    const auto pointer = [](CUdeviceptr address) { return reinterpret_cast<void*>(address); };
    return blas<BlasGemm>("cublasGemmStridedBatchedEx")(
        x.handle, x.op_a, x.op_b, x.m, x.n, x.k, x.alpha, pointer(x.a), x.type, x.lda, 0, pointer(x.b), x.type, x.ldb,
        0, &x.zero, pointer(x.c), x.c_type, x.ldc, x.stride_c, x.batch, x.compute, x.algorithm);
  }
  /// What becomes of a product that `change` has made wrong.
  cublasStatus_t with(const std::function<void(Arguments&)>& change) {
    Arguments changed = arguments();
    changed.alpha = &changed.one;
    change(changed);
    EXPECT_EQ(set_stream(), kBlasSuccess);
    return multiply(changed);
  }
  void expect_refused(const std::function<void(Arguments&)>& change) {
    EXPECT_EQ(with(change), kBlasInvalidValue);
    EXPECT_EQ(take_violations().size(), 1U);
  }

  cublasHandle_t handle_ = nullptr;
  CUstream stream_ = nullptr;
};

TEST_F(CublasTest, MultipliesColumnByColumnInTheStreamsOrder) {
  set_mode(kPenstockSimLazy);
  Arguments product = arguments();
  product.alpha = &product.one;
  product.op_b = kBlasT;
  ASSERT_EQ(set_stream(), kBlasSuccess);
  ASSERT_EQ(multiply(product), kBlasSuccess);
  std::array<float, 4> found{};
  to_host(found.data(), product.c, sizeof(found), stream_);
  ASSERT_EQ(synchronize(stream_), kSuccess);
  // Columns (1, 2) and (3, 4): {{1, 3}, {2, 4}} times its transpose.
  EXPECT_EQ(found, (std::array<float, 4>{10, 14, 14, 20}));
}

TEST_F(CublasTest, RefusesWrongArguments) {
  expect_refused([](Arguments& x) { x.lda = 1; });
  expect_refused([](Arguments& x) { x.ldb = 0; });
  expect_refused([](Arguments& x) { x.ldc = 1; });
  expect_refused([](Arguments& x) { x.m = -1; });
  expect_refused([](Arguments& x) { x.op_a = 7; });
  expect_refused([](Arguments& x) { x.alpha = nullptr; });
  expect_refused([](Arguments& x) { x.algorithm = 3; });
  expect_refused([](Arguments& x) { x.b = 0; });
  expect_refused([](Arguments& x) { x.a += 2; });
  expect_refused([](Arguments& x) { x.c += 4; });
  expect_refused([](Arguments& x) { x.batch = 2; });
}

TEST_F(CublasTest, KnowsTheTypesThatGoTogether) {
  EXPECT_EQ(with([](Arguments& x) { x.compute = kCompute64F; }), kBlasNotSupported);
  EXPECT_EQ(with([](Arguments& x) { x.type = x.c_type = 10; }), kBlasNotSupported);
  EXPECT_EQ(with([](Arguments& x) { x.c_type = kR16F; }), kBlasNotSupported);
  EXPECT_EQ(with([](Arguments&) {}), kBlasSuccess);
}

TEST_F(CublasTest, WantsTheStreamSetBeforeEachProduct) {
  EXPECT_EQ(with([](Arguments&) {}), kBlasSuccess);
  const Arguments product = arguments();
  EXPECT_EQ(multiply(product), kBlasNotInitialized);
  EXPECT_EQ(take_violations().size(), 1U);
  EXPECT_EQ(set_stream(), kBlasSuccess);
  std::thread([&] {
    CUcontext context = nullptr;
    call<CUcontext*, CUdevice>("cuDevicePrimaryCtxRetain", &context, 0);
    call<CUcontext>("cuCtxSetCurrent", context);
    EXPECT_EQ(multiply(product), kBlasNotInitialized);
    call<CUdevice>("cuDevicePrimaryCtxRelease_v2", 0);
  }).join();
  EXPECT_EQ(take_violations().size(), 1U);
}

TEST_F(CublasTest, WantsItsContext) {
  std::thread([this] { EXPECT_EQ(set_stream(), kBlasNotInitialized); }).join();
  EXPECT_EQ(take_violations().size(), 1U);
}

TEST_F(CublasTest, KnowsHandlesThatAreNotAlive) {
  cublasHandle_t other = nullptr;
  ASSERT_EQ(blas<Create>("cublasCreate_v2")(&other), kBlasSuccess);
  ASSERT_EQ(blas<Destroy>("cublasDestroy_v2")(other), kBlasSuccess);
  EXPECT_EQ(blas<SetStream>("cublasSetStream_v2")(other, stream_), kBlasNotInitialized);
  EXPECT_EQ(blas<Destroy>("cublasDestroy_v2")(other), kBlasNotInitialized);
  EXPECT_EQ(take_violations().size(), 2U);
}

TEST_F(CublasTest, ComputesInFullPrecisionOnly) {
  constexpr int kTensorFloat32 = 3;
  EXPECT_EQ(blas<SetMathMode>("cublasSetMathMode")(handle_, kMathFullReduction), kBlasSuccess);
  EXPECT_EQ(blas<SetMathMode>("cublasSetMathMode")(handle_, kTensorFloat32), kBlasInvalidValue);
  EXPECT_EQ(take_violations().size(), 1U);
}

TEST_F(CublasTest, FailsOnDemand) {
  blas<PenstockSimCublasFailOnce>("penstockSimCublasFailOnce")(2, kBlasExecutionFailed);
  EXPECT_EQ(with([](Arguments&) {}), kBlasSuccess);
  EXPECT_EQ(with([](Arguments&) {}), kBlasExecutionFailed);
  blas<PenstockSimCublasFail>("penstockSimCublasFail")(kBlasNotSupported);
  EXPECT_EQ(with([](Arguments&) {}), kBlasNotSupported);
  blas<PenstockSimCublasFail>("penstockSimCublasFail")(0);
  EXPECT_EQ(with([](Arguments&) {}), kBlasSuccess);
}

}  // namespace
}  // namespace penstock::simulator
