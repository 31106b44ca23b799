#include "io/remote/location.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "io/file/url.h"
#include "io/remote/profile.h"
#include "penstock/error.h"
#include "support/errors.h"

namespace penstock::io::remote {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Locations, AreUrlsOnlyWithTwoSlashes) {
  for (const char* const url : {"http://h/x", "https://h", "s3://b/k", "gs://b/k", "az://c/b", "hf://o/r/f"})
    EXPECT_TRUE(is_url(url));
  for (const char* const path : {"s3:x", "S3://b/k", "http:/h", "ftp://h/x", "/s3://b", "", "s3:/"}) {
    EXPECT_FALSE(is_url(path)) << path;
  }
}

TEST(Locations, BecomeWhatIsAskedFor) {
  const std::vector<std::pair<std::string, std::string>> urls = {
      {"http://h:8/a b\xc3\xa4%20?download=1#part", "http://h:8/a%20b%C3%A4%20?download=1"},
      {"https://h", "https://h/"},
      {"https://h?x=1", "https://h/?x=1"},
      {"https://[::1]:8/x", "https://[::1]:8/x"},
      {"hf://o/r/a/b c.npy", "https://huggingface.co/o/r/resolve/main/a/b%20c.npy"},
      {"hf://datasets/o/r@refs%2Fpr%2F1/f", "https://huggingface.co/datasets/o/r/resolve/refs%2Fpr%2F1/f"},
  };
  for (const auto& [url, asked] : urls) EXPECT_EQ(parse(url).url, asked);
  const Location key = parse("s3://my-bucket/a/b?c#d%20 +");
  EXPECT_EQ(key.bucket, "my-bucket");
  EXPECT_EQ(key.key, "a/b?c#d%20 +");
  EXPECT_EQ(parse("az://$web/a?b").bucket, "$web");
  EXPECT_EQ(parse("az://$web/a?b").key, "a?b");
}

TEST(Locations, ShowNothingSecret) {
  const std::vector<std::pair<std::string, std::string>> urls = {
      {"https://h/x?X-Amz-Signature=abc", "https://h/x?..."},
      {"https://h/x?download=true&token=abc", "https://h/x?..."},
      {"https://h/x?versionId=1&download", "https://h/x?versionId=1&download"},
      {"https://h/x#abc", "https://h/x"},
  };
  for (const auto& [url, shown] : urls) EXPECT_EQ(parse(url).shown, shown);
  EXPECT_TRUE(parse(urls[0].first).has_secret);
  EXPECT_FALSE(parse(urls[2].first).has_secret);
}

TEST(Locations, ThatCannotBeRightAreRefused) {
  for (const char* const url : {"https://user:hunter2@h/x",
                                "http://",
                                "http:///x",
                                "s3://",
                                "s3:///k",
                                "s3://b@d/k",
                                "s3://ID:hunter2@b/k",
                                "s3://..//k",
                                "hf://o/r",
                                "hf://o",
                                "hf://datasets/o/r",
                                "hf://o/r@/f",
                                "http://h/a\nb",
                                "hf://o/r/a\tb",
                                "s3://b\r/a",
                                "s3://ID:hunter2/x@b/k",
                                "az://c@account.blob.core.windows.net/x",
                                "az://account.blob.core.windows.net/c/x",
                                "az://c/x?sv=1&sig=hunter2",
                                "abfs://c@account.dfs.core.windows.net/x?sv=1&sig=hunter2",
                                "abfs://c@example.org/x",
                                "abfs://c@account.dfs.example.org/x",
                                "abfs://c@account.core.windows.net/x",
                                "abfs://c@dfs.core.windows.net/x",
                                "abfs://c@a.b.dfs.core.windows.net/x",
                                "abfs://c@account.dfs.core.windows.net:1/x",
                                "abfs://c@account.dfs.core.windows.net.example.org/x",
                                "abfs://c@d@account.dfs.core.windows.net/x",
                                "abfs://@account.dfs.core.windows.net/x",
                                "abfs://c:hunter2@account.dfs.core.windows.net/x",
                                "abfs://account.dfs.core.windows.net/c/x",
                                "az://ID:hunter2@c/x"}) {
    const auto error = test::error_of([&] { parse(url); });
    ASSERT_TRUE(error) << url;
    EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument) << url;
    EXPECT_THAT(error->what(), Not(HasSubstr("hunter2"))) << url;
  }
}

