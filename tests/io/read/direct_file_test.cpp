// Reads past the page cache beside pread of the same bytes, which is the reference.

#include "io/read/direct_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "device/host_blocks.h"
#include "io/read/reader_rows.h"
#include "io/source/source.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/process.h"
#include "support/seccomp.h"

namespace penstock::io {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kFileBytes = 9'000'003;

bool runs_in_place() {
  utsname names{};
  return ::uname(&names) == 0 && direct_reads_in_place(names.release);
}

/// What the error says and where, or that there was none.
std::string outcome_of(const std::function<void()>& call) {
  try {
    call();
    return "read";
  } catch (const Error& error) {
    return error.what();
  }
}

/// Straight to their place where they can, and all through the scratch.
class DirectFileTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    test::write_file(folder_ / "source", bytes_);
    source_ = open_source(folder_ / "source");
    std::string why_not;
    file_ = DirectFile::open(*source_, why_not, GetParam());
    if (!file_) GTEST_SKIP() << "no direct reads in " << (folder_ / "source") << ": " << why_not;
  }

  /// Reads into memory that begins `shift` bytes after a page boundary.
  void expect_same(std::uint64_t offset, std::vector<std::size_t> lengths, std::size_t shift, unsigned kept) {
    std::size_t total = 0;
    for (const std::size_t length : lengths) total += length;
    const Buffer into = Buffer::allocate(total + shift + 2 * 4096);
    const Buffer wanted = Buffer::allocate(into.size());
    std::fill_n(into.data(), into.size(), std::byte{0x5A});
    std::fill_n(wanted.data(), wanted.size(), std::byte{0x5A});
    const std::size_t lead = 4096 - reinterpret_cast<std::uintptr_t>(into.data()) % 4096 + shift;
    const auto parts_at = [&](const Buffer& buffer) {
      std::vector<Scatter> parts;
      std::byte* at = buffer.data() + lead;
      for (std::size_t i = 0; i < lengths.size(); ++i) {
        parts.push_back({(kept >> i % 32 & 1) != 0 ? at : nullptr, lengths[i]});
        at += lengths[i];
      }
      return parts;
    };
    file_->read(offset, parts_at(into), scratch_);
    pread_read(*source_, offset, parts_at(wanted));
    ASSERT_TRUE(std::equal(into.data(), into.data() + into.size(), wanted.data()))
        << total << " bytes at " << offset << ", shift " << shift << ", " << lengths.size() << " parts";
  }

  test::TemporaryFolder folder_;
  Bytes bytes_ = test::numbered_bytes(kFileBytes);
  Source source_ = memory_source(Buffer::allocate(0));
  std::unique_ptr<DirectFile> file_;
  DirectScratch scratch_;
};

TEST_P(DirectFileTest, EveryAlignmentOfFileAndMemory) {
  for (const std::uint64_t offset : {0U, 1U, 64U, 511U, 512U, 513U, 4095U, 4096U, 4160U, 1'048'576U, 8'000'001U}) {
    for (const std::size_t length : {1U, 511U, 512U, 4096U, 65'535U, 65'536U, 70'000U, 200'000U, 1'000'002U}) {
      if (offset + length > kFileBytes) continue;
      // In place, in place but for the ends, and nowhere in place.
      for (const std::size_t shift :
           {std::size_t{0}, static_cast<std::size_t>(offset % 4096), std::size_t{64}, std::size_t{1}}) {
        expect_same(offset, {length}, shift, ~0U);
      }
    }
  }
}

