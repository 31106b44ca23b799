#include "io/remote/object.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "penstock/error.h"
#include "support/errors.h"

namespace penstock::io::remote {
namespace {

std::string base64_of(std::string_view text) {
  return base64({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

TEST(Base64, GivesWhatTheRfcLists) {
  EXPECT_EQ(base64_of(""), "");
  EXPECT_EQ(base64_of("f"), "Zg==");
  EXPECT_EQ(base64_of("fo"), "Zm8=");
  EXPECT_EQ(base64_of("foo"), "Zm9v");
  EXPECT_EQ(base64_of("foob"), "Zm9vYg==");
  EXPECT_EQ(base64_of("\xff\xfe\xfd"), "//79");
}

TEST(EtagOfParts, IsTheHashOfTheirHashes) {
  const std::vector<Part> parts = {{.etag = "\"0cc175b9c0f1b6a831c399e269772661\""},
                                   {.etag = "\"92eb5ffee6ae2fec3ad71c777531578f\""}};
  EXPECT_EQ(etag_of(parts), "\"96e024ba2074fe77e8e965ba43a704be-2\"");
  EXPECT_EQ(etag_of(std::vector<Part>{{.etag = "\"of another kind\""}}), "");
}

TEST(ParseObject, TakesWhatNamesAnObject) {
  EXPECT_EQ(parse_object("s3://bucket/a/b c").key, "a/b c");
  for (const char* const url : {"s3://bucket", "s3://bucket/", "gs://bucket/folder/"}) {
    EXPECT_EQ(test::code_of([&] { parse_object(url); }), ErrorCode::kIsDirectory) << url;
  }
}

TEST(SameObject, IsThatOfStoreBucketAndKey) {
  EXPECT_TRUE(is_same_object(parse("s3://b/x"), parse("s3://b/x")));
  EXPECT_FALSE(is_same_object(parse("s3://b/x"), parse("s3://b/y")));
  EXPECT_FALSE(is_same_object(parse("s3://b/x"), parse("gs://b/x")));
}

}  // namespace
}  // namespace penstock::io::remote
