#include "io/remote/cache/ledger.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "io/remote/cache/block_file.h"
#include "support/files.h"

namespace penstock::io::remote {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kUnit = 4096;

class Ledger : public testing::Test {
 protected:
  /// A block of about 4 KiB that was used so many seconds after 1970.
  void add(int number, std::int64_t used, const std::string& url = "s3://bucket/x") {
    std::string name = std::to_string(number);
    name = std::string(32 - name.size(), 'a') + name;
    const std::string path = root_ + "/aa/" + name + ".object";
    std::string content(3000, 'x');
    content += block_file::ending(std::as_bytes(std::span(content)), BlockText{"\"e\"", 3000, url}.to_string(), 0);
    fs::create_directories(root_ + "/aa");
    test::write_file(path, content);
    const timespec times[2] = {{used, 0}, {used, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  std::uint64_t blocks() const { return cache_usage(root_).blocks; }

  const test::TemporaryFolder folder_;
  const std::string root_ = cache_root(folder_.path().string());
};

TEST_F(Ledger, WhatWasUsedLongestAgoGoesFirst) {
  for (int i = 0; i < 10; ++i) add(i, 1000 + (i * 7) % 10);
  ASSERT_TRUE(make_room(root_, 10 * kUnit, kUnit));  // a tenth is left free besides
  std::vector<std::int64_t> used;
  for_each_block(root_, [&](const BlockOnDisk& block) { used.push_back(block.used / 1'000'000'000); });
  std::sort(used.begin(), used.end());
  EXPECT_EQ(used, (std::vector<std::int64_t>{1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009}));
}

TEST_F(Ledger, NothingIsDeletedWhileThereIsRoom) {
  for (int i = 0; i < 5; ++i) add(i, i);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(make_room(root_, 10 * kUnit, 100));
  EXPECT_EQ(blocks(), 5U);
}

TEST_F(Ledger, WhatFitsNeverIsRefusedAndDeletesNothing) {
  add(1, 1);
  EXPECT_FALSE(make_room(root_, 10 * kUnit, 10 * kUnit));
  EXPECT_EQ(blocks(), 1U);
}

TEST_F(Ledger, ManyThatAddTogetherAreAllCounted) {
  fs::create_directories(root_);
  std::vector<std::jthread> threads;
  std::atomic<int> taken = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 20; ++n) taken += make_room(root_, 1000 * kUnit, kUnit) ? 1 : 0;
    });
  }
  threads.clear();
  EXPECT_EQ(taken, 160);
  EXPECT_EQ(std::stoull(test::read_file(root_ + "/bytes")), 160 * kUnit);
}

TEST_F(Ledger, BlocksThatAreBeingWrittenAreCounted) {
  constexpr std::uint64_t kLimit = 10 * kUnit;
  fs::create_directories(root_ + "/aa");
  std::atomic<std::uint64_t> most = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 50; ++n) {
        const Room room = make_room(root_, kLimit, 3 * kUnit);
        if (!room) continue;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));  // as a slow disk would
        std::string name = std::to_string(100 * i + n);
        name = root_ + "/aa/" + std::string(32 - name.size(), 'a') + name + ".object";
        test::write_file(name, std::string(3 * kUnit, 'x'));
        std::uint64_t bytes = 0;
        for_each_block(root_, [&](const BlockOnDisk& block) { bytes += block.bytes; });
        for (std::uint64_t before = most; before < bytes && !most.compare_exchange_weak(before, bytes);) continue;
      }
    });
  }
  threads.clear();
  EXPECT_GT(most, 0U);
  EXPECT_LE(most, kLimit);
}

TEST_F(Ledger, NobodyCountsWhileABlockIsWritten) {
  fs::create_directories(root_);
  std::atomic<bool> counted = false;
  std::jthread other;
  static_cast<void>(make_room(root_, 10 * kUnit, kUnit));  // the first counts, and so is alone
  {
    const Room first = make_room(root_, 10 * kUnit, 2 * kUnit);
    ASSERT_TRUE(first);
    std::thread([&] { EXPECT_TRUE(make_room(root_, 10 * kUnit, 2 * kUnit)); }).join();  // fits beside it
    other = std::jthread([&] { counted = static_cast<bool>(make_room(root_, 10 * kUnit, 8 * kUnit)); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(counted);
  }
  other.join();
  EXPECT_TRUE(counted);
}

TEST_F(Ledger, ASumThatSomebodySpoiledIsCountedAnew) {
  add(1, 1);
  for (const char* const text : {"", "many\n", "-3"}) {
    test::write_file(root_ + "/bytes", text);
    ASSERT_TRUE(make_room(root_, 10 * kUnit, kUnit));
    EXPECT_EQ(std::stoull(test::read_file(root_ + "/bytes")), 2 * kUnit) << text;
  }
}

TEST_F(Ledger, ClearingTakesBlocksAlone) {
  add(1, 1, "s3://bucket/a");
  add(2, 2, "s3://bucket/b");
  test::write_file(root_ + "/aa/mine.txt", "x");
  test::write_file(root_ + "/mine.txt", "x");
  const auto only = [](const std::string& url) { return url == "s3://bucket/a"; };
  EXPECT_EQ(cache_usage(root_, only).objects, 1U);
  EXPECT_EQ(clear_cache(root_, only).blocks, 1U);
  EXPECT_EQ(blocks(), 1U);
  EXPECT_EQ(clear_cache(root_).blocks, 1U);
  EXPECT_EQ(blocks(), 0U);
  EXPECT_TRUE(fs::exists(root_ + "/aa/mine.txt"));
  EXPECT_TRUE(fs::exists(root_ + "/mine.txt"));
  EXPECT_EQ(clear_cache(root_ + "/nowhere").blocks, 0U);
}

TEST_F(Ledger, TextsThatAreNone) {
  BlockText out;
  EXPECT_TRUE(BlockText::parse(BlockText{"\"e\"", 5, "http://x/a"}.to_string(), out));
  EXPECT_EQ(out.etag, "\"e\"");
  EXPECT_EQ(out.size, 5U);
  EXPECT_EQ(out.url, "http://x/a");
  for (const char* const text : {"", "\n", "e\n\nx", "e\n5x\nx", "e\n-5\nx", "e\n5"}) {
    EXPECT_FALSE(BlockText::parse(text, out)) << text;
  }
}

// A worker that is forked while a thread keeps a block has all descriptors of its parent.
TEST_F(Ledger, AForkedChildKeepsNoLock) {
  fs::create_directories(root_);
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  pid_t child = 0;
  {
    const Room room = make_room(root_, 10 * kUnit, kUnit);
    ASSERT_TRUE(room);
    child = ::fork();
    if (child == 0) {
      ::close(pipe[1]);
      char byte = 0;
      static_cast<void>(!::read(pipe[0], &byte, 1));  // until the parent has looked
      ::_exit(0);
    }
  }
  const int writing = ::open((root_ + "/writing").c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_EQ(::flock(writing, LOCK_EX | LOCK_NB), 0) << "whoever wants to delete blocks would wait for ever";
  ::close(writing);
  ::close(pipe[1]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  ::close(pipe[0]);
}

}  // namespace
}  // namespace penstock::io::remote
