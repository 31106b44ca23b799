#include "device/round_trip.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "device/buffer_access.h"
#include "penstock/transfer.h"

namespace penstock {
namespace {

using device::note_copy;

constexpr int kTrips = TransferWarning::kRoundTrips;
const Device kThere(DeviceType::kCuda, 0);

/// A buffer that says where it lies; nobody looks at its bytes.
Buffer made(Device where, std::byte* at = nullptr) {
  auto owner = std::make_shared<std::byte>();
  std::byte* const data = at == nullptr ? owner.get() : at;
  return BufferAccess::make(std::move(owner), data, 1, where);
}

TEST(PingPong, FollowsDataThroughNewMemory) {
  Buffer data = made(Device{});
  std::vector<Buffer> kept{data};
  int warnings = 0;
  for (int trip = 1; trip <= 3 * kTrips; ++trip) {
    for (const Device where : {kThere, Device{}}) {
      const Buffer copy = made(where);
      const bool warns = note_copy(data, copy);
      EXPECT_EQ(warns, trip == kTrips && where == Device{}) << trip;
      warnings += warns ? 1 : 0;
      data = copy;
    }
  }
  EXPECT_EQ(warnings, 1);
}

TEST(PingPong, FollowsTwoMemoriesThatExchangeData) {
  const Buffer host = made(Device{});
  const Buffer there = made(kThere);
  int warnings = 0;
  for (int trip = 0; trip < 3 * kTrips; ++trip) {
    warnings += note_copy(host, there) ? 1 : 0;
    warnings += note_copy(there, host) ? 1 : 0;
  }
  EXPECT_EQ(warnings, 1);
}

TEST(PingPong, OneWayIsNone) {
  const Buffer host = made(Device{});
  const Buffer there = made(kThere);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(note_copy(host, there));
    EXPECT_FALSE(note_copy(host, made(kThere)));
    EXPECT_FALSE(note_copy(there, made(Device{})));
  }
}

TEST(PingPong, MemoryThatIsUsedAgainIsOther) {
  std::array<std::byte, 2> memory{};
  for (int i = 0; i < 100; ++i) {
    // New owners at the addresses of what is gone, as allocators give them.
    const Buffer host = made(Device{}, &memory[0]);
    const Buffer there = made(kThere, &memory[1]);
    EXPECT_FALSE(note_copy(host, there));
    EXPECT_FALSE(note_copy(there, made(Device{}, &memory[0])));
  }
}

TEST(PingPong, PartsOfOneMemoryAreFollowedApart) {
  std::array<std::byte, 64> bytes{};
  const Buffer there = BufferAccess::make(std::make_shared<int>(), bytes.data(), bytes.size(), kThere);
  const Buffer host = made(Device{});
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(note_copy(host, there.part(i, 1)));
    EXPECT_FALSE(note_copy(there.part((i + 7) % bytes.size(), 1), made(Device{})));
  }
}

TEST(PingPong, SurvivesTheTrafficOfOthers) {
  const Buffer host = made(Device{});
  const Buffer there = made(kThere);
  int warnings = 0;
  for (int trip = 0; trip < kTrips; ++trip) {
    warnings += note_copy(host, there) ? 1 : 0;
    for (int i = 0; i < 5000; ++i) EXPECT_FALSE(note_copy(made(Device{}), made(kThere)));
    warnings += note_copy(there, host) ? 1 : 0;
  }
  EXPECT_EQ(warnings, 1);
}

TEST(PingPong, ForgottenMemoryIsReleased) {
  const auto owner = std::make_shared<int>();
  std::byte byte{};
  note_copy(BufferAccess::make(owner, &byte, 1, Device{}), BufferAccess::make(owner, &byte, 1, kThere));
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(PingPong, BetweenDevicesAndWithinTheHostIsNone) {
  const Buffer first = made(kThere);
  const Buffer second = made(Device(DeviceType::kCuda, 1));
  const Buffer host = made(Device{});
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(note_copy(first, second));
    EXPECT_FALSE(note_copy(second, first));
    EXPECT_FALSE(note_copy(host, host));
  }
}

class Handled : public testing::Test {
 protected:
  void TearDown() override { set_transfer_warning_handler({}); }
};

TEST_F(Handled, WarningsSayWhatAndWhere) {
  std::vector<TransferWarning> warnings;
  set_transfer_warning_handler([&](const TransferWarning& warning) { warnings.push_back(warning); });
  device::warn_of_round_trips(Tensor::empty({2, 3}), kThere, "layer.weight");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].shape, (Shape{2, 3}));
  EXPECT_EQ(warnings[0].dtype, DType::float32);
  EXPECT_EQ(warnings[0].device, kThere);
  EXPECT_EQ(warnings[0].message,
            "the tensor 'layer.weight' of shape (2, 3) and type float32 (24 bytes) has gone between cpu and cuda:0 and "
            "back 4 times: keep it on cuda:0 and compute there, or on the cpu if nothing on cuda:0 needs it");
}

TEST_F(Handled, WithoutAHandlerItIsPrinted) {
  EXPECT_FALSE(set_transfer_warning_handler({}));
  testing::internal::CaptureStderr();
  device::warn_of_round_trips(Tensor::empty({5}), kThere, {});
  const std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(printed.starts_with("penstock: warning: the tensor of shape (5,) and")) << printed;
  EXPECT_TRUE(printed.ends_with("\n"));
}

}  // namespace
}  // namespace penstock
