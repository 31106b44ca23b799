#include "penstock/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "device/current.h"
#include "penstock/buffer.h"
#include "penstock/error.h"
#include "support/errors.h"

namespace penstock {
namespace {

TEST(Event, DefaultHasPassed) {
  const Event event;
  EXPECT_TRUE(event.done());
  event.synchronize();
}

TEST(CpuStream, WorkIsDoneWhenItIsSubmitted) {
  const Stream stream(Device{});
  EXPECT_EQ(stream.device(), Device{});
  EXPECT_EQ(stream.native(), nullptr);
  const Event event = stream.record();
  EXPECT_TRUE(event.done());
  stream.wait(event);
  stream.wait(Event());
  EXPECT_TRUE(stream.done());
  stream.synchronize();
}

TEST(CpuStream, HasNoForeignStreams) {
  int somebodys = 0;
  const auto error = test::error_of([&] { Stream::wrap(Device{}, &somebodys); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
}

TEST(StreamGuard, Nests) {
  const Stream before = Stream::current(Device{});
  EXPECT_EQ(before, Stream::default_of(Device{}));
  {
    const Stream outer(Device{});
    const StreamGuard first(outer);
    {
      const Stream inner(Device{});
      const StreamGuard second(inner);
      EXPECT_EQ(Stream::current(Device{}), inner);
    }
    EXPECT_EQ(Stream::current(Device{}), outer);
  }
  EXPECT_EQ(Stream::current(Device{}), before);
}

TEST(Current, GoesWithTheWorkToAnotherThread) {
  const Stream stream(Device{});
  std::optional<device::Current> current;
  {
    const StreamGuard guard(stream);
    current.emplace();
  }
  std::thread([&] {
    EXPECT_EQ(Stream::current(Device{}), Stream::default_of(Device{}));
    current->adopt();
    EXPECT_EQ(Stream::current(Device{}), stream);
  }).join();
  EXPECT_EQ(Stream::current(Device{}), Stream::default_of(Device{}));
}

TEST(Stream, OfAnAbsentDeviceIsNoDevice) {
  const Device absent(DeviceType::kCuda, 9999);
  for (const auto& error : {test::error_of([&] { Stream{absent}; }), test::error_of([&] { Stream::current(absent); }),
                            test::error_of([&] { Stream::wrap(absent, nullptr); })}) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kNoDevice);
  }
}

TEST(Devices, TheCpuIsAlwaysThere) {
  EXPECT_TRUE(is_available(DeviceType::kCpu));
  EXPECT_EQ(device_count(DeviceType::kCpu), 1);
  EXPECT_EQ(current_device(DeviceType::kCpu), Device{});
  set_current_device(Device{});
  EXPECT_TRUE(device_properties(Device{}).unified_memory);
  EXPECT_GT(memory_stats(Device{}).total_bytes, 0U);
  empty_cache(Device{});
  synchronize(Device{});
  const auto error = test::error_of([] { set_memory_cap(Device{}, 1); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
}

TEST(Devices, AbsentOnesAreRefused) {
  const Device absent(DeviceType::kCuda, 9999);
  for (const auto& error :
       {test::error_of([&] { set_current_device(absent); }), test::error_of([&] { DeviceGuard{absent}; }),
        test::error_of([&] { memory_stats(absent); }), test::error_of([&] { device_properties(absent); }),
        test::error_of([&] { empty_cache(absent); })}) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kNoDevice);
  }
  EXPECT_EQ(current_device(), Device(DeviceType::kCuda, 0));
}

TEST(Buffer, OrdinaryHostMemoryIsNotPinnedAndKeepsNoUses) {
  const Buffer buffer = Buffer::allocate(16);
  EXPECT_FALSE(buffer.is_pinned());
  EXPECT_FALSE(Buffer().is_pinned());
  buffer.record_use(Stream::current(Device{}), Buffer::Access::kWrite);
  buffer.order_after_writes(Stream::current(Device{}));
  buffer.wait_for_writes();
}

TEST(Buffer, PinningNeedsADeviceThatReadsIt) {
  if (is_available()) GTEST_SKIP() << "a device is there";
  const auto error = test::error_of([] { Buffer::allocate_pinned(16); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kNoDevice);
}

TEST(CpuStream, IsWhatADefaultStreamIs) {
  const Stream stream;
  EXPECT_EQ(stream, Stream::default_of(Device()));
  EXPECT_TRUE(stream.record().done());
}

}  // namespace
}  // namespace penstock
