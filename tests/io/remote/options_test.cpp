// Options of one location stand in place of the environment's, for all of its requests and for nobody else's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "io/remote/remote.h"
#include "penstock/error.h"
#include "penstock/remote.h"
#include "penstock/source.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/http_server.h"

namespace penstock::io::remote {
namespace {

using testing::HasSubstr;

class Options : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* const name :
         {"http_proxy", "all_proxy", "PENSTOCK_CACHE", "AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3",
          "PENSTOCK_S3_ANONYMOUS", "PENSTOCK_HTTP_TOKEN_HOST", "PENSTOCK_GS_ACCESS_KEY_ID"}) {
      ::unsetenv(name);
    }
    ::setenv("PENSTOCK_REMOTE_TIMEOUT", "30", 1);
    ::setenv("PENSTOCK_REMOTE_RETRY_SECONDS", "20", 1);
    ::setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    ::setenv("AWS_CONFIG_FILE", "/nowhere", 1);
    ::setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere", 1);
    ::setenv("AWS_ACCESS_KEY_ID", "AKIDENVIRONMENT", 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", "another", 1);
    ::setenv("AWS_REGION", "us-east-1", 1);
  }

  static std::string read(const Source& source, std::uint64_t offset, std::size_t count) {
    std::string out(count, '?');
    source.read(offset, std::as_writable_bytes(std::span(out)));
    return out;
  }

