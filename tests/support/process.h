#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

#include "support/emulator.h"

namespace penstock::test {

struct Ended {
  int status = -1;     ///< the exit status; 256 and the signal where one ended it
  std::string output;  ///< of both streams
};

/// This test program again, in another environment ("A=1 B=2"), running the cases of `filter`, disabled ones too: what
/// a process does once, such as finding its driver, is tested so.
inline Ended run_again(const std::string& environment, const std::string& filter) {
  std::array<char, 4096> self{};
  EXPECT_GT(::readlink("/proc/self/exe", self.data(), self.size() - 1), 0);
  const std::string run_by = emulator() == nullptr ? std::string() : std::string("'") + emulator() + "' ";
  // Which part of all cases this program runs (ctest says so) is nothing to the other one.
  const std::string command = "env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX " + environment + " " + run_by + "'" +
                              self.data() + "' --gtest_also_run_disabled_tests --gtest_filter='" + filter + "' 2>&1";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  Ended ended;
  if (pipe == nullptr) return ended;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) ended.output += static_cast<char>(c);
  const int status = ::pclose(pipe);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
  return ended;
}

}  // namespace penstock::test
