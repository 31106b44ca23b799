#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <thread>
#include <vector>

#include "device/pinned_ring.h"
#include "io/copy/crc32.h"
#include "io/move/engine.h"
#include "io/source/source.h"
#include "penstock/stream.h"
#include "penstock/tensor.h"
#include "penstock/transfer.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/process.h"
#include "support/simulator.h"

namespace penstock::io {
namespace {

using Bytes = std::vector<std::byte>;

/// Back on the host.
Bytes bytes_of(const Buffer& buffer) {
  Bytes out(buffer.size());
  const auto stream = Stream::current(buffer.device());
  buffer.order_after_writes(stream);
  const std::array range{device::CopyRange{out.data(), buffer.data(), out.size()}};
  StreamAccess::queue(stream)->copy(range, device::Direction::kDeviceToHost);
  stream.synchronize();
  return out;
}

template <class Fixture>
class WithFile : public Fixture {
 protected:
  /// A file of `size` bytes, to be read into one buffer on `where`.
  Move whole(std::size_t size, Device where) {
    bytes = test::numbered_bytes(size);
    test::write_file(folder / "whole", bytes);
    sources = {open_source(folder / "whole")};
    buffers = {Buffer::allocate(size, where)};
    const Piece piece{.length = size};
    Move move;
    move.plan = make_plan({&piece, 1});
    move.sources = sources;
    move.buffers = buffers;
    return move;
  }

  test::TemporaryFolder folder;
  Bytes bytes;
  std::vector<Source> sources;
  std::vector<Buffer> buffers;
};
using Ring = WithFile<test::WithDevice>;
using SimulatedRing = WithFile<test::WithSimulator>;

TEST_F(Ring, CarriesFilesOfEverySizeOnAnyNumberOfThreads) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{4096}, device::PinnedRing::kSlotBytes,
                                 device::PinnedRing::kSlotBytes + 1, std::size_t{9'000'011}}) {
    for (const std::size_t threads : {0, 1, 3, 16}) {
      Report report;
      execute(whole(size, device), {.threads = threads, .mapped = threads % 2 != 0}, report);
      EXPECT_EQ(bytes_of(buffers[0]), bytes) << size << " by " << threads;
      EXPECT_EQ(report.route, "ring");
      EXPECT_THAT(report.why, testing::HasSubstr("pinned ring"));
      EXPECT_EQ(report.read_bytes, size);
    }
  }
}

TEST_F(Ring, CarriesMoreThanItHolds) {
  const std::size_t size = device::PinnedRing::kSlotBytes * device::PinnedRing::kDefaultSlots * 5 / 4 + 7;
  Report report;
  execute(whole(size, device), {.threads = 4}, report);
  EXPECT_TRUE(bytes_of(buffers[0]) == bytes);
}

TEST_F(Ring, CountsEveryByteOnce) {
  const std::size_t size = device::PinnedRing::kSlotBytes * 3 + 11;
  const Move move = whole(size, device);
  const TransferScope all;
  const TransferScope own(TransferScope::Threads::kCurrent);
  Report report;
  execute(move, {.threads = 3}, report);
  EXPECT_EQ(all.stats().host_to_device.bytes, size);
  EXPECT_GE(all.stats().host_to_device.copies, 4U);
  EXPECT_GE(own.stats().host_to_device.waits, 1U);
  EXPECT_EQ(all.stats().device_to_host.copies, 0U);
}

TEST_F(Ring, WithoutWaitingTheCurrentStreamDoes) {
  const Stream mine(device);
  const StreamGuard guard(mine);
  Report report;
  execute(whole(5'000'000, device), {.wait = false}, report);
  // As other libraries would read it, which know the stream alone.
  Bytes arrived(bytes.size());
  const std::array range{device::CopyRange{arrived.data(), buffers[0].data(), arrived.size()}};
  StreamAccess::queue(mine)->copy(range, device::Direction::kDeviceToHost);
  mine.synchronize();
  EXPECT_TRUE(arrived == bytes);
}