  const std::string content = std::string(300'000, 'x');
};

TEST_F(Options, RetriesAndTheirTimeAreThoseOfTheLocation) {
  std::atomic<int> asked = 0;
  test::HttpServer server([&](const test::HttpRequest& wanted) {
    return ++asked == 2 ? test::http_answer(503, "") : test::http_range(wanted, content);
  });
  const Source once = open_source(server.url(), {.retry_seconds = 0});
  const auto error = test::error_of([&] { read(once, 200'000, 10); });
  EXPECT_THAT(error->message(), HasSubstr("given up after 1 try"));
  EXPECT_EQ(read(once, 200'000, 10), "xxxxxxxxxx");
  asked = 1;  // the next one fails
  EXPECT_EQ(open_source(server.url()).size(), content.size());
}

TEST_F(Options, AServerThatIsSilentIsGivenUpSooner) {
  test::HttpServer server([&](const test::HttpRequest& wanted) {
    if (wanted.header("range") != "bytes=0-65535") std::this_thread::sleep_for(std::chrono::seconds(1));
    return test::http_range(wanted, content);
  });
  const Source source = open_source(server.url(), {.timeout = 0.1, .retry_seconds = 0});
  EXPECT_EQ(test::code_of([&] { read(source, 200'000, 10); }), ErrorCode::kTimeout);
}

TEST_F(Options, AReadHasNoMoreRequestsInFlightThanItMay) {
  std::atomic<int> now = 0;
  std::atomic<int> most = 0;
  test::HttpServer server([&](const test::HttpRequest& wanted) {
    const int mine = ++now;
    int before = most;
    while (mine > before && !most.compare_exchange_weak(before, mine)) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    --now;
    return test::http_range(wanted, content);
  });
  const Source source = open_source(server.url(), {.requests = 2});
  std::vector<std::vector<std::byte>> into(12, std::vector<std::byte>(1));
  std::vector<io::SourceRun> runs;
  for (std::size_t i = 0; i < into.size(); ++i) runs.push_back({70'000 + i * 19'000, into[i]});
  url_read_runs(*source, runs);
  EXPECT_LE(most, 2);
  EXPECT_TRUE(std::all_of(into.begin(), into.end(), [](const auto& one) { return one[0] == std::byte{'x'}; }));
}

TEST_F(Options, StoreRegionAndKeysAreThoseOfTheLocation) {
  test::HttpServer server([&](const test::HttpRequest& wanted) { return test::http_range(wanted, content); });
  const RemoteOptions options{.endpoint = "http://" + server.host(),
                              .region = "garage",
                              .access_key_id = "AKIDOPTION",
                              .secret_access_key = "secret"};
  const Source source = open_source("s3://bucket/a.npy", options);
  EXPECT_EQ(read(source, 200'000, 3), "xxx");
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 2U);
  for (const test::HttpRequest& request : requests) {
    EXPECT_EQ(request.target, "/bucket/a.npy");
    EXPECT_THAT(request.header("authorization"), HasSubstr("AKIDOPTION/"));
    EXPECT_THAT(request.header("authorization"), HasSubstr("/garage/s3/"));
    EXPECT_EQ(request.header("x-amz-security-token"), "");
  }
  open_source("s3://bucket/a.npy", {.endpoint = options.endpoint, .anonymous = true});
  EXPECT_EQ(server.requests().back().header("authorization"), "");
  open_source("s3://bucket/a.npy", {.endpoint = options.endpoint});
  EXPECT_THAT(server.requests().back().header("authorization"), HasSubstr("AKIDENVIRONMENT/"));
}

TEST_F(Options, ATokenGoesToTheHostOfTheLocationAlone) {
  test::HttpServer other([&](const test::HttpRequest& wanted) { return test::http_range(wanted, content); });
  test::HttpServer server([&](const test::HttpRequest& wanted) {
    if (wanted.target == "/away") return test::http_answer(302, "", "Location: " + other.url() + "\r\n");
    return test::http_range(wanted, content);
  });
  open_source(server.url(), {.token = "hush"});
  EXPECT_EQ(server.requests().back().header("authorization"), "Bearer hush");
  open_source(server.url("/away"), {.token = "hush"});
  EXPECT_EQ(other.requests().back().header("authorization"), "");
  open_source(server.url());
  EXPECT_EQ(server.requests().back().header("authorization"), "");
}

TEST_F(Options, EachLocationHasItsCache) {
  const test::TemporaryFolder folder;
  test::HttpServer server([&](const test::HttpRequest& wanted) { return test::http_range(wanted, content); });
  const std::string url = server.url();
  const RemoteOptions kept{.cache = CacheOptions{.folder = folder / "a", .trust_seconds = 60}};
  EXPECT_EQ(read(open_source(url, kept), 200'000, 3), "xxx");
  const std::size_t asked = server.requests().size();
  EXPECT_EQ(read(open_source(url, kept), 200'000, 3), "xxx");
  EXPECT_EQ(server.requests().size(), asked);  // nobody was asked
  EXPECT_EQ(read(open_source(url, {.cache = CacheOptions{.folder = folder / "b"}}), 0, 3), "xxx");
  EXPECT_GT(server.requests().size(), asked);
  ::setenv("PENSTOCK_CACHE", (folder / "c").c_str(), 1);
  open_source(url, {.cache = CacheOptions()});
  EXPECT_FALSE(std::filesystem::exists(folder / "c"));
  ::unsetenv("PENSTOCK_CACHE");
}

TEST_F(Options, OutOfRangeTheyAreRefusedForFilesToo) {
  for (const RemoteOptions& options :
       {RemoteOptions{.timeout = 0}, RemoteOptions{.retry_seconds = -1}, RemoteOptions{.hedges = 2},
        RemoteOptions{.requests = 0}, RemoteOptions{.cache = CacheOptions{.folder = "/nowhere", .max_bytes = 5}}}) {
    EXPECT_EQ(test::code_of([&] { open_source("/dev/null/x", options); }), ErrorCode::kInvalidArgument);
  }
  const test::TemporaryFolder folder;
  test::write_file(folder / "x", "bytes");
  EXPECT_EQ(open_source(folder / "x", {.timeout = 5}).size(), 5U);
}

TEST_F(Options, KeysOfTheLocationGoBeforeWhatAsksWithoutAny) {
  test::HttpServer server([&](const test::HttpRequest& wanted) { return test::http_range(wanted, content); });
  ::setenv("PENSTOCK_S3_ANONYMOUS", "1", 1);
  RemoteOptions options{
      .endpoint = "http://" + server.host(), .access_key_id = "AKIDOPTION", .secret_access_key = "secret"};
  open_source("s3://bucket/a.npy", options);
  EXPECT_THAT(server.requests().back().header("authorization"), HasSubstr("AKIDOPTION/"));
  options.anonymous = true;
  open_source("s3://bucket/a.npy", options);
  EXPECT_EQ(server.requests().back().header("authorization"), "");
}

TEST_F(Options, ATokenGoesBeforeKeysOfTheEnvironment) {
  test::HttpServer server([&](const test::HttpRequest& wanted) { return test::http_range(wanted, content); });
  ::setenv("PENSTOCK_GS_ACCESS_KEY_ID", "GOOGENVIRONMENT", 1);
  ::setenv("PENSTOCK_GS_SECRET_ACCESS_KEY", "another", 1);
  open_source("gs://bucket/a.npy", {.endpoint = "http://" + server.host(), .token = "hush"});
  EXPECT_EQ(server.requests().back().header("authorization"), "Bearer hush");
  open_source("gs://bucket/a.npy", {.endpoint = "http://" + server.host()});
  EXPECT_THAT(server.requests().back().header("authorization"), HasSubstr("GOOGENVIRONMENT/"));
  ::unsetenv("PENSTOCK_GS_ACCESS_KEY_ID");
  ::unsetenv("PENSTOCK_GS_SECRET_ACCESS_KEY");
}

// Amazon may have a bucket in a region that has the name of one in a store of one's own.
TEST_F(Options, TheRegionThatAStoreNamesIsThatOfItsOwnBucket) {
  const auto signed_for = [](const test::HttpRequest& wanted, const std::string& region) {
    return wanted.header("authorization").find("/" + region + "/s3/") != std::string::npos;
  };
  test::HttpServer far([&](const test::HttpRequest& wanted) {
    if (!signed_for(wanted, "far-1")) return test::http_answer(400, "", "x-amz-bucket-region: far-1\r\n");
    return test::http_range(wanted, content);
  });
  test::HttpServer own([&](const test::HttpRequest& wanted) { return test::http_range(wanted, content); });
  open_source("s3://bucket/a.npy", {.endpoint = "http://" + far.host(), .region = "garage"});
  EXPECT_EQ(far.requests().size(), 2U);
  open_source("s3://bucket/a.npy", {.endpoint = "http://" + own.host(), .region = "garage"});
  EXPECT_TRUE(signed_for(own.requests().front(), "garage"));
  open_source("s3://bucket/b.npy", {.endpoint = "http://" + far.host(), .region = "garage"});
  EXPECT_EQ(far.requests().size(), 3U);
}

TEST_F(Options, TheTimeOfTriesDoesNotBeginBeforeTheFirst) {
  std::atomic<int> asked = 0;
  test::HttpServer server([&](const test::HttpRequest& wanted) {
    const int number = ++asked;
    if (number == 2) std::this_thread::sleep_for(std::chrono::milliseconds(2200));  // longer than tries go on
    return number == 3 ? test::http_answer(503, "") : test::http_range(wanted, content);
  });
  const Source source = open_source(server.url(), {.retry_seconds = 2, .requests = 1});
  std::vector<std::byte> into(2);
  const std::vector<io::SourceRun> runs = {{100'000, {&into[0], 1}}, {200'000, {&into[1], 1}}};
  url_read_runs(*source, runs);
  EXPECT_EQ(into, std::vector<std::byte>(2, std::byte{'x'}));
}

}  // namespace
}  // namespace penstock::io::remote
