// Objects behind URLs, from a server on loopback that answers well, badly, or not at all.

#include "io/remote/remote_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "core/stop_scope.h"
#include "io/copy/crc32.h"
#include "io/move/plan.h"
#include "io/read/read_ahead.h"
#include "io/read/read_for_crc.h"
#include "io/read/reader.h"
#include "io/remote/remote.h"
#include "io/source/opened_file.h"
#include "io/source/window_source.h"
#include "penstock/error.h"
#include "penstock/source.h"
#include "support/errors.h"
#include "support/http_server.h"

namespace penstock::io::remote {
namespace {

using test::error_of;
using test::http_answer;
using test::http_range;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Wanted = test::HttpRequest;  // HttpRequest alone is what we send

/// Variables are set while no request is under way, so that no thread reads them meanwhile.
class RemoteSources : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* const name :
         {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "AWS_PROFILE", "PENSTOCK_CACHE", "AWS_SESSION_TOKEN",
          "AWS_ENDPOINT_URL_S3", "PENSTOCK_S3_ANONYMOUS"}) {
      ::unsetenv(name);
    }
    be_patient("30", "20");
    ::setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    ::setenv("AWS_CONFIG_FILE", "/nowhere", 1);
    ::setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere", 1);
    ::setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", "the/very+secret", 1);
    ::setenv("AWS_REGION", "us-east-1", 1);
  }

  static void be_patient(const char* timeout, const char* retries) {
    ::setenv("PENSTOCK_REMOTE_TIMEOUT", timeout, 1);
    ::setenv("PENSTOCK_REMOTE_RETRY_SECONDS", retries, 1);
  }

  static std::string bytes(std::size_t count) {
    std::string out(count, '\0');
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<char>(i * 7 + i / 251);
    return out;
  }

  static std::string read(const Source& source, std::uint64_t offset, std::size_t count) {
    std::string out(count, '?');
    source.read(offset, std::as_writable_bytes(std::span(out)));
    return out;
  }
};

