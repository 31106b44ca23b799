// Devices that fail, fill up or are too slow for a user's patience while a file is loaded to them. A failed device
// stays so until its process ends: those cases run in processes of their own, which the simulated driver audits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/pinned_ring.h"
#include "penstock/load.h"
#include "penstock/ops.h"
#include "penstock/save.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/process.h"
#include "support/simulator.h"

namespace penstock {
namespace {

using test::kMega;
using testing::HasSubstr;

class DeviceFaults : public test::WithSimulator {
 protected:
  void TearDown() override {
    if (!IsSkipped()) set_speed(0);
  }

  static void set_speed(std::uint64_t bytes_per_second) {
    test::simulator_function<PenstockSimSetSpeed>("penstockSimSetSpeed")(bytes_per_second);
  }
  static void set_memory(std::uint64_t bytes) {
    test::simulator_function<PenstockSimSetMemory>("penstockSimSetMemory")(bytes);
  }
  static void lose_device() { test::simulator_function<PenstockSimLose>("penstockSimLose")(0, 46); }
  static void fail(const char* entry_point, std::uint64_t nth, int code) {
    test::simulator_function<PenstockSimFail>("penstockSimFail")(entry_point, nth, code);
  }

  /// A state dict of three tensors of `megabytes` each.
  std::string dict_file(std::int64_t megabytes) const {
    std::vector<std::pair<std::string, Value>> items;
    for (const char* name : {"first", "second", "third"})
      items.emplace_back(name, Value::tensor(test::pattern(megabytes * kMega)));
    const std::string path = folder / "x.safetensors";
    save(Value::dict(std::move(items)), path, {.sync = false});
    return path;
  }

  /// Calls `action` when the driver has been given `copies` more copies.
  template <class Action>
  static std::jthread after_copies(std::uint64_t copies, Action action) {
    const std::uint64_t wanted = statistics().copies_to_device + copies;
    return std::jthread([wanted, action](const std::stop_token& stop) {
      while (statistics().copies_to_device < wanted && !stop.stop_requested())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      action();
    });
  }

  static void expect_in_a_process(const char* name) {
    const test::Ended ended = test::run_again("PENSTOCK_SIM_AUDIT=1", std::string("DeviceFaults.DISABLED_") + name);
    EXPECT_EQ(ended.status, 0) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("[  PASSED  ] 1 test."));
  }

  test::TemporaryFolder folder;
};

TEST_F(DeviceFaults, MemoryThatRunsOutInAStateDictIsReleased) {
  const std::string path = dict_file(70);
  empty_cache(device);
  const MemoryStats before = memory_stats(device);
  const std::uint64_t held = statistics().device_bytes;
  set_memory(held + 150 * kMega);
  const auto error = test::error_of([&] { load(path, {.device = device}); });
  const MemoryStats after = memory_stats(device);
  empty_cache(device);
  const std::uint64_t held_after = statistics().device_bytes;
  set_memory(std::uint64_t{16} << 30);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(error->path(), path);
  EXPECT_EQ(error->tensor(), "third");
  EXPECT_THAT(error->message(), HasSubstr("73.4 MB requested on cuda:0"));
  EXPECT_EQ(after.in_use_bytes, before.in_use_bytes);
  EXPECT_EQ(held_after, held);
  EXPECT_EQ(load(path, {.device = device}).size(), 3U);
}

TEST_F(DeviceFaults, MemoryThatRunsOutWhileValuesMoveIsSaidToBeMissedForATensor) {
  const Value host = load(dict_file(70));
  empty_cache(device);
  set_memory(statistics().device_bytes + 150 * kMega);
  const auto error = test::error_of([&] { Value::list({host}).to(device); });
  set_memory(std::uint64_t{16} << 30);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kOutOfMemory);
  // Runs go by their addresses, so which of the three comes last is not known.
  EXPECT_THAT(error->tensor(), testing::AnyOf("0.first", "0.second", "0.third"));
  EXPECT_THAT(error->message(), HasSubstr("73.4 MB requested on cuda:0"));
}

