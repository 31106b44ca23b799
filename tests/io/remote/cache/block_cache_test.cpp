#include "io/remote/cache/block_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "io/remote/cache/block_file.h"
#include "support/files.h"

namespace penstock::io::remote {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHead = 64 << 10;
constexpr std::size_t kSmall = 256 << 10;

class BlockCacheTest : public testing::Test {
 protected:
  static std::string content(std::size_t bytes) {
    std::string out(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>(i * 7 + i / 251);
    return out;
  }
  static CachedObject object(std::uint64_t size) {
    return {.key = std::string(32, 'a'), .etag = "\"e\"", .url = "s3://bucket/x", .size = size};
  }
  /// The one file that the cache has.
  std::string file() const {
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
      if (entry.path().extension() == ".object") return entry.path().string();
    }
    return {};
  }
  static std::string text(const Buffer& buffer) {
    return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
  }

  const test::TemporaryFolder folder_;
  const BlockCache cache_{{.folder = folder_.path().string(), .limit = 100'000'000, .trust = std::chrono::seconds(60)}};
};

TEST_F(BlockCacheTest, SmallObjectsAreFoundWhole) {
  for (const std::size_t size : {std::size_t{1}, kHead - 1, kHead, kHead + 1, kSmall - 1, kSmall, kSmall + 1,
                                 BlockCache::kBlock - 1, BlockCache::kBlock}) {
    const std::string all = content(size);
    cache_.keep(object(size), 0, std::as_bytes(std::span(all)));
    for (const std::size_t small : {std::size_t{0}, kHead, kSmall}) {
      const auto found = cache_.find(object(size).key, kHead, small);
      ASSERT_TRUE(found) << size;
      EXPECT_TRUE(found->is_fresh);
      EXPECT_EQ(found->object.size, size);
      EXPECT_EQ(found->object.etag, "\"e\"");
      EXPECT_EQ(found->object.url, "s3://bucket/x");
      EXPECT_EQ(text(found->head), all.substr(0, size <= small ? size : kHead)) << size << " " << small;
    }
  }
}

TEST_F(BlockCacheTest, OfALargeObjectTheBeginningIsFound) {
  const std::string block = content(BlockCache::kBlock);
  cache_.keep(object(10 * BlockCache::kBlock), 0, std::as_bytes(std::span(block)));
  const auto found = cache_.find(object(0).key, kHead, kSmall);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->object.size, 10 * BlockCache::kBlock);
  EXPECT_EQ(text(found->head), block.substr(0, kHead));
  // More is asked for than is small: no more than the block is there.
  EXPECT_EQ(text(cache_.find(object(0).key, 20 * BlockCache::kBlock, 0)->head), block);
  EXPECT_EQ(text(cache_.find(object(0).key, kHead, 20 * BlockCache::kBlock)->head), block);
}

TEST_F(BlockCacheTest, NoDamagedFileIsFound) {
  for (const std::size_t size : {std::size_t{5}, std::size_t{100'000}, std::size_t{400'000}}) {
    const std::string all = content(size);
    cache_.keep(object(size), 0, std::as_bytes(std::span(all)));
    const std::string path = file();
    const std::string right = test::read_file(path);
    // Of what is not read of a large object nothing is known.
    const std::size_t read = size <= kSmall ? right.size() : kHead;
    for (std::size_t at = 0; at < right.size(); at += at < right.size() - 60 ? 997 : 1) {
      if (at >= read && at < size) continue;
      std::string wrong = right;
      wrong[at] = static_cast<char>(wrong[at] ^ 4);
      test::write_file(path, wrong);
      const auto found = cache_.find(object(size).key, kHead, kSmall);
      // A hash of a piece that was not read may be anything.
      if (found) {
        EXPECT_GT(size, kSmall) << at;
        EXPECT_EQ(text(found->head), all.substr(0, kHead)) << size << " " << at;
      }
    }
    for (std::size_t length = 0; length < right.size(); length += 1 + length / 50) {
      test::write_file(path, right.substr(0, length));
      EXPECT_FALSE(cache_.find(object(size).key, kHead, kSmall)) << size << " " << length;
    }
  }
}

TEST_F(BlockCacheTest, StaysWhereItWasBegun) {
  const fs::path before = fs::current_path();
  fs::create_directory(folder_.path() / "elsewhere");
  fs::current_path(folder_.path());
  const BlockCache cache({.folder = "relative", .limit = 100'000'000});
  const std::string all = content(1000);
  cache.keep(object(all.size()), 0, std::as_bytes(std::span(all)));
  fs::current_path("elsewhere");
  const auto found = cache.find(object(all.size()).key, kHead, kSmall);
  fs::current_path(before);
  ASSERT_TRUE(found);
  EXPECT_EQ(text(found->head), all);
}

}  // namespace
}  // namespace penstock::io::remote
