// Every reader of the table over every kind of source it can serve.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "io/read/reader.h"
#include "io/source/source.h"
#include "support/emulator.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/http_server.h"

namespace penstock::io {
namespace {

using test::code_of;
using Bytes = std::vector<std::byte>;

/// A source that is neither a file nor memory, as a remote one would be.
class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(Bytes bytes, bool waits = false) : bytes_(std::move(bytes)), waits_(waits) {}
  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  bool waits() const noexcept override { return waits_; }
  void read(std::uint64_t offset, std::span<std::byte> into) const override {
    require_inside(*this, offset, into.size());
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
  }

 private:
  Bytes bytes_;
  bool waits_;
  std::string name_ = "<plain>";
};

Source from_path(const test::TemporaryFolder& folder, const Bytes& bytes) {
  test::write_file(folder / "source", bytes);
  return open_source(folder / "source");
}
Source from_url(const test::TemporaryFolder& folder, const Bytes& bytes) {
  test::write_file(folder / "source", bytes);
  return open_source("file://" + (folder / "source"));
}
Source from_memory(const test::TemporaryFolder& /*folder*/, const Bytes& bytes) {
  auto copy = std::make_shared<Bytes>(bytes);
  return memory_source(Buffer::wrap(copy->data(), copy->size(), copy));
}
Source from_mapping(const test::TemporaryFolder& folder, const Bytes& bytes) {
  const Source file = from_path(folder, bytes);
  return memory_source(map_source(*file));
}
Source from_plain(const test::TemporaryFolder& /*folder*/, const Bytes& bytes) {
  return std::make_shared<PlainSource>(bytes);
}
Source from_waiting(const test::TemporaryFolder& /*folder*/, const Bytes& bytes) {
  return std::make_shared<PlainSource>(bytes, true);
}

/// A source that is read over HTTP, with the server that has its bytes.
struct Served {
  explicit Served(const Bytes& bytes)
      : content(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
        server([this](const test::HttpRequest& request) { return test::http_range(request, content); }),
        source(open_source(server.url())) {}

  std::string content;
  test::HttpServer server;
  Source source;
};
Source from_http(const test::TemporaryFolder& /*folder*/, const Bytes& bytes) {
  const auto served = std::make_shared<Served>(bytes);
  return std::shared_ptr<const ByteSource>(served, &*served->source);
}

struct Kind {
  const char* name;
  Source (*make)(const test::TemporaryFolder& folder, const Bytes& bytes);
};
constexpr Kind kKinds[] = {{"path", from_path},       {"url", from_url},     {"memory", from_memory},
                           {"mapping", from_mapping}, {"plain", from_plain}, {"waiting", from_waiting},
                           {"http", from_http}};

struct Pair {
  Reader reader;
  Kind kind;
};

/// Each reader with each kind of source that it serves.
std::vector<Pair> pairs(bool files_only) {
  const test::TemporaryFolder folder;
  std::vector<Pair> out;
  for (const Reader& reader : readers()) {
    for (const Kind& kind : kKinds) {
      const Source source = kind.make(folder, Bytes(100'000));  // what is small is kept, by URL
      if (reader.usable(*source) && (!files_only || source.descriptor() >= 0)) out.push_back({reader, kind});
    }
  }
  return out;
}

class Conformance : public testing::TestWithParam<Pair> {
 protected:
  const Reader& reader() const { return GetParam().reader; }
  Bytes read(std::uint64_t offset, std::size_t length) const {
    Bytes out(length);
    const Scatter part{out.data(), length};
    reader().read(*source_, offset, {&part, 1});
    return out;
  }
  Bytes expected(std::uint64_t offset, std::size_t length) const {
    const auto first = bytes_.begin() + static_cast<std::ptrdiff_t>(offset);
    return {first, first + static_cast<std::ptrdiff_t>(length)};
  }

  test::TemporaryFolder folder_;
  Bytes bytes_ = test::numbered_bytes(100'003);
  Source source_ = GetParam().kind.make(folder_, bytes_);
};

TEST_P(Conformance, ReadsEveryKindOfRun) {
  const std::size_t size = bytes_.size();
  EXPECT_EQ(source_.size(), size);
  EXPECT_TRUE(read(0, size) == bytes_);
  for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, std::size_t{4095}, std::size_t{4096}, size - 1}) {
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{9000}}) {
      if (offset + length > size) continue;
      EXPECT_TRUE(read(offset, length) == expected(offset, length)) << length << " at " << offset;
    }
  }
  EXPECT_TRUE(read(size, 0).empty());
}

TEST_P(Conformance, ReadsNothingBeyondTheEnd) {
  constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
  const std::size_t size = bytes_.size();
  EXPECT_EQ(code_of([&] { read(size, 1); }), ErrorCode::kTruncated);
  EXPECT_EQ(code_of([&] { read(size - 1, 2); }), ErrorCode::kTruncated);
  EXPECT_EQ(code_of([&] { read(size + 1, 0); }), ErrorCode::kTruncated);
  EXPECT_EQ(code_of([&] { read(kHuge, 1); }), ErrorCode::kTruncated);
  EXPECT_EQ(code_of([&] { read(kHuge - 5, 10); }), ErrorCode::kTruncated);
  const auto error = test::error_of([&] { read(size - 1, 2); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->path(), source_.name());
  EXPECT_EQ(error->offset(), size - 1);
}

TEST_P(Conformance, ScattersOverPartsAndDropsGaps) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const std::size_t count = 1 + random() % (round % 10 == 0 ? 700 : 20);
    const std::size_t longest = round % 7 == 0 ? 40'000 / count + 1 : 60;
    std::vector<std::size_t> lengths(count);
    std::generate(lengths.begin(), lengths.end(), [&] { return random() % longest; });
    std::size_t total = 0;
    for (const std::size_t length : lengths) total += length;
    const std::size_t offset = random() % (bytes_.size() - total + 1);

    Bytes out(total, std::byte{0});
    Bytes wanted(total, std::byte{0});
    std::vector<Scatter> parts;
    std::size_t at = 0;
    for (const std::size_t length : lengths) {
      const bool keep = random() % 3 != 0;
      parts.push_back({keep ? out.data() + at : nullptr, length});
      if (keep)
        std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset + at), length,
                    wanted.begin() + static_cast<std::ptrdiff_t>(at));
      at += length;
    }
    reader().read(*source_, offset, parts);
    ASSERT_TRUE(out == wanted) << "round " << round;
  }
  reader().read(*source_, 5, {});
}