TEST_F(DeviceFaults, ALoadIsStoppedDuringItsCopies) {
  const std::string path = dict_file(30);
  const std::uint64_t before = memory_stats(device).in_use_bytes;
  set_speed(100 * kMega);
  std::stop_source stop;
  const std::jthread stopper = after_copies(2, [&stop] { stop.request_stop(); });
  const auto error = test::error_of([&] { load(path, {.device = device, .threads = 2, .stop = stop.get_token()}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kCancelled);
  EXPECT_EQ(memory_stats(device).in_use_bytes, before);
  set_speed(0);
  EXPECT_TRUE(Tensor::identical(load(path, {.device = device})["third"].as_tensor(), test::pattern(30 * kMega)));
}

TEST_F(DeviceFaults, NothingIsWrittenAfterALoadHasFailed) {
  const Archive archive = open(dict_file(30));
  std::vector<Tensor> there;
  std::vector<Placement> placements;
  for (std::size_t i = 0; i < archive.entries().size(); ++i) {
    there.push_back(Tensor::empty({30 * kMega}, DType::uint8, device));
    placements.push_back({i, there.back()});
  }
  set_speed(100 * kMega);
  std::stop_source stop;
  const std::jthread stopper = after_copies(2, [&stop] { stop.request_stop(); });
  const auto code = test::code_of([&] { archive.load_into(placements, {.threads = 2, .stop = stop.get_token()}); });
  EXPECT_EQ(code, ErrorCode::kCancelled);
  // Others may write to that memory now.
  EXPECT_TRUE(device::PinnedRing::instance(device).copy_queue(device)->done());
}

TEST_F(DeviceFaults, DISABLED_Lost) {
  const std::string path = dict_file(30);
  const Tensor held = ones({4}).to(device);
  set_speed(200 * kMega);
  {
    const std::jthread loser = after_copies(2, lose_device);
    const auto error = test::error_of([&] { load(path, {.device = device, .threads = 2}); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kNoDevice);
    EXPECT_EQ(error->path(), path);
    EXPECT_THAT(error->message(), HasSubstr("CUDA_ERROR_DEVICE_UNAVAILABLE"));
  }
  set_speed(0);
  for (const ErrorCode code : {*test::code_of([&] { return held.cpu(); }), *test::code_of([&] { return held + held; }),
                               *test::code_of([&] { return load(path, {.device = device}); }),
                               *test::code_of([&] { return Tensor::empty({1}, DType::uint8, device); })}) {
    EXPECT_EQ(code, ErrorCode::kNoDevice);
  }
  EXPECT_EQ(load(path).size(), 3U);
}

TEST_F(DeviceFaults, ADeviceThatIsLostDuringALoadIsSaidToBe) { expect_in_a_process("Lost"); }

TEST_F(DeviceFaults, DISABLED_OtherDevice) {
  const std::string path = dict_file(30);
  const Device other(DeviceType::kCuda, 1);
  const Tensor large = test::pattern(20 * kMega);
  load(path, {.device = other});
  const std::jthread loser = after_copies(2, lose_device);
  set_speed(200 * kMega);
  EXPECT_EQ(test::code_of([&] { load(path, {.device = device, .threads = 2}); }), ErrorCode::kNoDevice);
  set_speed(0);
  // More often than the ring has slots: those that the lost device left are used again.
  for (int i = 0; i < 3; ++i) {
    const Value there = load(path, {.device = other});
    EXPECT_TRUE(Tensor::identical(there["third"].as_tensor(), test::pattern(30 * kMega)));
    EXPECT_TRUE(Tensor::identical(large.to(other).cpu(), large));
    const Tensor pinned = large.pin_memory();
    EXPECT_TRUE(pinned.is_pinned());
    EXPECT_TRUE(Tensor::identical(pinned.to(other), large));
  }
}

TEST_F(DeviceFaults, TheOtherDevicesOfALostOneGoOn) {
  if (device_count() < 2) GTEST_SKIP() << "one device only";
  expect_in_a_process("OtherDevice");
}

TEST_F(DeviceFaults, DISABLED_Broken) {
  const std::string path = dict_file(30);
  fail("execution of cuMemcpyAsync", 3, 700);
  const auto error = test::error_of([&] { load(path, {.device = device, .threads = 2}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kDeviceFailed);
  EXPECT_EQ(error->path(), path);
  EXPECT_THAT(error->message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_EQ(test::code_of([&] { return load(path, {.device = device}); }), ErrorCode::kDeviceFailed);
}

TEST_F(DeviceFaults, ACopyThatFailsEndsTheLoad) { expect_in_a_process("Broken"); }

TEST_F(DeviceFaults, DISABLED_Refused) {
  const std::string path = dict_file(30);
  const std::uint64_t before = memory_stats(device).in_use_bytes;
  struct Case {
    const char* entry_point;
    std::uint64_t nth;
  };
  for (const auto& [entry_point, nth] :
       {Case{"cuMemcpyAsync", 2}, {"cuEventRecord", 2}, {"cuEventCreate", 2}, {"cuStreamWaitEvent", 1}}) {
    fail(entry_point, nth, 999);
    const auto error = test::error_of([&] { load(path, {.device = device, .threads = 2}); });
    ASSERT_TRUE(error) << entry_point;
    EXPECT_EQ(error->code(), ErrorCode::kDeviceFailed) << entry_point;
    EXPECT_EQ(error->path(), path) << entry_point;
    EXPECT_THAT(error->message(), HasSubstr("CUDA_ERROR_UNKNOWN")) << entry_point;
    EXPECT_EQ(memory_stats(device).in_use_bytes, before) << entry_point;
  }
  EXPECT_TRUE(Tensor::identical(load(path, {.device = device})["third"].as_tensor(), test::pattern(30 * kMega)));
}

TEST_F(DeviceFaults, CallsThatTheDriverRefusesEndTheLoadAndHarmNothing) { expect_in_a_process("Refused"); }

TEST_F(DeviceFaults, DISABLED_RefusedOne) {
  const std::string path = dict_file(30);
  const Archive archive = open(path);
  std::vector<Tensor> there;
  std::vector<Placement> placements;
  for (std::size_t i = 0; i < archive.entries().size(); ++i) {
    there.push_back(Tensor::empty({30 * kMega}, DType::uint8, device));
    placements.push_back({i, there.back()});
  }
  const std::function<void()> loads[] = {[&] { archive.load({.device = device, .threads = 1}); },
                                         [&] { archive.load_into(placements, {.threads = 1}); }};
  for (const auto& load : loads) {
    // A slot of 4 MiB is a copy, or two where a tensor ends in it.
    for (const auto& [copy, tensor] : {std::pair(1, 0), {6, 0}, {12, 1}, {20, 2}}) {
      fail("cuMemcpyAsync", static_cast<std::uint64_t>(copy), 999);
      const auto error = test::error_of(load);
      ASSERT_TRUE(error) << copy;
      const TensorEntry& entry = archive.entries()[static_cast<std::size_t>(tensor)];
      const StorageEntry& storage = archive.storages()[entry.storage];
      EXPECT_EQ(error->tensor(), entry.name) << copy;
      EXPECT_EQ(error->path(), path) << copy;
      ASSERT_TRUE(error->offset()) << copy;
      EXPECT_GE(*error->offset(), storage.offset) << copy;
      EXPECT_LT(*error->offset(), storage.offset + storage.nbytes) << copy;
    }
  }
}

TEST_F(DeviceFaults, ACopyThatTheDriverRefusesIsSaidToBeOfATensor) { expect_in_a_process("RefusedOne"); }

}  // namespace
}  // namespace penstock
