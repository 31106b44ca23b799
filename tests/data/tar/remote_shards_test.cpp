// Shards behind URLs: how much is asked for at once and ahead, and that the samples are those of the shards here.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "data/tar/shards.h"
#include "support/served_folder.h"

namespace penstock {
namespace {

using test::tar_end;
using test::tar_member;

/// Samples of 64 KiB, so that a shard of 100 is more than one piece.
std::string large_shard(std::int64_t first, std::int64_t count) {
  std::string out;
  for (std::int64_t i = first; i < first + count; ++i) {
    const std::string key = test::number_text(i);
    out += tar_member(key + ".bin", std::string(64 << 10, static_cast<char>('a' + i % 26)));
    out += tar_member(key + ".cls", std::to_string(i));
  }
  return out + tar_end();
}

class RemoteShards : public ::testing::Test {
 protected:
  RemoteShards() {
    test::write_file(folder_ / "000.tar", large_shard(0, 100));
    test::write_file(folder_ / "001.tar", large_shard(100, 30));
    test::write_file(folder_ / "002.tar", large_shard(130, 120));
  }
  Dataset here() const { return shards(folder_ / "*.tar", {.index = false}); }
  Dataset there() const { return shards(served_.url("{000..002}.tar"), {.index = false}); }
  static Value batches(const Dataset& dataset, bool shuffle, std::size_t workers) {
    DataLoader loader(dataset, {.batch_size = 10, .shuffle = shuffle, .num_workers = workers, .seed = 1});
    std::vector<Value> out;
    while (auto batch = loader.next()) out.push_back(batch->value);
    return Value::list(std::move(out));
  }

  test::TemporaryFolder folder_{test::quick_folder()};
  test::ServedFolder served_{folder_.path()};
};

TEST_F(RemoteShards, AreReadInOrderByLargeRuns) {
  const Dataset there = this->there();
  ASSERT_EQ(there.size(), 250);
  for (const std::size_t workers : {0U, 3U}) {
    const std::size_t before = served_.requests().size();
    EXPECT_EQ(test::bits_of(batches(there, false, workers)), test::bits_of(batches(here(), false, 0)));
    // 17 MB in pieces of 4 MiB, what is read before there is an order, and requests that were slow and made twice.
    EXPECT_LE(served_.requests().size() - before, 20U) << workers;
  }
  const std::size_t before = served_.requests().size();
  for (std::int64_t i = 0; i < 250; ++i) EXPECT_EQ(there.get(i)["cls"].as_int(), i);
  EXPECT_LE(served_.requests().size() - before, 40U) << "one by one, as functions of map take them";
}

TEST_F(RemoteShards, InAnyOrderAreReadAlone) {
  const Dataset there = this->there();
  ASSERT_EQ(there.size(), 250);
  const std::size_t before = served_.requests().size();
  EXPECT_EQ(test::bits_of(batches(there, true, 2)), test::bits_of(batches(here(), true, 0)));
  EXPECT_LE(served_.bytes_asked(before), std::uint64_t{250} * (90 << 10)) << "those of the samples, and few twice";
}

TEST_F(RemoteShards, AnObjectThatIsGoneIsNamedInOrderToo) {
  const Dataset there = this->there();
  ASSERT_EQ(there.size(), 250);
  for (std::int64_t i = 0; i < 20; ++i) static_cast<void>(there.get(i));
  std::filesystem::remove(folder_.path() / "002.tar");  // of which nothing was asked for yet
  const auto error = test::error_of([&] {
    for (std::int64_t i = 20; i < 250; ++i) static_cast<void>(there.get(i));
  });
  ASSERT_TRUE(error);
  EXPECT_NE(std::string(error->what()).find("002.tar"), std::string::npos) << error->what();
}

TEST_F(RemoteShards, StreamsAskAheadOverTheEndsOfShards) {
  // A piece is 8 MiB, so each shard is one; the first two are answered when both have been asked for.
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t begun = 0;
  const test::HttpServer server([&](const test::HttpRequest& request) {
    const std::string name = request.target.substr(1);
    if (request.header("range") != "bytes=0-65535" && name != "002.tar") {
      std::unique_lock lock(mutex);
      ++begun;
      changed.notify_all();
      if (!changed.wait_for(lock, std::chrono::seconds(60), [&] { return begun >= 2; })) return std::string();
    }
    return test::http_range(request, test::read_file(folder_ / name));
  });
  std::int64_t next = 0;
  for (const Value& sample : stream(shards(server.url("/{000..002}.tar"), {.index = false}))) {
    EXPECT_EQ(sample["cls"].as_int(), next++);
  }
  EXPECT_EQ(next, 250);
}

TEST_F(RemoteShards, StreamsGoOnInTheMiddleAndBehindAShardThatIsNotThere) {
  const std::string pattern = served_.url("{000..002}.tar");
  std::filesystem::remove(folder_.path() / "001.tar");
  DataLoader loader(stream(shards(pattern, {.index = false})), {.batch_size = 1, .num_workers = 0});
  std::vector<std::int64_t> found;
  const auto take = [&] {
    while (const auto batch = loader.next()) {
      found.push_back(test::values_of<std::int64_t>(batch->value["cls"].as_tensor())[0]);
    }
  };
  EXPECT_EQ(test::code_of(take), ErrorCode::kNotFound);
  EXPECT_EQ(found.size(), 100U);
  take();
  EXPECT_EQ(found.size(), 220U);
  EXPECT_EQ(found.back(), 249);
}

TEST_F(RemoteShards, TheIndexOfOneReadsAhead) {
  // 30 MB of small members: windows that have grown to 8 MiB are asked for together.
  test::write_file(folder_ / "long.tar", large_shard(0, 460));
  EXPECT_EQ(shards(served_.url("long.tar"), {.index = false}).size(), 460);
  EXPECT_LE(served_.requests().size(), 20U);
}

}  // namespace
}  // namespace penstock
