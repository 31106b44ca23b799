// What comes by cuFile, what through the ring, and that the report says which.
#include "io/move/device_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <stop_token>
#include <vector>

#include "io/copy/crc32.h"
#include "io/gds/gds_reader.h"
#include "io/source/source.h"
#include "penstock/stream.h"
#include "support/cufile.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/process.h"

namespace penstock::io {
namespace {

using test::kMega;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Bytes = std::vector<std::byte>;

/// cuFile wherever the file lies, so that a test does not depend on the disk below it.
constexpr DeviceReader kAnywhere{"gds", "cuFile", open_gds_anywhere};

Bytes bytes_of(const Buffer& buffer, std::size_t from, std::size_t count) {
  Bytes out(count);
  const auto stream = Stream::current(buffer.device());
  buffer.order_after_writes(stream);
  const std::array range{device::CopyRange{out.data(), buffer.data() + from, count}};
  StreamAccess::queue(stream)->copy(range, device::Direction::kDeviceToHost);
  stream.synchronize();
  return out;
}

class DeviceRoutesTest : public test::WithCufile {
 protected:
  void SetUp() override {
    WithCufile::SetUp();
    if (IsSkipped()) return;
    const Source file = make(4096);
    if (std::string why_not; !DirectFile::open(*file, why_not)) GTEST_SKIP() << why_not;
  }

  Source make(std::size_t size) {
    bytes = test::numbered_bytes(size);
    test::write_file(folder / "f", bytes);
    sources = {open_source(folder / "f")};
    return sources[0];
  }
  /// Those pieces of a file of `size` bytes, into one buffer.
  void read(std::size_t size, std::vector<Piece> wanted, EngineOptions options) {
    make(size);
    pieces = std::move(wanted);
    std::uint64_t end = 0;
    for (const Piece& piece : pieces) end = std::max(end, piece.buffer_offset + piece.length);
    if (buffers.empty()) buffers = {Buffer::allocate(end, device)};
    run(options);
  }
  void run(const EngineOptions& options) {
    Move move{make_plan(pieces), sources, buffers, checksums, {}};
    report = {};
    execute(move, options, report);
  }
  void read_whole(std::size_t size, const EngineOptions& options) { read(size, {Piece{.length = size}}, options); }

  void expect_arrived() const {
    for (const Piece& piece : pieces) {
      const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(piece.offset);
      EXPECT_TRUE(bytes_of(buffers[piece.buffer], piece.buffer_offset, piece.length) ==
                  Bytes(from, from + static_cast<std::ptrdiff_t>(piece.length)))
          << piece.length << " at " << piece.offset;
    }
  }

