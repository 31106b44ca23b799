#include "io/file/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "support/errors.h"
#include "support/files.h"
#include "support/process.h"
#include "support/seccomp.h"
#include "support/unprivileged.h"

namespace penstock::io {
namespace {

using test::code_of;
using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

mode_t mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

void save(const std::string& path, std::string_view text) {
  AtomicFile file(path, false);
  file.write_text(text);
  file.commit();
}

/// The current folder, for its lifetime.
class WorkingFolder {
 public:
  explicit WorkingFolder(const std::filesystem::path& folder) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
  }
  ~WorkingFolder() { std::filesystem::current_path(before_); }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;

 private:
  std::filesystem::path before_;
};

TEST(AtomicFile, AppearsWhenItIsCommitted) {
  const test::TemporaryFolder folder;
  for (const bool sync : {false, true}) {
    std::filesystem::remove(folder / "a");
    AtomicFile file(folder / "a", sync);
    file.write_text("hello ");
    file.write_text("world");
    EXPECT_EQ(file.position(), 11U);
    EXPECT_FALSE(std::filesystem::exists(folder / "a"));
    file.commit();
    EXPECT_EQ(test::read_file(folder / "a"), "hello world");
    EXPECT_THAT(folder.names(), ElementsAre("a"));
  }
}

TEST(AtomicFile, KeepsTheOrderOfSmallAndLargeWrites) {
  const test::TemporaryFolder folder;
  std::string expected;
  AtomicFile file(folder / "a", false);
  for (const std::size_t length : {1, 262'143, 1, 262'144, 5, 1'000'000, 0, 262'145, 100'000, 100'000, 100'000}) {
    const std::string part(length, static_cast<char>('a' + expected.size() % 26));
    file.write_text(part);
    expected += part;
    EXPECT_EQ(file.position(), expected.size());
  }
  file.commit();
  EXPECT_TRUE(test::read_file(folder / "a") == expected);
}

TEST(AtomicFile, MayBeEmpty) {
  const test::TemporaryFolder folder;
  save(folder / "a", "");
  EXPECT_EQ(test::read_file(folder / "a"), "");
}

TEST(AtomicFile, WithoutCommitNothingRemains) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "old", "old");
  for (const char* name : {"new", "old"}) {
    AtomicFile file(folder / name);
    file.write_text(std::string(1'000'000, 'x'));
    EXPECT_THAT(folder.names(), ElementsAre("old"));
  }
  EXPECT_THAT(folder.names(), ElementsAre("old"));
  EXPECT_EQ(test::read_file(folder / "old"), "old");
}

TEST(AtomicFile, AProcessThatIsKilledLeavesNothing) {
  const test::TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(folder / "a");
    file.write_text(std::string(1'000'000, 'x'));
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_THAT(folder.names(), IsEmpty());
}

// Where files have names from the beginning; this process knows no others from here on.
TEST(AtomicFile, DISABLED_OnFileSystemsWithoutUnnamedFiles) {
  if (!test::refuse({{.call = SYS_openat, .error = EOPNOTSUPP, .argument = 2, .bits = O_TMPFILE}})) ::_exit(77);
  const test::TemporaryFolder folder;
  {
    AtomicFile file(folder / "model.pt");
    ASSERT_EQ(folder.names().size(), 1U);
    EXPECT_THAT(folder.names()[0], testing::MatchesRegex("\\.model\\.pt\\.[a-z2-7]+\\.tmp"));
    file.write_text(std::string(1'000'000, 'x'));
  }
  EXPECT_THAT(folder.names(), IsEmpty());
  {
    auto file = std::make_unique<AtomicFile>(folder / "forked");
    file->write_text("x");
    const pid_t child = ::fork();
    if (child == 0) {
      file.reset();
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(folder.names().size(), 1U) << "it is the parent's";
    file->commit();
    EXPECT_EQ(test::read_file(folder / "forked"), "x");
    ASSERT_EQ(::chmod((folder / "forked").c_str(), 0600), 0);
    const AtomicFile other(folder / "forked");
    for (const std::string& name : folder.names()) EXPECT_EQ(mode_of(folder / name), 0600U) << name;
  }
  std::filesystem::remove(folder / "forked");
  save(folder / "a", "first");
  save(folder / "a", "second");
  EXPECT_EQ(test::read_file(folder / "a"), "second");
  EXPECT_THAT(folder.names(), ElementsAre("a"));
  EXPECT_EQ(code_of([&] { AtomicFile(folder / ""); }), ErrorCode::kIsDirectory);
}

/// Whether this process has a file open that has no name any more.
bool holds_a_deleted_file() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the iterator's own descriptor, or one that was closed meanwhile
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (!gone && target.ends_with("x (deleted)")) return true;
  }
  return false;
}

