#include "core/warning.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace penstock::core {
namespace {

TEST(Warning, StopsNobodyWhoseStderrTakesNoMore) {
  const int before = ::dup(STDERR_FILENO);
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  ::dup2(full, STDERR_FILENO);
  EXPECT_NO_THROW(tell_warning({}, "a text"));
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  ::close(full);
}

TEST(Warning, IsGivenToTheProgram) {
  std::string told;
  tell_warning([&](const std::string& text) { told = text; }, "a text");
  EXPECT_EQ(told, "a text");
}

}  // namespace
}  // namespace penstock::core
