// A signal may interrupt a call that opens a file on a slow file system. This program's own openat is one.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>

#include "io/file/output.h"
#include "penstock/source.h"
#include "support/files.h"

namespace {

std::atomic<int> interruptions{0};

}  // namespace

extern "C" int openat(int folder, const char* name, int flags, ...) {
  if (interruptions.load() > 0 && interruptions.fetch_sub(1) > 0) {
    errno = EINTR;
    return -1;
  }
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return static_cast<int>(::syscall(SYS_openat, folder, name, flags, mode));
}

namespace penstock::io {
namespace {

TEST(InterruptedOpen, IsTriedAgain) {
  const test::TemporaryFolder folder;
  const auto out = open_output(folder / "a");
  out->write_text("hello");
  out->commit();
  interruptions = 3;
  EXPECT_EQ(open_source(folder / "a").size(), 5U);
  EXPECT_EQ(interruptions, 0);
  interruptions = 2;
  open_output(folder / "b")->commit();
  EXPECT_EQ(interruptions, 0);
  EXPECT_EQ(test::read_file(folder / "b"), "");
}

}  // namespace
}  // namespace penstock::io