TEST(AtomicFile, GivesBackTheBlocksOfALargeFileThatItReplaces) {
  const test::TemporaryFolder folder;
  const std::string large(std::size_t{1} << 20, 'a');
  save(folder / "x", large);
  const std::string kept_before = folder / "y";
  std::filesystem::create_hard_link(folder / "x", kept_before);
  save(folder / "x", "with another name");
  EXPECT_EQ(test::read_file(kept_before), large);
  save(folder / "x", large);
  for (int i = 0; i < 3; ++i) {
    save(folder / "x", large + std::to_string(i));
    EXPECT_EQ(test::read_file(folder / "x"), large + std::to_string(i));
  }
  EXPECT_THAT(folder.names(), UnorderedElementsAre("x", "y"));
  while (holds_a_deleted_file()) std::this_thread::yield();  // else the test's time-out ends it
}

TEST(AtomicFile, NeedsNoFilesWithoutNames) {
  const test::Ended ended = test::run_again("", "AtomicFile.DISABLED_OnFileSystemsWithoutUnnamedFiles");
  if (ended.status == 77) GTEST_SKIP() << "the system offers no filters of its calls";
  EXPECT_EQ(ended.status, 0) << ended.output;
}

// As systems before Linux 6.10 answer all but the administrator.
TEST(AtomicFile, DISABLED_WhereNoDescriptorGetsAName) {
  if (!test::refuse({{.call = SYS_linkat, .error = ENOENT, .argument = 4, .bits = AT_EMPTY_PATH}})) ::_exit(77);
  const test::TemporaryFolder folder;
  save(folder / "a", "first");
  save(folder / "a", "second");
  EXPECT_EQ(test::read_file(folder / "a"), "second");
  EXPECT_THAT(folder.names(), ElementsAre("a"));
}

TEST(AtomicFile, NeedsNoNamesByDescriptor) {
  const test::Ended ended = test::run_again("", "AtomicFile.DISABLED_WhereNoDescriptorGetsAName");
  if (ended.status == 77) GTEST_SKIP() << "the system offers no filters of its calls";
  EXPECT_EQ(ended.status, 0) << ended.output;
}

TEST(AtomicFile, TwoWritersOfOneFileDoNotMix) {
  const test::TemporaryFolder folder;
  AtomicFile first(folder / "a", false);
  AtomicFile second(folder / "a", false);
  first.write_text("first");
  second.write_text("second");
  second.commit();
  first.commit();
  EXPECT_EQ(test::read_file(folder / "a"), "first");
  EXPECT_THAT(folder.names(), ElementsAre("a"));
}

TEST(AtomicFile, ANewFileHasTheUsualPermissionsAndAnOldOneKeepsIts) {
  const test::TemporaryFolder folder;
  const mode_t before = ::umask(027);
  save(folder / "new", "x");
  test::write_file(folder / "old", "old");
  ASSERT_EQ(::chmod((folder / "old").c_str(), 0604), 0);
  save(folder / "old", "new");
  ::umask(before);
  EXPECT_EQ(mode_of(folder / "new"), 0640U);
  EXPECT_EQ(mode_of(folder / "old"), 0604U);
  EXPECT_EQ(test::read_file(folder / "old"), "new");
}

