#include "io/gds/gds_file_system.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/file/file_descriptor.h"
#include "support/files.h"

namespace penstock::io::gds {
namespace {

using testing::HasSubstr;

constexpr long kExt4 = 0xEF53;
constexpr long kXfs = 0x58465342;
constexpr long kNfsType = 0x6969;
constexpr long kTmpfs = 0x01021994;

Properties with(unsigned flag) { return {.major = 2, .supported = 1U << flag}; }

TEST(GdsFileSystem, DisksAreReadWhereTheyAreNvmeAndNvidiaFsReadsThem) {
  for (const long type : {kExt4, kXfs}) {
    EXPECT_EQ(why_not_direct({type, true}, with(kNvme)), "");
    EXPECT_EQ(why_not_direct({type, true}, with(kNvmeOverFabrics)), "");
    EXPECT_EQ(why_not_direct({type, true}, {.features = 1U << kPeerToPeer}), "");
    EXPECT_EQ(why_not_direct({type, false}, with(kNvme)), "the file does not lie on NVMe disks");
    EXPECT_THAT(why_not_direct({type, true}, with(kNfs)), HasSubstr("does not read NVMe disks"));
    EXPECT_THAT(why_not_direct({type, true}, {}), HasSubstr("does not read NVMe disks"));
  }
}

TEST(GdsFileSystem, RemoteOnesAreReadWhereNvidiaFsKnowsThem) {
  EXPECT_EQ(why_not_direct({kNfsType, false}, with(kNfs)), "");
  EXPECT_THAT(why_not_direct({kNfsType, false}, with(kNvme)), HasSubstr("does not serve the file system"));
  EXPECT_EQ(why_not_direct({0x0BD00BD0, false}, with(kLustre)), "");
  EXPECT_EQ(why_not_direct({0x47504653, false}, with(kGpfs)), "");
  EXPECT_EQ(why_not_direct({0x19830326, false}, with(kBeegfs)), "");
  EXPECT_EQ(why_not_direct({0x19750428, false}, with(kWeka)), "");
}

TEST(GdsFileSystem, OthersAreNot) {
  for (const long type : {0L, kTmpfs, 0x794c7630L}) {
    EXPECT_THAT(why_not_direct({type, true}, with(kNvme)), HasSubstr("not one that cuFile reads directly")) << type;
  }
}

TEST(GdsFileSystem, OfADescriptorIsWhatStatfsSays) {
  const FileDescriptor memory(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(file_system_of(memory.get()).type, 0x9fa0);
  EXPECT_FALSE(file_system_of(memory.get()).nvme);
  EXPECT_EQ(file_system_of(-1).type, 0);
}

}  // namespace
}  // namespace penstock::io::gds
