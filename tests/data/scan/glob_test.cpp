#include "data/scan/glob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "support/errors.h"
#include "support/files.h"
#include "support/unprivileged.h"

namespace penstock::data {
namespace {

using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Expand : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* sub : {"a", "a/deep", "a/deep/er", "b", ".git", "a-b"})
      std::filesystem::create_directories(folder_ / sub);
    for (const char* name :
         {"z.pt", "10.pt", "9.npy", "notes.txt", ".hidden.pt", "m.safetensors", "m.safetensors.index.json", "a/1.pt",
          "a/2.pt", "a/deep/3.pt", "a/deep/er/4.pt", "b/1.pt", ".git/5.pt", "a-b/6.pt", "odd[1].pt"}) {
      test::write_file(folder_ / name, "x");
    }
  }

  std::vector<std::string> names(const std::string& pattern) {
    const PathTable table = expand(folder_ / pattern);
    std::vector<std::string> out;
    for (std::int64_t i = 0; i < table.size(); ++i) out.push_back(table.path(i).substr((folder_ / "").size()));
    return out;
  }

  TemporaryFolder folder_;
};

TEST_F(Expand, LeavesOutWhatIsExcluded) {
  const auto without = [&](const std::string& pattern, const std::vector<std::string>& exclude) {
    const PathTable table = expand(folder_ / pattern, {.exclude = exclude});
    std::vector<std::string> out;
    for (std::int64_t i = 0; i < table.size(); ++i) out.push_back(table.path(i).substr((folder_ / "").size()));
    return out;
  };
  EXPECT_THAT(without("*/**/*.pt", {"a"}), ElementsAre("a-b/6.pt", "b/1.pt"));
  EXPECT_THAT(without("*/**/*.pt", {"a*", "c"}), ElementsAre("b/1.pt"));
  EXPECT_THAT(without("*/**/*.pt", {"deep/"}), ElementsAre("a-b/6.pt", "a/1.pt", "a/2.pt", "b/1.pt"));
  EXPECT_THAT(without("*/**/*.pt", {"a/deep"}), ElementsAre("a-b/6.pt", "a/1.pt", "a/2.pt", "b/1.pt"));
  EXPECT_THAT(without("*/**/*.pt", {"b/deep", "./er", "1.pt"}), ElementsAre("a-b/6.pt", "a/2.pt", "a/deep/3.pt"));
  EXPECT_THAT(without("*/**/*.pt", {folder_ / "a", folder_ / "a-b/"}), ElementsAre("b/1.pt"));
  EXPECT_THAT(without("*/**/*.pt", {"/a", "/b"}).size(), 6U) << "whole paths, and none of those";
  EXPECT_THAT(without("a/*.pt", {"a"}), ElementsAre("a/1.pt", "a/2.pt")) << "the pattern names it";
  EXPECT_THAT(without("", {"1*", "*.safetensors", "odd*"}), ElementsAre("9.npy", "z.pt"));
  EXPECT_EQ(test::code_of([&] { without("a", {"?.pt"}); }), ErrorCode::kNotFound);
  for (const char* nothing : {"", "/", "./", "."}) {
    EXPECT_EQ(test::code_of([&] { without("a", {nothing}); }), ErrorCode::kInvalidArgument) << nothing;
  }
}

TEST_F(Expand, AFolderThatCannotBeListedIsAnErrorThatNamesIt) {
  ASSERT_EQ(::chmod((folder_ / "a/deep").c_str(), 0), 0);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  std::optional<Error> error;
  FilesBelow below;
  std::vector<std::string> left;
  {
    const test::Unprivileged unprivileged;
    error = test::error_of([&] { names("**/*.pt"); });
    below = files_below(folder_.path());
    const PathTable table = expand(folder_ / "a/**/*.pt", {.exclude = {"deep"}});
    for (std::int64_t i = 0; i < table.size(); ++i) left.push_back(table.path(i));
  }
  ASSERT_EQ(::chmod((folder_ / "a/deep").c_str(), 0755), 0);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kPermission);
  EXPECT_EQ(error->path(), folder_ / "a/deep");
  EXPECT_THAT(error->what(), HasSubstr("exclude"));
  EXPECT_EQ(below.files.size(), 11) << "all but what is hidden or in there";
  ASSERT_EQ(below.refused.size(), 1U);
  EXPECT_EQ(below.refused[0].path(), folder_ / "a/deep");
  EXPECT_THAT(left, ElementsAre(folder_ / "a/1.pt", folder_ / "a/2.pt"));
}

