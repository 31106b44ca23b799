// Objects that are read again by way of the cache on disk, from a server that counts what it is asked.

#include "io/remote/cache/cached_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "io/read/reader.h"
#include "io/remote/cache/ledger.h"
#include "io/remote/remote_source.h"
#include "io/remote/traffic.h"
#include "penstock/error.h"
#include "penstock/source.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/http_server.h"

namespace penstock::io::remote {
namespace {

namespace fs = std::filesystem;
using test::http_answer;
using test::http_range;
using testing::HasSubstr;
using testing::Not;

using Question = test::HttpRequest;

std::string bytes(std::size_t count, std::size_t seed = 7) {
  std::string out(count, '\0');
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<char>(i * seed + i / 251);
  return out;
}

class Cached : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* const name : {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"}) ::unsetenv(name);
    ::setenv("PENSTOCK_REMOTE_RETRY_SECONDS", "5", 1);
    ::setenv("PENSTOCK_CACHE", folder_.path().c_str(), 1);
    ::setenv("PENSTOCK_CACHE_BYTES", "100MB", 1);
    trust("0");
  }
  void TearDown() override {
    for (const char* const name : {"PENSTOCK_CACHE", "PENSTOCK_CACHE_BYTES", "PENSTOCK_CACHE_TRUST_SECONDS"}) {
      ::unsetenv(name);
    }
  }
  static void trust(const char* seconds) { ::setenv("PENSTOCK_CACHE_TRUST_SECONDS", seconds, 1); }

  std::string answer(const Question& question) {
    if (question.header("if-none-match") == etag_) return http_answer(304, "", "ETag: " + etag_ + "\r\n");
    return http_range(question, content_, etag_);
  }
  static std::string read(const Source& source, std::uint64_t offset, std::size_t count) {
    std::string out(count, '?');
    source.read(offset, std::as_writable_bytes(std::span(out)));
    return out;
  }
  std::string read_all() { return read(open_source(server_.url()), 0, content_.size()); }
  /// What an action asked the server, and took from the cache.
  template <class Act>
  static RemoteTraffic traffic_of(Act act) {
    TrafficMeter meter;
    const TrafficScope scope(&meter);
    act();
    return meter.total();
  }
  std::string root() const { return cache_root(folder_.path().string()); }
  std::vector<std::string> blocks() const {
    std::vector<std::string> out;
    for_each_block(root(), [&](const BlockOnDisk& block) { out.push_back(block.path); });
    return out;
  }

