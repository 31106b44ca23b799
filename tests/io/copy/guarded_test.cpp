#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "io/copy/gather.h"
#include "io/read/reader.h"
#include "io/source/source.h"
#include "support/emulator.h"
#include "support/errors.h"
#include "support/files.h"

namespace penstock::io {
namespace {

using test::code_of;

const auto kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

/// A mapped file of some pages.
class Mapped {
 public:
  explicit Mapped(std::size_t pages) : bytes_(test::numbered_bytes(pages * kPage)) {
    test::write_file(path(), bytes_);
    source_ = open_source(path());
    memory_ = map_source(*source_);
  }

  std::string path() const { return folder_ / "mapped"; }
  const ByteSource& source() const { return *source_; }
  const std::byte* data() const { return memory_.data(); }
  const Buffer& memory() const { return memory_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  void cut(std::size_t size) const { std::filesystem::resize_file(path(), size); }

 private:
  test::TemporaryFolder folder_;
  std::vector<std::byte> bytes_;
  Source source_ = memory_source(Buffer::allocate(0));
  Buffer memory_;
};

void copy(const Mapped& mapped, std::size_t offset, std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  guarded_copy(out.data(), mapped.data() + offset, bytes, mapped.path());
  EXPECT_TRUE(std::equal(out.begin(), out.end(), mapped.bytes().begin() + static_cast<std::ptrdiff_t>(offset)));
}

TEST(MapSource, IsTheFileAndReadOnly) {
  const Mapped mapped(5);
  EXPECT_EQ(mapped.memory().size(), 5 * kPage);
  EXPECT_TRUE(mapped.memory().read_only());
  EXPECT_EQ(std::memcmp(mapped.data(), mapped.bytes().data(), mapped.bytes().size()), 0);
}

TEST(MapSource, OutlivesItsSource) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "a", "hello");
  Source source = open_source(folder / "a");
  const Buffer memory = map_source(*source);
  source = Source();
  std::filesystem::remove(folder / "a");
  EXPECT_EQ(std::memcmp(memory.data(), "hello", 5), 0);
}

TEST(MapSource, OfNothingIsNothing) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "empty", "");
  const Source source = open_source(folder / "empty");
  EXPECT_EQ(map_source(*source).size(), 0U);
}

TEST(MapSource, OfMemoryIsThatMemory) {
  auto bytes = std::make_shared<std::string>("hello");
  const Source source = memory_source(Buffer::wrap(bytes->data(), bytes->size(), bytes));
  const Buffer mapped = map_source(*source);
  EXPECT_EQ(static_cast<void*>(mapped.data()), bytes->data());
}

TEST(GuardedCopy, Copies) {
  const Mapped mapped(3);
  copy(mapped, 0, 3 * kPage);
  copy(mapped, 17, kPage);
  copy(mapped, 0, 0);
}

TEST(GuardedCopy, SaysThatTheFileWasCut) {
  const Mapped mapped(64);
  copy(mapped, 0, 64 * kPage);
  mapped.cut(2 * kPage);
  copy(mapped, 0, 2 * kPage);
  for (int again = 0; again < 3; ++again) {
    const auto error = test::error_of([&] { copy(mapped, kPage, 2 * kPage); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kTruncated);
    EXPECT_EQ(error->path(), mapped.path());
    EXPECT_EQ(code_of([&] { copy(mapped, 63 * kPage, 1); }), ErrorCode::kTruncated);
    copy(mapped, 5, kPage);
  }
}

TEST(GuardedCopy, WorksInAThreadThatBlocksAllSignals) {
  const Mapped mapped(8);
  mapped.cut(kPage);
  std::thread([&] {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    EXPECT_EQ(code_of([&] { copy(mapped, 0, 8 * kPage); }), ErrorCode::kTruncated);
  }).join();
}

TEST(GuardedCopy, EachThreadGetsItsOwnFaults) {
  const Mapped whole(16);
  const Mapped cut(16);
  cut.cut(kPage);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        if (t % 2 == 0) {
          copy(whole, 0, 16 * kPage);
        } else {
          EXPECT_EQ(code_of([&] { copy(cut, 0, 16 * kPage); }), ErrorCode::kTruncated);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(GuardedGather, GathersRowsOfAnySize) {
  const Mapped mapped(32);
  const std::size_t total = mapped.bytes().size();
  for (const std::size_t row :
       {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4}, std::size_t{8}, std::size_t{16},
        std::size_t{63}, std::size_t{1023}, std::size_t{1024}, std::size_t{3000}, std::size_t{3072}, std::size_t{4095},
        std::size_t{4096}, std::size_t{5001}, std::size_t{16'384}, std::size_t{16'385}, std::size_t{20'000}}) {
    const std::size_t rows = std::min<std::size_t>(total / row, 500);
    std::vector<std::byte> out(rows * row);
    std::vector<GatherRow> gather(rows);
    for (std::size_t i = 0; i < rows; ++i) gather[i] = {out.data() + i * row, mapped.data() + (i * 7919 % rows) * row};
    guarded_gather(gather, row, mapped.path());
    for (std::size_t i = 0; i < rows; ++i) {
      ASSERT_EQ(std::memcmp(out.data() + i * row, mapped.bytes().data() + (i * 7919 % rows) * row, row), 0) << row;
    }
  }
  guarded_gather({}, 8, mapped.path());
  const GatherRow nothing{nullptr, nullptr};
  guarded_gather({&nothing, 1}, 0, mapped.path());
}

TEST(GuardedGather, SaysThatTheFileWasCut) {
  const Mapped mapped(64);
  mapped.cut(10 * kPage);
  std::vector<std::byte> out(64 * 100);
  std::vector<GatherRow> rows(64);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = {out.data() + i * 100, mapped.data() + i * kPage};
  const auto error = test::error_of([&] { guarded_gather(rows, 100, mapped.path()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kTruncated);
  EXPECT_EQ(error->path(), mapped.path());
  guarded_gather(std::span(rows).first(10), 100, mapped.path());
}

TEST(RequireUncut, SeesWhatAMappingCannotShow) {
  const Mapped mapped(4);
  require_uncut(mapped.source());
  mapped.cut(4 * kPage - 100);
  std::vector<std::byte> out(4 * kPage);
  guarded_copy(out.data(), mapped.data(), out.size(), mapped.path());
  EXPECT_EQ(code_of([&] { require_uncut(mapped.source()); }), ErrorCode::kTruncated);
  const Source memory = memory_source(mapped.memory());
  require_uncut(*memory);
}

// Faults that are not ours. Each runs in a process of its own.

struct Fixture {
  Mapped ours{4};
  Mapped foreign{4};

  Fixture() {
    ours.cut(kPage);
    foreign.cut(kPage);
  }
  /// A guarded copy that fails, so that the handler is there and has worked.
  void use_guard() const {
    if (code_of([&] { copy(ours, 0, 4 * kPage); }) != ErrorCode::kTruncated) ::_exit(1);
  }
  void fault() const {
    const volatile std::byte* gone = foreign.data() + 2 * kPage;
    [[maybe_unused]] const std::byte byte = *gone;
  }
};

void on_plain(int) { ::_exit(41); }
void on_info(int, siginfo_t* info, void*) { ::_exit(info->si_code == BUS_ADRERR && info->si_addr != nullptr ? 42 : 1); }

struct sigaction action_with(void (*handler)(int), int flags = 0) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  return action;
}
struct sigaction action_with(void (*handler)(int, siginfo_t*, void*), int flags = 0) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  return action;
}
struct sigaction install(const struct sigaction& action) {
  struct sigaction before {};
  ::sigaction(SIGBUS, &action, &before);
  return before;
}

class ForeignFault : public testing::Test {
 protected:
  // A child that runs nothing but the statement: earlier tests have left no handlers in it. An emulated program cannot
  // start itself; cases of such suites run first, when it is as it began.
  void SetUp() override {
    ::testing::GTEST_FLAG(death_test_style) = test::emulator() == nullptr ? "threadsafe" : "fast";
  }
};
using ForeignFaultDeathTest = ForeignFault;

TEST_F(ForeignFaultDeathTest, ReachesAnEarlierHandler) {
  const auto run = [] {
    install(action_with(on_plain));
    const Fixture fixture;
    fixture.use_guard();
    fixture.fault();
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(41), "");
}

TEST_F(ForeignFaultDeathTest, ReachesAnEarlierHandlerWithItsDetails) {
  const auto run = [] {
    install(action_with(on_info));
    const Fixture fixture;
    fixture.use_guard();
    fixture.fault();
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(42), "");
}

TEST_F(ForeignFaultDeathTest, KillsWithoutAnEarlierHandler) {
  const auto run = [](void (*handler)(int)) {
    install(action_with(handler));
    const Fixture fixture;
    fixture.use_guard();
    fixture.fault();
  };
  EXPECT_EXIT(run(SIG_DFL), testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(run(SIG_IGN), testing::KilledBySignal(SIGBUS), "");
}

TEST_F(ForeignFaultDeathTest, ASignalThatIsSentDoesWhatItDidBefore) {
  const auto run = [](void (*handler)(int)) {
    install(action_with(handler));
    const Fixture fixture;
    fixture.use_guard();
    ::raise(SIGBUS);
    ::_exit(7);
  };
  EXPECT_EXIT(run(SIG_DFL), testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(run(SIG_IGN), testing::ExitedWithCode(7), "");
  EXPECT_EXIT(run(on_plain), testing::ExitedWithCode(41), "");
}

TEST_F(ForeignFaultDeathTest, ReachesAHandlerThatCameLater) {
  const auto run = [] {
    const Fixture fixture;
    fixture.use_guard();
    install(action_with(on_info));
    fixture.use_guard();
    fixture.fault();
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(42), "");
}

// ThreadSanitizer blocks all signals while a handler runs: what a handler raises comes when it has returned, and one
// that returns to its fault comes again for ever.
#if defined(__SANITIZE_THREAD__)
constexpr bool kSignalsHeldBack = true;
#else
constexpr bool kSignalsHeldBack = false;
#endif

struct sigaction g_before;

/// As Python's faulthandler does it.
void restore_and_raise(int signal) {
  ::sigaction(signal, &g_before, nullptr);
  ::raise(signal);
}
/// As a library does it that knows its own faults.
void pass_back(int signal, siginfo_t* info, void* context) { g_before.sa_sigaction(signal, info, context); }

TEST_F(ForeignFaultDeathTest, EndsWhenALaterHandlerPassesItBack) {
  const auto run = [](const struct sigaction& later) {
    install(action_with(SIG_DFL));
    const Fixture fixture;
    fixture.use_guard();
    g_before = install(later);
    fixture.use_guard();
    fixture.fault();
  };
  if (!kSignalsHeldBack) {
    EXPECT_EXIT(run(action_with(restore_and_raise)), testing::KilledBySignal(SIGBUS), "");
    EXPECT_EXIT(run(action_with(restore_and_raise, SA_NODEFER)), testing::KilledBySignal(SIGBUS), "");
  }
  EXPECT_EXIT(run(action_with(pass_back, SA_NODEFER)), testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(run(action_with(pass_back)), testing::KilledBySignal(SIGBUS), "");
}

sigjmp_buf g_recover;
void jump(int) { siglongjmp(g_recover, 1); }

TEST_F(ForeignFaultDeathTest, MayBeRecoveredFromByAnotherGuard) {
  const auto run = [] {
    install(action_with(jump));
    const Fixture fixture;
    const auto recovers = [&] {
      fixture.use_guard();
      if (sigsetjmp(g_recover, 1) != 0) return true;
      fixture.fault();
      return false;
    };
    ::_exit(recovers() && recovers() && recovers() ? 7 : 1);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(7), "");
}

TEST_F(ForeignFaultDeathTest, AHandlerForOneTimeIsCalledOnce) {
  const auto run = [] {
    install(action_with([](int) {}, static_cast<int>(SA_RESETHAND)));
    const Fixture fixture;
    fixture.use_guard();
    ::raise(SIGBUS);
    fixture.use_guard();
    ::raise(SIGBUS);
    ::_exit(7);
  };
  EXPECT_EXIT(run(), testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace penstock::io
