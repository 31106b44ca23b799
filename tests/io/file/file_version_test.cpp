#include "io/file/file_version.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "penstock/error.h"
#include "penstock/source.h"
#include "support/bytes.h"
#include "support/files.h"

namespace penstock::io {
namespace {

TEST(FileVersion, TellsWhatBecameOfAFile) {
  test::TemporaryFolder folder;
  const std::string path = folder / "a";
  test::write_file(path, std::string(1000, 'a'));
  // Where the clock of the file system is coarse, later writes would have the time of the first.
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const Source source = open_source(path);
  EXPECT_EQ(look_at(*source), FileState::kAsOpened);
  EXPECT_EQ(open_source(path).version(), source.version());
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(look_at(*source), FileState::kAsOpened) << "its bytes are the same";
  std::ofstream(path, std::ios::app) << "more";
  EXPECT_EQ(look_at(*source), FileState::kChanged);
  std::filesystem::resize_file(path, 999);
  EXPECT_EQ(look_at(*source), FileState::kCut);
  test::write_file(path, std::string(1000, 'b'));
  EXPECT_EQ(look_at(*source), FileState::kChanged);
  EXPECT_NE(open_source(path).version(), source.version());
}

TEST(FileVersion, AFileThatLostItsNameIsTheSame) {
  test::TemporaryFolder folder;
  test::write_file(folder / "a", "abc");
  test::write_file(folder / "b", "other");
  const Source source = open_source(folder / "a");
  std::filesystem::rename(folder / "b", folder / "a");
  EXPECT_EQ(look_at(*source), FileState::kAsOpened);
  std::filesystem::remove(folder / "a");
  EXPECT_EQ(look_at(*source), FileState::kAsOpened);
}

TEST(FileVersion, MemoryDoesNotChange) {
  const Source source = test::source_of("abc");
  EXPECT_EQ(look_at(*source), FileState::kAsOpened);
}

}  // namespace
}  // namespace penstock::io