  test::TemporaryFolder folder;
  Bytes bytes;
  std::vector<Source> sources;
  std::vector<Buffer> buffers;
  std::vector<Piece> pieces;
  std::vector<Checksum> checksums;
  Report report;
};

TEST_F(DeviceRoutesTest, AskedForItReadsWholeFilesByCufile) {
  for (const std::size_t size : {kMega, 9 * kMega, 20 * kMega + 12'345}) {
    const std::uint64_t before = cufile().read_bytes;
    buffers.clear();
    read_whole(size, {.gds = true, .device_reader = &kAnywhere});
    expect_arrived();
    EXPECT_EQ(report.route, "gds");
    EXPECT_THAT(report.why, AllOf(HasSubstr("device memory through cuFile (direct, nvidia-fs 2.17) by"),
                                  Not(HasSubstr("because"))));
    EXPECT_GE(cufile().read_bytes - before, size - size % kMega);
  }
}

TEST_F(DeviceRoutesTest, OffsetsAndSizesNeedNotFitBlocks) {
  read(30 * kMega,
       {{.offset = 1, .length = 3 * kMega + 7, .buffer_offset = 3},
        {.offset = 4 * kMega + 511, .length = 9 * kMega, .buffer_offset = 4 * kMega},
        {.offset = 16 * kMega, .length = 4 * kMega, .buffer_offset = 14 * kMega + 13},
        {.offset = 30 * kMega - 1'500'001, .length = 1'500'001, .buffer_offset = 20 * kMega + 1}},
       {.threads = 3, .gds = true, .device_reader = &kAnywhere});
  expect_arrived();
  EXPECT_EQ(report.route, "gds");
}

TEST_F(DeviceRoutesTest, SmallPiecesAndGapsStayInTheRing) {
  read(12 * kMega,
       {{.offset = 0, .length = 2 * kMega},
        {.offset = 2 * kMega, .length = 1000, .buffer_offset = 9 * kMega},
        {.offset = 2 * kMega + 9000, .length = 3 * kMega, .buffer_offset = 3 * kMega},
        {.offset = 8 * kMega, .length = 900'000, .buffer_offset = 7 * kMega}},
       {.gds = true, .device_reader = &kAnywhere});
  expect_arrived();
  EXPECT_EQ(cufile().read_bytes, 5 * kMega);
  EXPECT_EQ(report.route, "gds");
  EXPECT_THAT(report.why, HasSubstr("; 15% through the ring"));
}

TEST_F(DeviceRoutesTest, WhatIsSmallAltogetherIsSaidToBe) {
  read_whole(500'000, {.gds = true, .device_reader = &kAnywhere});
  expect_arrived();
  EXPECT_EQ(report.route, "ring");
  EXPECT_THAT(report.why, HasSubstr("; through the ring, because no range has 1 MiB in pieces of 256 KiB or more"));
  EXPECT_EQ(cufile().calls, 0U);
}

TEST_F(DeviceRoutesTest, BytesWithAChecksumStayInTheRing) {
  const Bytes expected = test::numbered_bytes(16 * kMega);
  Record record{.crc32 = crc32(0, std::span(expected).subspan(100, 9 * kMega)), .bytes = 9 * kMega};
  checksums = {{.buffer_offset = 100, .length = 9 * kMega, .check = {record, true}}};
  read_whole(16 * kMega, {.gds = true, .device_reader = &kAnywhere});
  expect_arrived();
  EXPECT_EQ(report.route, "ring");
  EXPECT_THAT(report.why, HasSubstr("; through the ring, because checksums are computed in host memory"));
  EXPECT_EQ(cufile().reads, 0U);

  *record.crc32 ^= 1;
  checksums[0].check = {record, true};
  EXPECT_EQ(test::code_of([&] { run({.gds = true, .device_reader = &kAnywhere}); }), ErrorCode::kChecksum);
  record = {.crc32 = crc32(0, std::span(expected).subspan(12 * kMega, 10)), .bytes = 10};
  checksums = {{.buffer_offset = 12 * kMega, .length = 10, .check = {record, true}}};
  run({.gds = true, .device_reader = &kAnywhere});
  expect_arrived();
  EXPECT_EQ(cufile().read_bytes, 8 * kMega);
  EXPECT_THAT(report.why, HasSubstr("; 50% through cuFile (direct, nvidia-fs 2.17), the rest through the ring, because "
                                    "checksums"));
}

TEST_F(DeviceRoutesTest, SwitchedOffItIsNotAsked) {
  read_whole(8 * kMega, {.direct = true, .gds = false, .device_reader = &kAnywhere});
  expect_arrived();
  EXPECT_EQ(report.route, "ring");
  EXPECT_THAT(report.why, Not(HasSubstr("cuFile")));
  EXPECT_EQ(cufile().calls, 0U);
}

TEST_F(DeviceRoutesTest, UnaskedItTakesWhatIsReadPastTheCache) {
  read_whole(8 * kMega, {.device_reader = &kAnywhere});
  EXPECT_EQ(report.route, "ring") << "what was just written is in the page cache: " << report.why;
  EXPECT_EQ(cufile().calls, 0U);
  run({.direct = true, .device_reader = &kAnywhere});
  expect_arrived();
  EXPECT_EQ(report.route, "gds") << report.why;
}

TEST_F(DeviceRoutesTest, UnaskedItGoesByTheFileSystem) {
  read_whole(8 * kMega, {.direct = true});
  expect_arrived();
  EXPECT_EQ(report.route == "gds", cufile().reads > 0);
  if (report.route == "gds") GTEST_SKIP() << "the folder for temporary files lies where cuFile is direct";
  EXPECT_THAT(report.why, HasSubstr("; through the ring, because cuFile is in compatibility mode, as "));
  run({.gds = true});
  expect_arrived();
  EXPECT_EQ(report.route, "gds");
  EXPECT_THAT(report.why, HasSubstr("through cuFile (in compatibility mode, as "));
}

TEST_F(DeviceRoutesTest, HostLoadsAndOtherReadersAskNobody) {
  buffers = {Buffer::allocate(8 * kMega)};
  read_whole(8 * kMega, {.direct = true, .gds = true, .device_reader = &kAnywhere});
  EXPECT_EQ(report.route, "direct");
  buffers = {Buffer::allocate(8 * kMega, device)};
  run({.reader = &reader_for(*sources[0])});
  expect_arrived();
  EXPECT_EQ(report.route, "ring");
  EXPECT_EQ(cufile().calls, 0U);
}

TEST_F(DeviceRoutesTest, WorkThatWritesTheMemoryIsWaitedFor) {
  buffers = {Buffer::allocate(8 * kMega, device)};
  const Stream other(device);
  StreamAccess::queue(other)->fill(buffers[0].data(), std::byte{7}, buffers[0].size());
  buffers[0].record_use(other, Buffer::Access::kWrite);
  read_whole(8 * kMega, {.gds = true, .device_reader = &kAnywhere});
  expect_arrived();
  synchronize(device);
  expect_arrived();
}

TEST_F(DeviceRoutesTest, WithoutWaitingTheCurrentStreamFindsIt) {
  const Stream mine(device);
  const StreamGuard guard(mine);
  read_whole(9 * kMega, {.gds = true, .device_reader = &kAnywhere, .wait = false});
  Bytes arrived(bytes.size());
  const std::array range{device::CopyRange{arrived.data(), buffers[0].data(), arrived.size()}};
  StreamAccess::queue(mine)->copy(range, device::Direction::kDeviceToHost);
  mine.synchronize();
  EXPECT_TRUE(arrived == bytes);
}

TEST_F(DeviceRoutesTest, EachDeviceGetsItsBytes) {
  if (device_count() < 2) GTEST_SKIP() << "one device only";
  buffers = {Buffer::allocate(8 * kMega, device), Buffer::allocate(8 * kMega, Device(DeviceType::kCuda, 1))};
  read(16 * kMega, {{.length = 8 * kMega}, {.buffer = 1, .offset = 8 * kMega, .length = 8 * kMega}},
       {.threads = 2, .gds = true, .device_reader = &kAnywhere});
  expect_arrived();
  EXPECT_EQ(cufile().read_bytes, 16 * kMega);
}

TEST_F(DeviceRoutesTest, AReadThatFailsIsDoneByTheRingAndNoOtherIsTried) {
  struct {
    std::int64_t result;
    int error;
    const char* says;
  } const kCases[] = {
      {-1, EIO, "cuFileRead of 8388608 bytes at offset 8388608 gives Input/output error"},
      {-5008, 0, "gives error 5008 (the file system is not supported)"},
      {-5099, 0, "gives error 5099, which cufile.log explains"},
      {1'000'000, 0, "cuFileRead gave 1000000 of 8388608 bytes at offset 8388608"},
      {0, 0, "cuFileRead gave 0 of 8388608 bytes"},
  };
  for (const auto& [result, error, says] : kCases) {
    const std::uint64_t reads = cufile().reads;
    fail_read(2, result, error);
    read_whole(24 * kMega, {.threads = 1, .gds = true, .device_reader = &kAnywhere});
    expect_arrived();
    EXPECT_EQ(cufile().reads - reads, 2U);
    EXPECT_EQ(report.route, "ring");
    EXPECT_THAT(report.why, AllOf(HasSubstr("; 33% through cuFile"), HasSubstr("the rest through the ring, because"),
                                  HasSubstr(says)));
  }
}

TEST_F(DeviceRoutesTest, ACutFileIsThePreadsError) {
  read_whole(16 * kMega, {.gds = true, .device_reader = &kAnywhere});
  std::filesystem::resize_file(folder / "f", 9 * kMega + 5);
  const auto error = test::error_of([&] { run({.threads = 1, .gds = true, .device_reader = &kAnywhere}); });
  const auto ring = test::error_of([&] { run({.threads = 1, .gds = false}); });
  ASSERT_TRUE(error && ring);
  EXPECT_EQ(error->code(), ErrorCode::kTruncated);
  EXPECT_EQ(error->path(), folder / "f");
  EXPECT_EQ(error->what(), std::string(ring->what()));
  EXPECT_EQ(error->offset(), ring->offset());
}

TEST_F(DeviceRoutesTest, ItIsCancelledBetweenReads) {
  std::stop_source stop;
  at_each_read([](void* data) { static_cast<std::stop_source*>(data)->request_stop(); }, &stop);
  const auto error = test::error_of([&] {
    read_whole(64 * kMega, {.threads = 2, .stop = stop.get_token(), .gds = true, .device_reader = &kAnywhere});
  });
  at_each_read(nullptr, nullptr);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kCancelled);
  EXPECT_LE(cufile().reads, 2U);
}

TEST_F(DeviceRoutesTest, AForkedProcessMakesNoCall) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not follow forks of processes with threads";
#endif
  read_whole(2 * kMega, {.gds = true, .device_reader = &kAnywhere});
  const std::uint64_t calls = cufile().calls;
  const pid_t child = ::fork();
  if (child == 0) {
    const auto code = test::code_of([&] { run({.threads = 1, .gds = true, .device_reader = &kAnywhere}); });
    ::_exit(code == ErrorCode::kDeviceFailed && cufile().calls == calls ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/// The environment's word; each in a process of its own, as a library is found once.
class GdsProcess : public DeviceRoutesTest {
 protected:
  static void expect_in_a_process(const std::string& environment, const char* name) {
    const test::Ended ended =
        test::run_again("PENSTOCK_SIM_AUDIT=1 " + environment, std::string("GdsProcess.DISABLED_") + name);
    EXPECT_EQ(ended.status, 0) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("[  PASSED  ] 1 test."));
  }
  /// A load that asked for it, and one that did not but could use it, go through the ring for that reason.
  void expect_ring(const char* asked, const char* unasked) {
    read_whole(8 * kMega, {.gds = true, .device_reader = &kAnywhere});
    expect_arrived();
    EXPECT_EQ(report.route, "ring");
    EXPECT_THAT(report.why, HasSubstr(std::string("; through the ring, because ") + asked));
    run({.direct = true, .device_reader = &kAnywhere});
    expect_arrived();
    EXPECT_EQ(report.route, "ring");
    EXPECT_THAT(report.why, HasSubstr(std::string("; through the ring, because ") + unasked));
  }
};

TEST_F(GdsProcess, DISABLED_Compat) {
  read_whole(8 * kMega, {.direct = true, .device_reader = &kAnywhere});
  expect_arrived();
  EXPECT_EQ(report.route, "ring");
  EXPECT_THAT(report.why, HasSubstr("; through the ring, because cuFile is in compatibility mode"));
  EXPECT_EQ(cufile().reads, 0U);
  run({.gds = true, .device_reader = &kAnywhere});
  expect_arrived();
  EXPECT_EQ(report.route, "gds");
  EXPECT_THAT(report.why, HasSubstr("through cuFile (in compatibility mode)"));
}
TEST_F(GdsProcess, CompatibilityModeIsTakenWhenAskedFor) {
  expect_in_a_process("PENSTOCK_SIM_CUFILE=compat", "Compat");
}

TEST_F(GdsProcess, DISABLED_Peer) {
  read_whole(8 * kMega, {.direct = true, .device_reader = &kAnywhere});
  expect_arrived();
  EXPECT_EQ(report.route, "gds");
  EXPECT_THAT(report.why, HasSubstr("cuFile (direct, from disk to device by the kernel)"));
}
TEST_F(GdsProcess, TheKernelsOwnWayIsDirect) { expect_in_a_process("PENSTOCK_SIM_CUFILE=peer", "Peer"); }

TEST_F(GdsProcess, DISABLED_Closed) {
  expect_ring("cuFile does not start: cuFileDriverOpen gives error 5001 (nvidia-fs is not loaded",
              "cuFile does not start");
  EXPECT_EQ(cufile().opens, 1U);
}
TEST_F(GdsProcess, ADriverThatDoesNotOpenIsNamed) { expect_in_a_process("PENSTOCK_SIM_CUFILE=closed", "Closed"); }

TEST_F(GdsProcess, DISABLED_NoHandles) {
  expect_ring("cuFileHandleRegister gives error 5008 (the file system is not supported)", "cuFileHandleRegister gives");
}
TEST_F(GdsProcess, AFileThatIsNotTakenIsNamed) { expect_in_a_process("PENSTOCK_SIM_CUFILE=no_handles", "NoHandles"); }

TEST_F(GdsProcess, DISABLED_NoPools) {
  const bool pooled = statistics().pools > 0 || (Buffer::allocate(1, device), statistics().pools > 0);
  read_whole(24 * kMega, {.threads = 1, .gds = true, .device_reader = &kAnywhere});
  expect_arrived();
  EXPECT_EQ(report.route, pooled ? "ring" : "gds");
  if (!pooled) return;
  EXPECT_EQ(cufile().reads, 1U);
  EXPECT_THAT(report.why, HasSubstr("at offset 0 gives error 5013 (it does not take memory of this kind)"));
}
TEST_F(GdsProcess, MemoryThatIsNotTakenIsNamed) { expect_in_a_process("PENSTOCK_SIM_CUFILE=no_pools", "NoPools"); }

TEST_F(GdsProcess, DISABLED_On) {
  read_whole(8 * kMega, {});
  expect_arrived();
  EXPECT_EQ(report.route, "gds") << report.why;
  run({.gds = false});
  EXPECT_EQ(report.route, "ring");
}
TEST_F(GdsProcess, TheSettingAsks) { expect_in_a_process("PENSTOCK_GDS=on", "On"); }

TEST_F(GdsProcess, DISABLED_Off) {
  read_whole(8 * kMega, {.direct = true, .device_reader = &kAnywhere});
  EXPECT_EQ(report.route, "ring");
  EXPECT_EQ(cufile().calls, 0U);
  run({.gds = true, .device_reader = &kAnywhere});
  EXPECT_EQ(report.route, "gds");
}
TEST_F(GdsProcess, TheSettingForbids) { expect_in_a_process("PENSTOCK_GDS=off", "Off"); }

TEST_F(GdsProcess, DISABLED_Unknown) {
  const auto error = test::error_of([&] { read_whole(100, {}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error->message(), HasSubstr("PENSTOCK_GDS is 'maybe'; set it to auto, on or off"));
}
TEST_F(GdsProcess, AnUnknownSettingIsRefused) { expect_in_a_process("PENSTOCK_GDS=maybe", "Unknown"); }

}  // namespace
}  // namespace penstock::io