// Who is no administrator keeps the group of a file where he is in it: others of the group have to read on.
TEST(AtomicFile, AFileOfAGroupStaysOne) {
  if (::geteuid() != 0) GTEST_SKIP() << "takes groups that nobody else is in";
  constexpr gid_t kTeam = 54321;
  const test::TemporaryFolder folder;
  test::Unprivileged::give(folder.path());
  test::write_file(folder / "shared", "old");
  ASSERT_EQ(::chown((folder / "shared").c_str(), 12345, kTeam), 0);
  ASSERT_EQ(::chmod((folder / "shared").c_str(), 0660), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgroups(1, &kTeam) != 0 || ::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(77);
    save(folder / "shared", "new");
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "this container changes no user";
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  struct stat now {};
  ASSERT_EQ(::stat((folder / "shared").c_str(), &now), 0);
  EXPECT_EQ(test::read_file(folder / "shared"), "new");
  EXPECT_EQ(now.st_gid, kTeam);
  EXPECT_EQ(mode_of(folder / "shared"), 0660U);
}

TEST(AtomicFile, WhatIsSaidOfAFileIsSaidOfItsNewContent) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "a";
  save(path, "old");
  if (::setxattr(path.c_str(), "user.note", "from run 7", 10, 0) != 0) GTEST_SKIP() << "this file system has none";
  ASSERT_EQ(::setxattr(path.c_str(), "user.empty", "", 0, 0), 0);
  save(path, "new");
  EXPECT_EQ(test::read_file(path), "new");
  char note[16] = {};
  EXPECT_EQ(::getxattr(path.c_str(), "user.note", note, sizeof note), 10);
  EXPECT_STREQ(note, "from run 7");
  EXPECT_EQ(::getxattr(path.c_str(), "user.empty", note, sizeof note), 0);
}

TEST(AtomicFile, FollowsSymbolicLinks) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "below");
  std::filesystem::create_symlink("below/target", folder / "link");
  std::filesystem::create_symlink(folder / "link", folder / "link2");
  save(folder / "link2", "through two links, to a file that was not there");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link2"));
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "below/target"));
  EXPECT_EQ(test::read_file(folder / "link"), "through two links, to a file that was not there");
  save(folder / "link", "again");
  EXPECT_EQ(test::read_file(folder / "below/target"), "again");
  std::filesystem::create_symlink("round", folder / "round");
  EXPECT_TRUE(error_of([&] { save(folder / "round", "x"); }));
}

TEST(AtomicFile, DoesNotMindWhereTheProcessStands) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "elsewhere");
  const WorkingFolder standing(folder.path());
  AtomicFile file("a", false);
  file.write_text("x");
  std::filesystem::current_path(folder / "elsewhere");
  file.commit();
  EXPECT_EQ(test::read_file(folder / "a"), "x");
  EXPECT_THAT(folder.names(), UnorderedElementsAre("a", "elsewhere"));
}

TEST(AtomicFile, TakesTheLongestName) {
  const test::TemporaryFolder folder;
  const std::string name(255, 'n');
  save(folder / name, "x");
  EXPECT_EQ(test::read_file(folder / name), "x");
  EXPECT_TRUE(error_of([&] { save(folder / (name + "n"), "x"); }));
}

TEST(AtomicFile, SaysWhatIsWrongWithAPath) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "file", "x");
  const auto error = error_of([&] { AtomicFile(folder / "missing/a"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kNotFound);
  EXPECT_EQ(error->path(), folder / "missing/a");
  EXPECT_EQ(code_of([&] { AtomicFile(folder / "file/a"); }), ErrorCode::kNotDirectory);
  EXPECT_EQ(code_of([&] { AtomicFile(folder.path().string()); }), ErrorCode::kIsDirectory);
  EXPECT_EQ(code_of([&] { AtomicFile(folder.path().string() + "/"); }), ErrorCode::kIsDirectory);
  EXPECT_EQ(code_of([&] { AtomicFile(folder.path().string() + "/.."); }), ErrorCode::kIsDirectory);
  EXPECT_EQ(code_of([] { AtomicFile(""); }), ErrorCode::kNotFound);
  EXPECT_EQ(code_of([] { AtomicFile(std::string("a\0b", 3)); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of([] { AtomicFile("/dev/null"); }), ErrorCode::kUnsupported);
  EXPECT_THAT(folder.names(), ElementsAre("file"));
}

TEST(AtomicFile, NeedsPermission) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "kept", "x");
  test::Unprivileged::give(folder.path());
  test::Unprivileged::give(folder / "kept");
  const test::Unprivileged unprivileged;
  ASSERT_EQ(::chmod((folder / "kept").c_str(), 0444), 0);
  EXPECT_EQ(code_of([&] { AtomicFile(folder / "kept"); }), ErrorCode::kPermission);
  EXPECT_THAT(folder.names(), ElementsAre("kept"));
  ASSERT_EQ(::chmod(folder.path().c_str(), 0555), 0);
  EXPECT_EQ(code_of([&] { AtomicFile(folder / "a"); }), ErrorCode::kPermission);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
}

TEST(AtomicFile, WritesInAFolderThatCannotBeListed) {
  const test::TemporaryFolder folder;
  test::Unprivileged::give(folder.path());
  const test::Unprivileged unprivileged;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0333), 0);
  AtomicFile file(folder / "a");
  file.write_text("x");
  file.commit();
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  EXPECT_THAT(folder.names(), ElementsAre("a"));
}

