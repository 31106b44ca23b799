// Objects that go to a server on loopback, which keeps what it gets or refuses it.

#include "io/remote/upload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "penstock/error.h"
#include "support/errors.h"
#include "support/http_server.h"

namespace penstock::io::remote {
namespace {

using test::http_answer;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Wanted = test::HttpRequest;  // HttpRequest alone is what we send

constexpr std::string_view kBegun = "<R><UploadId>a+b/c=</UploadId></R>";
constexpr std::string_view kComplete = "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>";

class Uploads : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* const name : {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "AWS_PROFILE",
                                   "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "PENSTOCK_S3_ANONYMOUS"}) {
      ::unsetenv(name);
    }
    ::setenv("PENSTOCK_REMOTE_TIMEOUT", "20", 1);
    ::setenv("PENSTOCK_REMOTE_RETRY_SECONDS", "20", 1);
    ::setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    ::setenv("AWS_CONFIG_FILE", "/nowhere", 1);
    ::setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere", 1);
    ::setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", "the/very+secret", 1);
    ::setenv("AWS_REGION", "us-east-1", 1);
    ::setenv("AWS_ENDPOINT_URL", server_.url("").c_str(), 1);
  }

  /// What an honest store says, where a test says nothing else.
  std::string answer(const Wanted& wanted) {
    if (other_) {
      if (std::optional<std::string> said = other_(wanted)) return *said;
    }
    const std::scoped_lock lock(mutex_);
    if (wanted.method == "DELETE") ++aborted_;
    if (wanted.method == "DELETE") return http_answer(204, "");
    if (wanted.target == "/bucket/a%20b?uploads=") return http_answer(200, std::string(kBegun));
    if (wanted.method == "POST") {
      for (const auto& [number, bytes] : parts_) content_ += bytes;
      list_ = wanted.body;
      return http_answer(200, std::string(kComplete));
    }
    if (const std::size_t at = wanted.target.find("partNumber="); at != std::string::npos) {
      parts_[std::stoi(wanted.target.substr(at + 11))] = wanted.body;
    } else {
      content_ = wanted.body;
    }
    return http_answer(200, "", "ETag: \"e<1>\"\r\n");
  }

  static std::string bytes(std::size_t count) {
    std::string out(count, '\0');
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<char>(i * 7 + i / 251);
    return out;
  }

  static std::unique_ptr<Output> open(const OutputOptions& options = {}) {
    return open_output("s3://bucket/a b", options);
  }

  std::function<std::optional<std::string>(const Wanted&)> other_;
  std::mutex mutex_;
  std::map<int, std::string> parts_;
  std::string content_;
  std::string list_;
  int aborted_ = 0;
  test::HttpServer server_{[this](const Wanted& wanted) { return answer(wanted); }};
};

const std::string kLarge(2 * kLeastPart + 1000, 'x');

TEST_F(Uploads, ASmallObjectIsOneRequest) {
  const auto out = open();
  out->write_text("hel");
  out->write_text("lo");
  EXPECT_EQ(out->position(), 5U);
  EXPECT_TRUE(server_.requests().empty());
  out->commit();
  ASSERT_EQ(server_.requests().size(), 1U);
  const Wanted request = server_.requests().front();
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.target, "/bucket/a%20b");
  EXPECT_EQ(request.body, "hello");
  EXPECT_EQ(request.header("x-amz-checksum-crc32"), "NhCmhg==");
  EXPECT_EQ(request.header("content-type"), "application/octet-stream");
  EXPECT_EQ(request.header("if-none-match"), "");
  EXPECT_EQ(request.header("expect"), "");
  EXPECT_THAT(request.header("authorization"), HasSubstr("x-amz-checksum-crc32"));
}

TEST_F(Uploads, AnEmptyObjectIsOneToo) {
  open()->commit();
  ASSERT_EQ(server_.requests().size(), 1U);
  EXPECT_EQ(server_.requests().front().header("content-length"), "0");
}