TEST(Locations, MayNameTheAccountOfAzure) {
  for (const char* const scheme : {"abfs", "abfss"}) {
    for (const char* const service : {"dfs", "blob"}) {
      const std::string url = std::string(scheme) + "://c@acct1." + service + ".core.windows.net/a b?/x";
      const Location found = parse(url);
      EXPECT_EQ(found.kind, Kind::kAz);
      EXPECT_EQ(found.bucket, "c");
      EXPECT_EQ(found.key, "a b?/x");
      EXPECT_EQ(found.endpoint, "https://acct1.blob.core.windows.net");
      EXPECT_EQ(found.shown, url);
      EXPECT_EQ(sibling(found.shown, "y"), url.substr(0, url.size() - 1) + "y");
    }
  }
  EXPECT_EQ(parse("abfs://c@a.dfs.core.chinacloudapi.cn").endpoint, "https://a.blob.core.chinacloudapi.cn");
  EXPECT_EQ(parse("abfs://c/x").endpoint, "");
  EXPECT_EQ(parse("abfs://c/x").key, "x");
  EXPECT_EQ(parse("az://c/x").endpoint, "");
}

TEST(Locations, AreAskedForByTheWordsOfTheirStore) {
  const auto said = [](const char* url) { return std::string(test::error_of([&] { parse(url); })->what()); };
  EXPECT_THAT(said("az://"), HasSubstr("a container; write az://CONTAINER/BLOB"));
  EXPECT_THAT(said("abfs:///x"), HasSubstr("abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/BLOB"));
  EXPECT_THAT(said("s3:///x"), HasSubstr("a bucket; write s3://BUCKET/KEY"));
}

TEST(Locations, HaveSiblings) {
  EXPECT_EQ(sibling("s3://b/dir/index.json", "a b"), "s3://b/dir/a b");
  EXPECT_EQ(sibling("https://h/dir/index.json?download=1", "a b"), "https://h/dir/a%20b");
  EXPECT_EQ(test::code_of([] { sibling("https://h/index.json?...", "a"); }), ErrorCode::kUnsupported);
  for (const char* const bucket : {"s3://b", "s3://b/"}) EXPECT_EQ(in_folder(bucket, ".metadata"), "s3://b/.metadata");
  EXPECT_EQ(in_folder("s3://b/dir/", ".metadata"), "s3://b/dir/.metadata");
  EXPECT_EQ(in_folder("https://h/dir?sig=secret", ".metadata"), "");
}

TEST(Locations, OfRedirectsAreHttpAlone) {
  const std::string from = "https://h:1/a/b?c";
  EXPECT_EQ(resolved(from, "/x"), "https://h:1/x");
  EXPECT_EQ(resolved(from, "//o/x"), "https://o/x");
  EXPECT_EQ(resolved(from, "x?y"), "https://h:1/a/x?y");
  EXPECT_EQ(resolved(from, "http://o/x#y"), "http://o/x");
  EXPECT_EQ(resolved(from, "HTTP://o/x"), "http://o/x");
  EXPECT_EQ(resolved(from, "?y=z://"), "https://h:1/a/b?y=z://");
  EXPECT_EQ(resolved(from, "../x/./y?q=../z"), "https://h:1/x/y?q=../z");
  EXPECT_EQ(resolved(from, "../../../x"), "https://h:1/x");
  EXPECT_EQ(resolved(from, "a b/\xC3\xA4"), "https://h:1/a/a%20b/%C3%A4");
  EXPECT_EQ(resolved("http://h", "x"), "http://h/x");
  for (const char* const bad : {"file:///etc/passwd", "ftp://h/x", "javascript:x", "", "http://u:p@h/x", "http:///x"}) {
    EXPECT_EQ(resolved(from, bad), "") << bad;
  }
}

TEST(Locations, ArePrivateByTlsOrOnThisMachine) {
  for (const char* const url : {"https://h/x", "http://localhost/x", "http://LocalHost:8/x", "http://127.0.0.1:8/x",
                                "http://127.1.2.3", "http://[::1]:8/x"}) {
    EXPECT_TRUE(is_private(url)) << url;
  }
  for (const char* const url :
       {"http://h/x", "http://localhost:x@h/", "http://127.evil.example/", "http://127.0.0.1.evil/", "http://127.1/",
        "http://localhost@h/", "http://localhost.h/", "http://[::1].h/", "http://[::2]/", "http://128.0.0.1/",
        "http://127.0.0.1:8x/", "http://localhost\\@h/", "http://", "ftp://localhost/", ""}) {
    EXPECT_FALSE(is_private(url)) << url;
  }
}

TEST(Profiles, AreReadAsAmazonsToolsReadThem) {
  const Sections sections = read_profiles(
      "# comment\n[default]\naws_access_key_id = A\naws_secret_access_key=a=b \r\n\n[profile other]\n"
      "region = eu-west-1\ns3 =\n  addressing_style = path\n; end\nnonsense\n[cut\nx=1");
  EXPECT_EQ(sections.at("default").at("aws_secret_access_key"), "a=b");
  EXPECT_EQ(sections.at("profile other").at("region"), "eu-west-1");
  EXPECT_FALSE(sections.at("profile other").contains("addressing_style"));
  EXPECT_EQ(sections.at("profile other").at("s3.addressing_style"), "path");
  EXPECT_EQ(sections.at("cut").at("x"), "1");
}

}  // namespace
}  // namespace penstock::io::remote
