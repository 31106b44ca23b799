// What is read past the page cache and what through it. The reference is the read through it.

#include "io/move/routes.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>
#include <vector>

#include "io/copy/crc32.h"
#include "io/move/engine.h"
#include "io/read/residency.h"
#include "support/emulator.h"
#include "support/errors.h"
#include "support/files.h"

namespace penstock::io {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kBytes = 24'000'007;
constexpr const char* kStays = "the file cannot be taken out of the page cache here";
constexpr const char* kUnknown = "QEMU passes on neither what is cached nor how a file is read directly";

/// Whether the file is out of the page cache now; file systems that are made of it keep it.
bool drop(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ::fsync(fd);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
  const Source source = open_source(path);
  return cached_share(*source, 0, source.size()) == 0.0;
}

class RoutesTest : public testing::Test {
 protected:
  void SetUp() override { make(folder_ / "source"); }

  void make(const std::string& path) {
    path_ = path;
    test::write_file(path, bytes_);
    source_ = open_source(path);
  }
  /// Two records with a gap between them that is not read, in memory that begins `shift` bytes into a page.
  void read(std::optional<bool> direct, std::size_t shift = 0, std::uint32_t wrong_crc = 0) {
    buffer_ = Buffer::allocate(kBytes + 2 * kPage);
    std::fill_n(buffer_.data(), buffer_.size(), std::byte{0});
    lead_ = kPage - reinterpret_cast<std::uintptr_t>(buffer_.data()) % kPage + shift;
    const std::vector<Piece> pieces = {{0, 0, 100, kFirst - 100, lead_ + 100},
                                       {0, 0, kSecond, kBytes - kSecond, lead_ + kSecond}};
    const std::uint32_t crc = crc32(0, std::span(bytes_).subspan(kSecond)) ^ wrong_crc;
    Move move{make_plan(pieces), {&source_, 1}, {&buffer_, 1}, {}, {}};
    const Record record{.crc32 = crc, .bytes = kBytes - kSecond};
    move.checksums = {{0, lead_ + kSecond, record.bytes, {record, true}}};
    report_ = {};
    execute(move, {.direct = direct}, report_);
  }
  bool arrived() const {
    const std::byte* at = buffer_.data() + lead_;
    const auto same = [&](std::size_t from, std::size_t to) {
      return std::equal(at + from, at + to, bytes_.data() + from);
    };
    return same(100, kFirst) && same(kSecond, kBytes) &&
           std::all_of(at + kFirst, at + kSecond, [](std::byte b) { return b == std::byte{0}; });
  }

  static constexpr std::size_t kPage = 4096;
  static constexpr std::size_t kFirst = 10'000'001;
  static constexpr std::size_t kSecond = 10'100'003;
  test::TemporaryFolder folder_;
  Bytes bytes_ = test::numbered_bytes(kBytes);
  std::string path_;
  Source source_ = memory_source(Buffer::allocate(0));
  Buffer buffer_;
  std::size_t lead_ = 0;
  Report report_;
};

TEST_F(RoutesTest, WhatIsCachedIsCopiedFromTheCache) {
  read({});
  EXPECT_TRUE(arrived());
  EXPECT_EQ(report_.route, "read");
  EXPECT_THAT(report_.why, HasSubstr(": 0% was not cached"));
}

TEST_F(RoutesTest, WhatIsNotCachedIsReadPastTheCache) {
  for (const std::size_t shift : {0, 64, 512, 1}) {
    if (!drop(path_)) GTEST_SKIP() << kStays;
    read({}, shift);
    EXPECT_TRUE(arrived());
    EXPECT_EQ(report_.route, "direct") << report_.why;
    EXPECT_THAT(report_.why, AllOf(HasSubstr("direct reads"), HasSubstr(": 100% was not cached")));
    EXPECT_LT(cached_share(*source_, 0, kBytes), 0.1) << "it went through the page cache";
  }
}

TEST_F(RoutesTest, EachRangeGoesItsOwnWay) {
  if (!drop(path_)) GTEST_SKIP() << kStays;
  // Without the read-ahead past what is asked for.
  ::posix_fadvise(source_.descriptor(), 0, 0, POSIX_FADV_RANDOM);
  Bytes first(11'000'000);
  source_.read(0, first);
  read({});
  EXPECT_TRUE(arrived());
  EXPECT_THAT(report_.why, AllOf(HasSubstr("not cached"), HasSubstr("read past the page cache")));
}

TEST_F(RoutesTest, AskedForWhateverIsCached) {
  if (test::emulator() != nullptr) GTEST_SKIP() << kUnknown;
  read(true, 3);
  EXPECT_TRUE(arrived());
  EXPECT_EQ(report_.route, "direct");
  EXPECT_THAT(report_.why, HasSubstr("0% was not cached; past the page cache, as asked"));
  if (!drop(path_)) GTEST_SKIP() << kStays;
  read(false);
  EXPECT_TRUE(arrived());
  EXPECT_EQ(report_.route, "read");
  EXPECT_THAT(report_.why, HasSubstr("100% was not cached; through the page cache, as asked"));
  EXPECT_GT(cached_share(*source_, 0, kBytes), 0.9);
}

TEST_F(RoutesTest, WhatIsReadPastTheCacheIsNotMapped) {
  const Piece piece{0, 0, 0, kBytes, 0};
  const Plan plan = make_plan({&piece, 1});
  const Routes direct(plan, {&source_, 1}, true, true);
  const Routes mapped(plan, {&source_, 1}, false, true);
  const Routes neither(plan, {&source_, 1}, false, false);
  const Routes small(plan, {&source_, 1}, {}, {});
  for (std::size_t i = 0; i < plan.ranges.size(); ++i) {
    EXPECT_NE(direct.mappable(i), direct.direct(i) != nullptr);
    EXPECT_TRUE(mapped.mappable(i));
    EXPECT_FALSE(neither.mappable(i));
    EXPECT_FALSE(small.mappable(i)) << "as little may be wanted in the processor's cache";
  }
}

TEST_F(RoutesTest, LargeLoadsOfLargeTensorsMayBeMapped) {
  constexpr std::uint64_t kLarge = 40'000'000;
  test::write_file(path_, test::numbered_bytes(kLarge));
  source_ = open_source(path_);
  for (const std::uint64_t length : {kLarge, kLarge / 20'000}) {
    std::vector<Piece> pieces;
    for (std::uint64_t at = 0; at < kLarge; at += length) pieces.push_back({0, 0, at, length, 2 * at});
    const Plan plan = make_plan(pieces);
    EXPECT_EQ(Routes(plan, {&source_, 1}, false).mappable(0), length == kLarge) << plan.targets.size();
  }
}

TEST_F(RoutesTest, MemoryHasNoOtherWay) {
  source_ = memory_source(Buffer::wrap(bytes_.data(), bytes_.size(), std::make_shared<int>()));
  read(true);
  EXPECT_TRUE(arrived());
  EXPECT_EQ(report_.route, "memory");
  const Piece piece{0, 0, 0, kBytes, 0};
  EXPECT_FALSE(Routes(make_plan({&piece, 1}), {&source_, 1}, {}, true).mappable(0));
}

TEST_F(RoutesTest, AWrongChecksumIsFound) {
  EXPECT_EQ(test::code_of([&] { read(true, 0, 1); }), ErrorCode::kChecksum);
}

TEST_F(RoutesTest, AFileCutAfterItWasOpened) {
  for (const std::uintmax_t left : {23'999'999U, 16'777'216U, 16'777'000U, 1U}) {
    std::filesystem::resize_file(path_, left);
    for (const bool direct : {true, false}) {
      const auto error = test::error_of([&] { read(direct); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), ErrorCode::kTruncated);
      EXPECT_EQ(error->path(), path_);
    }
  }
}

TEST_F(RoutesTest, AFileCutWhileItIsRead) {
  for (int round = 0; round < 5; ++round) {
    make(path_);
    std::jthread cutter([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(round));
      std::filesystem::resize_file(path_, 5'000'000);
    });
    try {
      read(true, 64);
      EXPECT_TRUE(arrived()) << "nothing was said about the bytes that are missing";
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::kTruncated || error.code() == ErrorCode::kChecksum) << error.what();
    }
  }
}

