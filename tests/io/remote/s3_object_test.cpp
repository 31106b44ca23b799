#include "io/remote/s3_object.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock::io::remote {
namespace {

TEST(EtagOfParts, IsTheHashOfTheirHashes) {
  const std::vector<UploadedPart> parts = {{.etag = "\"0cc175b9c0f1b6a831c399e269772661\""},
                                           {.etag = "\"92eb5ffee6ae2fec3ad71c777531578f\""}};
  EXPECT_EQ(etag_of(parts), "\"96e024ba2074fe77e8e965ba43a704be-2\"");
  EXPECT_EQ(etag_of(std::vector<UploadedPart>{{.etag = "\"of another kind\""}}), "");
}

}  // namespace
}  // namespace penstock::io::remote