TEST_F(Ring, ScattersOverHostAndDevicesAndLeavesGapsOut) {
  bytes = test::numbered_bytes(3'000'000);
  test::write_file(folder / "f", bytes);
  sources = {open_source(folder / "f")};
  const Device other(DeviceType::kCuda, device_count() - 1);
  buffers = {Buffer::allocate(1'000'000, device), Buffer::allocate(500'000), Buffer::allocate(900'000, other)};
  const std::vector<Piece> pieces = {
      {.buffer = 0, .offset = 10, .length = 600'000, .buffer_offset = 400'000},
      {.buffer = 1, .offset = 610'000, .length = 500'000},
      {.buffer = 0, .offset = 1'110'003, .length = 400'000},
      {.buffer = 2, .offset = 2'000'000, .length = 900'000},
  };
  Move move;
  move.plan = make_plan(pieces);
  move.sources = sources;
  move.buffers = buffers;
  Report report;
  execute(move, {.threads = 2}, report);
  std::vector<Bytes> arrived = {bytes_of(buffers[0]), Bytes(buffers[1].data(), buffers[1].data() + 500'000),
                                bytes_of(buffers[2])};
  for (const Piece& piece : pieces) {
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(piece.offset);
    const auto to = arrived[piece.buffer].begin() + static_cast<std::ptrdiff_t>(piece.buffer_offset);
    EXPECT_TRUE(std::equal(from, from + static_cast<std::ptrdiff_t>(piece.length), to)) << piece.offset;
  }
}

TEST_F(Ring, ChecksumsAreComparedInIt) {
  Move move = whole(6'000'000, device);
  Record record{.crc32 = crc32(0, std::span(bytes).subspan(100, 5'000'000)), .bytes = 5'000'000};
  move.checksums = {{.buffer_offset = 100, .length = 5'000'000, .check = {record, true}}};
  Report report;
  execute(move, {}, report);
  *record.crc32 ^= 1;
  move.checksums[0].check = {record, true};
  EXPECT_EQ(test::code_of([&] { execute(move, {}, report); }), ErrorCode::kChecksum);
}

TEST_F(Ring, AFailureLeavesItUsable) {
  const Move move = whole(20'000'000, device);
  std::filesystem::resize_file(folder / "whole", 11'000'000);
  Report report;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(test::code_of([&] { execute(move, {.threads = 4}, report); }), ErrorCode::kTruncated);
  }
  execute(whole(20'000'000, device), {.threads = 4}, report);
  EXPECT_EQ(bytes_of(buffers[0]), bytes);
}

TEST_F(Ring, TwoDevicesShareIt) {
  if (device_count() < 2) GTEST_SKIP() << "one device only";
  std::vector<std::thread> threads;
  for (int index = 0; index < 2; ++index) {
    threads.emplace_back([this, index] {
      const Device where(DeviceType::kCuda, index);
      const Bytes mine = test::numbered_bytes(30'000'000, static_cast<std::uint64_t>(index));
      const std::string path = folder / std::to_string(index);
      test::write_file(path, mine);
      const std::vector<Source> source = {open_source(path)};
      const std::vector<Buffer> buffer = {Buffer::allocate(mine.size(), where)};
      const Piece piece{.length = mine.size()};
      Move move;
      move.plan = make_plan({&piece, 1});
      move.sources = source;
      move.buffers = buffer;
      Report report;
      execute(move, {.threads = 2}, report);
      EXPECT_TRUE(bytes_of(buffer[0]) == mine);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Ring, ABufferDroppedUnderItsCopiesIsNotReusedBefore) {
  const Stream home(device);
  Move move;
  {
    const StreamGuard guard(home);
    move = whole(8'000'000, device);
  }
  Report report;
  execute(move, {.wait = false}, report);
  buffers.clear();
  // Memory of the same size, written by another stream while the copies may still be under way.
  const Stream mine(device);
  const StreamGuard guard(mine);
  const Buffer next = Buffer::allocate(8'000'000, device);
  StreamAccess::queue(mine)->fill(next.data(), std::byte{5}, next.size());
  next.record_use(mine, Buffer::Access::kWrite);
  synchronize(device);
  EXPECT_EQ(bytes_of(next), Bytes(8'000'000, std::byte{5}));
}

TEST_F(SimulatedRing, IsPageLocked) {
  const std::uint64_t before = statistics().pageable_copies;
  Report report;
  execute(whole(9'000'000, device), {.threads = 2}, report);
  EXPECT_EQ(statistics().pageable_copies, before);
}

/// Run where the driver locks no memory that it has not made itself.
TEST_F(SimulatedRing, DISABLED_NotLocked) {
  Report report;
  execute(whole(device::PinnedRing::kSlotBytes * 3 + 11, device), {.threads = 2}, report);
  EXPECT_EQ(bytes_of(buffers[0]), bytes);
  EXPECT_EQ(report.route, "ring");
  EXPECT_THAT(report.why, testing::HasSubstr("a ring that the driver did not page-lock, which is slower,"));
}

TEST_F(SimulatedRing, ThatIsNotPageLockedCarriesFilesAndSaysSo) {
  const test::Ended ended = test::run_again("PENSTOCK_SIM_AUDIT=1 PENSTOCK_SIM_FAULTS=cuMemHostRegister_v2:*:801",
                                            "SimulatedRing.DISABLED_NotLocked");
  EXPECT_EQ(ended.status, 0) << ended.output;
}

}  // namespace
}  // namespace penstock::io
