// Patterns of keys, from a server on loopback that lists what a bucket has.

#include "data/scan/bucket_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "data/scan/glob.h"
#include "penstock/error.h"
#include "support/errors.h"
#include "support/http_server.h"

namespace penstock::data {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<std::string> kKeys = {"a.pt", "b/.hidden.pt", "b/c.pt", "b/d.txt", "b/deep/e f.pt", "b/deep/er/g.pt"};

/// As ListObjectsV2 answers, in pages of two keys.
std::string list(const test::HttpRequest& request) {
  const auto parameter = [&](const std::string& name) {
    const std::size_t at = request.target.find(name + "=");
    if (at == std::string::npos) return std::string();
    const std::string rest = request.target.substr(at + name.size() + 1);
    std::string value = rest.substr(0, rest.find('&'));
    for (std::size_t slash = value.find("%2F"); slash != std::string::npos; slash = value.find("%2F")) {
      value.replace(slash, 3, "/");
    }
    return value;
  };
  const std::string prefix = parameter("prefix");
  const bool deep = parameter("delimiter").empty();
  const std::string token = parameter("continuation-token");
  std::string body = "<?xml version=\"1.0\"?><ListBucketResult><EncodingType>url</EncodingType>";
  std::string next;
  int count = 0;
  for (const std::string& key : kKeys) {
    if (!key.starts_with(prefix) || key <= token || !next.empty()) continue;
    if (!deep && key.find('/', prefix.size()) != std::string::npos) continue;
    std::string coded = key;
    if (const std::size_t space = coded.find(' '); space != std::string::npos) coded.replace(space, 1, "+");
    body += "<Contents><Key>" + coded + "</Key><Size>" + std::to_string(key.size()) + "</Size></Contents>";
    if (++count == 2) next = key;
  }
  if (!next.empty())
    body += "<IsTruncated>true</IsTruncated><NextContinuationToken>" + next + "</NextContinuationToken>";
  return test::http_answer(200, body + "</ListBucketResult>");
}

class BucketScan : public testing::Test {
 protected:
  BucketScan() : server_(list) {
    ::setenv("AWS_ENDPOINT_URL", server_.url("").c_str(), 1);
    ::setenv("PENSTOCK_S3_ANONYMOUS", "1", 1);
  }
  ~BucketScan() override {
    ::unsetenv("AWS_ENDPOINT_URL");
    ::unsetenv("PENSTOCK_S3_ANONYMOUS");
  }

  static std::vector<std::string> found(const std::string& pattern, const FilesOptions& options = {}) {
    const PathTable table = expand(pattern, options);
    std::vector<std::string> out;
    for (std::int64_t i = 0; i < table.size(); ++i) {
      const std::string path = table.path(i);
      EXPECT_EQ(table.bytes_on_disk(i), path.size() - std::string("s3://bucket/").size()) << path;
      out.push_back(path);
    }
    return out;
  }

  test::HttpServer server_;
};

TEST_F(BucketScan, PatternsMatchKeysAsTheyMatchPaths) {
  EXPECT_THAT(found("s3://bucket/*.pt"), ElementsAre("s3://bucket/a.pt"));
  EXPECT_THAT(found("s3://bucket/b/*"), ElementsAre("s3://bucket/b/c.pt", "s3://bucket/b/d.txt"));
  EXPECT_THAT(found("s3://bucket/b/[!x]*/*.pt"), ElementsAre("s3://bucket/b/deep/e f.pt"));
  EXPECT_THAT(found("s3://bucket/**/*.pt"), ElementsAre("s3://bucket/a.pt", "s3://bucket/b/c.pt",
                                                        "s3://bucket/b/deep/e f.pt", "s3://bucket/b/deep/er/g.pt"));
  EXPECT_THAT(found("s3://bucket/b/**"), ElementsAre("s3://bucket/b/c.pt", "s3://bucket/b/d.txt",
                                                     "s3://bucket/b/deep/e f.pt", "s3://bucket/b/deep/er/g.pt"));
  EXPECT_THAT(found("s3://bucket/**/deep/**/g.pt"), ElementsAre("s3://bucket/b/deep/er/g.pt"));
}

TEST_F(BucketScan, AFolderGivesItsSamples) {
  EXPECT_THAT(found("s3://bucket"), ElementsAre("s3://bucket/a.pt"));
  EXPECT_THAT(found("s3://bucket/b"), ElementsAre("s3://bucket/b/c.pt"));
  EXPECT_THAT(found("s3://bucket/b/deep/"), ElementsAre("s3://bucket/b/deep/e f.pt"));
  EXPECT_THAT(found("s3://bucket/**/*.pt", {.exclude = {"deep"}}),
              ElementsAre("s3://bucket/a.pt", "s3://bucket/b/c.pt"));
}

TEST_F(BucketScan, AnObjectIsNotLookedFor) {
  const PathTable table = expand("s3://bucket/x.pt");
  EXPECT_EQ(table.path(0), "s3://bucket/x.pt");
  EXPECT_TRUE(table.is_url(0));
  EXPECT_THAT(server_.requests(), IsEmpty());
}

TEST_F(BucketScan, WhatCannotBeIsSaid) {
  EXPECT_EQ(test::code_of([] { expand("s3://bucket/*.npy"); }), ErrorCode::kNotFound);
  EXPECT_EQ(test::code_of([] { expand("s3://bucket/none/"); }), ErrorCode::kNotFound);
  EXPECT_EQ(test::code_of([] { expand("hf://o/r/*.pt"); }), ErrorCode::kUnsupported);
  EXPECT_EQ(test::code_of([] { expand("s3://bucket/*", {.index = true}); }), ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace penstock::data
