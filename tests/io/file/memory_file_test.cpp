#include "io/file/memory_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/round.h"
#include "support/errors.h"
#include "support/limited_addresses.h"
#include "support/process.h"
#include "support/sanitized.h"
#include "support/seccomp.h"

namespace penstock::io {
namespace {

using test::error_of;
using testing::HasSubstr;

TEST(MemoryFiles, NeverBecomeShorter) {
  const FileDescriptor file = new_memory_file(10);
  struct stat status {};
  ASSERT_EQ(::fstat(file.get(), &status), 0);
  EXPECT_EQ(static_cast<std::size_t>(status.st_size), core::page_size());
  EXPECT_NE(::ftruncate(file.get(), 1), 0);
  EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(2 * core::page_size())), 0) << "a description goes behind it";
  EXPECT_NE(::fcntl(file.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(SharedMemory, IsThatOfItsFileAndKeepsADescriptorOfIt) {
  const Buffer memory = allocate_shared(100);
  EXPECT_EQ(memory.size(), 100U);
  std::memcpy(memory.data(), "abc", 3);
  int found = -1;
  for (int fd = 0; fd < 1024 && found < 0; ++fd) {
    char name[64] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (::readlink(link.c_str(), name, sizeof(name) - 1) > 0 && std::string(name).starts_with("/memfd:penstock")) {
      found = fd;
    }
  }
  ASSERT_GE(found, 0);
  char read[3] = {};
  EXPECT_EQ(::pread(found, read, 3, 0), 3);
  EXPECT_EQ(std::string(read, 3), "abc");
}

TEST(SharedMemory, ASecondMappingHasTheSameBytesAndAShortFileIsRefused) {
  const FileDescriptor file = new_memory_file(100);
  const Buffer first = map_memory_file(file.get(), 100);
  std::memcpy(first.data(), "abc", 3);
  const Buffer second = map_memory_file(file.get(), 100);
  EXPECT_EQ(std::memcmp(second.data(), "abc", 3), 0);
  const auto error = error_of([&] { map_memory_file(file.get(), 2 * core::page_size()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kTruncated);
}

TEST(SharedMemory, SaysWhatTheSystemRefuses) {
  constexpr const char* kCase = "PENSTOCK_TEST_REFUSED";
  const char* const which = std::getenv(kCase);
  const std::string name = "SharedMemory.SaysWhatTheSystemRefuses";
  if (which == nullptr) {
    for (const char* const each : {"memfd", "descriptors", "size", "mapping"}) {
      const test::Ended ended = test::run_again(std::string(kCase) + "=" + each, name);
      EXPECT_EQ(ended.status, 0) << each << "\n" << ended.output;
    }
    return;
  }
  const std::string tried = which;
  const auto refused = [](long call, int error) { return test::refuse({{.call = call, .error = error}}); };
  if (tried == "memfd" && !refused(SYS_memfd_create, EPERM)) GTEST_SKIP() << "no filters here";
  if (tried == "descriptors" && !refused(SYS_memfd_create, EMFILE)) GTEST_SKIP() << "no filters here";
  if (tried == "size" && !refused(SYS_ftruncate, EFBIG)) GTEST_SKIP() << "no filters here";
  if (tried == "mapping" && !test::refuse({{.call = SYS_mmap, .error = ENOMEM, .argument = 3, .bits = 1}})) {
    GTEST_SKIP() << "no filters here";
  }
  const auto error = error_of([] { allocate_shared(std::size_t{1} << 22); });
  ASSERT_TRUE(error);
  if (tried == "memfd") {
    EXPECT_EQ(error->code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error->what(), HasSubstr("memfd_create: Operation not permitted"));
  } else if (tried == "descriptors") {
    EXPECT_EQ(error->code(), ErrorCode::kLimit);
    EXPECT_THAT(error->what(), HasSubstr("ulimit -n"));
  } else {
    EXPECT_EQ(error->code(), ErrorCode::kOutOfMemory);
    EXPECT_THAT(error->what(), HasSubstr(tried == "size" ? "File too large" : "cannot be mapped"));
  }
}

TEST(SharedMemory, OfMoreThanTheMachineHasIsRefused) {
  const auto error = error_of([] { new_memory_file(std::size_t{1} << 50); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kOutOfMemory);
}

}  // namespace
}  // namespace penstock::io
