#include "core/forks.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace penstock::core {
namespace {

TEST(Forks, AreCountedInChildrenAlone) {
  const std::uint64_t before = forks();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool counted = forks() == before + 1;
    const pid_t grandchild = ::fork();
    if (grandchild == 0) ::_exit(forks() == before + 2 ? 0 : 1);
    int status = 0;
    ::waitpid(grandchild, &status, 0);
    ::_exit(counted && status == 0 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(forks(), before);
}

}  // namespace
}  // namespace penstock::core
