#include "format/zip/inflate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/bytes.h"
#include "support/errors.h"

namespace penstock::format {
namespace {

using test::bytes_of;
using test::CountingSource;
using ::testing::HasSubstr;

std::string deflated(std::initializer_list<std::string_view> texts) {
  std::string out;
  DeflateStream stream([&out](std::span<const std::byte> piece) {
    out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  for (const std::string_view text : texts) stream.add(bytes_of(text));
  stream.finish();
  return out;
}

std::string inflated(std::string_view stored, std::size_t size) {
  std::string out(size, '?');
  inflate(bytes_of(stored), std::as_writable_bytes(std::span(out)), "x.npz", "a.npy");
  return out;
}

/// Text that shrinks, but not to nothing.
std::string text_of(std::size_t size) {
  std::string out;
  for (std::uint32_t state = 1; out.size() < size; state = state * 1664525 + 1013904223) {
    out += static_cast<char>('a' + (state >> 28));
  }
  return out;
}

TEST(Inflate, GivesBackWhatWasDeflated) {
  for (const std::size_t size : {0u, 1u, 100u, 70'000u, 1'000'000u}) {
    const std::string text = text_of(size);
    const std::string stored = deflated({text});
    EXPECT_LT(stored.size(), text.size() * 3 / 4 + 50);
    EXPECT_EQ(inflated(stored, size), text) << size;
  }
}

TEST(Inflate, PartsAreOneStream) { EXPECT_EQ(inflated(deflated({"ab", "", "cde", ""}), 5), "abcde"); }

TEST(Inflate, RefusesWhatIsNotExact) {
  const std::string stored = deflated({"hello, hello, hello"});
  const auto message = [](std::string_view bytes, std::size_t size) {
    const auto error = test::error_of([&] { inflated(bytes, size); });
    EXPECT_EQ(error->code(), ErrorCode::kCorrupt);
    EXPECT_EQ(error->path(), "x.npz");
    EXPECT_EQ(error->tensor(), "a.npy");
    return error->message();
  };
  EXPECT_THAT(message(stored, 18), HasSubstr("more than the 18 bytes"));
  EXPECT_THAT(message(stored, 20), HasSubstr("to 19 bytes but is listed with 20"));
  EXPECT_THAT(message(stored + "x", 19), HasSubstr("1 byte follows"));
  EXPECT_THAT(message("\xFF\xFF\xFF", 19), HasSubstr("damaged"));
  EXPECT_THAT(message("", 0), HasSubstr("damaged"));
  for (std::size_t length = 0; length < stored.size(); ++length) message(stored.substr(0, length), 19);
}

/// As inflated(), by a stream in pieces of `step` bytes.
std::string streamed(const std::string& stored, std::size_t size, std::size_t step) {
  const Source source = test::source_of("front" + stored, "x.npz");
  InflateStream stream(*source, 5, stored.size(), "a.npy");
  std::string out(size, '?');
  const auto bytes = std::as_writable_bytes(std::span(out));
  for (std::size_t at = 0; at < size; at += step) stream.fill(bytes.subspan(at, std::min(step, size - at)), size);
  stream.require_end(size);
  return out;
}

TEST(InflateStream, GivesWhatInflatingAtOnceGives) {
  for (const std::size_t size : {0u, 1u, 100u, 70'000u, 1'000'000u}) {
    const std::string text = text_of(size);
    const std::string stored = deflated({text});
    for (const std::size_t step : {std::size_t{1} << 20, std::size_t{16 * 1024}, std::size_t{997}}) {
      EXPECT_EQ(streamed(stored, size, step), text) << size << " in steps of " << step;
    }
  }
}

TEST(InflateStream, RefusesInTheSameWords) {
  const std::string good = deflated({"hello, hello, hello"});
  const auto expect_same = [](const std::string& stored, std::size_t size) {
    const auto once = test::error_of([&] { inflated(stored, size); });
    const auto stream = test::error_of([&] { streamed(stored, size, 7); });
    ASSERT_TRUE(once && stream) << stored.size() << ' ' << size;
    EXPECT_EQ(stream->code(), once->code());
    EXPECT_EQ(stream->message(), once->message());
    EXPECT_EQ(stream->path(), once->path());
    EXPECT_EQ(stream->tensor(), once->tensor());
  };
  for (const std::size_t size : {17u, 18u, 20u, 21u}) expect_same(good, size);
  expect_same(good + "xy", 19);
  expect_same("\xFF\xFF\xFF", 19);
  expect_same("", 0);
  for (std::size_t length = 0; length < good.size(); ++length) expect_same(good.substr(0, length), 19);
}

TEST(InflatePrefix, ReadsNoMoreThanItNeeds) {
  const std::string text = text_of(4'000'000);
  const std::string stored = deflated({text});
  const CountingSource source("front" + stored + "behind");
  std::string out(300, '?');
  EXPECT_EQ(inflate_prefix(source, 5, stored.size(), std::as_writable_bytes(std::span(out)), "a"), 300u);
  EXPECT_EQ(out, text.substr(0, 300));
  EXPECT_LE(source.bytes_read, 32u * 1024);
}

TEST(InflatePrefix, CrossesPieces) {
  const std::string text = text_of(200'000);
  const std::string stored = deflated({text});
  const CountingSource source(stored);
  std::string out(text.size() + 10, '?');
  EXPECT_EQ(inflate_prefix(source, 0, stored.size(), std::as_writable_bytes(std::span(out)), "a"), text.size());
  EXPECT_EQ(out.substr(0, text.size()), text);
}

TEST(InflatePrefix, StopsAtTheEndOfAShortStream) {
  const std::string stored = deflated({"short"});
  const CountingSource source(stored + "behind");
  std::string out(100, '?');
  EXPECT_EQ(inflate_prefix(source, 0, stored.size(), std::as_writable_bytes(std::span(out)), "a"), 5u);
  EXPECT_EQ(out.substr(0, 6), "short?");
}

TEST(InflatePrefix, RefusesDamage) {
  const std::string stored = deflated({text_of(1000)});
  std::string out(1000, '?');
  const auto code = [&out](const std::string& bytes) {
    const CountingSource source(bytes);
    return test::code_of([&] { inflate_prefix(source, 0, bytes.size(), std::as_writable_bytes(std::span(out)), "a"); });
  };
  EXPECT_EQ(code("\xFF\xFF\xFF"), ErrorCode::kCorrupt);
  EXPECT_EQ(code(""), ErrorCode::kCorrupt);
  EXPECT_EQ(code(stored.substr(0, stored.size() / 2)), ErrorCode::kCorrupt);
  const CountingSource cut(stored);
  const auto beyond =
      test::code_of([&] { inflate_prefix(cut, 0, stored.size() + 9, std::as_writable_bytes(std::span(out)), "a"); });
  EXPECT_EQ(beyond, ErrorCode::kTruncated);
}

}  // namespace
}  // namespace penstock::format
