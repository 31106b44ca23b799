#include "data/files/path_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/errors.h"

namespace penstock::data {
namespace {

using ::testing::HasSubstr;

/// What a template makes of a file below "data/images/".
std::string made(const std::string& text, const std::string& path = "data/images/cat/0007.npy",
                 const std::string& root = "data/images/") {
  return PathTemplate(text).of(path, path.starts_with(root) ? root.size() : 0);
}

TEST(PathTemplate, HasThePartsOfAPath) {
  EXPECT_EQ(made("{stem}.pt"), "data/images/cat/0007.pt");
  EXPECT_EQ(made("{name}"), "data/images/cat/0007.npy");
  EXPECT_EQ(made("{stem}_mask.{ext}"), "data/images/cat/0007_mask.npy");
  EXPECT_EQ(made("../../masks/{parent}/{stem}.npy"), "data/masks/cat/0007.npy");
  EXPECT_EQ(made("{root}/../masks/{path}.npy"), "data/masks/cat/0007.npy");
  EXPECT_EQ(made("/far/{path}.npy"), "/far/cat/0007.npy");
  EXPECT_EQ(made("s3://bucket/{parent}/{name}"), "s3://bucket/cat/0007.npy");
  EXPECT_EQ(made("{{{stem}}}.npy"), "data/images/cat/{0007}.npy");
  EXPECT_EQ(made("{{}}"), "data/images/cat/{}");
}

TEST(PathTemplate, NamesOfFilesAreText) {
  EXPECT_EQ(made("{stem}.pt", "a/{name}.npy", ""), "a/{name}.pt") << "braces in a name";
  EXPECT_EQ(made("{stem}+{ext}", "a/x.y.z", ""), "a/x.y+z");
  EXPECT_EQ(made("{stem}+{ext}", "a/.hidden", ""), "a/.hidden+");
  EXPECT_EQ(made("{stem}+{ext}", "bare", ""), "bare+");
  EXPECT_EQ(made("{name}", "a.b/x", ""), "a.b/x");
  EXPECT_EQ(made("{stem}.pt", "a/\xff\xfe.npy", ""), "a/\xff\xfe.pt") << "bytes that are no UTF-8";
}

TEST(PathTemplate, GoesUpByTheText) {
  EXPECT_EQ(made("../m/{name}", "1.npy", ""), "../m/1.npy");
  EXPECT_EQ(made("../m/{name}", "../images/1.npy", ""), "../m/1.npy");
  EXPECT_EQ(made("../../m/{name}", "../images/1.npy", ""), "../../m/1.npy");
  EXPECT_EQ(made("../m/{name}", "./images/1.npy", ""), "./m/1.npy");
  EXPECT_EQ(made("../../m/{name}", "./images/1.npy", ""), "../m/1.npy");
  EXPECT_EQ(made("../../../m/{name}", "/a/1.npy", ""), "/m/1.npy");
  EXPECT_EQ(made("./{name}", "a//1.npy", ""), "a//1.npy");
  EXPECT_EQ(made("../{name}", "a//1.npy", ""), "1.npy");
  EXPECT_EQ(made("x/../{name}", "a/1.npy", ""), "a/1.npy");
  EXPECT_EQ(made("..{name}", "a/1.npy", ""), "a/..1.npy") << "a name with dots is no way up";
  EXPECT_EQ(made("{root}/{path}.npy", "1.npy", ""), "1.npy");
}

TEST(PathTemplate, OfUrlsStaysInTheBucketAndKeepsTheQuery) {
  EXPECT_EQ(made("../m/{stem}.npy", "https://h:1/i/1.npy?sig=a/b", ""), "https://h:1/m/1.npy?sig=a/b");
  EXPECT_EQ(made("{stem}.npy?sig=../{ext}", "https://h/i/1.pt?old", ""), "https://h/i/1.npy?sig=../pt");
  EXPECT_EQ(made("../m/{stem}?.npy", "s3://b/i/1?x.npy", ""), "s3://b/m/1?x?.npy") << "keys have no query";
  EXPECT_EQ(made("{root}/m/{path}.npy", "s3://b/i/c/1.npy", "s3://b/i/"), "s3://b/i/m/c/1.npy");
  for (const std::string url : {"https://h/1.npy", "s3://b/1.npy"}) {
    EXPECT_EQ(test::code_of([&] { made("../{name}", url, ""); }), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(test::code_of([&] { made("https://h/../{name}"); }), ErrorCode::kInvalidArgument);
}

TEST(PathTemplate, RefusesWhatIsNone) {
  for (const std::string text :
       {"", "{stem", "stem}", "{", "a{b{c}", "{}", "{Stem}", "masks/", "{root}", "{root}x.npy", "a/{root}/b"}) {
    EXPECT_EQ(test::code_of([&] { PathTemplate{text}; }), ErrorCode::kInvalidArgument) << text;
  }
  EXPECT_THAT(test::error_of([] { PathTemplate("{step}.npy"); })->message(), HasSubstr("did you mean 'stem'?"));
  EXPECT_EQ(test::code_of([] { made("{stem}.npy", "folder/", ""); }), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::data
