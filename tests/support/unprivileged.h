#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace penstock::test {

/// For its lifetime the process is an ordinary user to the file system, even where tests run as root.
class Unprivileged {
 public:
  Unprivileged() {
    if (was_root_) {
      EXPECT_EQ(::seteuid(kNobody), 0);
    }
  }
  ~Unprivileged() {
    if (was_root_) {
      EXPECT_EQ(::seteuid(0), 0);
    }
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

  /// Makes `path` belong to the user that this will be. Call before.
  static void give(const std::string& path) {
    if (::geteuid() == 0) {
      EXPECT_EQ(::chown(path.c_str(), kNobody, static_cast<gid_t>(-1)), 0) << path;
    }
  }

 private:
  static constexpr uid_t kNobody = 65534;
  bool was_root_ = ::geteuid() == 0;
};

}  // namespace penstock::test
