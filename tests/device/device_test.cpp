#include "penstock/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "device/backend.h"
#include "penstock/error.h"
#include "support/errors.h"

namespace penstock {
namespace {

using test::error_of;

TEST(Device, ParsesWhatPyTorchParses) {
  EXPECT_EQ(Device("cpu"), Device());
  EXPECT_EQ(Device("cpu:0"), Device());
  EXPECT_EQ(Device("cuda:3"), Device(DeviceType::kCuda, 3));
  EXPECT_EQ(Device("cuda").type, DeviceType::kCuda);
  EXPECT_EQ(Device("cpu").to_string(), "cpu");
  EXPECT_EQ(Device("cuda:12").to_string(), "cuda:12");
}

TEST(Device, RefusesEverythingElse) {
  for (const char* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:1x", "cuda:+1", "cuda: 1", "cuda:99999999999", "cpu:1",
                           "CPU", "cpu ", ":0", "cuda:0:0"}) {
    const auto error = error_of([&] { Device{text}; });
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument) << text;
    EXPECT_THAT(error->message(), testing::HasSubstr("\"cuda:N\"")) << text;
  }
}

TEST(Backends, EachNamesItsDevicesAsTheParserDoes) {
  ASSERT_FALSE(device::backends().empty());
  EXPECT_EQ(device::backends().front()->type(), DeviceType::kCpu);
  for (const device::Backend* backend : device::backends()) {
    EXPECT_EQ(Device(std::string(backend->name())).type, backend->type());
    EXPECT_EQ(&device::backend_for(backend->type()), backend);
  }
}

TEST(Backends, AnAbsentDeviceSaysHowManyAreVisible) {
  const auto error = error_of([] { device::require_device(Device(DeviceType::kCuda, 9999)); });
  EXPECT_EQ(error->code(), ErrorCode::kNoDevice);
  EXPECT_THAT(error->message(), testing::StartsWith("cuda:9999 requested, "));
  EXPECT_THAT(error->message(), testing::HasSubstr(" visible"));
  EXPECT_EQ(error_of([] { device::require_device(Device(DeviceType::kCpu, 1)); })->code(), ErrorCode::kNoDevice);
}

TEST(CpuBackend, KnowsItsMemory) {
  const device::Backend& cpu = device::backend_for(DeviceType::kCpu);
  const device::MemoryInfo memory = cpu.memory(0);
  EXPECT_GT(memory.total_bytes, 0U);
  EXPECT_LE(memory.free_bytes, memory.total_bytes);
  EXPECT_EQ(cpu.properties(0).total_bytes, memory.total_bytes);
  EXPECT_FALSE(cpu.properties(0).name.empty());
  EXPECT_EQ(cpu.device_count(), 1);
  EXPECT_EQ(cpu.current_device(), 0);
  EXPECT_EQ(cpu.dlpack_type(), 1);
}

TEST(CpuBackend, ItsQueueRunsAtOnce) {
  const auto queue = device::backend_for(DeviceType::kCpu).make_queue(0, 0);
  std::array<std::byte, 4> from{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  std::array<std::byte, 4> to{};
  const std::array<device::CopyRange, 3> ranges = {
      {{to.data(), from.data() + 2, 2}, {to.data() + 2, from.data(), 1}, {nullptr, nullptr, 0}}};
  queue->copy(ranges, device::Direction::kHostToHost);
  EXPECT_EQ(to, (std::array<std::byte, 4>{std::byte{3}, std::byte{4}, std::byte{1}, std::byte{0}}));
  queue->fill(to.data() + 1, std::byte{9}, 2);
  EXPECT_EQ(to, (std::array<std::byte, 4>{std::byte{3}, std::byte{9}, std::byte{9}, std::byte{0}}));
  const auto mark = queue->record();
  EXPECT_TRUE(mark->done());
  queue->wait(*mark);
  mark->synchronize();
  EXPECT_TRUE(queue->done());
  bool called = false;
  queue->on_complete([&called] { called = true; });
  EXPECT_TRUE(called);
  EXPECT_EQ(error_of([&] { queue->launch({.kernel = "add"}); })->code(), ErrorCode::kUnsupported);
}

TEST(Device, ANullPointerIsNoName) {
  const char* const unset = nullptr;
  EXPECT_EQ(error_of([&] { Device{unset}; })->code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock
