// Reads that go on while nobody waits for them.

#include "io/move/background_read.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/stop_scope.h"
#include "core/text.h"
#include "io/remote/traffic.h"
#include "penstock/error.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/sanitized.h"

namespace penstock::io {
namespace {

std::string text_up_to(std::size_t size) {
  std::string out(size, '\0');
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<char>(i % 251);
  return out;
}

/// Whose reads wait until so many of them have begun, or are told to stop.
class MeetingSource final : public ByteSource {
 public:
  MeetingSource(std::string content, std::size_t wanted) : content_(std::move(content)), wanted_(wanted) {}
  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return content_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> into) const override {
    std::unique_lock lock(mutex_);
    ++begun_;
    changed_.notify_all();
    while (begun_ < wanted_) {
      changed_.wait_for(lock, core::kStopLook);
      if (core::StopScope::stop_requested()) throw Error(ErrorCode::kCancelled, "stopped");
    }
    std::memcpy(into.data(), content_.data() + offset, into.size());
  }
  std::size_t begun() const {
    const std::scoped_lock lock(mutex_);
    return begun_;
  }

 private:
  std::string name_ = "meeting";
  std::string content_;
  std::size_t wanted_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::size_t begun_ = 0;
};

/// Each read is an error.
class BrokenSource final : public ByteSource {
 public:
  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return 100; }
  void read(std::uint64_t, std::span<std::byte>) const override { throw std::runtime_error("broken"); }

 private:
  std::string name_ = "broken";
};

TEST(BackgroundRead, GivesTheBytesAndTheErrorAsOftenAsItIsAsked) {
  const std::string text = text_up_to(1000);
  BackgroundRead read(test::source_of(text), 100, 500);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(core::text_of(read.bytes()), text.substr(100, 500));
  EXPECT_EQ(read.begin(), 100U);
  EXPECT_EQ(read.end(), 600U);
  BackgroundRead broken(Source(std::make_shared<BrokenSource>()), 0, 10);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(test::error_of([&] { broken.bytes(); })->path(), "broken");
}

TEST(BackgroundRead, EndsWithItsOwnerOrWhereTheWaitIsStopped) {
  const auto source = std::make_shared<MeetingSource>("abc", 2);  // the second one never comes
  BackgroundRead read(Source(source), 0, 3);
  const std::atomic<bool> stopped{true};
  const core::StopScope scope(&stopped);
  EXPECT_EQ(test::code_of([&] { read.bytes(); }), ErrorCode::kCancelled);
}

TEST(BackgroundRead, IsReadAnewInAChild) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer's threads do not fork";
  const std::string text = text_up_to(100);
  BackgroundRead read(test::source_of(text), 0, 100);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(core::text_of(read.bytes()) == text ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(ReadFromFront, AsksForPiecesAheadAndGivesAllBytes) {
  const std::string text = text_up_to(1000);
  for (const std::size_t ahead : {1U, 3U}) {
    // Nothing comes before that many were asked for: with fewer this would wait for ever.
    const auto source = std::make_shared<MeetingSource>(text, ahead);
    ReadFromFront reads(Source(source), 150, ahead);
    std::string out;
    std::vector<std::byte> some(70);
    while (const std::size_t count = reads.read(some)) {
      out += core::text_of(std::span<const std::byte>(some).first(count));
      EXPECT_LE(source->begun(), out.size() / 150 + ahead) << "no more than that are held";
    }
    EXPECT_EQ(out, text);
    EXPECT_TRUE(reads.asked_for_all());
    EXPECT_EQ(source->begun(), 7U);
  }
  ReadFromFront none(test::source_of(std::string()), 150, 2);
  std::vector<std::byte> some(70);
  EXPECT_EQ(none.read(some), 0U);
}

/// As one behind a URL, whose reads are requests.
class CountedSource final : public ByteSource {
 public:
  const std::string& name() const noexcept override { return name_; }
  std::uint64_t size() const noexcept override { return 100; }
  void read(std::uint64_t, std::span<std::byte> into) const override {
    remote::note_traffic({.requests = 1, .received_bytes = into.size()});
  }

 private:
  std::string name_ = "counted";
};

TEST(BackgroundRead, RequestsBelongToWhoeverWaitsForThem) {
  const Source source = std::make_shared<CountedSource>();
  remote::TrafficMeter meter;
  const remote::TrafficScope scope(&meter);
  BackgroundRead read(source, 0, 40);
  read.bytes();
  read.bytes();
  EXPECT_EQ(meter.total().requests, 1U);
  EXPECT_EQ(meter.total().received_bytes, 40U);
  { const BackgroundRead unread(source, 0, 50); }
  EXPECT_EQ(meter.total().received_bytes, 90U) << "those of a read that nobody wanted, to whoever ends it";
}

}  // namespace
}  // namespace penstock::io