TEST_F(Expand, AFolderGivesItsTensorFilesByName) {
  EXPECT_THAT(names(""), ElementsAre("10.pt", "9.npy", "m.safetensors", "odd[1].pt", "z.pt"));
  EXPECT_THAT(names("a"), ElementsAre("a/1.pt", "a/2.pt"));
  EXPECT_THAT(names("a/"), ElementsAre("a/1.pt", "a/2.pt"));
}

TEST_F(Expand, AFolderTakesExtensionsInAnyCase) {
  for (const char* name : {"b/2.PT", "b/3.Npy", "b/4.SafeTensors", "b/5.PTX"}) test::write_file(folder_ / name, "x");
  EXPECT_THAT(names("b"), ElementsAre("b/1.pt", "b/2.PT", "b/3.Npy", "b/4.SafeTensors"));
}

TEST_F(Expand, AFileIsItself) {
  EXPECT_THAT(names("notes.txt"), ElementsAre("notes.txt"));
  EXPECT_THAT(names("odd[1].pt"), ElementsAre("odd[1].pt")) << "a file of that very name comes first";
  for (const char* name : {"b/*.pt", "b/?.pt", "b/2.pt"}) test::write_file(folder_ / name, "x");
  EXPECT_THAT(names("b/*.pt"), ElementsAre("b/*.pt", "b/1.pt", "b/2.pt", "b/?.pt"));
  EXPECT_THAT(names("b/?.pt"), ElementsAre("b/*.pt", "b/1.pt", "b/2.pt", "b/?.pt"));
}

TEST_F(Expand, Globs) {
  EXPECT_THAT(names("*.pt"), ElementsAre("10.pt", "odd[1].pt", "z.pt"));
  EXPECT_THAT(names("*/1.pt"), ElementsAre("a/1.pt", "b/1.pt"));
  EXPECT_THAT(names("[ab]/*.pt"), ElementsAre("a/1.pt", "a/2.pt", "b/1.pt"));
  EXPECT_THAT(names("*"), ElementsAre("10.pt", "9.npy", "m.safetensors", "m.safetensors.index.json", "notes.txt",
                                      "odd[1].pt", "z.pt"))
      << "files alone, whatever they are called";
}

TEST_F(Expand, TwoStarsAreAnyDepth) {
  EXPECT_THAT(names("**/*.pt"), ElementsAre("10.pt", "a-b/6.pt", "a/1.pt", "a/2.pt", "a/deep/3.pt", "a/deep/er/4.pt",
                                            "b/1.pt", "odd[1].pt", "z.pt"));
  EXPECT_THAT(names("a/**"), ElementsAre("a/1.pt", "a/2.pt", "a/deep/3.pt", "a/deep/er/4.pt"));
  EXPECT_THAT(names("**/**/deep/**/*.pt"), ElementsAre("a/deep/3.pt", "a/deep/er/4.pt"));
}

TEST_F(Expand, AFileFoundTwiceCountsOnce) {
  std::filesystem::create_directories(folder_ / "x/x");
  test::write_file(folder_ / "x/x/f.pt", "x");
  EXPECT_THAT(names("**/x/**/f.pt"), ElementsAre("x/x/f.pt"));
}

