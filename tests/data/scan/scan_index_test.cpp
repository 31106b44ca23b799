#include "data/scan/scan_index.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "data/scan/folder_list.h"
#include "data/scan/glob.h"
#include "penstock/dataset.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/process.h"
#include "support/seccomp.h"
#include "support/unprivileged.h"

namespace penstock::data {
namespace {

using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class IndexedFiles : public ::testing::Test {
 protected:
  /// What changed within the last two seconds is not remembered, and the time of the last change of an inode cannot be
  /// set. So the folders of all tests are made here, and the first test that wants old ones waits for all.
  static void SetUpTestSuite() {
    const auto tests =
        static_cast<std::size_t>(::testing::UnitTest::GetInstance()->current_test_suite()->total_test_count());
    for (std::size_t i = 0; i < tests; ++i) {
      const TemporaryFolder& folder = *unused_.emplace_back(std::make_unique<TemporaryFolder>(test::quick_folder()));
      for (const char* name : {"d/a/1.pt", "d/a/2.pt", "d/b/3.pt", "d/b/deep/4.pt", "d/0.pt", "e/a/1.pt", "e/b/3.pt",
                               "e/b/deep/4.pt", "e/0.pt"})
        make_file(folder / name);
      timespec past[2] = {{1'600'000'000, 0}, {1'600'000'000, 0}};
      for (const char* name : {"d/b/deep", "d/b", "d/a", "d", "e/b/deep", "e/b", "e/a", "e"})
        ::utimensat(AT_FDCWD, (folder / name).c_str(), past, 0);
    }
    old_at_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(2100);
  }
  static void TearDownTestSuite() { unused_.clear(); }

  static void make_file(const std::filesystem::path& path) {
    std::filesystem::create_directories(path.parent_path());
    test::write_file(path.string(), "x");
  }
  void add(const std::string& name) const { make_file(folder_ / name); }

  static void age() { std::this_thread::sleep_until(old_at_); }

  std::vector<std::string> names(const std::string& pattern = "d/**/*.pt") const {
    const PathTable table = expand(folder_ / pattern, {.index = true, .index_path = index_});
    std::vector<std::string> out;
    for (std::int64_t i = 0; i < table.size(); ++i) out.push_back(table.path(i).substr((folder_ / "").size()));
    return out;
  }

  std::size_t fresh(const std::string& pattern = "d/**/*.pt") const {
    const auto parts = split_pattern(folder_ / pattern);
    return scan_folders("/", parts, {.known = ScanIndex(index_, folder_ / pattern).read(parts.size())}).fresh;
  }

  static std::unique_ptr<TemporaryFolder> next_folder() {
    auto folder = std::move(unused_.back());
    unused_.pop_back();
    return folder;
  }

  static inline std::vector<std::unique_ptr<TemporaryFolder>> unused_;
  static inline std::chrono::steady_clock::time_point old_at_;
  const std::unique_ptr<TemporaryFolder> owned_ = next_folder();
  const TemporaryFolder& folder_ = *owned_;
  std::string index_ = folder_ / "files.index";
};

TEST_F(IndexedFiles, LooksOnlyIntoFoldersThatChanged) {
  age();
  const auto all = ElementsAre("d/0.pt", "d/a/1.pt", "d/a/2.pt", "d/b/3.pt", "d/b/deep/4.pt");
  EXPECT_EQ(fresh(), 4U);
  EXPECT_THAT(names(), all);
  EXPECT_EQ(fresh(), 0U);
  EXPECT_THAT(names(), all);

  add("d/b/5.pt");
  std::filesystem::remove(folder_ / "d/a/1.pt");
  EXPECT_EQ(fresh(), 2U);
  EXPECT_THAT(names(), ElementsAre("d/0.pt", "d/a/2.pt", "d/b/3.pt", "d/b/5.pt", "d/b/deep/4.pt"));
  EXPECT_EQ(fresh(), 2U) << "changed so shortly before that a further change could have the same time";
  std::filesystem::rename(folder_ / "d/b/deep", folder_ / "d/moved");
  EXPECT_THAT(names(), ElementsAre("d/0.pt", "d/a/2.pt", "d/b/3.pt", "d/b/5.pt", "d/moved/4.pt"));
  std::filesystem::remove_all(folder_ / "d/a");
  EXPECT_THAT(names(), ElementsAre("d/0.pt", "d/b/3.pt", "d/b/5.pt", "d/moved/4.pt"));
}

TEST_F(IndexedFiles, IsOfOnePattern) {
  age();
  names();
  EXPECT_THAT(names("d/a/*.pt"), ElementsAre("d/a/1.pt", "d/a/2.pt"));
  EXPECT_EQ(fresh("d/a/*.pt"), 0U);
  EXPECT_EQ(fresh(), 4U) << "the index is now the other's";
  EXPECT_THAT(names("d/b"), ElementsAre("d/b/3.pt"));
  EXPECT_THAT(names("d/b"), ElementsAre("d/b/3.pt"));
}

TEST_F(IndexedFiles, DamagedIndexesAreMadeAnew) {
  age();
  const auto expected = names();
  const std::string good = test::read_file(index_);
  ASSERT_EQ(fresh(), 0U) << "a whole one is believed";
  const std::size_t step = (good.size() / 150) | 1;  // odd, for both kinds of damage; fuzz_scan_index tries all places
  for (std::size_t cut = 0; cut < good.size(); cut += step) {
    test::write_file(index_, good.substr(0, cut));
    ASSERT_EQ(fresh(), 4U) << cut;
    ASSERT_EQ(names(), expected) << cut;
    ASSERT_EQ(test::read_file(index_), good);
  }
  std::mt19937 random(7);
  for (std::size_t at = 0; at < good.size(); at += step) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (at % 2 == 0 ? 1 << random() % 8 : 1 + random() % 255));
    test::write_file(index_, bad);
    ASSERT_EQ(fresh(), 4U) << at;
    ASSERT_EQ(names(), expected) << at;
  }
  for (const std::string& longer : {good + '\0', good + good}) {
    test::write_file(index_, longer);
    ASSERT_EQ(fresh(), 4U);
    ASSERT_EQ(names(), expected);
  }
}

