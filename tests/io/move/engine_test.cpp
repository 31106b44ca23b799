#include "io/move/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <filesystem>
#include <limits>
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

/// A source that waits, and counts the requests that are in flight.
class FarSource final : public ByteSource {
 public:
  /// `answers`: called with a lock for each request that is begun; whether requests are answered from now on.
  FarSource(std::uint64_t size, std::function<bool(std::size_t in_flight)> answers)
      : size_(size), answers_(std::move(answers)) {}
  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return size_; }
  bool waits() const noexcept override { return true; }
  void read(std::uint64_t offset, std::span<std::byte> into) const override {
    std::unique_lock lock(mutex_);
    most_ = std::max(most_, ++in_flight_);
    ++begun_;
    if (answers_(in_flight_)) is_open_ = true;
    opened_.notify_all();
    opened_.wait(lock, [&] { return is_open_; });
    --in_flight_;
    lock.unlock();
    if (offset >= fails_from) throw Error(ErrorCode::kIo, "the cable is out");
    if (!into.empty()) into.front() = static_cast<std::byte>(offset >> 23U);
  }
  std::size_t most() const { return most_; }
  std::size_t begun() const { return begun_; }
  std::uint64_t fails_from = std::numeric_limits<std::uint64_t>::max();

 private:
  std::string name_ = "<far>";
  std::uint64_t size_;
  std::function<bool(std::size_t)> answers_;
  mutable std::mutex mutex_;
  mutable std::condition_variable opened_;
  mutable bool is_open_ = false;
  mutable std::size_t in_flight_ = 0;
  mutable std::size_t most_ = 0;
  mutable std::size_t begun_ = 0;
};

constexpr std::uint64_t kFarPiece = std::uint64_t{8} << 20;

/// All of a far source, into memory that is hardly touched.
struct FarLoad {
  explicit FarLoad(std::shared_ptr<FarSource> far)
      : sources{Source(far)}, buffers{Buffer::allocate(static_cast<std::size_t>(far->size()))} {
    const Piece piece{.length = far->size()};
    move.plan = make_plan({&piece, 1}, sources);
    move.sources = sources;
    move.buffers = buffers;
  }
  bool arrived() const {
    for (std::uint64_t at = 0; at < buffers[0].size(); at += kFarPiece) {
      if (buffers[0].data()[at] != static_cast<std::byte>(at >> 23U)) return false;
    }
    return true;
  }

  std::vector<Source> sources;
  std::vector<Buffer> buffers;
  Move move = {};
};

TEST(Engine, ASourceThatWaitsIsAskedForManyPiecesAtOnce) {
  // Nothing is answered before sixteen are in flight: fewer would wait for ever.
  const auto far = std::make_shared<FarSource>(40 * kFarPiece, [](std::size_t in_flight) { return in_flight == 16; });
  const FarLoad load(far);
  Report report;
  execute(load.move, {}, report);
  EXPECT_TRUE(load.arrived());
  EXPECT_GE(report.depth, 16U);
  EXPECT_LE(report.depth, 40U);
  EXPECT_THAT(report.why, HasSubstr("in flight at once"));
}

TEST(Engine, SmallPlansSayThatTheyAskedForNoMore) {
  const auto far = std::make_shared<FarSource>(3 * kFarPiece, [](std::size_t in_flight) { return in_flight == 3; });
  const FarLoad load(far);
  Report report;
  execute(load.move, {}, report);
  EXPECT_EQ(report.depth, 3U);
  EXPECT_EQ(report.depth_limit, "plan");
  EXPECT_EQ(far->most(), 3U);
}

TEST(Engine, RequestsInFlightStayWithinMemory) {
  const auto far = std::make_shared<FarSource>(40 * kFarPiece, [](std::size_t) { return true; });
  FarLoad load(far);
  static constexpr std::uint64_t kHolds = std::uint64_t{256} << 20;
  static const Reader kHoarder{
      "hoarder", [](const ByteSource&) noexcept { return true; },
      [](const ByteSource& source, std::uint64_t offset, std::span<const Scatter> parts) {
        source.read(offset, {parts[0].to, parts[0].bytes});
      },
      [](const ByteSource&) noexcept { return ReadCosts{.at_once = 16, .request_memory = kHolds}; }};
  Report report;
  execute(load.move, {.reader = &kHoarder}, report);
  EXPECT_TRUE(load.arrived());
  EXPECT_LE(far->most(), 4U);
  EXPECT_EQ(report.depth_limit, "memory");
}

TEST(Engine, AnErrorWithManyInFlightEndsThemAll) {
  const auto far = std::make_shared<FarSource>(100 * kFarPiece, [](std::size_t in_flight) { return in_flight == 16; });
  far->fails_from = 5 * kFarPiece;
  const FarLoad load(far);
  Report report;
  const auto error = error_of([&] { execute(load.move, {}, report); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kIo);
  EXPECT_EQ(error->path(), "<far>");
  EXPECT_LT(far->begun(), 100U) << "what was not asked for yet is dropped";
}

TEST(Engine, IsCancelledWithManyInFlight) {
  std::stop_source stop;
  const auto far = std::make_shared<FarSource>(100 * kFarPiece, [&](std::size_t in_flight) {
    if (in_flight == 16) stop.request_stop();
    return in_flight == 16;
  });
  const FarLoad load(far);
  Report report;
  EXPECT_EQ(code_of([&] { execute(load.move, {.stop = stop.get_token()}, report); }), ErrorCode::kCancelled);
  EXPECT_EQ(far->begun(), 16U);
}

TEST(Engine, AskedForThreadsAreTheRequestsInFlight) {
  const auto far = std::make_shared<FarSource>(50 * kFarPiece, [](std::size_t in_flight) { return in_flight == 30; });
  const FarLoad load(far);
  Report report;
  execute(load.move, {.threads = 30}, report);
  EXPECT_EQ(far->most(), 30U);
  EXPECT_EQ(report.depth, 30U);
  EXPECT_EQ(report.depth_limit, "threads");
}

}  // namespace
}  // namespace penstock::io
