#include "data/sample/held_file.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>

#include "data/sample/held_descriptors.h"
#include "data/support.h"
#include "support/bytes.h"

namespace penstock::data {
namespace {

TEST(HeldFile, IsReadAndLookedAtWhetherItIsHeldOpenOrNot) {
  for (const bool held : {true, false}) {
    test::TemporaryFolder folder;
    const std::string path = folder / "a";
    test::write_file(path, "0123456789");
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
    const std::size_t open_before = test::open_files();
    const auto others = held ? std::vector<std::unique_ptr<HeldDescriptors>>() : test::hold_all();
    const HeldFile file(open_source(path));
    EXPECT_EQ(test::open_files(), open_before + (held ? 1 : 0));
    std::string text(4, ' ');
    file.read(3, std::as_writable_bytes(std::span(text)));
    EXPECT_EQ(text, "3456");
    EXPECT_NO_THROW(file.require_unchanged());
    test::write_file(path, "9876543210");
    EXPECT_EQ(test::code_of([&] { file.require_unchanged(); }), ErrorCode::kChanged);
    const Error damaged(ErrorCode::kChecksum, "damaged", {.path = path});
    EXPECT_EQ(file.error_of_change(damaged).code(), ErrorCode::kChanged);
  }
}

TEST(HeldFile, InMemoryHasOnlyAName) {
  const HeldFile file(std::string("<tensor>"));
  EXPECT_EQ(file.name(), "<tensor>");
  EXPECT_NO_THROW(file.require_unchanged());
  EXPECT_EQ(file.error_of_change(Error(ErrorCode::kTruncated, "cut")).code(), ErrorCode::kTruncated);
}

TEST(HeldDescriptors, AreGivenBack) {
  const auto all = [] { return test::hold_all().size(); };
  const std::size_t before = all();
  EXPECT_EQ(all(), before);
  EXPECT_GT(before, 1U);
}

}  // namespace
}  // namespace penstock::data
