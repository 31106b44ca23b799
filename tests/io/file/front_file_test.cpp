#include "io/file/front_file.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "support/files.h"

namespace penstock::io {
namespace {

TEST(FrontFile, ItsFrontMayBecomeLonger) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "x";
  std::string behind(3 << 20, '\0');  // moved in several pieces
  for (std::size_t i = 0; i < behind.size(); ++i) behind[i] = static_cast<char>(i * 7 + i / 251);
  for (const std::size_t length : {10, 11, 1000, 1 << 20}) {
    FrontFile file(path, false);
    file.write_text("0123456789");
    file.write_text(behind);
    const std::string front(length, 'f');
    file.replace_front(10, std::as_bytes(std::span(front)));
    EXPECT_EQ(file.position(), length + behind.size());
    file.commit();
    EXPECT_TRUE(test::read_file(path) == front + behind) << length;
  }
}

TEST(FrontFile, WithoutCommitNothingRemains) {
  const test::TemporaryFolder folder;
  {
    FrontFile file(folder / "x", false);
    file.write_text("0123456789");
    file.replace_front(4, std::as_bytes(std::span(std::string_view("front"))));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "x"));
}

}  // namespace
}  // namespace penstock::io