TEST_P(Conformance, DropsGapsOfAnySize) {
  Bytes out(10);
  const std::vector<Scatter> parts = {{out.data(), 5}, {nullptr, 99'000}, {out.data() + 5, 5}, {nullptr, 900}};
  reader().read(*source_, 3, parts);
  EXPECT_TRUE(Bytes(out.begin(), out.begin() + 5) == expected(3, 5));
  EXPECT_TRUE(Bytes(out.begin() + 5, out.end()) == expected(99'008, 5));
}

TEST_P(Conformance, ServesManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (unsigned t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 50; ++i) {
        const std::size_t length = random() % 20'000;
        const std::size_t offset = random() % (bytes_.size() - length);
        if (read(offset, length) != expected(offset, length)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

class FileConformance : public Conformance {};

TEST_P(FileConformance, SaysWhenTheFileWasCut) {
  if (test::has_emulated_pages() && reader().name == "mmap") {
    GTEST_SKIP() << "QEMU maps nothing behind a file's end where its pages are larger than the machine's";
  }
  std::filesystem::resize_file(folder_ / "source", 50'000);
  if (reader().name != "mmap") {
    EXPECT_TRUE(read(0, 50'000) == expected(0, 50'000)) << "what is left can still be read";
  }
  for (const std::size_t offset : {std::size_t{49'999}, std::size_t{50'000}, std::size_t{90'000}}) {
    const auto error = test::error_of([&] { read(offset, 10'000); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kTruncated);
    EXPECT_EQ(error->path(), source_.name());
  }
  // Nothing but zeros in the page where the file ends now, and no signal either.
  EXPECT_EQ(code_of([&] { read(49'999, 2); }), ErrorCode::kTruncated);
}

std::string name_of(const testing::TestParamInfo<Pair>& param) {
  return std::string(param.param.reader.name) + "_over_" + param.param.kind.name;
}
INSTANTIATE_TEST_SUITE_P(Readers, Conformance, testing::ValuesIn(pairs(false)), name_of);
INSTANTIATE_TEST_SUITE_P(Readers, FileConformance, testing::ValuesIn(pairs(true)), name_of);

bool is_usable(const Reader& reader, const Source& source) { return reader.usable(*source); }

TEST(Readers, EachServesSomethingAndTheLastServesAll) {
  const test::TemporaryFolder folder;
  for (const Reader& reader : readers()) {
    const auto serves = [&](const Kind& kind) { return is_usable(reader, kind.make(folder, Bytes(10))); };
    EXPECT_TRUE(std::any_of(std::begin(kKinds), std::end(kKinds), serves)) << reader.name;
  }
  for (const Kind& kind : kKinds) {
    EXPECT_TRUE(is_usable(readers().back(), kind.make(folder, Bytes(10)))) << kind.name;
  }
}

std::string_view best_for(const Source& source) { return reader_for(*source).name; }

TEST(Readers, TheBestForEachKindOfSource) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(best_for(from_path(folder, Bytes(10))), "pread");
  EXPECT_EQ(best_for(from_memory(folder, Bytes(10))), "memory");
  EXPECT_EQ(best_for(from_plain(folder, Bytes(10))), "source");
  EXPECT_EQ(best_for(from_http(folder, Bytes(100'000))), "remote");
}

TEST(Readers, EmptySources) {
  const test::TemporaryFolder folder;
  for (const Kind& kind : kKinds) {
    if (kind.make == from_mapping) continue;
    const Source source = kind.make(folder, {});
    for (const Reader& reader : readers()) {
      if (!reader.usable(*source)) continue;
      reader.read(*source, 0, {});
      std::byte byte{};
      const Scatter part{&byte, 1};
      EXPECT_EQ(code_of([&] { reader.read(*source, 0, {&part, 1}); }), ErrorCode::kTruncated) << reader.name;
    }
  }
}

}  // namespace
}  // namespace penstock::io