TEST_F(RoutesTest, WithoutADescriptorToSpareItGoesThroughTheCache) {
  if (test::emulator() != nullptr) GTEST_SKIP() << kUnknown;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 3;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  read(true);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(arrived());
  EXPECT_EQ(report_.route, "read");
  EXPECT_THAT(report_.why, AllOf(HasSubstr("Too many open files"), HasSubstr("through the page cache, because")));
}

TEST_F(RoutesTest, MemoryFileSystems) {
  const std::filesystem::path memory = "/dev/shm";
  if (!std::filesystem::is_directory(memory)) GTEST_SKIP() << "no /dev/shm";
  make(memory / ("penstock-routes-" + std::to_string(::getpid())));
  EXPECT_FALSE(drop(path_));
  for (const std::optional<bool> direct : {std::optional<bool>{}, std::optional(true), std::optional(false)}) {
    read(direct, 5);
    EXPECT_TRUE(arrived());
    if (!direct) {
      EXPECT_EQ(report_.route, "read");
    }
  }
  std::filesystem::remove(path_);
}

TEST_F(RoutesTest, SmallReadsAreNotLookedAt) {
  if (!drop(path_)) GTEST_SKIP() << kStays;
  Buffer buffer = Buffer::allocate(100'000);
  const Piece piece = {.length = buffer.size()};
  execute({make_plan({&piece, 1}), {&source_, 1}, {&buffer, 1}, {}, {}}, {}, report_);
  EXPECT_EQ(report_.route, "read");
  EXPECT_THAT(report_.why, Not(HasSubstr("cached")));
}

TEST(Residency, OfFilesOnly) {
  const Source source = memory_source(Buffer::allocate(10));
  EXPECT_EQ(cached_share(*source, 0, 10), std::nullopt);
}

TEST(Residency, FollowsWhatIsRead) {
  if (test::emulator() != nullptr) GTEST_SKIP() << kUnknown;
  const test::TemporaryFolder folder;
  const Bytes bytes = test::numbered_bytes(32 << 20);
  test::write_file(folder / "source", bytes);
  const Source source = open_source(folder / "source");
  EXPECT_EQ(cached_share(*source, 0, bytes.size()), 1.0);
  EXPECT_EQ(cached_share(*source, 12'345, 1), 1.0);
  if (!drop(folder / "source")) GTEST_SKIP() << kStays;
  // Without the read-ahead past what is asked for.
  ::posix_fadvise(source.descriptor(), 0, 0, POSIX_FADV_RANDOM);
  Bytes half(16 << 20);
  source.read(0, half);
  EXPECT_EQ(cached_share(*source, 0, 16 << 20), 1.0);
  EXPECT_EQ(cached_share(*source, 16 << 20, 16 << 20), 0.0);
  EXPECT_EQ(cached_share(*source, 0, 32 << 20), 0.5);
}

}  // namespace
}  // namespace penstock::io
