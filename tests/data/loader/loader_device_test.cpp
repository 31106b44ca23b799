#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "data/support.h"
#include "device/queue.h"
#include "penstock/loader.h"
#include "penstock/ops.h"
#include "penstock/stream.h"
#include "penstock/transfer.h"
#include "support/devices.h"
#include "support/simulator.h"

namespace penstock {
namespace {

class LoaderToDevice : public test::WithDevice {
 protected:
  static LoaderOptions options(Device device, std::size_t workers) {
    LoaderOptions out;
    out.batch_size = 5;
    out.num_workers = workers;
    out.device = device;
    return out;
  }
};

TEST_F(LoaderToDevice, BatchesAreThoseOfTheHost) {
  const Dataset dataset = rows(test::numbered_rows(64, 300));
  for (const std::size_t workers : {0, 1, 3}) {
    DataLoader host(dataset, options(Device{}, workers));
    DataLoader there(dataset, options(device, workers));
    std::size_t batches = 0;
    while (const std::optional<Batch> batch = there.next()) {
      const std::optional<Batch> wanted = host.next();
      ASSERT_TRUE(wanted);
      EXPECT_EQ(batch->tensor().device(), device);
      EXPECT_EQ(batch->indices, wanted->indices);
      EXPECT_TRUE(Tensor::identical(batch->tensor(), wanted->tensor())) << batches;
      ++batches;
    }
    EXPECT_EQ(batches, 13U);
  }
}

TEST_F(LoaderToDevice, CopiesAreCountedAndNotWaitedFor) {
  const Tensor all = test::numbered_rows(64, 300);
  const TransferScope scope;
  DataLoader loader(rows(all), options(device, 2));
  std::uint64_t bytes = 0;
  std::uint64_t batches = 0;
  for (; const std::optional<Batch> batch = loader.next(); ++batches) bytes += batch->tensor().nbytes();
  EXPECT_EQ(scope.stats().host_to_device.copies, batches);
  EXPECT_GE(scope.stats().host_to_device.bytes, bytes);
  EXPECT_EQ(scope.stats().total().waits, 0U);
}

TEST_F(LoaderToDevice, TheConsumersStreamWaitsAndKeepsTheMemory) {
  const Tensor all = test::numbered_rows(400, 1000);
  DataLoader loader(rows(all), options(device, 2));
  const Stream compute(device);
  const StreamGuard guard(compute);
  const std::size_t bytes = 5 * 1000 * all.dtype().itemsize();
  std::vector<Buffer> copies;
  // Batches go out of use at once, while what reads them may not even have begun.
  while (const std::optional<Batch> batch = loader.next()) {
    copies.push_back(Buffer::allocate(bytes, device));
    const std::array range{device::CopyRange{copies.back().data(), batch->tensor().data(), bytes}};
    StreamAccess::queue(compute)->copy(range, device::Direction::kDeviceToDevice);
    copies.back().record_use(compute, Buffer::Access::kWrite);
  }
  ASSERT_EQ(copies.size(), 80U);
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const auto first = static_cast<std::int64_t>(i) * 5;
    const Tensor there(copies[i], all.dtype(), {5, 1000});
    EXPECT_TRUE(Tensor::identical(there, all.slice(0, first, first + 5))) << i;
  }
}

TEST_F(LoaderToDevice, ABatchThatDoesNotFitNamesItself) {
  const Dataset dataset = rows(test::numbered_rows(64, 30'000));
  empty_cache(device);
  set_memory_cap(device, memory_stats(device).in_use_bytes + 1000);
  DataLoader loader(dataset, options(device, 2));
  const auto error = test::error_of([&] { loader.next(); });
  loader.stop();
  set_memory_cap(device, std::nullopt);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(error->message(), testing::StartsWith("batch 0 (5 samples, "));
  EXPECT_THAT(error->message(), testing::HasSubstr("cuda:0"));
}

TEST_F(LoaderToDevice, EachLoaderHasItsOwnDevice) {
  if (device_count() < 2) GTEST_SKIP() << "one device only";
  const Dataset dataset = rows(test::numbered_rows(30, 7));
  DataLoader first(dataset, options(device, 1));
  DataLoader second(dataset, options(Device(DeviceType::kCuda, 1), 1));
  while (const std::optional<Batch> a = first.next()) {
    const std::optional<Batch> b = second.next();
    ASSERT_TRUE(b);
    EXPECT_EQ(b->tensor().device().index, 1);
    EXPECT_TRUE(Tensor::identical(a->tensor(), b->tensor()));
  }
}

class LoaderToSimulator : public test::WithSimulator {};

TEST_F(LoaderToSimulator, TakesNothingOfTheDriverInSteadyState) {
  LoaderOptions options;
  options.batch_size = 5;
  options.num_workers = 2;
  options.device = device;
  DataLoader loader(rows(test::numbered_rows(3000, 1000)), options);
  const auto taken = [] {
    return calls_of("cuMemAlloc_v2") + calls_of("cuMemHostAlloc") + calls_of("cuMemHostRegister_v2") +
           calls_of("cuStreamCreateWithPriority");
  };
  const std::uint64_t before = taken();
  const std::uint64_t reserved = memory_stats(device).reserved_bytes;
  std::uint64_t most_reserved = reserved;
  std::size_t batches = 0;
  while (const std::optional<Batch> batch = loader.next()) {
    const Tensor doubled = batch->tensor() + batch->tensor();
    synchronize(device);
    most_reserved = std::max(most_reserved, memory_stats(device).reserved_bytes);
    ++batches;
  }
  ASSERT_EQ(batches, 600U);
  // What is in flight at most, however many batches follow.
  EXPECT_LE(taken() - before, 32U);
  EXPECT_LE(most_reserved, reserved + 32 * 5 * 1000 * sizeof(float));
}

}  // namespace
}  // namespace penstock
