#include "core/cgroup.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace penstock::core {
namespace {

namespace fs = std::filesystem;

class Cgroup : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_); }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << '\n';
  }
  CgroupLimits read() { return read_cgroup_limits((root_ / "self").string(), (root_ / "mount").string()); }

  fs::path root_ = fs::path(testing::TempDir()) /
                   ("penstock_cgroup_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(Cgroup, NoFilesSetNoLimit) {
  EXPECT_FALSE(read().cpus);
  EXPECT_FALSE(read().memory_bytes);
}

TEST_F(Cgroup, VersionTwoTakesTheTightestUpToTheRoot) {
  write("self", "0::/a/b");
  write("mount/cpu.max", "max 100000");
  write("mount/a/cpu.max", "150000 100000");
  write("mount/a/b/cpu.max", "400000 100000");
  write("mount/a/memory.max", "max");
  write("mount/a/b/memory.max", "1073741824");
  EXPECT_EQ(read().cpus, 1.5);
  EXPECT_EQ(read().memory_bytes, 1073741824U);
}

TEST_F(Cgroup, VersionOneHasAFolderForEachController) {
  write("self", "4:memory:/x\n3:cpu,cpuacct:/x\n2:cpuset:/x");
  write("mount/cpu/x/cpu.cfs_quota_us", "50000");
  write("mount/cpu/x/cpu.cfs_period_us", "100000");
  write("mount/memory/x/memory.limit_in_bytes", "4096");
  EXPECT_EQ(read().cpus, 0.5);
  EXPECT_EQ(read().memory_bytes, 4096U);
}

TEST_F(Cgroup, VersionOneWithoutQuota) {
  write("self", "3:cpu,cpuacct:/");
  write("mount/cpu/cpu.cfs_quota_us", "-1");
  write("mount/cpu/cpu.cfs_period_us", "100000");
  EXPECT_FALSE(read().cpus);
}

TEST_F(Cgroup, APathFromOutsideTheContainerFallsBackToTheRoot) {
  write("self", "0::/docker/0123456789");
  write("mount/cpu.max", "200000 100000");
  EXPECT_EQ(read().cpus, 2.0);
}

TEST_F(Cgroup, NonsenseSetsNoLimit) {
  write("self", "nonsense\n:\n::\n0::");
  write("mount/cpu.max", "many few");
  EXPECT_FALSE(read().cpus);
  write("self", "0::/");
  EXPECT_FALSE(read().cpus);
  write("mount/cpu.max", "100000 0");
  EXPECT_FALSE(read().cpus);
}

}  // namespace
}  // namespace penstock::core