TEST_F(Expand, LinksAreFollowedButNotForEver) {
  ASSERT_EQ(::symlink("z.pt", (folder_ / "link.pt").c_str()), 0);
  ASSERT_EQ(::symlink("nowhere", (folder_ / "broken.pt").c_str()), 0);
  ASSERT_EQ(::symlink("..", (folder_ / "a/up").c_str()), 0);
  EXPECT_THAT(names("[bl]*.pt"), ElementsAre("link.pt"));
  EXPECT_THAT(names("a/up/z.pt"), ElementsAre("a/up/z.pt"));
  EXPECT_THAT(names("a/*/z.pt"), ElementsAre("a/up/z.pt"));
  EXPECT_THAT(names("**/z.pt"), ElementsAre("z.pt"));
}

TEST_F(Expand, TwoStarsFollowLinksToFoldersThatDoNotLeadBackUp) {
  TemporaryFolder elsewhere;
  std::filesystem::create_directories(elsewhere / "in");
  test::write_file(elsewhere / "in/7.pt", "x");
  ASSERT_EQ(::symlink(std::string(elsewhere / "").c_str(), (folder_ / "b/out").c_str()), 0);
  ASSERT_EQ(::symlink(std::string(folder_ / "b").c_str(), (elsewhere / "in/back").c_str()), 0);
  ASSERT_EQ(::symlink("../a/deep", (folder_ / "b/side").c_str()), 0);
  ASSERT_EQ(::symlink("/", (folder_ / "b/root").c_str()), 0);
  ASSERT_EQ(::symlink(".", (folder_ / "b/itself").c_str()), 0);
  ASSERT_EQ(::symlink("../a", (folder_ / "b/.hidden").c_str()), 0);
  EXPECT_THAT(names("b/**/*.pt"), ElementsAre("b/1.pt", "b/out/in/7.pt", "b/side/3.pt", "b/side/er/4.pt"));
  EXPECT_THAT(names("b/**/7.pt"), ElementsAre("b/out/in/7.pt"));
}

TEST_F(Expand, OnlyRegularFilesCount) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe.pt").c_str(), 0600), 0);
  std::filesystem::create_directory(folder_ / "folder.pt");
  EXPECT_EQ(test::code_of([&] { expand(folder_ / "*[er].pt"); }), ErrorCode::kNotFound);
}

TEST_F(Expand, FoldersAndFilesInterleaveByWholePath) {
  for (const char* name : {"t/a.pt", "t/a/x.pt", "t/b.pt", "t/a-/y.pt", "t/a0/z.pt"}) {
    std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
    test::write_file(folder_ / name, "x");
  }
  EXPECT_THAT(names("t/**/*.pt"), ElementsAre("t/a-/y.pt", "t/a.pt", "t/a/x.pt", "t/a0/z.pt", "t/b.pt"));
}

TEST_F(Expand, SaysWhatIsMissing) {
  const auto missing = test::error_of([&] { expand(folder_ / "*.nope"); });
  EXPECT_EQ(missing->code(), ErrorCode::kNotFound);
  EXPECT_THAT(missing->what(), HasSubstr("*.nope"));
  EXPECT_EQ(test::code_of([&] { expand(folder_ / "nowhere"); }), ErrorCode::kNotFound);
  EXPECT_EQ(test::code_of([&] { expand(folder_ / "nowhere/*.pt"); }), ErrorCode::kNotFound);
  EXPECT_EQ(test::code_of([&] { expand(folder_ / "notes.txt/*.pt"); }), ErrorCode::kNotFound);
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_THAT(test::error_of([&] { expand(folder_ / "empty"); })->message(),
              HasSubstr("no tensor files (.npy .pt .pth .npz .safetensors .ten)"));
  EXPECT_EQ(test::code_of([&] { expand(""); }), ErrorCode::kNotFound);
}

TEST_F(Expand, AFolderThatCannotBeListedIsAnError) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may list any folder";
  ASSERT_EQ(::chmod((folder_ / "b").c_str(), 0), 0);
  EXPECT_EQ(test::code_of([&] { expand(folder_ / "b/*.pt"); }), ErrorCode::kPermission);
  ::chmod((folder_ / "b").c_str(), 0700);
}

}  // namespace
}  // namespace penstock::data