TEST_F(IndexedFiles, IsOfWhatIsLeftOut) {
  age();
  EXPECT_EQ(names().size(), 5U);
  const auto without = expand(folder_ / "d/**/*.pt", {.index = true, .index_path = index_, .exclude = {"b"}});
  EXPECT_EQ(without.size(), 3);
  EXPECT_EQ(names().size(), 5U) << "what was left out is there again";
}

// This process can make no file from here on.
TEST_F(IndexedFiles, DISABLED_OnAFullDisk) {
  const bool full = test::refuse({{.call = SYS_openat, .error = ENOSPC, .argument = 2, .bits = O_TMPFILE},
                                  {.call = SYS_openat, .error = ENOSPC, .argument = 2, .bits = O_CREAT}});
  if (!full) ::_exit(77);
  EXPECT_EQ(names().size(), 5U);
  EXPECT_FALSE(std::filesystem::exists(index_));
}

TEST_F(IndexedFiles, AFullDiskOnlyTakesTheIndex) {
  const test::Ended ended = test::run_again("", "IndexedFiles.DISABLED_OnAFullDisk");
  if (ended.status == 77) GTEST_SKIP() << "the system offers no filters of its calls";
  EXPECT_EQ(ended.status, 0) << ended.output;
}

TEST_F(IndexedFiles, OtherFilesAreNotWrittenOver) {
  for (const std::string content : {"x", "some text that somebody wrote", "\x93NUMPY\x01", "PSTK"}) {
    test::write_file(index_, content);
    if (std::string_view("PSTKIDX").starts_with(content)) {
      EXPECT_EQ(names().size(), 5U);
      continue;
    }
    const auto error = test::error_of([&] { names(); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error->path(), std::string(index_));
    EXPECT_EQ(test::read_file(index_), content);
  }
}

TEST_F(IndexedFiles, AnotherFoldersIsNotBelieved) {
  age();
  names();
  EXPECT_THAT(names("e/**/*.pt"), ElementsAre("e/0.pt", "e/a/1.pt", "e/b/3.pt", "e/b/deep/4.pt"));

  // The same relative pattern, begun in another folder.
  const auto listed = [&](const std::string& from) {
    const std::filesystem::path before = std::filesystem::current_path();
    std::filesystem::current_path(folder_ / from);
    const auto count = expand("**/*.pt", {.index = true, .index_path = index_}).size();
    std::filesystem::current_path(before);
    return count;
  };
  EXPECT_EQ(listed("d"), 5);
  EXPECT_EQ(listed("e"), 4);
  EXPECT_EQ(listed("d"), 5);
}

TEST_F(IndexedFiles, AnIndexOfAnotherDayIsStaleInBothDirections) {
  age();
  names();
  const std::string old = test::read_file(index_);
  add("d/b/deep/6.pt");
  add("d/new/7.pt");
  std::filesystem::remove(folder_ / "d/a/1.pt");
  std::filesystem::rename(folder_ / "d/a/2.pt", folder_ / "d/a/2.npy");
  const auto now = ElementsAre("d/0.pt", "d/b/3.pt", "d/b/deep/4.pt", "d/b/deep/6.pt", "d/new/7.pt");
  EXPECT_THAT(names(), now);
  test::write_file(index_, old);
  EXPECT_THAT(names(), now) << "a backup of the index";
  // A file that becomes a folder of its name, and the other way round.
  std::filesystem::remove(folder_ / "d/b/3.pt");
  std::filesystem::create_directory(folder_ / "d/b/3.pt");
  std::filesystem::remove_all(folder_ / "d/new");
  add("d/new");
  EXPECT_THAT(names(), ElementsAre("d/0.pt", "d/b/deep/4.pt", "d/b/deep/6.pt"));
  EXPECT_THAT(names(), ElementsAre("d/0.pt", "d/b/deep/4.pt", "d/b/deep/6.pt"));
}

TEST_F(IndexedFiles, OthersMayWriteItMeanwhile) {
  age();
  const auto expected = names();
  const std::string good = test::read_file(index_);
  std::atomic<bool> done = false;
  std::vector<std::thread> others;
  others.emplace_back([&] {
    // One that knows nothing of atomic files, and one that lists another pattern.
    for (std::size_t i = 0; !done; ++i) {
      std::ofstream(index_, std::ios::binary) << good.substr(0, i * 13 % good.size());
      std::ofstream(index_, std::ios::binary | std::ios::in) << good;
    }
  });
  others.emplace_back([&] {
    while (!done) EXPECT_EQ(names("d/a/*.pt").size(), 2U);
  });
  others.emplace_back([&] {
    while (!done) EXPECT_EQ(names(), expected);
  });
  for (int i = 0; i < 300; ++i) EXPECT_EQ(names(), expected) << i;
  done = true;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(names(), expected);
}

TEST_F(IndexedFiles, LiesWithARightChecksumAreNotBelieved) {
  const std::string pattern = folder_ / "d/**/*.pt";
  const std::size_t parts = split_pattern(pattern).size();
  const ScanIndex index(index_, pattern);
  const FolderIdentity identity{1, 2, 3, 4};
  const auto unread = [&](const Listing& listing) {
    index.write({listing});
    return index.read(parts).empty();
  };
  const auto part = static_cast<std::uint32_t>(parts - 1);
  EXPECT_FALSE(unread({{"d", {part}}, identity, std::string("a\0", 2), {}}));
  EXPECT_TRUE(unread({{"d", {part}}, identity, "a", {}})) << "no end";
  EXPECT_TRUE(unread({{"d", {part}}, identity, std::string("../../a\0", 8), {}})) << "not in the folder";
  EXPECT_TRUE(unread({{"d", {part + 1}}, identity, {}, {}})) << "a part that the pattern has not";
  EXPECT_TRUE(unread({{std::string("d\0e", 3), {part}}, identity, {}, {}}));
}

TEST_F(IndexedFiles, FoldersThatLeadBackAreNotBelieved) {
  const std::string pattern = folder_ / "d/**/*.pt";
  const ScanIndex index(index_, pattern);
  const auto part = static_cast<std::uint32_t>(split_pattern(pattern).size() - 1);
  const std::string top = folder_ / "d";
  const FolderIdentity identity = identity_of(top);
  for (const std::string& next : {top, folder_.path().string(), std::string("/"), std::string(), top.substr(1)}) {
    index.write({{{top, {part - 1, part}}, identity, std::string("0.pt\0", 5), {{next, {part - 1, part}}}}});
    EXPECT_TRUE(index.read(part + 1).empty()) << next;
    EXPECT_EQ(names().size(), 5U) << next;
  }
}

TEST_F(IndexedFiles, NamesOfFilesThatAreGoneAreErrorsOfTheirSamples) {
  age();
  const std::string pattern = folder_ / "d/a/*.pt";
  const std::string folder = folder_ / "d/a";
  std::filesystem::create_directory(folder_ / "d/elsewhere");
  const auto part = static_cast<std::uint32_t>(split_pattern(pattern).size() - 1);
  const std::string lie("1.pt\0gone.pt\0x\0", 15);
  ScanIndex(index_, pattern).write({{{folder, {part}}, identity_of(folder), lie, {}}});
  const Dataset dataset = files(pattern, {.index = true, .index_path = index_});
  ASSERT_EQ(dataset.size(), 3) << "an index that looks right is believed";
  EXPECT_EQ(test::code_of([&] { dataset.get(0); }), ErrorCode::kUnknownFormat);
  EXPECT_EQ(test::code_of([&] { dataset.get(1); }), ErrorCode::kNotFound);
  EXPECT_EQ(test::code_of([&] { dataset.get(2); }), ErrorCode::kNotFound);
}

TEST_F(IndexedFiles, WhatIsNoFileInTheIndexesPlaceIsToldAndNeverWaitedFor) {
  std::filesystem::create_directory(index_);
  EXPECT_EQ(test::code_of([&] { names(); }), ErrorCode::kIsDirectory);
  std::filesystem::remove(index_);
  ASSERT_EQ(::mkfifo(index_.c_str(), 0600), 0);
  EXPECT_EQ(test::code_of([&] { names(); }), ErrorCode::kUnsupported);
  std::filesystem::remove(index_);
  std::filesystem::create_symlink(index_, index_);
  EXPECT_TRUE(test::code_of([&] { names(); })) << "a link to itself";
  std::filesystem::remove(index_);
  index_ = "/dev/full";
  EXPECT_EQ(test::code_of([&] { names(); }), ErrorCode::kUnsupported);
}

TEST_F(IndexedFiles, AnIndexThatCannotBeReadIsMadeAnew) {
  const auto expected = names();
  ASSERT_EQ(::chmod(index_.c_str(), 0200), 0);
  test::Unprivileged::give(index_);
  test::Unprivileged::give(folder_.path().string());
  const test::Unprivileged unprivileged;
  EXPECT_EQ(names(), expected);
}

TEST_F(IndexedFiles, AnIndexOfAnyLengthIsRefusedByItsHead) {
  age();  // young folders are listed anew, and how they are written down depends on the time
  const auto expected = names();
  const std::string good = test::read_file(index_);
  for (const std::string& head : {std::string("PSTKIDX1"), good.substr(0, 8), good}) {
    test::write_file(index_, head);
    std::filesystem::resize_file(index_, std::uintmax_t{1} << 40);
    EXPECT_EQ(names(), expected);
    EXPECT_EQ(test::read_file(index_), good);
  }
}

TEST_F(IndexedFiles, OnePathThatCannotBeWrittenIsAnErrorTheCacheIsNot) {
  age();
  index_ = folder_ / "nowhere/files.index";
  EXPECT_EQ(test::code_of([&] { names(); }), ErrorCode::kNotFound);

  const char* const before = std::getenv("XDG_CACHE_HOME");
  const std::optional<std::string> kept = before ? std::optional<std::string>(before) : std::nullopt;
  index_.clear();
  ::setenv("XDG_CACHE_HOME", (folder_ / "d/0.pt/cache").c_str(), 1);
  EXPECT_EQ(names().size(), 5U);
  ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
  EXPECT_EQ(names().size(), 5U);
  EXPECT_THAT(ScanIndex("", folder_ / "d/**/*.pt").path(), HasSubstr("/cache/penstock/files-"));
  EXPECT_EQ(fresh(), 0U);
  if (kept) {
    ::setenv("XDG_CACHE_HOME", kept->c_str(), 1);
  } else {
    ::unsetenv("XDG_CACHE_HOME");
  }
}

TEST_F(IndexedFiles, AListOfPathsHasNone) {
  EXPECT_EQ(test::code_of([&] { files(std::vector<std::string>{folder_ / "d/0.pt"}, {.index = true}); }),
            ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::data
