// Sources of the program's own that say that they wait.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "io/read/joined_runs.h"
#include "io/read/reader.h"
#include "penstock/error.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"

namespace penstock::io {
namespace {

using Bytes = std::vector<std::byte>;

class Waiting final : public ByteSource {
 public:
  explicit Waiting(std::size_t size, std::size_t together = 1)
      : bytes_(test::numbered_bytes(size)), together_(together) {}
  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  bool waits() const noexcept override { return true; }
  /// The first wait until so many are there.
  void read(std::uint64_t offset, std::span<std::byte> into) const override {
    std::unique_lock lock(mutex_);
    ++reads_;
    met_.notify_all();
    met_.wait(lock, [&] { return reads_ >= together_; });
    lock.unlock();
    if (fails) throw Error(ErrorCode::kTimeout, "nobody is there");
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
  }
  const Bytes& bytes() const { return bytes_; }
  std::size_t reads() const { return reads_; }
  bool fails = false;

 private:
  std::string name_ = "<waiting>";
  Bytes bytes_;
  std::size_t together_;
  mutable std::mutex mutex_;
  mutable std::condition_variable met_;
  mutable std::size_t reads_ = 0;
};

TEST(WaitingReader, SeveralRunsAreAskedForAtOnce) {
  constexpr std::size_t kFar = 2'000'000;  // further apart than what is read over
  const auto source = std::make_shared<Waiting>(5 * kFar, 5);
  std::vector<Bytes> into(5, Bytes(1000));
  SourceRuns reads{Source(source)};
  for (std::size_t i = 0; i < into.size(); ++i) reads.runs.push_back({i * kFar, into[i]});
  read_at_once({&reads, 1});
  for (std::size_t i = 0; i < into.size(); ++i) {
    EXPECT_TRUE(
        std::equal(into[i].begin(), into[i].end(), source->bytes().begin() + static_cast<std::ptrdiff_t>(i * kFar)));
  }
}

TEST(WaitingReader, RunsOfSeveralSourcesToo) {
  std::vector<std::shared_ptr<Waiting>> sources;
  std::vector<Bytes> into(3, Bytes(100));
  std::vector<SourceRuns> reads;
  // Each waits for a second read of its own; one after the other they would wait for ever.
  for (std::size_t i = 0; i < 3; ++i) {
    sources.push_back(std::make_shared<Waiting>(3'000'000, 2));
    reads.push_back(
        {Source(sources[i]), {{0, std::span(into[i]).first(50)}, {2'900'000, std::span(into[i]).last(50)}}});
  }
  read_at_once(reads);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(into[i][50], sources[i]->bytes()[2'900'000]);
}

TEST(WaitingReader, ManyPartsOfARunAreOneRead) {
  const Waiting source(10'000);
  const Reader& reader = reader_for(source);
  EXPECT_EQ(reader.name, "waiting");
  Bytes a(100);
  Bytes b(50);
  const std::vector<Scatter> parts = {{a.data(), 100}, {nullptr, 4000}, {b.data(), 50}};
  reader.read(source, 7, parts);
  EXPECT_EQ(source.reads(), 1U);
  EXPECT_TRUE(std::equal(a.begin(), a.end(), source.bytes().begin() + 7));
  EXPECT_TRUE(std::equal(b.begin(), b.end(), source.bytes().begin() + 4107));
}

TEST(WaitingReader, AnErrorComesOut) {
  const auto source = std::make_shared<Waiting>(5'000'000, 2);
  source->fails = true;
  Bytes into(10);
  const SourceRuns reads{Source(source), {{0, std::span(into).first(5)}, {4'000'000, std::span(into).last(5)}}};
  EXPECT_EQ(test::code_of([&] { read_at_once({&reads, 1}); }), ErrorCode::kTimeout);
}

TEST(WaitingReader, RunsBehindTheEndAreRefused) {
  const auto source = std::make_shared<Waiting>(100);
  Bytes into(10);
  const SourceRuns reads{Source(source), {{95, into}}};
  EXPECT_EQ(test::code_of([&] { read_at_once({&reads, 1}); }), ErrorCode::kTruncated);
}

TEST(JoinedRuns, HaveAllBytesOnceWithinTheirLength) {
  std::mt19937 random(3);
  const Waiting source(100'000);
  for (int round = 0; round < 200; ++round) {
    std::vector<io::SourceRun> runs;
    Bytes memory(50'000);
    std::size_t used = 0;
    for (std::size_t i = 0; i < random() % 40; ++i) {
      const std::size_t length = random() % 1000;
      runs.push_back({random() % (100'000 - length), std::span(memory).subspan(used, length)});
      used += length;
    }
    const std::uint64_t most = 500 + random() % 5000;
    const ReadCosts costs{.least_gap = random() % 300, .most_gap = 300 + random() % 1000};
    std::uint64_t placed = 0;
    for (const JoinedRun& one : joined_runs(source, runs, costs, most)) {
      std::uint64_t bytes = 0;
      for (const Scatter& part : one.parts) {
        bytes += part.bytes;
        if (part.to == nullptr) continue;
        placed += part.bytes;
        const std::uint64_t at = one.offset + bytes - part.bytes;
        EXPECT_TRUE(std::any_of(runs.begin(), runs.end(), [&](const io::SourceRun& run) {
          return run.offset == at && run.into.data() == part.to && run.into.size() == part.bytes;
        }));
      }
      EXPECT_EQ(bytes, one.bytes);
      EXPECT_TRUE(one.parts.size() == 1 || bytes <= most);
    }
    EXPECT_EQ(placed, used);
  }
}

}  // namespace
}  // namespace penstock::io