TEST_F(Uploads, WithoutCommitNothingIsSent) {
  open()->write_text("hello");
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(Uploads, ALargeObjectGoesInPartsInOrder) {
  const std::string content = bytes(3 * kLeastPart + 5);
  const auto out = open();
  for (std::size_t at = 0; at < content.size(); at += 1'000'000) {
    out->write_text(std::string_view(content).substr(at, 1'000'000));
  }
  out->commit();
  EXPECT_TRUE(content_ == content);
  EXPECT_EQ(parts_.size(), 4U);
  EXPECT_EQ(parts_[4].size(), 5U);
  EXPECT_THAT(list_, HasSubstr("<PartNumber>4</PartNumber><ETag>\"e&lt;1&gt;\"</ETag><ChecksumCRC32>"));
  EXPECT_THAT(server_.requests().back().target, HasSubstr("?uploadId=a%2Bb%2Fc%3D"));
  EXPECT_EQ(aborted_, 0);
}

TEST_F(Uploads, ExactlyOnePartIsNoUploadInParts) {
  const auto out = open();
  out->write_text(std::string(kLeastPart, 'x'));
  out->commit();
  EXPECT_EQ(server_.requests().size(), 1U);
  EXPECT_EQ(content_.size(), kLeastPart);
}

TEST_F(Uploads, PartsAreAsLargeAsTheExpectedSizeTakes) {
  const auto out = open({.bytes = [] { return std::uint64_t{10'000} * kLeastPart; }});
  out->write_text(kLarge);
  out->commit();
  ASSERT_EQ(parts_.size(), 2U);
  EXPECT_EQ(parts_[1].size(), part_size(1, std::uint64_t{10'000} * kLeastPart));
  EXPECT_TRUE(content_ == kLarge);
}

TEST_F(Uploads, PreparedObjectsAppearByCommitAlone) {
  const auto out = open();
  out->write_text("hello");
  out->prepare();
  EXPECT_EQ(content_, "");
  EXPECT_EQ(parts_[1], "hello");
  out->commit();
  EXPECT_EQ(content_, "hello");
}

TEST_F(Uploads, WithoutCommitThePartsAreTakenBack) {
  open()->write_text(kLarge);
  EXPECT_EQ(content_, "");
  EXPECT_EQ(aborted_, 1);
}

TEST_F(Uploads, APartThatIsRefusedEndsIt) {
  other_ = [](const Wanted& wanted) -> std::optional<std::string> {
    if (wanted.target.find("partNumber=2") == std::string::npos) return std::nullopt;
    return http_answer(403, "<Error><Code>AccessDenied</Code><Message>the/very+secret</Message></Error>");
  };
  const auto error = *test::error_of([] {
    const auto out = open();
    out->write_text(kLarge);
    out->commit();
  });
  EXPECT_EQ(error.code(), ErrorCode::kPermission);
  EXPECT_EQ(error.path(), "s3://bucket/a b");
  EXPECT_THAT(error.what(), AllOf(HasSubstr("may write"), Not(HasSubstr("very+secret"))));
  EXPECT_EQ(content_, "");
  EXPECT_EQ(aborted_, 1);
}

TEST_F(Uploads, AnErrorIn200IsOne) {
  other_ = [](const Wanted& wanted) -> std::optional<std::string> {
    if (wanted.target.find("?uploadId") == std::string::npos || wanted.method == "DELETE") return std::nullopt;
    return http_answer(200, "<Error><Code>InvalidPart</Code></Error>");
  };
  const auto out = open();
  out->write_text(kLarge);
  EXPECT_EQ(test::code_of([&] { out->commit(); }), ErrorCode::kIo);
}

TEST_F(Uploads, WhatIsThereIsNotReplacedWhereThatIsRefused) {
  other_ = [](const Wanted& wanted) -> std::optional<std::string> {
    if (wanted.header("if-none-match") != "*") return std::nullopt;
    return http_answer(412, "<Error><Code>PreconditionFailed</Code></Error>");
  };
  for (const std::string& content : {std::string("hello"), kLarge}) {
    const auto out = open({.existing = Existing::kRefuse});
    out->write_text(content);
    const auto error = *test::error_of([&] { out->commit(); });
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("--force"));
  }
  EXPECT_EQ(content_, "");
}

TEST_F(Uploads, AFrontThatChangesIsSentLast) {
  for (const std::string& front : {std::string("0124"), std::string(1000, 'h')}) {
    parts_.clear();
    content_.clear();
    const auto out = open_front_output("s3://bucket/a b");
    const std::string behind = bytes(3 * kLeastPart);
    out->write_text("0123");
    out->write_text(behind);
    EXPECT_EQ(parts_.count(1), 0U);
    out->replace_front(4, std::as_bytes(std::span(front)));
    EXPECT_EQ(out->position(), front.size() + behind.size());
    out->commit();
    EXPECT_TRUE(content_ == front + behind) << front.size();
    EXPECT_EQ(aborted_, 0);
  }
}

TEST_F(Uploads, AFrontOfASmallObjectChangesInItsOneRequest) {
  const auto out = open_front_output("s3://bucket/a b");
  out->write_text("0123 and more");
  out->replace_front(4, std::as_bytes(std::span(std::string_view("front"))));
  out->commit();
  EXPECT_EQ(content_, "front and more");
  EXPECT_EQ(server_.requests().size(), 1U);
}

TEST_F(Uploads, AFrontThatIsOnItsWayCannotChange) {
  Upload out(parse_object("s3://bucket/a b"), {});
  out.write_text(kLarge);
  EXPECT_EQ(test::code_of([&] { out.replace_front(1, {}); }), ErrorCode::kInvalidArgument);
}

TEST_F(Uploads, AnotherMayCompleteIt) {
  const Location object = parse_object("s3://bucket/a b");
  PreparedParts prepared;
  {
    Upload upload(object, {});
    upload.write_text("hello");
    prepared = upload.hand_over();
  }
  EXPECT_EQ(content_, "");
  EXPECT_EQ(aborted_, 0);
  Upload(object, prepared, Existing::kReplace).commit();
  EXPECT_EQ(content_, "hello");
  EXPECT_EQ(aborted_, 0);
}

TEST_F(Uploads, AStopEndsItSoonAndTakesThePartsBack) {
  std::stop_source stop;
  other_ = [&](const Wanted& wanted) -> std::optional<std::string> {
    if (wanted.target.find("partNumber=2") == std::string::npos) return std::nullopt;
    stop.request_stop();
    return "";
  };
  const auto begun = std::chrono::steady_clock::now();
  const auto code = test::code_of([&] {
    const auto out = open({.stop = stop.get_token()});
    out->write_text(kLarge);
    out->commit();
  });
  EXPECT_EQ(code, ErrorCode::kCancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
  EXPECT_EQ(aborted_, 1);
}

}  // namespace
}  // namespace penstock::io::remote
