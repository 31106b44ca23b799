#include "io/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "io/crc32.h"
#include "io/source.h"
#include "support/errors.h"
#include "support/files.h"

namespace penstock::io {
namespace {

using test::code_of;
using test::error_of;
using testing::HasSubstr;
using Bytes = std::vector<std::byte>;

/// A source that calls back before each read.
class HookedSource final : public ByteSource {
 public:
  HookedSource(Bytes bytes, std::function<void(std::uint64_t offset)> hook)
      : bytes_(std::move(bytes)), hook_(std::move(hook)) {}
  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> into) const override {
    hook_(offset);
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
  }

 private:
  Bytes bytes_;
  std::function<void(std::uint64_t)> hook_;
  std::string name_ = "<hooked>";
};

SourcePtr memory_of(const Bytes& bytes) {
  auto copy = std::make_shared<Bytes>(bytes);
  return memory_source(Buffer::wrap(copy->data(), copy->size(), copy));
}

Buffer zeroed(std::size_t bytes) {
  Buffer buffer = Buffer::allocate(bytes);
  std::fill_n(buffer.data(), bytes, std::byte{0});
  return buffer;
}

std::span<const std::byte> view(const Buffer& buffer) { return {buffer.data(), buffer.size()}; }

/// A file of some megabytes that is read into one buffer.
class Whole {
 public:
  explicit Whole(std::size_t size, const PlanOptions& options = {.max_range = 300'000})
      : bytes(test::numbered_bytes(size)), buffers{zeroed(size)} {
    test::write_file(path(), bytes);
    sources = {open_source(path())};
    const Piece piece = {.length = size};
    move.plan = make_plan({&piece, 1}, options);
    move.sources = sources;
    move.buffers = buffers;
  }
  std::string path() const { return folder / "whole"; }
  bool arrived() const { return std::ranges::equal(view(buffers[0]), bytes); }
  Checksum checksum(std::uint64_t offset, std::uint64_t length) const {
    return {.buffer = 0,
            .buffer_offset = offset,
            .length = length,
            .crc32 = crc32(0, std::span(bytes).subspan(offset, length)),
            .record = "record " + std::to_string(offset),
            .source = 0,
            .offset = offset};
  }

  test::TemporaryFolder folder;
  Bytes bytes;
  std::vector<SourcePtr> sources;
  std::vector<Buffer> buffers;
  Move move;
};

TEST(Engine, ReadsAFileOnAnyNumberOfThreads) {
  for (const std::size_t threads : {0, 1, 2, 7, 100}) {
    const Whole whole(2'000'011);
    Report report;
    execute(whole.move, {.threads = threads}, report);
    EXPECT_TRUE(whole.arrived()) << threads;
    EXPECT_EQ(report.route, "read");
    EXPECT_THAT(report.why, HasSubstr("with pread"));
    EXPECT_EQ(report.read_bytes, whole.bytes.size());
    EXPECT_EQ(report.payload_bytes, whole.bytes.size());
    EXPECT_GT(report.read_seconds, 0);
  }
}

TEST(Engine, AddsToTheReport) {
  const Whole whole(1000);
  Report report;
  execute(whole.move, {}, report);
  execute(whole.move, {}, report);
  EXPECT_EQ(report.read_bytes, 2000U);
}

TEST(Engine, HasNothingToDoForAnEmptyPlan) {
  Report report;
  execute({}, {}, report);
  EXPECT_EQ(report.read_bytes, 0U);
}

TEST(Engine, EveryReaderThatServesTheSource) {
  for (const Reader& reader : readers()) {
    const Whole whole(2'000'000);
    if (!reader.usable(*whole.sources[0])) continue;
    Report report;
    execute(whole.move, {.threads = 3, .reader = &reader}, report);
    EXPECT_TRUE(whole.arrived()) << reader.name;
    EXPECT_THAT(report.why, HasSubstr(reader.name));
  }
}

TEST(Engine, MatchesNaiveCopiesForAnyPlan) {
  std::mt19937 random(99);
  const test::TemporaryFolder folder;
  const Bytes bytes[] = {test::numbered_bytes(200'000, 1), test::numbered_bytes(150'000, 2)};
  test::write_file(folder / "a", bytes[0]);
  const std::vector<SourcePtr> sources = {open_source(folder / "a"), memory_of(bytes[1])};
  for (int round = 0; round < 80; ++round) {
    SCOPED_TRACE(round);
    std::vector<Piece> pieces(random() % 60);
    std::vector<std::size_t> sizes(1 + random() % 4, 0);
    const std::size_t longest = round % 5 == 0 ? 100'000 : 3000;
    for (Piece& piece : pieces) {
      piece.source = static_cast<std::uint32_t>(random() % 2);
      piece.buffer = static_cast<std::uint32_t>(random() % sizes.size());
      piece.length = random() % longest;
      piece.offset = random() % (bytes[piece.source].size() - piece.length);
      piece.buffer_offset = sizes[piece.buffer] + random() % 3;
      sizes[piece.buffer] = piece.buffer_offset + piece.length;
    }
    std::vector<Buffer> buffers;
    std::vector<Bytes> wanted;
    for (const std::size_t size : sizes) {
      buffers.push_back(zeroed(size));
      wanted.emplace_back(size, std::byte{0});
    }
    std::vector<Checksum> checksums;
    for (const Piece& piece : pieces) {
      const auto from = std::span(bytes[piece.source]).subspan(piece.offset, piece.length);
      std::ranges::copy(from, wanted[piece.buffer].begin() + static_cast<std::ptrdiff_t>(piece.buffer_offset));
      if (random() % 2 == 0) {
        checksums.push_back({piece.buffer, piece.buffer_offset, piece.length, crc32(0, from), "r", piece.source, 0});
      }
    }
    const PlanOptions options = {
        .max_gap = random() % 5000, .max_range = 500 + random() % 70'000, .max_targets = 3 + random() % 50};
    const Move move = {make_plan(pieces, options), sources, buffers, checksums, {}};
    Report report;
    const std::optional<bool> mapped = random() % 2 == 0 ? std::optional(true) : std::nullopt;
    execute(move, {.threads = 1 + random() % 4, .mapped = mapped}, report);
    for (std::size_t b = 0; b < buffers.size(); ++b) ASSERT_TRUE(std::ranges::equal(view(buffers[b]), wanted[b])) << b;
  }
}

class CopiedEitherWay : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Engine, CopiedEitherWay, testing::Bool(),
                         [](const auto& way) { return std::string(way.param ? "OutOfAMapping" : "ByTheSystem"); });

TEST_P(CopiedEitherWay, SaysSo) {
  const Whole whole(2'000'000);
  Report report;
  execute(whole.move, {.mapped = GetParam()}, report);
  EXPECT_TRUE(whole.arrived());
  EXPECT_EQ(report.route, "read");
  EXPECT_THAT(report.why, HasSubstr(GetParam() ? "with copies out of a mapping" : "with pread"));
}

TEST_P(CopiedEitherWay, ALargeFileWithChecksums) {
  Whole whole(40'000'003, {});
  whole.move.checksums = {whole.checksum(0, 1), whole.checksum(77, 30'000'000), whole.checksum(30'000'077, 9'000'000)};
  Report report;
  execute(whole.move, {}, report);
  EXPECT_TRUE(whole.arrived()) << report.why;
  std::ranges::fill(std::span(whole.buffers[0].data(), whole.bytes.size()), std::byte{0});
  execute(whole.move, {.mapped = GetParam()}, report);
  EXPECT_TRUE(whole.arrived());
}

TEST_P(CopiedEitherWay, VerifiesChecksumsOverSeveralRangesAndThreads) {
  for (const std::size_t threads : {1, 4}) {
    Whole whole(3'000'000);
    whole.move.checksums = {whole.checksum(1'000'000, 1'999'999), whole.checksum(0, 10), whole.checksum(10, 0),
                            whole.checksum(11, 999'000)};
    Report report;
    execute(whole.move, {.threads = threads, .mapped = GetParam()}, report);
    EXPECT_TRUE(whole.arrived());
    EXPECT_EQ(report.decode_seconds > 0, !GetParam()) << "out of a mapping bytes are checked on the way";
  }
}

TEST_P(CopiedEitherWay, SaysWhichRecordIsDamaged) {
  for (const std::size_t threads : {1, 4}) {
    Whole whole(3'000'000);
    const Checksum good = whole.checksum(0, 1'000'000);
    Checksum bad = whole.checksum(1'000'000, 2'000'000);
    const std::uint32_t computed = bad.crc32;
    bad.crc32 = 0xDEADBEEF;
    whole.move.checksums = {good, bad};
    Report report;
    const auto error = error_of([&] { execute(whole.move, {.threads = threads, .mapped = GetParam()}, report); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kChecksum);
    EXPECT_EQ(error->path(), whole.path());
    EXPECT_EQ(error->offset(), 1'000'000U);
    EXPECT_EQ(error->tensor(), "record 1000000");
    char text[9];
    std::snprintf(text, sizeof(text), "%08x", computed);
    EXPECT_THAT(error->message(), HasSubstr("deadbeef"));
    EXPECT_THAT(error->message(), HasSubstr(text));
  }
}

TEST_P(CopiedEitherWay, ARecordMayBeginBeforeWhatIsRead) {
  for (const std::uint32_t wrong : {0U, 1U}) {
    Whole whole(3'000'000);
    Checksum checksum = whole.checksum(0, 3'000'000);
    const Bytes header = test::numbered_bytes(77, 5);
    checksum.before = crc32(0, header) ^ wrong;
    checksum.crc32 = crc32_combine(crc32(0, header), checksum.crc32, checksum.length);
    whole.move.checksums = {checksum};
    Report report;
    if (wrong == 0) {
      execute(whole.move, {.mapped = GetParam()}, report);
    } else {
      EXPECT_EQ(code_of([&] { execute(whole.move, {.mapped = GetParam()}, report); }), ErrorCode::kChecksum);
    }
  }
}

TEST(Engine, AnEmptyRecordHasAChecksumToo) {
  Whole whole(1000);
  whole.move.checksums = {{.length = 0, .crc32 = 1, .record = "empty"}};
  Report report;
  EXPECT_EQ(code_of([&] { execute(whole.move, {}, report); }), ErrorCode::kChecksum);
}

TEST(Engine, NeverCallsAnUnreadRecordGood) {
  Whole whole(1000);
  const Piece half = {.length = 500};
  whole.move.plan = make_plan({&half, 1});
  whole.move.checksums = {whole.checksum(400, 200)};
  Report report;
  EXPECT_EQ(code_of([&] { execute(whole.move, {}, report); }), ErrorCode::kInvalidArgument);
}

TEST(Engine, StepsSeeTheirBuffersFull) {
  const Bytes bytes = test::numbered_bytes(1'000'000);
  const std::vector<SourcePtr> sources = {memory_of(bytes)};
  constexpr std::size_t kBuffers = 50;
  constexpr std::size_t kSize = 20'000;
  for (const std::size_t threads : {1, 2, 8}) {
    std::vector<Buffer> buffers;
    std::vector<Piece> pieces;
    for (std::uint32_t b = 0; b < kBuffers; ++b) {
      buffers.push_back(zeroed(kSize));
      pieces.push_back({0, b, b * kSize, kSize, 0});
    }
    const auto full = [&](std::size_t b) {
      return std::ranges::equal(view(buffers[b]), std::span(bytes).subspan(b * kSize, kSize));
    };
    std::atomic<int> ran{0};
    std::atomic<int> wrong{0};
    Move move{make_plan(pieces, {.max_range = 7777}), sources, buffers, {}, {}};
    for (std::uint32_t b = 0; b < kBuffers; ++b) {
      const std::uint32_t other = (b * 7 + 3) % std::uint32_t{kBuffers};
      move.steps.push_back({{b, other, b}, [&, b, other] {
                              ++ran;
                              if (!full(b) || !full(other)) ++wrong;
                            }});
    }
    move.steps.push_back({{}, [&] { ++ran; }});
    Report report;
    execute(move, {.threads = threads}, report);
    EXPECT_EQ(ran, static_cast<int>(kBuffers) + 1);
    EXPECT_EQ(wrong, 0);
  }
}

TEST(Engine, StepsOfBuffersThatNothingFillsRunToo) {
  const std::vector<Buffer> buffers = {zeroed(10)};
  int ran = 0;
  const Move move = {{}, {}, buffers, {}, {{{0}, [&] { ++ran; }}, {{}, [&] { ++ran; }}}};
  Report report;
  execute(move, {}, report);
  EXPECT_EQ(ran, 2);
}

TEST(Engine, AFailingStepEndsIt) {
  Whole whole(3'000'000);
  whole.move.steps = {{{0}, [] { throw Error(ErrorCode::kCorrupt, "does not inflate"); }}};
  Report report;
  EXPECT_EQ(code_of([&] { execute(whole.move, {.threads = 3}, report); }), ErrorCode::kCorrupt);
}

TEST(Engine, ForeignExceptionsComeOutAsTheyAre) {
  Whole whole(1000);
  whole.move.steps = {{{0}, [] { throw std::bad_alloc(); }}};
  Report report;
  EXPECT_THROW(execute(whole.move, {.threads = 2}, report), std::bad_alloc);
}

TEST(Engine, ASourceThatFailsIsNamed) {
  for (const std::size_t threads : {1, 3}) {
    Whole whole(3'000'000);
    std::atomic<int> reads{0};
    whole.sources = {std::make_shared<HookedSource>(whole.bytes, [&](std::uint64_t offset) {
      ++reads;
      if (offset >= 600'000) throw Error(ErrorCode::kIo, "the cable is out");
    })};
    whole.move.sources = whole.sources;
    Report report;
    const auto error = error_of([&] { execute(whole.move, {.threads = threads}, report); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kIo);
    EXPECT_EQ(error->path(), "<hooked>");
    EXPECT_GE(error->offset().value_or(0), 600'000U);
    EXPECT_LT(reads, 12) << "what comes after the error is dropped";
  }
}

TEST(Engine, SaysThatTheFileWasCut) {
  for (const Reader& reader : readers()) {
    const Whole whole(3'000'000);
    if (!reader.usable(*whole.sources[0])) continue;
    std::filesystem::resize_file(whole.path(), 1'000'000);
    Report report;
    const auto error = error_of([&] { execute(whole.move, {.threads = 2, .reader = &reader}, report); });
    ASSERT_TRUE(error) << reader.name;
    EXPECT_EQ(error->code(), ErrorCode::kTruncated);
    EXPECT_EQ(error->path(), whole.path());
  }
}

TEST_P(CopiedEitherWay, AFileThatWasCutIsCutWhateverIsRecordedOfIt) {
  for (const std::uintmax_t left : {2'999'999U, 2'998'272U, 1'000'000U, 1U, 0U}) {
    Whole whole(3'000'000);
    whole.move.checksums = {whole.checksum(0, 3'000'000)};
    std::filesystem::resize_file(whole.path(), left);
    Report report;
    const auto error = error_of([&] { execute(whole.move, {.mapped = GetParam()}, report); });
    ASSERT_TRUE(error) << left;
    EXPECT_EQ(error->code(), ErrorCode::kTruncated) << error->what();
    EXPECT_EQ(error->path(), whole.path());
  }
}

TEST_P(CopiedEitherWay, AFileCutWhileItIsRead) {
  for (int round = 0; round < 6; ++round) {
    Whole whole(24'000'000);
    std::jthread cutter([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(round));
      std::filesystem::resize_file(whole.path(), 5'000'000);
    });
    Report report;
    try {
      execute(whole.move, {.threads = 2, .mapped = GetParam()}, report);
      EXPECT_TRUE(whole.arrived()) << "nothing was said about the bytes that are missing";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kTruncated) << error.what();
    }
  }
}

TEST(Engine, WithoutAddressSpaceTheSystemCopies) {
  const Whole whole(64'000'000, {});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  if (before.rlim_cur != RLIM_INFINITY) GTEST_SKIP() << "address space is limited already";
  rlimit few = before;
  few.rlim_cur = 1;
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &few), 0);
  Report report;
  execute(whole.move, {.threads = 1, .mapped = true}, report);
  ::setrlimit(RLIMIT_AS, &before);
  EXPECT_TRUE(whole.arrived());
  EXPECT_THAT(report.why, HasSubstr("with pread"));
}

TEST(Engine, IsCancelledBeforeItBegins) {
  const Whole whole(1000);
  std::stop_source stop;
  stop.request_stop();
  Report report;
  EXPECT_EQ(code_of([&] { execute(whole.move, {.stop = stop.get_token()}, report); }), ErrorCode::kCancelled);
}

TEST(Engine, IsCancelledInTheMiddle) {
  for (const std::size_t threads : {1, 3}) {
    Whole whole(8'000'000, {.max_range = 6'000'000});
    std::stop_source stop;
    std::atomic<int> reads{0};
    whole.sources = {std::make_shared<HookedSource>(whole.bytes, [&](std::uint64_t) {
      if (++reads == 5) stop.request_stop();
    })};
    whole.move.sources = whole.sources;
    Report report;
    EXPECT_EQ(code_of([&] { execute(whole.move, {.threads = threads, .stop = stop.get_token()}, report); }),
              ErrorCode::kCancelled);
    EXPECT_LT(reads, 5 + static_cast<int>(threads)) << "each thread ends with the piece it is in";
  }
}

TEST(Engine, RangesAreReadAtTheSameTime) {
  // Each of two reads waits for the other: one thread after the other would wait for ever.
  std::mutex mutex;
  std::condition_variable both;
  int waiting = 0;
  const auto meet = [&](std::uint64_t) {
    std::unique_lock lock(mutex);
    ++waiting;
    both.notify_all();
    both.wait(lock, [&] { return waiting >= 2; });
  };
  Whole whole(2000, {.max_range = 1000});
  whole.sources = {std::make_shared<HookedSource>(whole.bytes, meet)};
  whole.move.sources = whole.sources;
  Report report;
  execute(whole.move, {.threads = 2}, report);
  EXPECT_TRUE(whole.arrived());
}

TEST(Engine, RefusesAPlanThatDoesNotFit) {
  const auto refused = [](const std::function<void(Whole&)>& spoil) {
    Whole whole(1000);
    spoil(whole);
    Report report;
    return code_of([&] { execute(whole.move, {}, report); });
  };
  const auto k = ErrorCode::kInvalidArgument;
  EXPECT_EQ(refused([](Whole& w) { w.move.sources = {}; }), k);
  EXPECT_EQ(refused([](Whole& w) { w.move.buffers = {}; }), k);
  EXPECT_EQ(refused([](Whole& w) { w.move.plan.targets.clear(); }), k);
  EXPECT_EQ(refused([](Whole& w) { w.move.plan.targets[0].buffer_offset = 1; }), k);
  EXPECT_EQ(refused([](Whole& w) { w.move.plan.targets[0].length = 999; }), k);
  EXPECT_EQ(refused([](Whole& w) { w.move.plan.targets[0].length = 1001; }), k);
  EXPECT_EQ(refused([](Whole& w) { w.move.plan.targets[0].buffer_offset = ~std::uint64_t{0}; }), k);
  EXPECT_EQ(refused([](Whole& w) { w.move.steps = {{{7}, [] {}}}; }), k);
  EXPECT_EQ(refused([](Whole& w) { w.buffers[0] = Buffer::wrap(w.bytes.data(), w.bytes.size(), nullptr, true); }), k);
}

}  // namespace
}  // namespace penstock::io
