// Finding cuFile. It is found once a process: each case runs in one of its own.
#include "io/gds/gds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "device/backend.h"
#include "support/cufile.h"
#include "support/process.h"

namespace penstock::io::gds {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string said_with(const std::string& environment, const char* name) {
  const test::Ended ended = test::run_again(environment, name);
  EXPECT_EQ(ended.status, 0) << ended.output;
  return ended.output;
}

TEST(Gds, DISABLED_Ask) {
  std::string why_not;
  EXPECT_EQ(find_driver(true, why_not), nullptr);
  std::printf("%s\nlibrary '%s', state '%s'\n", why_not.c_str(), library_name().c_str(), state().c_str());
}

TEST(Gds, NoLibraryIsSaidToBeAbsent) {
  for (const char* none : {"PENSTOCK_LIBCUFILE=", "PENSTOCK_LIBCUFILE=/nowhere/libcufile.so.0"}) {
    const std::string said = said_with(none, "Gds.DISABLED_Ask");
    EXPECT_THAT(said, HasSubstr("there is no cuFile library"));
    EXPECT_THAT(said, HasSubstr("library '', state ''"));
  }
}

TEST(Gds, ALibraryOfAnotherKindIsRefused) {
  const std::string said = said_with("PENSTOCK_LIBCUFILE=libz.so.1 PENSTOCK_LIBCUDA=/nowhere", "Gds.DISABLED_Ask");
  EXPECT_THAT(said, HasSubstr("libz.so.1 lacks entry points that cuFile has"));
}

TEST(Gds, ErrorsHaveWordsOrPointAtTheLog) {
  EXPECT_EQ(describe(kIoNotSupported), "error 5008 (the file system is not supported)");
  EXPECT_EQ(describe(5099), "error 5099, which cufile.log explains");
}

class GdsState : public test::WithCufile {
 protected:
  static std::string now() { return state(); }
};

TEST_F(GdsState, DISABLED_State) {
  std::printf("state '%s'\n", now().c_str());
  EXPECT_EQ(cufile().handles, 0U);
}

TEST_F(GdsState, SaysWhichWayItIs) {
  EXPECT_THAT(said_with("PENSTOCK_SIM_CUFILE=direct", "GdsState.DISABLED_State"),
              HasSubstr("simulated_cufile.so: direct, nvidia-fs 2.17'"));
  EXPECT_THAT(said_with("PENSTOCK_SIM_CUFILE=open", "GdsState.DISABLED_State"), HasSubstr(": direct, nvidia-fs 2.17'"));
  EXPECT_THAT(said_with("PENSTOCK_SIM_CUFILE=compat", "GdsState.DISABLED_State"),
              HasSubstr(": in compatibility mode'"));
  EXPECT_THAT(said_with("PENSTOCK_SIM_CUFILE=closed", "GdsState.DISABLED_State"),
              HasSubstr(": cuFile does not start: cuFileDriverOpen gives error 5001"));
}

TEST_F(GdsState, WithoutADeviceTheDoctorOpensNothing) {
  EXPECT_THAT(
      said_with("PENSTOCK_LIBCUDA=/nowhere", "Gds.DISABLED_State"),
      HasSubstr("state '" + std::string(std::getenv("PENSTOCK_LIBCUFILE")) + ": not asked, there is no device'"));
}

TEST(Gds, DISABLED_State) {
  std::printf("state '%s'\n", state().c_str());
  PenstockSimCufileStatistics counts{};
  test::cufile_function<PenstockSimCufileGetStatistics>("penstockSimCufileGetStatistics")(&counts);
  EXPECT_EQ(counts.calls, 0U);
}

}  // namespace
}  // namespace penstock::io::gds
