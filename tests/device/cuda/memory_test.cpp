#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "device/backend.h"
#include "penstock/buffer.h"
#include "penstock/error.h"
#include "penstock/stream.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/simulator.h"

namespace penstock {
namespace {

using test::kMega;

class CudaMemory : public test::WithDevice {};

TEST_F(CudaMemory, IsOnItsDeviceAndCounted) {
  const MemoryStats before = memory_stats(device);
  {
    const Buffer buffer = Buffer::allocate(1 << 20, device);
    EXPECT_EQ(buffer.device(), device);
    EXPECT_EQ(buffer.size(), std::size_t{1} << 20);
    EXPECT_NE(buffer.data(), nullptr);
    EXPECT_FALSE(buffer.is_pinned());
    const MemoryStats now = memory_stats(device);
    EXPECT_EQ(now.in_use_bytes, before.in_use_bytes + (1 << 20));
    EXPECT_GE(now.peak_bytes, now.in_use_bytes);
    EXPECT_GE(now.reserved_bytes, now.in_use_bytes);
    EXPECT_EQ(now.allocations, before.allocations + 1);
  }
  EXPECT_EQ(memory_stats(device).in_use_bytes, before.in_use_bytes);
}

TEST_F(CudaMemory, ThatIsRefusedIsNotCounted) {
  const MemoryStats before = memory_stats(device);
  EXPECT_EQ(test::code_of([this] { Buffer::allocate(std::size_t{1} << 50, device); }), ErrorCode::kOutOfMemory);
  const MemoryStats after = memory_stats(device);
  EXPECT_EQ(after.in_use_bytes, before.in_use_bytes);
  EXPECT_EQ(after.peak_bytes, before.peak_bytes);
  EXPECT_EQ(after.allocations, before.allocations);
}

class SimulatedCudaMemory : public test::WithSimulator {};

TEST_F(SimulatedCudaMemory, WhatIsCachedMakesWayForWhatIsAskedFor) {
  const auto set_memory = test::simulator_function<PenstockSimSetMemory>("penstockSimSetMemory");
  empty_cache(device);
  set_memory(statistics().device_bytes + 100 * kMega);
  Buffer::allocate(60 * kMega, device);
  const Buffer larger = Buffer::allocate(90 * kMega, device);
  EXPECT_EQ(test::code_of([this] { Buffer::allocate(20 * kMega, device); }), ErrorCode::kOutOfMemory);
  set_memory(std::uint64_t{16} << 30);
}

TEST_F(SimulatedCudaMemory, WhatIsCachedCountsAgainstTheCap) {
  empty_cache(device);
  const std::uint64_t cap = memory_stats(device).in_use_bytes + 100 * kMega;
  set_memory_cap(device, cap);
  Buffer::allocate(100 * kMega, device);
  std::vector<Buffer> small;
  for (int i = 0; i < 100; ++i) {
    small.push_back(Buffer::allocate(kMega, device));
    EXPECT_LE(memory_stats(device).reserved_bytes, cap);
  }
  set_memory_cap(device, std::nullopt);
}

TEST_F(CudaMemory, OfNoBytesIsThereToo) {
  const Buffer buffer = Buffer::allocate(0, device);
  EXPECT_TRUE(buffer);
  EXPECT_EQ(buffer.device(), device);
  EXPECT_EQ(buffer.part(0, 0).size(), 0U);
}

TEST_F(CudaMemory, BeyondTheCapIsOutOfMemoryWithTheFigures) {
  empty_cache(device);
  set_memory_cap(device, memory_stats(device).in_use_bytes + 4096);
  const auto error = test::error_of([this] { Buffer::allocate(8192, device); });
  const Buffer fits = Buffer::allocate(4096, device);
  set_memory_cap(device, std::nullopt);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(error->message(), testing::HasSubstr("8.2 kB requested on cuda:0"));
  EXPECT_THAT(error->message(), testing::HasSubstr("free"));
  EXPECT_THAT(error->message(), testing::HasSubstr("this process holds"));
  EXPECT_THAT(error->message(), testing::HasSubstr("capped at"));
}

TEST_F(CudaMemory, MoreThanTheDeviceHasIsOutOfMemoryAndLeavesItUsable) {
  const std::uint64_t before = memory_stats(device).in_use_bytes;
  EXPECT_EQ(test::code_of([this] { Buffer::allocate(std::size_t{1} << 50, device); }), ErrorCode::kOutOfMemory);
  EXPECT_EQ(memory_stats(device).in_use_bytes, before);
  EXPECT_TRUE(Buffer::allocate(1024, device));
}

TEST_F(CudaMemory, EmptyCacheGivesEverythingBack) {
  { const Buffer buffer = Buffer::allocate(3 << 20, device); }
  empty_cache(device);
  const MemoryStats now = memory_stats(device);
  EXPECT_EQ(now.reserved_bytes, now.in_use_bytes);
}

TEST_F(CudaMemory, WrappedMemoryReleasesItsOwnerAfterItsUses) {
  const Buffer mine = Buffer::allocate(4096, device);
  auto owner = std::make_shared<int>(1);
  const std::weak_ptr<int> alive = owner;
  Buffer wrapped = Buffer::wrap(mine.data(), 4096, device, owner);
  owner.reset();
  EXPECT_EQ(wrapped.device(), device);
  const Stream stream(device);
  wrapped.record_use(stream, Buffer::Access::kRead);
  EXPECT_FALSE(alive.expired());
  wrapped = Buffer();
  EXPECT_TRUE(alive.expired());
}

TEST_F(CudaMemory, PinnedBlocksAreRecycled) {
  const std::byte* first = nullptr;
  {
    const Buffer buffer = Buffer::allocate_pinned(100'000);
    EXPECT_TRUE(buffer.is_pinned());
    EXPECT_TRUE(buffer.part(5, 10).is_pinned());
    EXPECT_EQ(buffer.device(), Device{});
    std::memset(buffer.data(), 1, buffer.size());
    first = buffer.data();
  }
  const Buffer again = Buffer::allocate_pinned(100'000);
  EXPECT_EQ(again.data(), first);
  EXPECT_FALSE(Buffer::allocate(100'000).is_pinned());
}

TEST_F(SimulatedCudaMemory, PinnedBlocksThatAreUsedInTurnAreLockedOnce) {
  constexpr std::size_t kLarge = std::size_t{160} << 20;
  const auto in_turn = [] {
    std::vector<Buffer> buffers;
    for (int i = 0; i < 3; ++i) buffers.push_back(Buffer::allocate_pinned(kLarge));
  };
  in_turn();
  const std::uint64_t before = calls_of("cuMemHostAlloc");
  for (int round = 0; round < 5; ++round) in_turn();
  EXPECT_EQ(calls_of("cuMemHostAlloc"), before);
  empty_cache(device);
}

TEST_F(SimulatedCudaMemory, LargePinnedBlocksTakeNoMoreThanTheirBytes) {
  constexpr std::size_t kLarge = (std::size_t{1} << 30) + 5;
  empty_cache(device);
  const std::uint64_t before = statistics().pinned_bytes;
  const Buffer weights = Buffer::allocate_pinned(kLarge);
  EXPECT_LE(statistics().pinned_bytes, before + kLarge + (1 << 20));
}

TEST_F(SimulatedCudaMemory, PinnedBlocksThatCopiesUseInTurnAreLockedOnce) {
  constexpr std::size_t kLarge = std::size_t{160} << 20;
  const Buffer target = Buffer::allocate(1000, device);
  const Stream stream(device);
  const auto& queue = StreamAccess::queue(stream);
  target.order_after_writes(stream);
  // Each block is let go while its copy may still be under way, so that the next one is another.
  const auto in_turn = [&] {
    for (int i = 0; i < 4; ++i) {
      const Buffer pinned = Buffer::allocate_pinned(kLarge);
      std::memset(pinned.data(), i, target.size());
      queue->copy(std::vector{device::CopyRange{target.data(), pinned.data(), target.size()}},
                  device::Direction::kHostToDevice);
      pinned.record_use(stream, Buffer::Access::kRead);
    }
    queue->synchronize();
  };
  in_turn();
  const std::uint64_t before = calls_of("cuMemHostAlloc");
  for (int round = 0; round < 5; ++round) in_turn();
  EXPECT_LE(calls_of("cuMemHostAlloc"), before + 3);  // a first round may have needed fewer at once
  target.record_use(stream, Buffer::Access::kWrite);
  empty_cache(device);
}

TEST_F(CudaMemory, AnAddressTellsItsDevice) {
  const device::Backend& backend = device::backend_for(DeviceType::kCuda);
  for (int index = 0; index < device_count(); ++index) {
    const Buffer there = Buffer::allocate(1000, Device(DeviceType::kCuda, index));
    EXPECT_EQ(backend.device_of(there.data()), index);
    EXPECT_EQ(backend.device_of(there.data() + 999), index);
  }
  const Buffer pinned = Buffer::allocate_pinned(1000);
  EXPECT_EQ(backend.device_of(pinned.data()), std::nullopt);
  EXPECT_EQ(backend.device_of(&backend), std::nullopt);
}

TEST_F(CudaMemory, PinnedBlocksAreNotReusedUnderACopy) {
  const Tensor wanted = test::pattern(1 << 20);
  const Buffer target = Buffer::allocate(1 << 20, device);
  const Stream stream(device);
  const auto& queue = StreamAccess::queue(stream);
  {
    const Buffer pinned = Buffer::allocate_pinned(1 << 20);
    std::memcpy(pinned.data(), wanted.data(), wanted.nbytes());
    target.order_after_writes(stream);
    queue->copy(std::vector{device::CopyRange{target.data(), pinned.data(), pinned.size()}},
                device::Direction::kHostToDevice);
    pinned.record_use(stream, Buffer::Access::kRead);
    target.record_use(stream, Buffer::Access::kWrite);
  }
  const Buffer other = Buffer::allocate_pinned(1 << 20);
  std::memset(other.data(), 0xEE, other.size());
  const Tensor back = Tensor::empty({1 << 20}, DType::uint8);
  queue->copy(std::vector{device::CopyRange{back.data(), target.data(), target.size()}},
              device::Direction::kDeviceToHost);
  queue->synchronize();
  EXPECT_EQ(std::memcmp(back.data(), wanted.data(), wanted.nbytes()), 0);
}

TEST_F(CudaMemory, RegisteredMemoryIsPinnedWhileTheHandleLives) {
  const Buffer buffer = Buffer::allocate(1 << 21);
  const device::Backend& backend = device::backend_for(device.type);
  auto locked = backend.register_host(buffer.data(), buffer.size());
  EXPECT_TRUE(buffer.is_pinned());
  EXPECT_EQ(test::code_of([&] { backend.register_host(buffer.data(), buffer.size()); }), ErrorCode::kInvalidArgument);
  locked.reset();
  EXPECT_FALSE(buffer.is_pinned());
}

TEST_F(CudaMemory, IsTakenAndGivenBackByManyThreads) {
  const std::uint64_t before = memory_stats(device).in_use_bytes;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      const Stream stream(device);
      const StreamGuard guard(stream);
      for (std::size_t i = 0; i < 50; ++i) {
        const Buffer buffer = Buffer::allocate((i * 7919 + t) % 100'000 + 1, device);
        StreamAccess::queue(stream)->fill(buffer.data(), std::byte{7}, buffer.size());
        buffer.record_use(Stream::default_of(device), Buffer::Access::kRead);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory_stats(device).in_use_bytes, before);
}

}  // namespace
}  // namespace penstock