TEST_F(RemoteSources, ALargeObjectIsReadByRangesOfOneVersion) {
  const std::string content = bytes(300'000);
  test::HttpServer server([&](const Wanted& wanted) { return http_range(wanted, content); });
  const Source source = open_source(server.url("/a b/\xc3\xa4.npy"));
  EXPECT_EQ(source.size(), content.size());
  EXPECT_FALSE(source.memory());
  EXPECT_EQ(reader_for(*source).name, "remote");
  EXPECT_EQ(read(source, 65'000, 2'000), content.substr(65'000, 2'000));  // half of it is kept
  EXPECT_EQ(read(source, 10, 100), content.substr(10, 100));              // all of it
  EXPECT_EQ(read(source, 299'999, 1), content.substr(299'999));
  EXPECT_EQ(read(source, 300'000, 0), "");
  EXPECT_EQ(test::code_of([&] { read(source, 299'999, 2); }), ErrorCode::kTruncated);
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].target, "/a%20b/%C3%A4.npy");
  EXPECT_EQ(requests[0].header("range"), "bytes=0-65535");
  EXPECT_EQ(requests[0].header("if-match"), "");
  EXPECT_EQ(requests[1].header("range"), "bytes=65536-66999");
  EXPECT_EQ(requests[1].header("if-match"), "\"one\"");
  EXPECT_EQ(requests[2].header("range"), "bytes=299999-299999");
}

TEST_F(RemoteSources, ScatteredPartsAndGapsAreOneRequest) {
  const std::string content = bytes(200'000);
  test::HttpServer server([&](const Wanted& wanted) { return http_range(wanted, content); });
  const Source source = open_source(server.url());
  std::string a(10, '?');
  std::string b(20, '?');
  const auto at = [](std::string& text) { return reinterpret_cast<std::byte*>(text.data()); };
  const std::vector<Scatter> parts = {{at(a), 10}, {nullptr, 1000}, {at(b), 20}};
  reader_for(*source).read(*source, 100'000, parts);
  EXPECT_EQ(a, content.substr(100'000, 10));
  EXPECT_EQ(b, content.substr(101'010, 20));
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(RemoteSources, WhateverLiesInAnObjectCostsWhatItsRequestsCost) {
  const std::string content = bytes(200'000);
  test::HttpServer server([&](const Wanted& wanted) { return http_range(wanted, content); });
  const Source source = open_source(server.url());
  const ReadCosts costs = costs_of(*source);
  EXPECT_TRUE(costs.waits());
  EXPECT_LT(costs.least_gap, costs.most_gap);
  const Source window = window_of(source, 1000, 100'000);
  EXPECT_EQ(costs_of(*window), costs);
  EXPECT_EQ(costs_of(OpenedFile(source)), costs);
  // Ten kilobytes behind ten bytes are no neighbours there; in a file of this machine they are.
  const std::vector<Source> sources = {memory_source(Buffer::allocate(200'000)), source};
  EXPECT_FALSE(costs_of(*sources[0]).waits());
  std::vector<Piece> pieces;
  for (std::uint32_t from = 0; from < 2; ++from) {
    pieces.push_back({from, 0, 70'000, 10, 0});
    pieces.push_back({from, 1, 80'000, 10, 0});
  }
  const Plan plan = make_plan(pieces, sources);
  ASSERT_EQ(plan.ranges.size(), 3U);
  EXPECT_EQ(plan.ranges[0].length, 10'010U);
}

TEST_F(RemoteSources, AWindowIsReadByOneRequestWhateverItsParts) {
  const std::string content = bytes(200'000);
  test::HttpServer server([&](const Wanted& wanted) { return http_range(wanted, content); });
  const Source window = window_of(open_source(server.url()), 70'000, 100'000);
  std::string a(10, '?');
  std::string b(20, '?');
  const auto at = [](std::string& text) { return reinterpret_cast<std::byte*>(text.data()); };
  const std::vector<Scatter> parts = {{at(a), 10}, {nullptr, 1000}, {at(b), 20}};
  reader_for(*window).read(*window, 100, parts);
  EXPECT_EQ(a, content.substr(70'100, 10));
  EXPECT_EQ(b, content.substr(71'110, 20));
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(RemoteSources, PiecesThatAreReadAheadAreAskedForOnce) {
  const std::string content = bytes(2'000'000);
  test::HttpServer server([&](const Wanted& wanted) { return http_range(wanted, content); });
  const OpenedFile opened(open_source(server.url()));
  const std::vector<Extent> pieces = {{100'000, 100'100}, {100'050, 100'200}, {900'000, 900'010}};
  EXPECT_TRUE(read_ahead(opened, pieces));
  EXPECT_EQ(server.requests().size(), 3U);
  const auto of = [&](std::uint64_t offset, std::size_t count) {
    std::string out(count, '?');
    opened.read(offset, std::as_writable_bytes(std::span(out)));
    return out;
  };
  EXPECT_EQ(of(100'000, 200), content.substr(100'000, 200));
  EXPECT_EQ(of(900'003, 7), content.substr(900'003, 7));
  EXPECT_EQ(server.requests().size(), 3U);
  EXPECT_EQ(of(100'190, 20), content.substr(100'190, 20)) << "behind the end of a piece";
  EXPECT_EQ(server.requests().size(), 4U);
  EXPECT_FALSE(read_ahead(OpenedFile(memory_source(Buffer::allocate(100))), pieces)) << "nothing is gained there";
}

TEST_F(RemoteSources, RunsAreReadForTheirCrcsByManyRequests) {
  const std::string content = bytes(5'000'000);
  test::HttpServer server([&](const Wanted& wanted) { return http_range(wanted, content); });
  const Source far = open_source(server.url());
  const Buffer copy = Buffer::allocate(content.size());
  std::memcpy(copy.data(), content.data(), content.size());
  const Source near = memory_source(copy);
  std::vector<CrcRun> runs = {{far, 0, 4'500'000}, {near, 10, 600'000}, {far, 4'600'000, 0}, {far, 4'700'000, 10}};
  for (std::uint64_t i = 0; i < 20; ++i) runs.push_back({far, 4'700'100 + 100 * i, 100});
  const std::vector<std::uint32_t> crcs = read_for_crc(runs);
  ASSERT_EQ(crcs.size(), runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::span<const std::byte> of(copy.data() + runs[i].offset, static_cast<std::size_t>(runs[i].bytes));
    EXPECT_EQ(crcs[i], crc32(0, of)) << i;
  }
  // The first, five pieces of the large run, and the small runs, which lie together, behind the last of them.
  EXPECT_LE(server.requests().size(), 8U);
  EXPECT_GE(server.requests().size(), 6U);
}

TEST_F(RemoteSources, ASmallOrEmptyObjectCostsOneRequestAndIsMemory) {
  for (const std::size_t size : {0, 1, 65'536}) {
    const std::string content = bytes(size);
    test::HttpServer server([&](const Wanted& wanted) { return http_range(wanted, content); });
    const Source source = open_source(server.url());
    EXPECT_EQ(source.size(), size);
    EXPECT_EQ(source.memory().size(), size);
    EXPECT_EQ(read(source, 0, size), content);
    EXPECT_EQ(server.requests().size(), 1U);
  }
}

/// What a server does with the n-th request for an object of 100,000 bytes, and how reading it ends.
struct Fault {
  const char* name;
  std::string (*answer)(const Wanted& wanted, const std::string& content, unsigned number);
  std::optional<ErrorCode> code;  ///< nothing: the right bytes
  const char* says = "";
  bool for_ever = false;  ///< no try helps
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class Faults : public RemoteSources, public testing::WithParamInterface<Fault> {};

TEST_P(Faults, EndInTheRightBytesOrTheRightError) {
  const std::string content = bytes(100'000);
  std::atomic<unsigned> number = 0;
  const Fault& fault = GetParam();
  if (fault.for_ever) be_patient("0.1", "0.2");
  test::HttpServer server([&](const Wanted& wanted) { return fault.answer(wanted, content, number++); });
  if (!fault.code) {
    const Source source = open_source(server.url());
    EXPECT_EQ(read(source, 0, content.size()), content);
  } else {
    const auto error = error_of([&] {
      const Source source = open_source(server.url("/x?token=hidden"));
      read(source, 0, content.size());
    });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), *fault.code) << error->what();
    EXPECT_THAT(error->what(), AllOf(HasSubstr(fault.says), HasSubstr("/x?...: "), Not(HasSubstr("hidden"))));
  }
}

/// An answer with some of it changed.
std::string with(std::string answer, std::string_view from, std::string_view to) {
  return answer.replace(answer.find(from), from.size(), to);
}

INSTANTIATE_TEST_SUITE_P(
    All, Faults,
    testing::Values(
        Fault{"A503ThenWell",
              [](const Wanted& w, const std::string& c, unsigned n) {
                return n == 0 ? http_answer(503, "<Error><Code>SlowDown</Code></Error>") : http_range(w, c);
              },
              {}},
        Fault{"A503ForEver",
              [](const Wanted&, const std::string&, unsigned) {
                return http_answer(503, "<Error><Code>SlowDown</Code><Message>a &lt;b&gt;</Message></Error>");
              },
              ErrorCode::kIo, "503 (SlowDown: a <b>)", true},
        Fault{"ABodyCutOnce",
              [](const Wanted& w, const std::string& c, unsigned n) {
                const std::string answer = http_range(w, c);
                return n == 1 ? answer.substr(0, answer.size() - 100) : answer;
              },
              {}},
        Fault{"AResetOnce",
              [](const Wanted& w, const std::string& c, unsigned n) { return n == 1 ? "H" : http_range(w, c); },
              {}},
        Fault{"AStop", [](const Wanted& w, const std::string& c, unsigned n) { return n == 0 ? http_range(w, c) : ""; },
              ErrorCode::kTimeout, "no data, or less than 1 KiB a second, arrived", true},
        Fault{"AnotherETag",
              [](const Wanted& w, const std::string& c, unsigned n) {
                return http_range(w, c, n == 0 ? "\"E\"" : "\"F\"");
              },
              ErrorCode::kChanged, "\"F\""},
        Fault{"A412",
              [](const Wanted& w, const std::string& c, unsigned n) {
                return n == 0 ? http_range(w, c) : http_answer(412, "");
              },
              ErrorCode::kChanged, "412"},
        Fault{"AShorterObject",
              [](const Wanted& w, const std::string& c, unsigned n) {
                return n == 0 ? http_range(w, c) : http_range(w, c.substr(0, 1000));
              },
              ErrorCode::kChanged, "1000"},
        Fault{"ALongerObject",
              [](const Wanted& w, const std::string& c, unsigned n) { return http_range(w, n == 0 ? c : c + "more"); },
              ErrorCode::kChanged, "100004"},
        Fault{"AllForARange",
              [](const Wanted& w, const std::string& c, unsigned n) {
                return n == 0 ? http_range(w, c) : http_answer(200, c);
              },
              ErrorCode::kUnsupported, "all of it"},
        Fault{"AllAtOnce", [](const Wanted&, const std::string& c, unsigned) { return http_answer(200, c); }, {}},
        Fault{"AnotherRangeOnce",
              [](const Wanted& w, const std::string& c, unsigned n) {
                return n == 1 ? with(http_range(w, c), "bytes 65536-", "bytes 65535-") : http_range(w, c);
              },
              {}},
        Fault{"ALongerBodyOnce",
              [](const Wanted& w, const std::string& c, unsigned n) {
                const std::string answer = http_range(w, c);
                return n == 1 ? with(answer, "Content-Length", "X-Length") + "more" : answer;
              },
              {}},
        Fault{"EndlessHeaders",
              [](const Wanted&, const std::string&, unsigned) {
                std::string out = "HTTP/1.1 206 X\r\n";
                for (int i = 0; i < 40; ++i) out += "X-" + std::to_string(i) + ": " + std::string(8192, 'x') + "\r\n";
                return out;
              },
              ErrorCode::kIo, "without an end"},
        Fault{"NoSize",
              [](const Wanted& w, const std::string& c, unsigned) { return with(http_range(w, c), "/100000", "/*"); },
              ErrorCode::kUnsupported, "how large"},
        Fault{"NoHttp", [](const Wanted&, const std::string&, unsigned) { return std::string("SSH-2.0-x\r\n\r\n"); },
              ErrorCode::kIo},
        Fault{"A403", [](const Wanted&, const std::string&, unsigned) { return http_answer(403, ""); },
              ErrorCode::kPermission, "403"},
        Fault{"A404", [](const Wanted&, const std::string&, unsigned) { return http_answer(404, ""); },
              ErrorCode::kNotFound, "404"},
        Fault{"ARedirectToAFile",
              [](const Wanted&, const std::string&, unsigned) {
                return http_answer(302, "", "Location: file:///etc/passwd\r\n");
              },
              ErrorCode::kIo, "redirect"},
        Fault{"RedirectsForEver",
              [](const Wanted& w, const std::string&, unsigned) {
                return http_answer(302, "", "Location: " + w.target + "\r\n");
              },
              ErrorCode::kIo, "redirect"}),
    [](const auto& fault) { return std::string(fault.param.name); });

TEST_F(RemoteSources, ATokenGoesToItsHostAlone) {
  const std::string content = bytes(100'000);
  test::HttpServer other([&](const Wanted& wanted) { return http_range(wanted, content); });
  test::HttpServer server(
      [&](const Wanted&) { return http_answer(302, "", "Location: " + other.url("/there?sig=secret") + "\r\n"); });
  ::setenv("PENSTOCK_HTTP_TOKEN", "the-token", 1);
  ::setenv("PENSTOCK_HTTP_TOKEN_HOST", server.host().c_str(), 1);
  const Source source = open_source(server.url());
  EXPECT_EQ(read(source, 0, content.size()), content);
  ::unsetenv("PENSTOCK_HTTP_TOKEN");
  ASSERT_EQ(server.requests().size(), 1U);  // the range is asked for where the first request was sent to
  EXPECT_EQ(server.requests()[0].header("authorization"), "Bearer the-token");
  ASSERT_EQ(other.requests().size(), 2U);
  for (const Wanted& wanted : other.requests()) EXPECT_EQ(wanted.header("authorization"), "");
}

TEST_F(RemoteSources, WhereARedirectLedMayEnd) {
  const std::string content = bytes(100'000);
  std::atomic<unsigned> times = 0;
  test::HttpServer other([&](const Wanted& wanted) {
    return wanted.target == "/1" && times > 1 ? http_answer(403, "") : http_range(wanted, content);
  });
  test::HttpServer server([&](const Wanted&) {
    return http_answer(307, "", "Location: " + other.url("/" + std::to_string(++times)) + "\r\n");
  });
  const Source source = open_source(server.url());
  times = 2;  // what "/1" gave has ended
  EXPECT_EQ(read(source, 0, content.size()), content);
  EXPECT_EQ(other.requests().back().target, "/3");
}

TEST_F(RemoteSources, ABucketInAnotherRegionIsAskedThere) {
  const std::string content = bytes(1000);
  test::HttpServer server([&](const Wanted& wanted) {
    if (wanted.header("authorization").find("/eu-west-3/s3/") != std::string::npos) return http_range(wanted, content);
    return http_answer(400, "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-3</Region></Error>");
  });
  ::setenv("AWS_ENDPOINT_URL", server.url("").c_str(), 1);
  EXPECT_EQ(read(open_source("s3://elsewhere/a+b =%20.npy"), 0, content.size()), content);
  EXPECT_EQ(server.requests().back().target, "/elsewhere/a%2Bb%20%3D%2520.npy");
  EXPECT_EQ(server.requests().back().header("host"), server.host());
  // The region is known now.
  EXPECT_EQ(read(open_source("s3://elsewhere/b"), 0, 10), content.substr(0, 10));
  EXPECT_EQ(server.requests().size(), 3U);
}

TEST_F(RemoteSources, NoSecretIsShownWhateverAStoreSays) {
  test::HttpServer server([&](const Wanted&) {
    return http_answer(403, "<Error><Code>SignatureDoesNotMatch</Code><Message>not the/very+secret</Message></Error>");
  });
  ::setenv("AWS_ENDPOINT_URL", server.url("").c_str(), 1);
  const auto error = error_of([&] { open_source("s3://bucket/key"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kPermission);
  EXPECT_THAT(error->what(), AllOf(HasSubstr("s3://bucket/key: "), HasSubstr("SignatureDoesNotMatch: not ..."),
                                   Not(HasSubstr("the/very"))));
}

TEST_F(RemoteSources, AStopEndsAWaitSoon) {
  test::HttpServer server([](const Wanted&) { return std::string(); });
  std::stop_source stop;
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop.request_stop();
  });
  const std::stop_token token = stop.get_token();
  const core::StopScope scope(token);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(test::code_of([&] { open_source(server.url()); }), ErrorCode::kCancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));  // tries go on for 60
}

TEST_F(RemoteSources, ManyAreOpenedAtOnceAndEachFailsAlone) {
  const std::string content = bytes(100);
  test::HttpServer server(
      [&](const Wanted& wanted) { return wanted.target == "/3" ? http_answer(404, "") : http_range(wanted, content); });
  std::vector<std::string> urls;
  for (int i = 0; i < 20; ++i) urls.push_back(server.url("/" + std::to_string(i)));
  const std::vector<Opened> opened = open_all(urls);
  for (std::size_t i = 0; i < opened.size(); ++i) {
    if (i == 3) {
      EXPECT_EQ(std::get<Error>(opened[i]).code(), ErrorCode::kNotFound);
    } else {
      EXPECT_EQ(read(std::get<Source>(opened[i]), 0, 100), content);
    }
  }
  EXPECT_EQ(test::code_of([&] { open_sources(urls); }), ErrorCode::kNotFound);
}

// More requests than may be in flight, of a server that lets all of them wait: where they have been given up, the
// others have their turn at once. They would have it in a minute in any case, so that a stop ends a wait for that.
TEST_F(RemoteSources, RequestsThatWereGivenUpLeaveTheirPlacesToOthers) {
  constexpr std::size_t kAtOnce = 64;
  be_patient("2", "0");
  test::HttpServer silent([](const Wanted&) { return std::string(); });
  test::HttpServer server([](const Wanted& wanted) { return http_range(wanted, "there"); });
  std::vector<std::string> urls(kAtOnce, silent.url());
  urls.push_back(server.url());
  std::stop_source stop;
  const std::stop_token token = stop.get_token();
  std::mutex mutex;
  std::condition_variable_any over;
  std::jthread watch([&](const std::stop_token& ended) {
    std::unique_lock lock(mutex);
    over.wait_for(lock, ended, std::chrono::seconds(20), [] { return false; });
    if (!ended.stop_requested()) stop.request_stop();
  });
  const core::StopScope scope(token);
  const std::vector<Opened> opened = open_all(urls);
  EXPECT_EQ(source_of(opened.back()).size(), 5U);
  EXPECT_EQ(error_of([&] { source_of(opened.front()); })->code(), ErrorCode::kTimeout);
}

}  // namespace
}  // namespace penstock::io::remote