TEST_P(DirectFileTest, TheEndOfTheFile) {
  for (const std::size_t length : {1U, 3U, 4U, 512U, 515U, 4096U, 100'000U, 5'000'000U}) {
    expect_same(kFileBytes - length, {length}, 0, ~0U);
    expect_same(kFileBytes - length, {length}, (kFileBytes - length) % 4096, ~0U);
  }
  expect_same(0, {kFileBytes}, 0, ~0U);
  expect_same(kFileBytes, {}, 0, ~0U);
  EXPECT_EQ(file_->refusal(), "");
}

TEST_P(DirectFileTest, AnyParts) {
  std::mt19937 random(5);
  for (int round = 0; round < 150; ++round) {
    const std::size_t longest = std::vector<std::size_t>{40, 5'000, 150'000, 1'200'000}[round % 4];
    std::vector<std::size_t> lengths(1 + random() % (longest < 5'000 ? 3'000 : 12));
    std::size_t total = 0;
    for (std::size_t& length : lengths) {
      // Whole blocks half of the time, so that parts meet at their ends.
      length = random() % longest;
      if (random() % 2 != 0) length = length / 512 * 512;
      length = std::min(length, kFileBytes - total);
      total += length;
    }
    const std::uint64_t offset = random() % (kFileBytes - total + 1);
    const std::size_t shift = random() % 2 != 0 ? offset % 4096 : random() % 4096;
    expect_same(random() % 4 == 0 ? offset / 512 * 512 : offset, lengths, shift, static_cast<unsigned>(random()));
  }
}

TEST_P(DirectFileTest, LargeRunsAreReadInPlace) {
  const Buffer into = Buffer::allocate(std::size_t{4} << 20);
  const std::size_t block = file_->alignment().block;
  const Scatter part{into.data(), (std::size_t{3} << 20) + 5};
  file_->read(block, std::span(&part, 1), scratch_);
  if (GetParam()) {
    EXPECT_LE(scratch_.capacity(), 4 * block + 2 * 4096);
  } else {
    EXPECT_GE(scratch_.capacity(), part.bytes);
  }
  EXPECT_TRUE(std::equal(into.data(), into.data() + part.bytes, bytes_.data() + block));
}

TEST_P(DirectFileTest, ManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (unsigned t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      DirectScratch scratch;
      Bytes out(300'000);
      for (int i = 0; i < 30; ++i) {
        const std::size_t offset = random() % (kFileBytes - out.size());
        const Scatter part{out.data(), out.size()};
        file_->read(offset, std::span(&part, 1), scratch);
        if (!std::equal(out.begin(), out.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset))) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(DirectFileTest, AFileThatWasCutSaysWhatPreadSays) {
  Bytes out(400'000);
  const Scatter part{out.data(), out.size()};
  for (const std::uintmax_t left :
       {8'000'000U, 4'100'000U, 4'099'999U, 4'096'000U, 4'000'500U, 4'000'000U, 512U, 3U, 0U}) {
    std::filesystem::resize_file(folder_ / "source", left);
    for (const std::uint64_t offset : {std::uint64_t{4'000'000}, std::uint64_t{3'999'744}, std::uint64_t{0}}) {
      const auto direct = outcome_of([&] { file_->read(offset, std::span(&part, 1), scratch_); });
      const auto plain = outcome_of([&] { pread_read(*source_, offset, std::span(&part, 1)); });
      EXPECT_EQ(direct, plain) << left << " left, read at " << offset;
    }
  }
}

TEST_P(DirectFileTest, AFileThatIsCutWhileItIsReadIsTruncatedOrWhole) {
  std::atomic<bool> done = false;
  std::thread cutter([&] {
    std::mt19937 random(9);
    std::fstream file(folder_ / "source", std::ios::in | std::ios::out | std::ios::binary);
    while (!done) {
      const auto left = static_cast<std::streamoff>(7'000'000 + random() % 2'000'000);
      std::filesystem::resize_file(folder_ / "source", static_cast<std::uintmax_t>(left));
      file.seekp(left);
      file.write(reinterpret_cast<const char*>(bytes_.data()) + left, static_cast<std::streamsize>(kFileBytes) - left);
      file.flush();
    }
  });
  std::mt19937 random(10);
  Bytes out(600'000);
  std::size_t whole = 0;
  for (int round = 0; round < 200; ++round) {
    const std::size_t offset = 6'500'000 + random() % (kFileBytes - 6'500'000 - out.size());
    const Scatter part{out.data(), out.size()};
    try {
      file_->read(offset, std::span(&part, 1), scratch_);
      ++whole;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kTruncated);
      continue;
    }
    // What is being written again may read as zeros for a moment, whichever way it is read.
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (out[i] != bytes_[offset + i] && out[i] != std::byte{}) {
        ADD_FAILURE() << "byte " << offset + i << " in round " << round;
        break;
      }
    }
  }
  done = true;
  cutter.join();
  EXPECT_GT(whole, 0U);
}

TEST_P(DirectFileTest, AFileSystemThatTurnsReadsDownIsReadThroughTheCache) {
  const std::string way = GetParam() ? "WhereItCanBe" : "Nowhere";
  const test::Ended ended = test::run_again("A=1", "InPlace/DirectFileTest.DISABLED_TurnedDown/" + way);
  EXPECT_EQ(ended.status, 0) << ended.output;
}

TEST_P(DirectFileTest, DISABLED_TurnedDown) {
  // The next descriptor is the one that it will be opened on.
  const int next = ::dup(source_.descriptor());
  ::close(next);
  std::string why_not;
  file_ = DirectFile::open(*source_, why_not, GetParam());
  const auto fd = static_cast<std::uint32_t>(std::max(next, 0));
  expect_same(4096, {200'000}, 0, ~0U);
  if (!test::refuse({{SYS_preadv, EINVAL, 0, {}, fd}})) GTEST_SKIP() << "no seccomp filters here";
  std::mt19937 random(6);
  for (int round = 0; round < 20; ++round) {
    const std::size_t length = 1 + random() % 1'000'000;
    expect_same(random() % (kFileBytes - length), {length / 3, length - length / 3}, random() % 4096,
                static_cast<unsigned>(random() | 2U));
  }
  EXPECT_THAT(file_->refusal(), HasSubstr("Invalid argument"));
}

TEST_P(DirectFileTest, AFileThatGrewGivesWhatItHad) {
  std::filesystem::resize_file(folder_ / "source", kFileBytes + 10'000);
  expect_same(kFileBytes - 700'000, {700'000}, 0, ~0U);
  std::byte to{};
  const Scatter part{&to, 1};
  EXPECT_EQ(test::code_of([&] { file_->read(kFileBytes, std::span(&part, 1), scratch_); }), ErrorCode::kTruncated);
}

TEST_P(DirectFileTest, TheFileThatIsOpenAndNotTheOneOfThatNameNow) {
  std::filesystem::rename(folder_ / "source", folder_ / "gone");
  test::write_file(folder_ / "source", Bytes(kFileBytes, std::byte{1}));
  std::string why_not;
  file_ = DirectFile::open(*source_, why_not, GetParam());
  ASSERT_TRUE(file_) << why_not;
  expect_same(12'345, {500'000}, 0, ~0U);
  std::filesystem::remove(folder_ / "gone");
  file_ = DirectFile::open(*source_, why_not);
  ASSERT_TRUE(file_) << why_not;
  expect_same(12'345, {500'000}, 0, ~0U);
}

TEST_P(DirectFileTest, WithoutADescriptorToSpareItSaysSo) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 3;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::string why_not;
  const auto none = DirectFile::open(*source_, why_not);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_FALSE(none);
  EXPECT_THAT(why_not, HasSubstr("Too many open files"));
}

/// Whatever is read while the process forks arrives in the process.
TEST_P(DirectFileTest, ForksMeanwhile) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not follow forks of processes with threads";
#endif
  if (GetParam() && !runs_in_place()) GTEST_SKIP() << "this system wants all reads through the scratch";
  constexpr std::size_t kParts = 8;
  constexpr std::size_t kPart = 1'000'000;
  const Buffer into = Buffer::allocate(kParts * kPart + 4096);
  std::atomic<bool> done{false};
  std::jthread forker([&] {
    while (!done) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::usleep(2000);
        ::_exit(0);
      }
      if (child > 0) ::waitpid(child, nullptr, 0);
    }
  });
  int wrong = 0;
  for (int round = 0; round < 10; ++round) {
    std::fill_n(into.data(), into.size(), std::byte{0});
    std::vector<std::jthread> readers;
    for (std::size_t i = 0; i < kParts; ++i) {
      readers.emplace_back([&, i] {
        DirectScratch scratch;
        const Scatter part{into.data() + 512 + i * kPart, kPart};
        file_->read(512 + i * kPart, std::span(&part, 1), scratch);
      });
    }
    readers.clear();
    if (!std::equal(into.data() + 512, into.data() + 512 + kParts * kPart, bytes_.begin() + 512)) ++wrong;
  }
  done = true;
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(InPlace, DirectFileTest, testing::Bool(), [](const auto& way) {
  return way.param ? std::string("WhereItCanBe") : std::string("Nowhere");
});

TEST(DirectFile, OldSystemsWantNothingInPlace) {
  for (const char* release : {"6.5.0", "6.5", "6.18.44-fc-v595", "7.0.1", "10.2"}) {
    EXPECT_TRUE(direct_reads_in_place(release)) << release;
  }
  for (const char* release :
       {"6.4.99", "6.1.0-13-amd64", "5.18.0", "4.18.0-553.el8", "6", "6.", "6.x", "x", "", "-6.9"}) {
    EXPECT_FALSE(direct_reads_in_place(release)) << release;
  }
}

TEST(DirectFile, ScratchIsPagesOfItsOwn) {
  DirectScratch scratch;
  for (const std::size_t bytes : {512U, 4096U, 5000U, 1'000'000U}) {
    const std::byte* const at = scratch.of(bytes, 512);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % 4096, 0U);
    EXPECT_GE(scratch.capacity(), bytes);
  }
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(scratch.of(1'000'000, 512)) % device::kHugePage, 0U);
}

