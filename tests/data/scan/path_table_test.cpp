#include "data/scan/path_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <random>
#include <vector>

#include "data/support.h"

namespace penstock::data {
namespace {

std::vector<std::string> paths(const PathTable& table) {
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < table.size(); ++i) out.push_back(table.path(i));
  return out;
}

TEST(PathTable, KeepsPathsAsTheyCame) {
  const std::vector<std::string> given = {"b.pt", "dir/a.pt", "/abs/x.pt", "dir/sub/y.pt",
                                          "a.pt", "dir/a.pt", "/root.pt"};
  PathTable table;
  for (const std::string& path : given) table.add(path);
  table.seal();
  EXPECT_EQ(paths(table), given);
  std::string reused;
  table.path(3, reused);
  EXPECT_EQ(reused, given[3]);
}

TEST(PathTable, TakesNamesOfManyFolders) {
  PathTable table;
  table.add("a/first.pt");
  const std::uint32_t a = table.folder("a");
  const std::uint32_t b = table.folder("b/");
  const std::uint32_t c = table.folder("c");
  using namespace std::string_literals;
  table.add({{b, "1.pt\0002.pt\0"s}, {a, "3.pt\0"s}, {c, ""}, {b, "4.pt\0"s}});
  table.add(a, "last.pt");
  table.seal();
  EXPECT_EQ(paths(table),
            (std::vector<std::string>{"a/first.pt", "b/1.pt", "b/2.pt", "a/3.pt", "b/4.pt", "a/last.pt"}));
}

TEST(PathTable, SortsByWholePathBytewiseAndDropsRepeats) {
  std::mt19937 random(5);
  const std::string letters = "ab/-.0";
  std::vector<std::string> given;
  for (int i = 0; i < 500; ++i) {
    std::string path = "r";
    for (std::size_t n = random() % 6; n > 0; --n) {
      const char c = letters[random() % letters.size()];
      path += c == '/' && path.back() == '/' ? 'x' : c;
    }
    given.push_back(path + "z");
  }
  PathTable table;
  for (const std::string& path : given) table.add(path);
  table.sort();
  std::sort(given.begin(), given.end());
  given.erase(std::unique(given.begin(), given.end()), given.end());
  EXPECT_EQ(paths(table), given);
}

TEST(PathTable, HoldsAMillionFilesInTensOfMegabytes) {
  PathTable table;
  const std::uint32_t folder = table.folder("some/folder");
  for (int i = 0; i < 1'000'000; ++i) table.add(folder, "sample-" + std::to_string(10'000'000 + i) + ".pt");
  table.seal();
  EXPECT_LE(table.memory(), std::size_t{40} << 20);
  EXPECT_EQ(table.path(999'999), "some/folder/sample-10999999.pt");
}

TEST(PathTable, OpensFilesAlsoAfterTheFolderWasMadeAnew) {
  test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "clips");
  test::write_file(folder / "clips/a", "1");
  PathTable table;
  table.add(folder / "clips/a");
  table.add(folder / "clips/b");
  table.seal();
  EXPECT_TRUE(table.open(0));
  EXPECT_FALSE(table.open(1));
  EXPECT_EQ(errno, ENOENT);
  std::filesystem::remove_all(folder / "clips");
  EXPECT_FALSE(table.open(0));
  std::filesystem::create_directory(folder / "clips");
  test::write_file(folder / "clips/a", "2");
  EXPECT_TRUE(table.open(0));
}

TEST(PathTable, HoldsFewFoldersOpen) {
  test::TemporaryFolder folder;
  const std::size_t before = test::open_files();
  {
    PathTable table;
    for (int i = 0; i < 100; ++i) {
      std::filesystem::create_directory(folder / std::to_string(i));
      test::write_file(folder / (std::to_string(i) + "/x"), "x");
      table.add(folder / (std::to_string(i) + "/x"));
    }
    table.seal();
    EXPECT_LE(test::open_files(), before + PathTable::kMaxOpenFolders);
    for (std::int64_t i = 0; i < 100; ++i) EXPECT_TRUE(table.open(i)) << i;
  }
  EXPECT_EQ(test::open_files(), before);
}

TEST(PathTable, RefusesANulInAPath) {
  PathTable table;
  EXPECT_EQ(test::code_of([&] { table.add(std::string_view("a\0b", 3)); }), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::data
