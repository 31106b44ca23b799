#include "io/locations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/errors.h"
#include "support/files.h"

namespace penstock::io {
namespace {

namespace fs = std::filesystem;

TEST(Locations, HaveAQueryOnlyByHttp) {
  EXPECT_EQ(path_part("https://h/a.npy?x=1#y"), "https://h/a.npy");
  EXPECT_EQ(path_part("http://h/a#y"), "http://h/a");
  for (const char* const all : {"s3://b/a?x", "gs://b/a#x", "hf://o/r/a?x", "/a?x", "http/a?x", ""}) {
    EXPECT_EQ(path_part(all), all);
  }
}

TEST(Locations, HaveARoot) {
  for (const char* const all : {"/", "s3://b", "s3://b/", "http://h:8/"}) {
    EXPECT_EQ(root_size(all), std::string_view(all).size()) << all;
    const std::string below = std::string(all) + (std::string_view(all).ends_with('/') ? "" : "/") + "x/y";
    EXPECT_EQ(root_size(below), below.size() - 3) << below;
  }
  for (const char* const seen_from_here : {"", "a/b", "s3:/b", "http:"}) EXPECT_EQ(root_size(seen_from_here), 0U);
}

TEST(Locations, LeadToOthers) {
  EXPECT_EQ(beside("a/b.idx", "b.bin"), "a/b.bin");
  EXPECT_EQ(beside("b.idx", "b.bin"), "b.bin");
  EXPECT_EQ(beside("s3://b/a/b.idx", "b.bin"), "s3://b/a/b.bin");
  EXPECT_EQ(in_folder("a", "x"), "a/x");
  EXPECT_EQ(in_folder("a/", "x"), "a/x");
  EXPECT_EQ(in_folder("s3://b/a", "x"), "s3://b/a/x");
  EXPECT_EQ(absolute("s3://b/a"), "s3://b/a");
  EXPECT_EQ(absolute("file:///a%20b"), "/a b");
  EXPECT_EQ(absolute("a"), fs::current_path() / "a");
}

TEST(Locations, ThatAFileNamesStayInItsFolder) {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "in");
  test::write_file(folder / "out", "");
  test::write_file(folder / "in/a", "");
  fs::create_symlink("../out", folder / "in/link");
  fs::create_symlink("in/a", folder / "index");
  const std::string index = folder / "in/index";
  EXPECT_EQ(beside_inside(index, "a"), folder / "in/a");
  EXPECT_EQ(beside_inside(index, "absent"), "");
  EXPECT_EQ(test::code_of([&] { beside_inside(index, "link"); }), ErrorCode::kUnsafe);
  EXPECT_EQ(beside_inside("s3://b/in/index", "absent"), "s3://b/in/absent");
}

TEST(Locations, AFileIsTheOneThatWasOpenedAndLiesThere) {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "in");
  test::write_file(folder / "out", "1");
  test::write_file(folder / "in/a", "2");
  fs::create_symlink("a", folder / "in/link");
  const std::string index = folder / "in/index";
  const Source own = open_source(folder / "in/a");
  require_inside_folder(index, "a", *own);
  require_inside_folder(index, "link", *own);
  // What was opened while the name was a link out of the folder.
  const Source other = open_source(folder / "out");
  EXPECT_EQ(test::code_of([&] { require_inside_folder(index, "a", *other); }), ErrorCode::kChanged);
  fs::remove(folder / "in/a");
  EXPECT_EQ(test::code_of([&] { require_inside_folder(index, "a", *own); }), ErrorCode::kChanged);
  fs::create_symlink("../out", folder / "in/a");
  EXPECT_EQ(test::code_of([&] { require_inside_folder(index, "a", *other); }), ErrorCode::kUnsafe);
}

TEST(Locations, OfFoldersTellWhatIsInThem) {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / "a/b");
  test::write_file(folder / "a/x", "");
  EXPECT_THAT(names_in(folder / "a"), testing::UnorderedElementsAre("b", "x"));
  EXPECT_EQ(test::code_of([&] { names_in(folder / "absent"); }), ErrorCode::kNotFound);
  EXPECT_TRUE(is_local_folder(folder / "a"));
  EXPECT_FALSE(is_local_folder(folder / "a/x"));
  EXPECT_FALSE(is_local_folder("s3://b/"));
}

TEST(Locations, AreOpenedWhereSomethingIs) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "x", "12");
  EXPECT_EQ(open_if_there(folder / "x")->size(), 2U);
  EXPECT_EQ(open_if_there(folder / "absent"), std::nullopt);
  EXPECT_EQ(test::code_of([&] { open_if_there(folder / "."); }), ErrorCode::kIsDirectory);
  // A store that lists nothing to strangers refuses to say that nothing is there; a file that is refused is there.
  const Error refused(ErrorCode::kPermission, "no");
  EXPECT_TRUE(tells_absence(refused, "s3://b/x"));
  EXPECT_FALSE(tells_absence(refused, "/x"));
}

}  // namespace
}  // namespace penstock::io
