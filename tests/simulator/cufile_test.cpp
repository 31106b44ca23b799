// What the simulated cuFile holds programs to, called as they call it.

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "simulator/cufile/cufile_types.h"
#include "simulator/driver_fixture.h"
#include "simulator/simulated_cufile.h"

namespace penstock::simulator::cufile {
namespace {

constexpr std::size_t kBytes = 100'000;

void* entry(const char* name) {
  static void* const library = ::dlopen(PENSTOCK_SIMULATED_CUFILE, RTLD_NOW | RTLD_LOCAL);
  return library == nullptr ? nullptr : ::dlsym(library, name);
}
template <class F>
F* entry_as(const char* name) {
  return reinterpret_cast<F*>(entry(name));
}

/// One file, registered, and memory on the device for all of it.
class CufileTest : public SimulatorTest {
 protected:
  void SetUp() override {
    // The driver that cuFile asks is the one under test.
    ::setenv("PENSTOCK_LIBCUDA", PENSTOCK_SIMULATED_CUDA, 0);
    SimulatorTest::SetUp();
    if (IsSkipped()) return;
    entry_as<PenstockSimCufileReset>("penstockSimCufileReset")();
    std::strcpy(path_.data(), "/tmp/penstock-cufile-XXXXXX");
    ::close(::mkstemp(path_.data()));
    bytes_.resize(kBytes);
    for (std::size_t i = 0; i < kBytes; ++i) bytes_[i] = static_cast<unsigned char>(i * 7 + i / 256);
    fd_ = ::open(path_.data(), O_RDWR | O_CLOEXEC);
    EXPECT_EQ(::write(fd_, bytes_.data(), kBytes), static_cast<ssize_t>(kBytes));
    ::close(fd_);
    fd_ = ::open(path_.data(), O_RDONLY | O_CLOEXEC | O_DIRECT);
    if (fd_ < 0) GTEST_SKIP() << "/tmp offers no direct reads";
    EXPECT_EQ(open().err, kSuccess);
    device_ = allocate(kBytes);
  }
  void TearDown() override {
    ::close(fd_);
    ::unlink(path_.data());
    if (!IsSkipped()) {
      EXPECT_EQ(counts().handles, 0U);
      entry_as<PenstockSimCufileReset>("penstockSimCufileReset")();
    }
    SimulatorTest::TearDown();
  }

  static CUfileError_t open() { return entry_as<CUfileError_t()>("cuFileDriverOpen")(); }
  static int enroll(int fd, CUfileHandle_t& handle) {
    CUfileDescr_t description{kOpaqueDescriptor, {fd}, nullptr};
    return entry_as<CUfileError_t(CUfileHandle_t*, CUfileDescr_t*)>("cuFileHandleRegister")(&handle, &description).err;
  }
  static void leave(CUfileHandle_t handle) { entry_as<void(CUfileHandle_t)>("cuFileHandleDeregister")(handle); }
  ssize_t read(CUfileHandle_t handle, std::size_t bytes, off_t from, off_t to) const {
    return read_to(reinterpret_cast<void*>(device_), handle, bytes, from, to);
  }
  static ssize_t read_to(void* base, CUfileHandle_t handle, std::size_t bytes, off_t from, off_t to) {
    return entry_as<ssize_t(CUfileHandle_t, void*, std::size_t, off_t, off_t)>("cuFileRead")(handle, base, bytes, from,
                                                                                             to);
  }
  static PenstockSimCufileStatistics counts() {
    PenstockSimCufileStatistics out{};
    entry_as<PenstockSimCufileGetStatistics>("penstockSimCufileGetStatistics")(&out);
    return out;
  }
  /// Whether the call was refused with `error`, and as a violation.
  template <class Call>
  static void expect_violation(ssize_t error, Call call) {
    const std::uint64_t before = counts().violations;
    EXPECT_EQ(call(), error);
    EXPECT_EQ(counts().violations, before + 1);
  }

