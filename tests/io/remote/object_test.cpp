#include "io/remote/object.h"

#include <gtest/gtest.h>

#include "penstock/error.h"
#include "support/errors.h"

namespace penstock::io::remote {
namespace {

TEST(ParseObject, TakesWhatNamesAnObject) {
  EXPECT_EQ(parse_object("s3://bucket/a/b c").key, "a/b c");
  for (const char* const url : {"s3://bucket", "s3://bucket/", "gs://bucket/folder/", "az://bucket/folder/"}) {
    EXPECT_EQ(test::code_of([&] { parse_object(url); }), ErrorCode::kIsDirectory) << url;
  }
}

TEST(SameObject, IsThatOfStoreBucketAndKey) {
  EXPECT_TRUE(is_same_object(parse("s3://b/x"), parse("s3://b/x")));
  EXPECT_FALSE(is_same_object(parse("s3://b/x"), parse("s3://b/y")));
  EXPECT_FALSE(is_same_object(parse("s3://b/x"), parse("gs://b/x")));
  EXPECT_FALSE(is_same_object(parse("s3://b/x"), parse("az://b/x")));
}

}  // namespace
}  // namespace penstock::io::remote
