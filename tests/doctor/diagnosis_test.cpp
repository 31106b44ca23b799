#include "doctor/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "penstock/error.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/files.h"

namespace penstock::doctor {
namespace {

using testing::HasSubstr;

DiagnosisOptions small(std::string path) {
  return {.path = std::move(path), .file_bytes = 100'000, .copy_bytes = 1 << 20};
}

const Fact* find(const Section& section, std::string_view name) {
  const auto found =
      std::find_if(section.facts.begin(), section.facts.end(), [name](const Fact& fact) { return fact.name == name; });
  return found == section.facts.end() ? nullptr : &*found;
}

bool is_speed(const Fact* fact) {
  const auto* const speed = fact == nullptr ? nullptr : std::get_if<double>(&fact->value);
  return speed != nullptr && fact->unit == Fact::Unit::kBytesPerSecond && *speed > 0;
}

TEST(Diagnosis, TellsTheChosenWord) {
  EXPECT_EQ(chosen_word("always [madvise] never"), "madvise");
  EXPECT_EQ(chosen_word("[never]"), "never");
  EXPECT_EQ(chosen_word("always never"), "");
  EXPECT_EQ(chosen_word("] ["), "");
  EXPECT_EQ(chosen_word(""), "");
}

TEST(Diagnosis, TellsWhyThereIsNoIoUring) {
  EXPECT_THAT(why_no_io_uring(ENOSYS, ""), HasSubstr("5.1"));
  EXPECT_THAT(why_no_io_uring(EPERM, "2"), HasSubstr("sysctl kernel.io_uring_disabled=0"));
  EXPECT_THAT(why_no_io_uring(EPERM, "0"), HasSubstr("seccomp"));
  EXPECT_THAT(why_no_io_uring(EPERM, ""), HasSubstr("seccomp"));
  EXPECT_THAT(why_no_io_uring(ENOMEM, "0"), HasSubstr("RLIMIT_MEMLOCK"));
  EXPECT_THAT(why_no_io_uring(EINVAL, "0"), HasSubstr(std::to_string(EINVAL)));
}

TEST(Diagnosis, ReadsNoMoreOfAFileThanItMay) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "long", test::numbered_bytes(150'000));
  test::write_file(folder / "short", test::numbered_bytes(10));
  test::write_file(folder / "empty", test::numbered_bytes(0));
  const Section large = diagnose_file(small(folder / "long"));
  EXPECT_EQ(std::get<std::uint64_t>(find(large, "bytes_read")->value), 100'000U);
  EXPECT_TRUE(is_speed(find(large, "read_cached")));
  EXPECT_EQ(std::get<std::uint64_t>(find(diagnose_file(small(folder / "short")), "bytes_read")->value), 10U);
  const Section empty = diagnose_file(small(folder / "empty"));
  EXPECT_EQ(find(empty, "read_cached"), nullptr);
  EXPECT_EQ(find(empty, "bytes_read")->weight, Fact::Weight::kNote);
}

TEST(Diagnosis, TellsTheRouteOfEachRead) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "file", test::numbered_bytes(100'000));
  const Section section = diagnose_file(small(folder / "file"));
  EXPECT_THAT(std::get<std::string>(find(section, "route_cached")->value), HasSubstr("read: 1 range into host memory"));
  EXPECT_EQ(find(section, "route_uncached") != nullptr, is_speed(find(section, "read_uncached")));
}

TEST(Diagnosis, LeavesNothingInAFolder) {
  const test::TemporaryFolder folder;
  const std::string path = folder / ".";
  EXPECT_TRUE(is_speed(find(diagnose_file(small(path)), "read_cached")));
  EXPECT_TRUE(std::filesystem::is_empty(path));
}

TEST(Diagnosis, APathThatIsNotThereIsAnError) {
  EXPECT_EQ(test::code_of([] { return diagnose_file(small("/nowhere/at/all")); }), ErrorCode::kNotFound);
}

TEST(Diagnosis, AdvisesOnEverythingThatIsWrong) {
  std::vector<Section> sections = {diagnose_memory(1 << 20), diagnose_limits(), diagnose_kernel()};
  diagnose_devices(1 << 20, sections);
  for (const Section& section : sections) {
    EXPECT_FALSE(section.facts.empty()) << section.name;
    for (const Fact& fact : section.facts) {
      EXPECT_EQ(fact.advice.empty(), fact.weight == Fact::Weight::kFine) << section.name << '.' << fact.name;
    }
  }
}

class DiagnosedDevice : public test::WithDevice {};

TEST_F(DiagnosedDevice, HasItsCopySpeeds) {
  std::vector<Section> sections;
  diagnose_devices(1 << 20, sections);
  ASSERT_EQ(sections.size(), 1U + static_cast<std::size_t>(device_count()));
  EXPECT_EQ(sections[1].name, "cuda:0");
  for (const char* name : {"pinned_to_device", "device_to_pinned", "pageable_to_device"}) {
    EXPECT_TRUE(is_speed(find(sections[1], name))) << name;
  }
}

}  // namespace
}  // namespace penstock::doctor