TEST(DirectFile, FilesOfMemoryAreReadOrTurnedDownByName) {
  const std::filesystem::path shared = "/dev/shm";
  if (!std::filesystem::is_directory(shared)) GTEST_SKIP() << "no " << shared;
  const test::TemporaryFolder folder(shared);
  const Bytes bytes = test::numbered_bytes(1'000'003);
  test::write_file(folder / "source", bytes);
  const Source source = open_source(folder / "source");
  std::string why_not;
  const auto file = DirectFile::open(*source, why_not);
  EXPECT_NE(file == nullptr, why_not.empty()) << why_not;
  std::mt19937 random(8);
  DirectScratch scratch;
  Bytes out(bytes.size());
  for (int round = 0; round < 200; ++round) {
    const std::size_t length = random() % (random() % 2 == 0 ? 5'000 : 700'000);
    const std::size_t offset = random() % 4 == 0 ? bytes.size() - length : random() % (bytes.size() - length);
    const Scatter part{out.data() + random() % 5000, length};
    direct_read(*source, offset, std::span(&part, 1));
    ASSERT_TRUE(std::equal(part.to, part.to + length, bytes.data() + offset)) << length << " at " << offset;
    if (!file) continue;
    std::fill_n(part.to, length, std::byte{});
    file->read(offset, std::span(&part, 1), scratch);
    ASSERT_TRUE(std::equal(part.to, part.to + length, bytes.data() + offset)) << length << " at " << offset;
  }
}

TEST(DirectFile, MemoryIsNoFile) {
  const Source source = memory_source(Buffer::allocate(10));
  std::string why_not;
  EXPECT_FALSE(DirectFile::open(*source, why_not));
  EXPECT_EQ(why_not, "it is no file");
}

}  // namespace
}  // namespace penstock::io