  const test::TemporaryFolder folder_;
  std::string etag_ = "\"one\"";
  std::string content_ = bytes(5'000'000);
  test::HttpServer server_{[this](const Question& question) { return answer(question); }};
};

TEST_F(Cached, NoByteIsReadTwice) {
  const RemoteTraffic first = traffic_of([&] { EXPECT_EQ(read_all(), content_); });
  EXPECT_EQ(first.received_bytes, content_.size());
  EXPECT_EQ(blocks().size(), 5U);
  const RemoteTraffic second = traffic_of([&] { EXPECT_EQ(read_all(), content_); });
  EXPECT_EQ(second.requests, 1U);
  EXPECT_EQ(second.received_bytes, 0U);
  EXPECT_EQ(second.cached_bytes, content_.size());
}

TEST_F(Cached, WhatIsTrustedIsNotAskedForAtAll) {
  trust("60");
  read_all();
  const RemoteTraffic again = traffic_of([&] { EXPECT_EQ(read_all(), content_); });
  EXPECT_EQ(again.requests, 0U);
}

TEST_F(Cached, AnotherVersionIsReadAnew) {
  read_all();
  etag_ = "\"two\"";
  content_ = bytes(5'000'000, 11);
  EXPECT_EQ(read_all(), content_);
  EXPECT_EQ(read_all(), content_);
}

TEST_F(Cached, AnOpenObjectThatIsWrittenAnewGivesNoBytesOfAnother) {
  const Source source = open_source(server_.url());
  EXPECT_EQ(read(source, 0, 2'000'000), content_.substr(0, 2'000'000));
  const std::string before = content_;
  etag_ = "\"two\"";
  content_ = bytes(5'000'000, 11);
  EXPECT_EQ(read_all(), content_);
  EXPECT_EQ(read(source, 1'048'576, 900'000), before.substr(1'048'576, 900'000));  // what the cache has
  EXPECT_EQ(test::code_of([&] { read(source, 4'000'000, 1000); }), ErrorCode::kChanged);
}

TEST_F(Cached, SmallReadsTakeSmallPartsOfABlock) {
  const Source source = open_source(server_.url());
  EXPECT_EQ(read(source, 3'000'000, 10), content_.substr(3'000'000, 10));
  const RemoteTraffic again = traffic_of([&] {
    EXPECT_EQ(read(source, 3'000'100, 50'000), content_.substr(3'000'100, 50'000));
    EXPECT_EQ(read(source, 65'000, 1'000), content_.substr(65'000, 1'000));  // half of it is in memory
  });
  EXPECT_EQ(again.requests, 0U);
}

TEST_F(Cached, RowsOfOneBlockAreOneRequest) {
  const Source source = open_source(server_.url());
  std::vector<std::string> rows(50, std::string(100, '?'));
  std::vector<io::SourceRun> runs;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    runs.push_back({2'200'000 + 17'000 * i, std::as_writable_bytes(std::span(rows[i]))});
  }
  const RemoteTraffic traffic = traffic_of([&] { reader_for(*source).read_runs(*source, runs); });
  EXPECT_EQ(traffic.requests, 1U);
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], content_.substr(2'200'000 + 17'000 * i, 100)) << i;
}

TEST_F(Cached, DamagedBlocksAreReadAnew) {
  read_all();
  for (const std::string& path : blocks()) {
    std::fstream file(path, std::ios::in | std::ios::out);
    file.seekp(1000);
    file.put('!').put('?');
  }
  const RemoteTraffic anew = traffic_of([&] { EXPECT_EQ(read_all(), content_); });
  EXPECT_EQ(anew.received_bytes, content_.size());
  const RemoteTraffic again = traffic_of([&] { EXPECT_EQ(read_all(), content_); });
  EXPECT_EQ(again.received_bytes, 0U);
}

TEST_F(Cached, ABlockUnderAnothersNameIsDamaged) {
  read_all();
  const std::vector<std::string> all = blocks();
  const std::string swapped = all[0] + ".tmp";
  fs::rename(all[0], swapped);
  fs::rename(all[1], all[0]);
  fs::rename(swapped, all[1]);
  EXPECT_EQ(read_all(), content_);
}

TEST_F(Cached, TheFolderMayGoAtAnyTime) {
  const Source source = open_source(server_.url());
  fs::remove_all(root());
  EXPECT_EQ(read(source, 0, content_.size()), content_);
  fs::remove_all(root());
  EXPECT_EQ(read_all(), content_);
}

TEST_F(Cached, ItsBytesAreBounded) {
  ::setenv("PENSTOCK_CACHE_BYTES", "3MiB", 1);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(read(open_source(server_.url("/" + std::to_string(i))), 0, content_.size()), content_);
    EXPECT_LE(cache_usage(root()).bytes, std::uint64_t{3} << 20);
  }
  EXPECT_GE(blocks().size(), 2U);
}

TEST_F(Cached, AFolderThatCannotBeWrittenWarnsOnceAndNothingFails) {
  test::write_file(folder_ / "file", "x");
  ::setenv("PENSTOCK_CACHE", (folder_ / "file").c_str(), 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(read_all(), content_);
  EXPECT_EQ(read_all(), content_);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, HasSubstr("PENSTOCK_CACHE"));
  EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
}

TEST_F(Cached, NoSecretIsInItsFiles) {
  content_ = bytes(1000);
  const Source source = open_source(server_.url("/x?token=hidden"));
  ASSERT_EQ(blocks().size(), 1U);
  EXPECT_THAT(test::read_file(blocks().front()), AllOf(HasSubstr("/x?..."), Not(HasSubstr("hidden"))));
  EXPECT_THAT(blocks().front(), Not(HasSubstr("hidden")));
  // Another token may be for another object.
  EXPECT_EQ(traffic_of([&] { open_source(server_.url("/x?token=other")); }).received_bytes, 1000U);
}

TEST_F(Cached, WithoutAStrongETagNothingIsKept) {
  etag_ = "W/\"one\"";
  EXPECT_EQ(read_all(), content_);
  EXPECT_TRUE(blocks().empty());
}

TEST_F(Cached, AVariableThatIsNoSizeSaysSo) {
  ::setenv("PENSTOCK_CACHE_BYTES", "plenty", 1);
  const auto error = test::error_of([&] { read_all(); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error->what(), HasSubstr("50GB"));
}

}  // namespace
}  // namespace penstock::io::remote
