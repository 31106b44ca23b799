#include "data/trace/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "data/support.h"
#include "penstock/loader.h"
#include "support/errors.h"

// What the JSON says is tests/python/test_trace.py's.

namespace penstock::data {
namespace {

using test::TemporaryFolder;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using What = Trace::What;

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Trace, RefusesAtOnceWhatItCannotWriteAndLeavesNothing) {
  TemporaryFolder folder;
  const auto code = [&](const std::filesystem::path& path) {
    return test::code_of([&] { Trace trace(path.string()); });
  };
  EXPECT_EQ(code(folder.path() / "missing" / "x.json"), ErrorCode::kNotFound);
  EXPECT_EQ(code(folder.path()), ErrorCode::kIsDirectory);
  EXPECT_EQ(code("/dev/null"), ErrorCode::kUnsupported);
  test::write_tensors(folder, test::equal_tensors(1, Shape{3}), ".npy");
  const auto loader = [&] {
    DataLoader(files(folder.path().string()), {.trace = (folder.path() / "missing" / "x.json").string()});
  };
  const auto error = test::error_of(loader);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kNotFound);
  EXPECT_THAT(error->path(), EndsWith("missing/x.json"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Trace, KeepsAMillionEventsAndCountsTheRest) {
  TemporaryFolder folder;
  const std::string path = (folder.path() / "x.json").string();
  constexpr std::size_t kMore = 12'345;
  Trace trace(path);
  const auto now = Trace::Clock::now();
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        Trace::Lane& lane = trace.lane("thread " + std::to_string(t));
        const std::size_t events = Trace::kMostEvents / 2 + (t == 0 ? kMore : 0);
        for (std::size_t i = 0; i < events; ++i) lane.add(What::kRead, now, now);
      });
    }
  }
  trace.write();
  const std::string text = test::read_file(path);
  const std::size_t kept = count(text, "\"ph\":\"X\"");
  EXPECT_LE(kept, Trace::kMostEvents);
  EXPECT_GT(kept, Trace::kMostEvents - 2000) << "but for what is free in the last block of each thread";
  const std::string dropped = std::to_string(Trace::kMostEvents + kMore - kept);
  EXPECT_THAT(text.substr(text.size() - 60), HasSubstr("\"dropped_events\":" + dropped + "}"));
}

TEST(Trace, WritesAtItsEndAndWhenAsked) {
  TemporaryFolder folder;
  const std::string path = (folder.path() / "x.json").string();
  {
    Trace trace(path);
    const auto now = Trace::Clock::now();
    Trace::Lane& lane = trace.lane("one");
    lane.add(What::kBatch, now, now, 7);
    trace.write();
    EXPECT_EQ(count(test::read_file(path), "\"args\":{\"batch\":7}"), 1U);
    lane.add(What::kCopy, now, now);
    EXPECT_EQ(count(test::read_file(path), "\"copy\""), 0U);
  }
  EXPECT_EQ(count(test::read_file(path), "\"copy\""), 1U);
}

TEST(Trace, WritesAtItsEndWhatFailedBefore) {
  TemporaryFolder folder;
  const std::filesystem::path inner = folder.path() / "inner";
  const std::filesystem::path aside = folder.path() / "aside";
  std::filesystem::create_directory(inner);
  {
    Trace trace((inner / "x.json").string());
    const auto now = Trace::Clock::now();
    trace.lane("one").add(What::kBatch, now, now, 7);
    std::filesystem::rename(inner, aside);
    EXPECT_EQ(test::code_of([&] { trace.write(); }), ErrorCode::kNotFound);
    std::filesystem::rename(aside, inner);
  }
  EXPECT_EQ(count(test::read_file(inner / "x.json"), "\"args\":{\"batch\":7}"), 1U);
}

TEST(Trace, TheLoaderWritesIt) {
  TemporaryFolder folder;
  const TemporaryFolder out;
  test::write_tensors(folder, test::equal_tensors(20, Shape{10}), ".npy");
  for (const std::size_t workers : {0U, 1U, 4U}) {
    const std::string path = (out.path() / std::to_string(workers)).string();
    {
      DataLoader loader(files(folder.path().string()), {.batch_size = 4, .num_workers = workers, .trace = path});
      ASSERT_TRUE(loader.next());
      ASSERT_TRUE(loader.next());  // broken off in the middle
    }
    const std::string text = test::read_file(path);
    EXPECT_GE(count(text, "\"name\":\"copy\""), 2U) << workers;
    EXPECT_EQ(count(text, "\"wait for batch\""), 2U) << workers;
    EXPECT_THAT(text, HasSubstr("\"dropped_events\":0}}"));
  }
  DataLoader untraced(files(folder.path().string()), {});
  EXPECT_EQ(test::code_of([&] { untraced.write_trace(); }), ErrorCode::kInvalidArgument);
}

TEST(Trace, MayBeWrittenWhileWorkersAdd) {
  TemporaryFolder folder;
  const TemporaryFolder out;
  test::write_tensors(folder, test::equal_tensors(50, Shape{10}), ".npy");
  const std::string path = (out.path() / "x").string();
  DataLoader loader(files(folder.path().string()), {.batch_size = 1, .num_workers = 3, .trace = path});
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(loader.next());
    loader.write_trace();
    ASSERT_EQ(count(test::read_file(path), "\"wait for batch\""), static_cast<std::size_t>(i) + 1);
  }
}

}  // namespace
}  // namespace penstock::data
