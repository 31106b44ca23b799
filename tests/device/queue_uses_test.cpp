#include "device/queue_uses.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "device/backend.h"
#include "penstock/buffer.h"
#include "penstock/stream.h"
#include "support/devices.h"
#include "support/simulator.h"

namespace penstock::device {
namespace {

/// Memory that lives long, as a weight does, and the streams that come and go meanwhile.
class LongLivedMemory : public test::WithSimulator {
 protected:
  static constexpr int kRounds = 400;
  static constexpr std::uint64_t kFew = 64;

  const QueuePtr& fill(const Stream& stream, std::byte value) const {
    memory.order_after_writes(stream);
    StreamAccess::queue(stream)->fill(memory.data(), value, memory.size());
    memory.record_use(stream, Buffer::Access::kWrite);
    return StreamAccess::queue(stream);
  }

  Buffer memory;

  void SetUp() override {
    test::WithSimulator::SetUp();
    if (!IsSkipped()) memory = Buffer::allocate(4096, device);
  }
};

TEST_F(LongLivedMemory, ForgetsHandlesOnOtherLibrariesStreams) {
  const Stream theirs(device);
  const std::uint64_t before = statistics().events;
  for (int i = 0; i < kRounds; ++i) {
    fill(Stream::wrap(device, theirs.native()), std::byte{1});
    if (i % 4 == 0) theirs.synchronize();
  }
  theirs.synchronize();
  EXPECT_LE(statistics().events, before + kFew);
}

TEST_F(LongLivedMemory, LetsStreamsGo) {
  const std::uint64_t before = statistics().streams;
  for (int i = 0; i < kRounds; ++i) {
    const Stream mine(device);
    fill(mine, std::byte{1})->synchronize();
  }
  EXPECT_LE(statistics().streams, before + kFew);
}

TEST_F(LongLivedMemory, IsStillOrderedAfterTheLastOfManyWrites) {
  std::vector<Stream> streams;
  for (int i = 0; i < 40; ++i) fill(streams.emplace_back(device), static_cast<std::byte>(i));
  const Stream reader(device);
  std::vector<std::byte> read(memory.size());
  memory.order_after_writes(reader);
  const CopyRange range = {read.data(), memory.data(), read.size()};
  StreamAccess::queue(reader)->copy({&range, 1}, Direction::kDeviceToHost);
  reader.synchronize();
  EXPECT_EQ(read, std::vector<std::byte>(read.size(), std::byte{39}));
}

TEST_F(LongLivedMemory, IsThereBeforeWhatFollowsOnItsStream) {
  const Stream writer(device);
  const Stream reader(device);
  const auto fill_apart = [&](const Buffer& buffer) {
    StreamAccess::queue(writer)->fill(buffer.data(), std::byte{1}, buffer.size());
    buffer.record_use(writer, Buffer::Access::kWrite, writer.record());
  };
  fill_apart(memory);
  reader.wait(writer);
  const Buffer next = Buffer::allocate(memory.size(), device);
  next.order_after_writes(writer);
  fill_apart(next);
  memory.order_after_writes(reader);
  reader.synchronize();
  // Where work waits until somebody waits for it, what nobody waited for is still to come.
  const char* const mode = std::getenv("PENSTOCK_SIM_MODE");
  const bool waits = mode != nullptr && std::string_view(mode) == "lazy";
  EXPECT_TRUE(!waits || !writer.done());
  writer.synchronize();
}

TEST_F(LongLivedMemory, IsNotWrittenOverBeforeItIsRead) {
  const Stream reader(device);
  const Stream writer(device);
  fill(writer, std::byte{1});
  std::vector<std::byte> read(memory.size());
  memory.order_after_writes(reader);
  const CopyRange range = {read.data(), memory.data(), read.size()};
  StreamAccess::queue(reader)->copy({&range, 1}, Direction::kDeviceToHost);
  memory.record_use(reader, Buffer::Access::kRead);
  memory.order_after_uses(writer);
  fill(writer, std::byte{2});
  writer.synchronize();
  reader.synchronize();
  EXPECT_EQ(read, std::vector<std::byte>(read.size(), std::byte{1}));
}

}  // namespace
}  // namespace penstock::device
