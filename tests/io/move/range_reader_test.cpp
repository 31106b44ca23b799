#include "io/move/range_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "io/copy/crc32.h"
#include "io/read/reader.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/limited_addresses.h"
#include "support/whole_file.h"

namespace penstock::io {
namespace {

using test::code_of;
using test::error_of;
using test::WholeFile;
using testing::HasSubstr;

class CopiedEitherWay : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(RangeReader, CopiedEitherWay, testing::Bool(),
                         [](const auto& way) { return std::string(way.param ? "OutOfAMapping" : "ByTheSystem"); });

TEST_P(CopiedEitherWay, SaysSo) {
  const WholeFile whole(2'000'000);
  Report report;
  execute(whole.move, {.mapped = GetParam()}, report);
  EXPECT_TRUE(whole.arrived());
  EXPECT_EQ(report.route, "read");
  EXPECT_THAT(report.why, HasSubstr(GetParam() ? "with copies out of a mapping" : "with pread"));
}

TEST_P(CopiedEitherWay, ALargeFileWithChecksums) {
  WholeFile whole(40'000'003, {});
  whole.move.checksums = {whole.checksum(0, 1), whole.checksum(77, 30'000'000), whole.checksum(30'000'077, 9'000'000)};
  Report report;
  execute(whole.move, {}, report);
  EXPECT_TRUE(whole.arrived()) << report.why;
  std::ranges::fill(std::span(whole.buffers[0].data(), whole.bytes.size()), std::byte{0});
  execute(whole.move, {.mapped = GetParam()}, report);
  EXPECT_TRUE(whole.arrived());
}

TEST_P(CopiedEitherWay, VerifiesChecksumsOverSeveralRangesAndThreads) {
  for (const std::size_t threads : {1, 4}) {
    WholeFile whole(3'000'000);
    whole.move.checksums = {whole.checksum(1'000'000, 1'999'999), whole.checksum(0, 10), whole.checksum(10, 0),
                            whole.checksum(11, 999'000)};
    Report report;
    execute(whole.move, {.threads = threads, .mapped = GetParam()}, report);
    EXPECT_TRUE(whole.arrived());
    EXPECT_EQ(report.decode_seconds > 0, !GetParam()) << "out of a mapping bytes are checked on the way";
  }
}

TEST_P(CopiedEitherWay, SaysWhichRecordIsDamaged) {
  for (const std::size_t threads : {1, 4}) {
    WholeFile whole(3'000'000);
    const Checksum good = whole.checksum(0, 1'000'000);
    const std::uint32_t computed = crc32(0, std::span(whole.bytes).subspan(1'000'000));
    whole.move.checksums = {good, whole.checksum(1'000'000, 2'000'000, 0xDEADBEEF)};
    Report report;
    const auto error = error_of([&] { execute(whole.move, {.threads = threads, .mapped = GetParam()}, report); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kChecksum);
    EXPECT_EQ(error->path(), whole.path());
    EXPECT_EQ(error->offset(), 1'000'000U);
    EXPECT_EQ(error->tensor(), "record");
    char text[9];
    std::snprintf(text, sizeof(text), "%08x", computed);
    EXPECT_THAT(error->message(), HasSubstr("deadbeef"));
    EXPECT_THAT(error->message(), HasSubstr(text));
  }
}

TEST_P(CopiedEitherWay, ARecordMayBeginBeforeWhatIsRead) {
  for (const std::uint32_t wrong : {0U, 1U}) {
    WholeFile whole(3'000'000);
    const std::vector<std::byte> header = test::numbered_bytes(77, 5);
    std::vector<std::byte> record = header;
    record.insert(record.end(), whole.bytes.begin(), whole.bytes.end());
    RecordCheck check({.crc32 = crc32(0, record) ^ wrong, .bytes = record.size()}, true);
    check.add(header);
    whole.move.checksums = {{.length = whole.bytes.size(), .check = check}};
    Report report;
    if (wrong == 0) {
      execute(whole.move, {.mapped = GetParam()}, report);
    } else {
      EXPECT_EQ(code_of([&] { execute(whole.move, {.mapped = GetParam()}, report); }), ErrorCode::kChecksum);
    }
  }
}

TEST(RangeReader, AnEmptyRecordHasAChecksumToo) {
  WholeFile whole(1000);
  whole.move.checksums = {whole.checksum(0, 0, 1)};
  Report report;
  EXPECT_EQ(code_of([&] { execute(whole.move, {}, report); }), ErrorCode::kChecksum);
}

TEST(RangeReader, NeverCallsAnUnreadRecordGood) {
  WholeFile whole(1000);
  const Piece half = {.length = 500};
  whole.move.plan = make_plan({&half, 1});
  whole.move.checksums = {whole.checksum(400, 200)};
  Report report;
  EXPECT_EQ(code_of([&] { execute(whole.move, {}, report); }), ErrorCode::kInvalidArgument);
}

TEST(RangeReader, SaysThatTheFileWasCut) {
  for (const Reader& reader : readers()) {
    const WholeFile whole(3'000'000);
    if (!reader.usable(*whole.sources[0])) continue;
    std::filesystem::resize_file(whole.path(), 1'000'000);
    Report report;
    const auto error = error_of([&] { execute(whole.move, {.threads = 2, .reader = &reader}, report); });
    ASSERT_TRUE(error) << reader.name;
    EXPECT_EQ(error->code(), ErrorCode::kTruncated);
    EXPECT_EQ(error->path(), whole.path());
  }
}

TEST_P(CopiedEitherWay, AFileThatWasCutIsCutWhateverIsRecordedOfIt) {
  for (const std::uintmax_t left : {2'999'999U, 2'998'272U, 1'000'000U, 1U, 0U}) {
    WholeFile whole(3'000'000);
    whole.move.checksums = {whole.checksum(0, 3'000'000)};
    std::filesystem::resize_file(whole.path(), left);
    Report report;
    const auto error = error_of([&] { execute(whole.move, {.mapped = GetParam()}, report); });
    ASSERT_TRUE(error) << left;
    EXPECT_EQ(error->code(), ErrorCode::kTruncated) << error->what();
    EXPECT_EQ(error->path(), whole.path());
  }
}

TEST_P(CopiedEitherWay, AFileCutWhileItIsRead) {
  for (int round = 0; round < 6; ++round) {
    WholeFile whole(24'000'000);
    std::jthread cutter([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(round));
      std::filesystem::resize_file(whole.path(), 5'000'000);
    });
    Report report;
    try {
      execute(whole.move, {.threads = 2, .mapped = GetParam()}, report);
      EXPECT_TRUE(whole.arrived()) << "nothing was said about the bytes that are missing";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kTruncated) << error.what();
    }
  }
}

TEST(RangeReader, WithoutAddressSpaceTheSystemCopies) {
  const WholeFile whole(64'000'000, {});
  if (const auto why = test::LimitedAddresses::why_not(); !why.empty()) GTEST_SKIP() << why;
  Report report;
  {
    // Enough for a sanitizer's own needs.
    const test::LimitedAddresses limited(std::uint64_t{32} << 20);
    execute(whole.move, {.threads = 1, .mapped = true}, report);
  }
  EXPECT_TRUE(whole.arrived());
  EXPECT_THAT(report.why, HasSubstr("with pread"));
}

}  // namespace
}  // namespace penstock::io
