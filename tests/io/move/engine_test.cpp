#include "io/move/engine.h"

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

#include "io/copy/crc32.h"
#include "io/source/source.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/whole_file.h"

namespace penstock::io {
namespace {

using test::code_of;
using test::error_of;
using test::view;
using test::WholeFile;
using test::zeroed;
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

Source memory_of(const Bytes& bytes) {
  auto copy = std::make_shared<Bytes>(bytes);
  return memory_source(Buffer::wrap(copy->data(), copy->size(), copy));
}

TEST(Engine, ReadsAFileOnAnyNumberOfThreads) {
  for (const std::size_t threads : {0, 1, 2, 7, 100}) {
    const WholeFile whole(2'000'011);
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
  const WholeFile whole(1000);
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
    const WholeFile whole(2'000'000);
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
  const std::vector<Source> sources = {open_source(folder / "a"), memory_of(bytes[1])};
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
        const Record record{.crc32 = crc32(0, from), .bytes = piece.length};
        checksums.push_back({piece.buffer, piece.buffer_offset, piece.length, {record, true}});
      }
    }
    const std::uint64_t gap = random() % 5000;
    const ReadCosts costs = {.least_gap = gap, .most_gap = gap, .piece = 500 + random() % 70'000};
    const Move move = {make_plan(pieces, costs, 3 + random() % 50), sources, buffers, checksums, {}};
    Report report;
    const std::optional<bool> mapped = random() % 2 == 0 ? std::optional(true) : std::nullopt;
    execute(move, {.threads = 1 + random() % 4, .mapped = mapped}, report);
    for (std::size_t b = 0; b < buffers.size(); ++b) ASSERT_TRUE(std::ranges::equal(view(buffers[b]), wanted[b])) << b;
  }
}

TEST(Engine, StepsSeeTheirBuffersFull) {
  const Bytes bytes = test::numbered_bytes(1'000'000);
  const std::vector<Source> sources = {memory_of(bytes)};
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
    Move move{make_plan(pieces, {.piece = 7777}), sources, buffers, {}, {}};
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
  WholeFile whole(3'000'000);
  whole.move.steps = {{{0}, [] { throw Error(ErrorCode::kCorrupt, "does not inflate"); }}};
  Report report;
  EXPECT_EQ(code_of([&] { execute(whole.move, {.threads = 3}, report); }), ErrorCode::kCorrupt);
}

TEST(Engine, ForeignExceptionsComeOutAsTheyAre) {
  WholeFile whole(1000);
  whole.move.steps = {{{0}, [] { throw std::bad_alloc(); }}};
  Report report;
  EXPECT_THROW(execute(whole.move, {.threads = 2}, report), std::bad_alloc);
}

TEST(Engine, ASourceThatFailsIsNamed) {
  for (const std::size_t threads : {1, 3}) {
    WholeFile whole(3'000'000);
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

TEST(Engine, IsCancelledBeforeItBegins) {
  const WholeFile whole(1000);
  std::stop_source stop;
  stop.request_stop();
  Report report;
  EXPECT_EQ(code_of([&] { execute(whole.move, {.stop = stop.get_token()}, report); }), ErrorCode::kCancelled);
}

TEST(Engine, IsCancelledInTheMiddle) {
  for (const std::size_t threads : {1, 3}) {
    WholeFile whole(8'000'000, {.piece = 6'000'000});
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
  WholeFile whole(2000, {.piece = 1000});
  whole.sources = {std::make_shared<HookedSource>(whole.bytes, meet)};
  whole.move.sources = whole.sources;
  Report report;
  execute(whole.move, {.threads = 2}, report);
  EXPECT_TRUE(whole.arrived());
}

TEST(Engine, RefusesAPlanThatDoesNotFit) {
  WholeFile whole(1000);
  whole.move.plan.targets.clear();
  Report report;
  EXPECT_EQ(code_of([&] { execute(whole.move, {}, report); }), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::io
