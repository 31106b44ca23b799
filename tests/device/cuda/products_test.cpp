// Products by cuBLAS as queues give them: the simulated one, or none. The library is found once a process, so each case
// that is about finding it runs in a process of its own.
#include "device/cuda/products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>
#include <vector>

#include "device/backend.h"
#include "penstock/buffer.h"
#include "penstock/error.h"
#include "support/cublas.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/process.h"
#include "support/simulator.h"

namespace penstock::device {
namespace {

using test::kMega;
using testing::HasSubstr;

constexpr int kExecutionFailed = 13;
constexpr int kNotSupported = 15;

/// {{1, 2}, {3, 4}} times {{5, 6}, {7, 8}} on a stream.
class Work {
 public:
  explicit Work(Device device)
      : stream_(device),
        a_(Buffer::allocate(sizeof(kA), device)),
        b_(Buffer::allocate(sizeof(kB), device)),
        to_(Buffer::allocate(sizeof(kA), device)) {
    const std::array ranges = {CopyRange{a_.data(), bytes(kA), sizeof(kA)},
                               CopyRange{b_.data(), bytes(kB), sizeof(kB)}};
    for (const Buffer& buffer : {a_, b_, to_}) buffer.order_after_writes(stream_);
    StreamAccess::queue(stream_)->copy(ranges, Direction::kHostToDevice);
  }
  ~Work() {
    for (const Buffer& buffer : {a_, b_, to_}) buffer.record_use(stream_, Buffer::Access::kWrite);
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  bool multiply() const { return StreamAccess::queue(stream_)->multiply(product()); }
  MatrixProduct product() const {
    MatrixProduct out;
    out.rows = out.depth = out.columns = 2;
    out.a = {a_.data(), false, 2, 0};
    out.b = {b_.data(), false, 2, 0};
    out.to = to_.data();
    return out;
  }
  std::array<float, 4> result() const {
    std::array<float, 4> out{};
    const std::array ranges = {CopyRange{bytes(out), to_.data(), sizeof(out)}};
    StreamAccess::queue(stream_)->copy(ranges, Direction::kDeviceToHost);
    stream_.synchronize();
    return out;
  }
  const QueuePtr& queue() const { return StreamAccess::queue(stream_); }

 private:
  static std::byte* bytes(std::array<float, 4>& values) { return reinterpret_cast<std::byte*>(values.data()); }
  static const std::byte* bytes(const std::array<float, 4>& values) {
    return reinterpret_cast<const std::byte*>(values.data());
  }
  static constexpr std::array<float, 4> kA = {1, 2, 3, 4};
  static constexpr std::array<float, 4> kB = {5, 6, 7, 8};

  Stream stream_;
  Buffer a_;
  Buffer b_;
  Buffer to_;
};
constexpr std::array<float, 4> kProduct = {19, 22, 43, 50};

class CudaProducts : public test::WithSimulator {
 protected:
  void SetUp() override {
    test::WithSimulator::SetUp();
    if (!IsSkipped() && !test::has_simulated_cublas()) GTEST_SKIP() << "PENSTOCK_LIBCUBLAS names no simulated cuBLAS";
  }
};

TEST_F(CudaProducts, AreRowByRow) {
  const Work work(device);
  ASSERT_TRUE(work.queue()->multiplies(DType::Code::kFloat32));
  ASSERT_TRUE(work.multiply());
  EXPECT_EQ(work.result(), kProduct);
}

TEST_F(CudaProducts, AreOfFloatsOnly) {
  const Work work(device);
  EXPECT_FALSE(work.queue()->multiplies(DType::Code::kInt64));
  MatrixProduct product = work.product();
  product.type = DType::Code::kInt32;
  EXPECT_FALSE(work.queue()->multiply(product));
  EXPECT_FALSE(StreamAccess::queue(Stream::current(Device{}))->multiplies(DType::Code::kFloat32));
}

TEST_F(CudaProducts, AreNotAskedForBeyond32Bits) {
  const Work work(device);
  const std::uint64_t before = test::cublas_products();
  MatrixProduct product = work.product();
  product.a.stride = std::int64_t{1} << 31;
  EXPECT_FALSE(work.queue()->multiply(product));
  product = work.product();
  product.batch = std::int64_t{1} << 31;
  EXPECT_FALSE(work.queue()->multiply(product));
  EXPECT_EQ(test::cublas_products(), before);
}

TEST_F(CudaProducts, ThatAreRefusedAreSaidToBe) {
  const Work work(device);
  test::fail_cublas_once(1, kNotSupported);
  EXPECT_FALSE(work.multiply());
  EXPECT_TRUE(work.multiply());
}

TEST_F(CudaProducts, ThatFailGiveTheStatus) {
  const Work work(device);
  test::fail_cublas_once(1, kExecutionFailed);
  const auto error = test::error_of([&] { work.multiply(); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kDeviceFailed);
  EXPECT_THAT(error->message(), HasSubstr("cublasGemmStridedBatchedEx gives 13 (CUBLAS_STATUS_EXECUTION_FAILED)"));
}

TEST_F(CudaProducts, OfManyThreadsShareAHandle) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 10; ++i) {
        const Work work(device);
        EXPECT_TRUE(work.multiply());
        EXPECT_EQ(work.result(), kProduct);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto handles = test::cublas_function<PenstockSimCublasHandles>("penstockSimCublasHandles")();
  EXPECT_LE(handles, static_cast<std::uint64_t>(device_count()));
}

TEST_F(CudaProducts, AreOfEachDeviceItsOwn) {
  if (device_count() < 2) GTEST_SKIP() << "one device";
  const Work here(device);
  const Work there(Device(DeviceType::kCuda, 1));
  EXPECT_TRUE(here.multiply());
  EXPECT_TRUE(there.multiply());
  EXPECT_EQ(here.result(), kProduct);
  EXPECT_EQ(there.result(), kProduct);
}

TEST_F(CudaProducts, AreRefusedInAForkedProcess) {
  const Work work(device);
  ASSERT_TRUE(work.multiply());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(test::code_of([&] { work.multiply(); }) == ErrorCode::kDeviceFailed ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(work.result(), kProduct);
}

/// Run in processes of their own only.
TEST(CudaProductsAbsent, DISABLED_Ask) {
  const Device device{DeviceType::kCuda, 0};
  const Work work(device);
  EXPECT_FALSE(work.queue()->multiplies(DType::Code::kFloat32));
  EXPECT_FALSE(work.multiply());
  const ProductLibrary library = backend_for(DeviceType::kCuda).product_library(0);
  EXPECT_EQ(library.name, "");
  std::printf("because: %s\n", library.why_none.c_str());
}

std::string reason_with(const std::string& environment) {
  const test::Ended ended = test::run_again(environment + " PENSTOCK_SIM_AUDIT=1", "CudaProductsAbsent.DISABLED_Ask");
  EXPECT_EQ(ended.status, 0) << ended.output;
  return ended.output;
}

TEST_F(CudaProducts, AreAbsentForAReason) {
  EXPECT_THAT(reason_with("PENSTOCK_LIBCUBLAS="),
              HasSubstr("because: there is no cuBLAS: PENSTOCK_LIBCUBLAS is empty"));
  EXPECT_THAT(reason_with("PENSTOCK_LIBCUBLAS=/nowhere/libcublas.so"),
              HasSubstr("because: there is no cuBLAS: /nowhere/libcublas.so: "));
  EXPECT_THAT(reason_with("PENSTOCK_LIBCUBLAS=libz.so.1"),
              HasSubstr("because: there is no cuBLAS: the library found has no cublasCreate"));
  EXPECT_THAT(reason_with("-u PENSTOCK_LIBCUBLAS"),
              HasSubstr("because: there is no cuBLAS: PENSTOCK_LIBCUDA names a driver, and "));
  EXPECT_THAT(reason_with("PENSTOCK_SIM_CUBLAS=not_initialized"), HasSubstr("gives 1 (CUBLAS_STATUS_NOT_INITIALIZED)"));
  EXPECT_THAT(reason_with("PENSTOCK_SIM_JIT=0"), HasSubstr("does not start here"));
}

void set_device_memory(std::uint64_t bytes) {
  test::simulator_function<PenstockSimSetMemory>("penstockSimSetMemory")(bytes);
}

/// Run in processes of their own, whose first product it is.
TEST_F(CudaProducts, DISABLED_WithMemoryCached) {
  const Work work(device);
  Buffer::allocate(60 * kMega, device);
  synchronize(device);  // then it is cached, and there is room for a workspace only behind that
  set_device_memory(statistics().device_bytes + 8 * kMega);
  ASSERT_GE(memory_stats(device).reserved_bytes, 60 * kMega);
  EXPECT_TRUE(work.multiply());
  EXPECT_EQ(work.result(), kProduct);
}

TEST_F(CudaProducts, DISABLED_WithMemoryInUse) {
  const Work work(device);
  const Buffer held = Buffer::allocate(60 * kMega, device);
  set_device_memory(statistics().device_bytes + kMega);
  EXPECT_FALSE(work.multiply());
  const ProductLibrary library = backend_for(DeviceType::kCuda).product_library(0);
  EXPECT_THAT(library.why_none,
              HasSubstr("gives 3 (CUBLAS_STATUS_ALLOC_FAILED), with little memory of the device free"));
  set_device_memory(std::uint64_t{16} << 30);
  EXPECT_TRUE(work.multiply());
  EXPECT_EQ(work.result(), kProduct);
}

TEST_F(CudaProducts, GetTheirWorkspaceOnceThereIsMemory) {
  for (const char* name : {"CudaProducts.DISABLED_WithMemoryCached", "CudaProducts.DISABLED_WithMemoryInUse"}) {
    const test::Ended ended = test::run_again("PENSTOCK_SIM_AUDIT=1", name);
    EXPECT_EQ(ended.status, 0) << ended.output;
  }
}

TEST_F(CudaProducts, NameTheirLibrary) {
  const ProductLibrary library = backend_for(DeviceType::kCuda).product_library(0);
  EXPECT_THAT(library.name, HasSubstr("cuBLAS 13.0.0 ("));
  EXPECT_THAT(library.name, HasSubstr("libpenstock_simulated_cublas.so)"));
  EXPECT_EQ(library.why_none, "");
}

}  // namespace
}  // namespace penstock::device