  std::array<char, 64> path_{};
  std::vector<unsigned char> bytes_;
  int fd_ = -1;
  CUdeviceptr device_ = 0;
};

TEST_F(CufileTest, ReadsWhatTheFileHolds) {
  CUfileHandle_t handle = nullptr;
  ASSERT_EQ(enroll(fd_, handle), kSuccess);
  const CUstream stream = make_stream();
  for (const auto& [bytes, from, to] : {std::array{4096L, 0L, 0L}, {5000L, 4095L, 17L}, {1L, 99'999L, 99'999L}}) {
    ASSERT_EQ(read(handle, static_cast<std::size_t>(bytes), from, to), bytes);
    std::vector<unsigned char> back(static_cast<std::size_t>(bytes));
    to_host(back.data(), device_ + static_cast<CUdeviceptr>(to), back.size(), stream);
    ASSERT_EQ(synchronize(stream), simulator::kSuccess);
    EXPECT_TRUE(std::equal(back.begin(), back.end(), bytes_.begin() + from));
  }
  EXPECT_EQ(read(handle, 5000, 99'000, 0), 1000) << "the file ends";
  EXPECT_EQ(read(handle, 5000, 200'000, 0), 0);
  leave(handle);
  EXPECT_EQ(counts().violations, 0U);
}

TEST_F(CufileTest, HoldsFilesToItsRules) {
  CUfileHandle_t handle = nullptr;
  const int cached = ::open(path_.data(), O_RDONLY | O_CLOEXEC);
  expect_violation(kInvalidOpenFlag, [&] { return enroll(cached, handle); });
  ::close(cached);
  expect_violation(kInvalidValue, [&] { return enroll(-1, handle); });
  const int folder = ::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  expect_violation(kInvalidFileType, [&] { return enroll(folder, handle); });
  ::close(folder);
  ASSERT_EQ(enroll(fd_, handle), kSuccess);
  CUfileHandle_t again = nullptr;
  expect_violation(kHandleRegistered, [&] { return enroll(fd_, again); });
  const int other = ::dup(fd_);
  ::close(fd_);
  expect_violation(-kHandleNotRegistered, [&] { return read(handle, 10, 0, 0); });
  fd_ = other;
  leave(handle);
  expect_violation(-kHandleNotRegistered, [&] { return read(handle, 10, 0, 0); });
  const std::uint64_t before = counts().violations;
  leave(handle);
  EXPECT_EQ(counts().violations, before + 1);
}

TEST_F(CufileTest, HoldsTargetsToItsRules) {
  CUfileHandle_t handle = nullptr;
  ASSERT_EQ(enroll(fd_, handle), kSuccess);
  expect_violation(-kCudaPointerRange, [&] { return read(handle, 1000, 0, kBytes - 999); });
  expect_violation(-kInvalidValue, [&] { return read(handle, 0, 0, 0); });
  expect_violation(-kInvalidValue, [&] { return read(handle, 10, -1, 0); });
  expect_violation(-kInvalidValue, [&] { return read(handle, 10, 0, -1); });
  expect_violation(-kInvalidValue, [&] { return read(handle, 10, INT64_MAX - 5, 0); });
  expect_violation(-kCudaPointerInvalid, [&] { return read_to(bytes_.data(), handle, 10, 0, 0); });
  CUcontext context = nullptr;
  call<CUcontext*>("cuCtxPopCurrent_v2", &context);
  expect_violation(-kInvalidContext, [&] { return read(handle, 10, 0, 0); });
  call<CUcontext>("cuCtxPushCurrent_v2", context);
  leave(handle);
}

TEST_F(CufileTest, FailsAsItIsTold) {
  CUfileHandle_t handle = nullptr;
  ASSERT_EQ(enroll(fd_, handle), kSuccess);
  auto* const fail = entry_as<PenstockSimCufileFail>("penstockSimCufileFail");
  fail(2, -1, EIO);
  EXPECT_EQ(read(handle, 10, 0, 0), 10);
  EXPECT_EQ(read(handle, 10, 0, 0), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(read(handle, 10, 0, 0), 10);
  fail(0, 7, 0);
  EXPECT_EQ(read(handle, 10, 0, 0), 7);
  EXPECT_EQ(read(handle, 10, 0, 0), 7);
  leave(handle);
}

TEST_F(CufileTest, PropertiesAreThoseOfTheOpenDriver) {
  CUfileDrvProps_t properties{};
  EXPECT_EQ(entry_as<CUfileError_t(CUfileDrvProps_t*)>("cuFileDriverGetProperties")(&properties).err, kSuccess);
  EXPECT_EQ(properties.nvfs.major_version, 2U);
  EXPECT_EQ(properties.nvfs.dstatusflags, kNvme);
}

}  // namespace
}  // namespace penstock::simulator::cufile
