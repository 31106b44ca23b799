#include "archive/block_layout.h"

#include <gtest/gtest.h>

#include <random>

#include "support/errors.h"

namespace penstock::archive {
namespace {

BlockItem item(std::uint32_t source, std::uint64_t offset, std::uint64_t bytes) { return {source, offset, bytes}; }

TEST(BlockLayout, SmallStoragesShareABlockInFileOrder) {
  const std::vector<BlockItem> items = {item(0, 500, 10), item(0, 100, 100), item(0, 300, 64)};
  const BlockLayout layout = lay_out(items);
  ASSERT_EQ(layout.blocks.size(), 1U);
  EXPECT_EQ(layout.places[1].offset, 0U);
  EXPECT_EQ(layout.places[2].offset, 128U);
  EXPECT_EQ(layout.places[0].offset, 192U);
  EXPECT_EQ(layout.blocks[0], 202U);
}

TEST(BlockLayout, PlacesAreInTheOrderOfTheItems) {
  const std::vector<BlockItem> items = {item(0, 20, 10), item(0, 0, 10)};
  const BlockLayout layout = lay_out(items);
  ASSERT_EQ(layout.places.size(), 2U);
  EXPECT_EQ(layout.places[0].offset, 64U);
  EXPECT_EQ(layout.places[1].offset, 0U);
  EXPECT_EQ(layout.blocks, std::vector<std::uint64_t>{74});
  EXPECT_TRUE(lay_out({}).blocks.empty());
}

TEST(BlockLayout, LargeStoragesStandAlone) {
  const std::uint64_t large = kMaxGrouped + 1;
  const std::vector<BlockItem> items = {item(0, 0, 8), item(0, 8, large), item(0, 8 + large, 8), item(1, 0, 8)};
  const BlockLayout layout = lay_out(items);
  ASSERT_EQ(layout.blocks.size(), 2U);
  EXPECT_EQ(layout.blocks[layout.places[1].block], large);
  EXPECT_EQ(layout.places[0].block, layout.places[2].block);
  EXPECT_EQ(layout.places[0].block, layout.places[3].block);
}

TEST(BlockLayout, OneBlockHoldsAllWhateverTheirSize) {
  const std::vector<BlockItem> items = {item(0, 0, kMaxGrouped + 1), item(1, 0, kMaxBlock), item(0, kMaxBlock, 8)};
  const BlockLayout layout = lay_out(items, Blocks::kOne);
  ASSERT_EQ(layout.blocks.size(), 1U);
  EXPECT_EQ(layout.places[0].offset, 0U);
  EXPECT_EQ(layout.places[2].offset, kMaxGrouped + 64);
  EXPECT_EQ(layout.blocks[0], layout.places[1].offset + kMaxBlock);
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;
  const std::vector<BlockItem> endless = {item(0, 0, kHuge), item(1, 0, kHuge)};
  const auto error = test::error_of([&] { lay_out(endless, Blocks::kOne); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kCorrupt);
}

TEST(BlockLayout, LargeStoragesLieAsInTheirFile) {
  const std::uint64_t large = std::uint64_t{1} << 20;
  std::vector<BlockItem> items = {
      item(0, 128, large),        item(0, 128 + large, 10),       item(0, 8'000'064, large + 1),
      item(0, 16'000'008, large), item(0, 24'000'064, large - 1), item(0, 32'000'064, kMaxGrouped + 1),
      item(0, 200'000'064, large)};
  items.back().as_stored = false;
  const BlockLayout layout = lay_out(items);
  for (const std::size_t i : {0, 2, 5}) {
    EXPECT_EQ(layout.places[i].offset % phase_unit(), items[i].offset % phase_unit()) << i;
  }
  EXPECT_EQ(layout.places[0].offset, 128U);
  EXPECT_EQ(layout.blocks[layout.places[5].block], layout.places[5].offset + kMaxGrouped + 1);
  // Behind one another where the file does not align them, where they are small and where they are deflated.
  for (const std::size_t i : {1, 3, 4, 6}) {
    const std::size_t before = i == 6 ? 4 : i - 1;
    const std::uint64_t end = layout.places[before].offset + items[before].bytes;
    EXPECT_EQ(layout.places[i].offset, (end + 63) / 64 * 64) << i;
  }
}

TEST(BlockLayout, NothingOverlapsAndBlocksAreBounded) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<BlockItem> items;
    std::uint64_t at = 0;
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t bytes = random() % 3 == 0 ? random() % (2 * kMaxGrouped) : random() % 1000;
      items.push_back(item(static_cast<std::uint32_t>(random() % 2), at += random() % 100, bytes));
      at += bytes;
    }
    const BlockLayout layout = lay_out(items);
    std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>> taken(layout.blocks.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      const BlockLayout::Place place = layout.places[i];
      EXPECT_EQ(place.offset % kStorageAlignment, 0U);
      EXPECT_LE(place.offset + items[i].bytes, layout.blocks[place.block]);
      if (items[i].bytes != 0) taken[place.block].emplace_back(place.offset, place.offset + items[i].bytes);
    }
    for (std::size_t b = 0; b < taken.size(); ++b) {
      std::sort(taken[b].begin(), taken[b].end());
      for (std::size_t i = 1; i < taken[b].size(); ++i) EXPECT_LE(taken[b][i - 1].second, taken[b][i].first);
      EXPECT_TRUE(layout.blocks[b] <= kMaxBlock || taken[b].size() == 1);
    }
  }
}

}  // namespace
}  // namespace penstock::archive