TEST(AtomicFile, AFolderThatTakesItsPlaceIsLeftAlone) {
  const test::TemporaryFolder folder;
  {
    AtomicFile file(folder / "a", false);
    std::filesystem::create_directory(folder / "a");
    EXPECT_EQ(code_of([&] { file.commit(); }), ErrorCode::kIsDirectory);
  }
  EXPECT_THAT(folder.names(), ElementsAre("a"));
  EXPECT_TRUE(std::filesystem::is_directory(folder / "a"));
}

TEST(AtomicFile, CannotBeUsedAfterCommit) {
  const test::TemporaryFolder folder;
  AtomicFile file(folder / "a", false);
  file.commit();
  EXPECT_EQ(code_of([&] { file.commit(); }), ErrorCode::kInvalidArgument);
}

TEST(AtomicFile, AFileThatGetsTooLargeIsAnErrorAndNoSignal) {
  const test::TemporaryFolder folder;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
  {
    AtomicFile file(folder / "a", false);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    const auto error = error_of([&] { file.write_text(std::string(1'000'000, 'x')); });
    ::setrlimit(RLIMIT_FSIZE, &before);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kIo);
    EXPECT_THAT(error->message(), HasSubstr("File too large"));
    EXPECT_EQ(error->path(), folder / "a");
  }
  EXPECT_THAT(folder.names(), IsEmpty());
  sigset_t pending;
  ASSERT_EQ(::sigpending(&pending), 0);
  EXPECT_EQ(::sigismember(&pending, SIGXFSZ), 0);
  sigset_t blocked;
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, nullptr, &blocked), 0);
  EXPECT_EQ(::sigismember(&blocked, SIGXFSZ), 0);
}

TEST(AtomicFile, ASignalThatIsIgnoredStaysSo) {
  const auto before = ::signal(SIGXFSZ, SIG_IGN);
  const test::TemporaryFolder folder;
  save(folder / "a", "first");
  EXPECT_EQ(::signal(SIGXFSZ, before), SIG_IGN);
  EXPECT_EQ(test::read_file(folder / "a"), "first");
}

TEST(AtomicFile, MappedBytesThatAreGoneAreNoErrorOfTheFile) {
  const test::TemporaryFolder folder;
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  const std::string source = folder / "source";
  save(source, std::string(kBytes, 'x'));
  const int descriptor = ::open(source.c_str(), O_RDONLY | O_CLOEXEC);
  void* const map = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  ASSERT_NE(map, MAP_FAILED);
  std::filesystem::resize_file(source, 0);
  AtomicFile file(folder / "copy", false);
  const auto error = error_of([&] { file.write({static_cast<const std::byte*>(map), kBytes}); });
  ::munmap(map, kBytes);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kTruncated);
  EXPECT_THAT(error->what(), HasSubstr("mapped from a file that was cut"));
}

TEST(AtomicFile, AFullDiskIsAnError) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "there is no /dev/full";
  const test::TemporaryFolder folder;
  {
    AtomicFile file(folder / "a", false);
    // No small file system to fill: the descriptor that leads to the file leads to /dev/full from here on.
    int descriptor = -1;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code ignored;
      const std::filesystem::path led = std::filesystem::read_symlink(entry.path(), ignored);
      if (led.string().starts_with(folder / "#") || led.string().starts_with(folder / ".a.")) {
        descriptor = std::stoi(entry.path().filename().string());
      }
    }
    ASSERT_GE(descriptor, 0);
    const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(::dup2(full, descriptor), descriptor);
    ::close(full);
    file.write_text("x");
    const auto error = error_of([&] { file.commit(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kIo);
    EXPECT_THAT(error->message(), HasSubstr("No space left on device"));
  }
  EXPECT_THAT(folder.names(), IsEmpty());
}

}  // namespace
}  // namespace penstock::io
